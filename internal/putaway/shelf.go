package putaway

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// Kept is quarantine in a store, read.
type Kept interface {
	// Quarantined reads at most limit messages that come after one, or after 0, the oldest first. None: there are no more.
	Quarantined(ctx context.Context, after int64, limit int) (store.QuarantinePage, error)
	// QuarantinedMessage reads one. store.ErrNotFound.
	QuarantinedMessage(ctx context.Context, id int64) (store.Quarantined, error)
}

// Shelf is the quarantine of an engine in one process, which keeps it in its store.
type Shelf struct {
	Kept Kept
	// Job looks a job up, without payloads. ErrNoJob.
	Job func(ctx context.Context, id string) (makegood.Job, error)
	// Handle has a message of the events queue dealt with; after nil, its effect is stored.
	Handle func(ctx context.Context, m queue.Message) error
	// Remove deletes a message, durably. store.ErrNotFound.
	Remove func(ctx context.Context, id int64) error
}

// Page reads at most limit messages, the oldest first. api.InvalidError: the cursor is of no page.
func (s Shelf) Page(ctx context.Context, cursor string, limit int) (api.QuarantinePage, error) {
	after := int64(0)
	if cursor != "" {
		var known bool
		if after, known = number(cursor); !known {
			return api.QuarantinePage{}, &api.InvalidError{Message: fmt.Sprintf("the cursor %.40q is of no page of quarantine", cursor)}
		}
	}
	kept, err := s.Kept.Quarantined(ctx, after, limit)
	if err != nil {
		return api.QuarantinePage{}, err
	}
	page := api.QuarantinePage{Messages: []api.PutAway{}, Dropped: kept.Dropped}
	for _, q := range kept.Messages {
		page.Messages = append(page.Messages, taken(q))
		page.Cursor = name(q.ID)
	}
	return page, nil
}

// Get reads a message, and the outcome of a replay. api.ErrNoMessage.
func (s Shelf) Get(ctx context.Context, id string) (api.Quarantined, error) {
	l, err := s.find(ctx, id)
	if err != nil {
		return api.Quarantined{}, err
	}
	p, err := s.replayer().plan(ctx, l)
	return api.Quarantined{PutAway: l, Replay: p.Outcome}, err
}

// Replay is like Bundle.Replay, except that the message's effect is stored when it is removed. api.ErrNoMessage.
func (s Shelf) Replay(ctx context.Context, id string) (api.Replayed, error) {
	l, err := s.find(ctx, id)
	if err != nil {
		return api.Replayed{}, err
	}
	return s.replayer().replay(ctx, l, func(ctx context.Context) error {
		if err := s.Drop(ctx, id); !errors.Is(err, api.ErrNoMessage) {
			return err
		}
		return nil // Another one was faster, and twice is once.
	})
}

// Drop deletes a message, durably. api.ErrNoMessage.
func (s Shelf) Drop(ctx context.Context, id string) error {
	n, known := number(id)
	if !known {
		return api.ErrNoMessage
	}
	err := s.Remove(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return api.ErrNoMessage
	}
	return err
}

func (s Shelf) find(ctx context.Context, id string) (Message, error) {
	n, known := number(id)
	if !known {
		return Message{}, api.ErrNoMessage
	}
	q, err := s.Kept.QuarantinedMessage(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return Message{}, api.ErrNoMessage
	}
	return taken(q), err
}

func (s Shelf) replayer() replayer {
	return replayer{job: s.Job, send: func(ctx context.Context, name string, m queue.Message) error {
		if name != eventsQueue {
			return fmt.Errorf("queue %s: %w", name, queue.ErrNoQueue)
		}
		return s.Handle(ctx, m)
	}}
}

// taken says what a message is that a store keeps.
func taken(q store.Quarantined) Message {
	l := Message{ID: name(q.ID), Queue: quarantine, SentAt: q.At, Body: q.Body}
	unwrap(&l, "")
	describe(&l)
	return l
}

// name is the id of a stored message, and number the reverse, if the id can be one.
func name(id int64) string { return strconv.FormatInt(id, 10) }

func number(id string) (n int64, known bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	return n, err == nil && n > 0 && name(n) == id
}

package putaway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
)

// drawer is the quarantine of a store in memory, of which each operation may fail, and an events queue.
type drawer struct {
	all                           []store.Quarantined
	handled                       []queue.Message
	reads, looks, handles, remove error
}

func (d *drawer) Quarantined(_ context.Context, after int64, limit int) (store.QuarantinePage, error) {
	page := store.QuarantinePage{Dropped: 3}
	for _, q := range d.all {
		if q.ID > after && len(page.Messages) < limit {
			page.Messages = append(page.Messages, q)
		}
	}
	return page, d.reads
}

func (d *drawer) QuarantinedMessage(_ context.Context, id int64) (store.Quarantined, error) {
	for _, q := range d.all {
		if q.ID == id {
			return q, d.looks
		}
	}
	return store.Quarantined{}, store.ErrNotFound
}

func (d *drawer) shelf(jobs ...makegood.Job) putaway.Shelf {
	return putaway.Shelf{
		Kept: d,
		Job: func(_ context.Context, id string) (makegood.Job, error) {
			for _, j := range jobs {
				if j.ID == id {
					return j, nil
				}
			}
			return makegood.Job{}, putaway.ErrNoJob
		},
		Handle: func(_ context.Context, m queue.Message) error {
			if d.handles == nil {
				d.handled = append(d.handled, m)
			}
			return d.handles
		},
		Remove: func(_ context.Context, id int64) error {
			if d.remove != nil {
				return d.remove
			}
			before := len(d.all)
			d.all = slices.DeleteFunc(d.all, func(q store.Quarantined) bool { return q.ID == id })
			if len(d.all) == before {
				return store.ErrNotFound
			}
			return nil
		},
	}
}

// put puts a message into the drawer as an engine does that got it from a queue, and returns its id.
func (d *drawer) put(t *testing.T, from, body string) string {
	t.Helper()
	text, err := json.Marshal(sqsbatch.Quarantined{
		V: 1, Type: sqsbatch.TypeQuarantined, Reason: "because", Source: "arn:aws:sqs:local:000000000000:" + from, ReceiveCount: 2, Body: body,
	})
	if err != nil {
		t.Fatal(err)
	}
	id := int64(len(d.all) + 1)
	d.all = append(d.all, store.Quarantined{ID: id, At: due, Body: string(text)})
	return fmt.Sprint(id)
}

// What a store keeps is read in pages, the oldest first, each message with what it says of itself.
func TestTheShelfIsReadInPages(t *testing.T) {
	var d drawer
	for range 3 {
		d.put(t, "events", reply())
	}
	d.put(t, "submissions", submission())
	first, err := d.shelf().Page(t.Context(), "", 3)
	check(t, err)
	rest, err := d.shelf().Page(t.Context(), first.Cursor, 3)
	check(t, err)
	end, err := d.shelf().Page(t.Context(), rest.Cursor, 3)
	check(t, err)
	var ids []string
	for _, l := range slices.Concat(first.Messages, rest.Messages, end.Messages) {
		ids = append(ids, l.ID)
	}
	if !slices.Equal(ids, []string{"1", "2", "3", "4"}) || end.Cursor != "" || first.Dropped != 3 || end.Messages == nil {
		t.Errorf("got %q, the last cursor %q, %d dropped, want four, none, 3", ids, end.Cursor, first.Dropped)
	}
	said := putaway.Message{
		ID: "1", Queue: putaway.Quarantine, Source: "events", Type: "StepSucceeded", Job: "j", Step: "charge", Attempt: 2, Reason: "because",
		Deliveries: 2, SentAt: due, Body: reply(),
	}
	if first.Messages[0] != said {
		t.Errorf("got %+v, want %+v", first.Messages[0], said)
	}
	if l := rest.Messages[0]; l.Type != "Submit" || l.Job != "o-1" || l.Source != "submissions" {
		t.Errorf("got %+v, want the submission of job o-1", l)
	}
}

func TestACursorOfNoPageIsRefused(t *testing.T) {
	var d drawer
	for _, cursor := range []string{"x", "0", "-1", "01", "1.5"} {
		var invalid *api.InvalidError
		if _, err := d.shelf().Page(t.Context(), cursor, 10); !errors.As(err, &invalid) {
			t.Errorf("cursor %q: got %v, want that it is of no page", cursor, err)
		}
	}
}

// A message is looked at, replayed and dropped by its id alone; no other name is one.
func TestAnIDOfNoMessageIsToldOf(t *testing.T) {
	var d drawer
	d.put(t, "events", reply())
	s := d.shelf()
	for _, id := range []string{"", "x", "0", "-1", "01", "2"} {
		_, get := s.Get(t.Context(), id)
		_, replay := s.Replay(t.Context(), id)
		for what, err := range map[string]error{"get": get, "replay": replay, "drop": s.Drop(t.Context(), id)} {
			if !errors.Is(err, api.ErrNoMessage) {
				t.Errorf("%s %q: got %v, want %v", what, id, err, api.ErrNoMessage)
			}
		}
	}
	if len(d.all) != 1 || len(d.handled) != 0 {
		t.Errorf("%d are left, and %d were sent, want one and none", len(d.all), len(d.handled))
	}
}

// A look says what a replay would do, and does nothing; the replay does it, and removes the message.
func TestAMessageOfAShelfIsReplayedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		from, body string
		jobs       []makegood.Job
		result     putaway.Result
		handled    int
	}{
		"a reply":                          {"events", reply(), nil, putaway.Sent, 1},
		"a task whose attempt is out":      {"tasks-payments", task(2), []makegood.Job{charging(2)}, putaway.Asked, 1},
		"a task whose job is gone":         {"tasks-payments", task(2), nil, putaway.Over, 0},
		"a submission of unknown origin":   {"submissions", submission(), nil, putaway.Refused, 0},
		"a message that nobody understood": {"events", "boo", nil, putaway.Refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var d drawer
			id := d.put(t, c.from, c.body)
			s := d.shelf(c.jobs...)
			looked, err := s.Get(t.Context(), id)
			if err != nil || looked.ID != id || looked.Replay.Result != c.result || len(d.handled) > 0 || len(d.all) != 1 {
				t.Fatalf("a look: got %+v, %v, want %s and nothing done", looked, err, c.result)
			}
			got, err := s.Replay(t.Context(), id)
			if err != nil || got != looked.Replay || len(d.handled) != c.handled || len(d.all) > 0 != (c.result == putaway.Refused) {
				t.Errorf("got %+v, %v, %d sent, %d left, want %s and %d sent", got, err, len(d.handled), len(d.all), c.result, c.handled)
			}
			if c.handled > 0 && d.handled[0].Group != "j" {
				t.Errorf("it was sent in the order of %q, want that of its job", d.handled[0].Group)
			}
		})
	}
}

// After an error the message is there still, unless another replay has removed it: that is no error.
func TestAShelfThatFailsLosesNoMessage(t *testing.T) {
	var d drawer
	id := d.put(t, "events", reply())
	s := d.shelf()
	replay := func() error {
		_, err := s.Replay(t.Context(), id)
		return err
	}
	for what, c := range map[string]struct {
		at *error
		do func() error
	}{
		"a page": {&d.reads, func() error { _, err := s.Page(t.Context(), "", 10); return err }},
		"a look": {&d.looks, func() error { _, err := s.Get(t.Context(), id); return err }},
		"a replay of a message that cannot be read":    {&d.looks, replay},
		"a replay that cannot be stored":               {&d.handles, replay},
		"a replay of a message that cannot be removed": {&d.remove, replay},
		"a drop": {&d.remove, func() error { return s.Drop(t.Context(), id) }},
	} {
		*c.at = errDown
		if err := c.do(); !errors.Is(err, errDown) || len(d.all) != 1 {
			t.Errorf("%s: got %v and %d left, want that it is down, and one", what, err, len(d.all))
		}
		*c.at = nil
	}
	d.remove = store.ErrNotFound
	if err := replay(); err != nil {
		t.Errorf("another one was faster: got %v, want none", err)
	}
	d.remove = nil
	if err := s.Drop(t.Context(), id); err != nil || len(d.all) != 0 {
		t.Errorf("a drop: got %v and %d left, want none", err, len(d.all))
	}
}

// A job that cannot be looked up leaves it open what a replay of its task would do.
func TestATaskWhoseJobCannotBeLookedUpStays(t *testing.T) {
	var d drawer
	id := d.put(t, "tasks-payments", task(2))
	s := d.shelf()
	s.Job = func(context.Context, string) (makegood.Job, error) { return makegood.Job{}, errDown }
	if _, err := s.Get(t.Context(), id); !errors.Is(err, errDown) {
		t.Errorf("a look: got %v, want %v", err, errDown)
	}
	if _, err := s.Replay(t.Context(), id); !errors.Is(err, errDown) || len(d.all) != 1 {
		t.Errorf("a replay: got %v and %d left, want %v and one", err, len(d.all), errDown)
	}
}

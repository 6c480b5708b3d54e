package agentdoor

import (
	"context"
	"errors"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
)

// ErrOver: the attempt has ended, or is not the asker's. It reads and writes no payload.
var ErrOver = errors.New("the attempt has ended, or is another's")

// Attempt names an attempt: its agent and job, and the claim or token that holds it.
type Attempt struct {
	Agent, Job string
	Reply      job.Reply
}

// WritePayload stores the bytes of from for the job of an attempt, under the name of its agent, if the caller holds the
// attempt before, on the way, and at the end: else ErrOver, and nothing is stored. ErrUnknown, ErrUploads; other errors
// are those of payload.Store.
func (d *Door) WritePayload(ctx context.Context, a Attempt, mediaType string, from io.Reader) (makegood.Payload, error) {
	who := d.agents[a.Agent]
	if who == nil {
		return makegood.Payload{}, ErrUnknown
	}
	select {
	case who.uploads <- struct{}{}:
		defer func() { <-who.uploads }()
	default:
		return makegood.Payload{}, ErrUploads
	}
	if err := d.mayTouch(ctx, a); err != nil {
		return makegood.Payload{}, err
	}
	lasting := &lasting{from: from, still: func() error { return d.mayTouch(ctx, a) }}
	written, err := d.config.Large.Write(ctx, payload.Place{Job: a.Job, By: a.Agent}, lasting)
	if err != nil {
		return makegood.Payload{}, err
	}
	return makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes, Type: mediaType, By: a.Agent}, nil
}

// OpenPayload reads a payload of the job of an attempt, by any author, as payload.Store does, if the caller holds the
// attempt: else ErrOver.
func (d *Door) OpenPayload(ctx context.Context, a Attempt, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	if err := d.mayTouch(ctx, a); err != nil {
		return nil, err
	}
	return d.config.Large.Open(ctx, a.Job, p, offset, n)
}

// mayTouch returns ErrOver unless the caller holds the attempt, checked as for heartbeats and replies. It does not
// matter whether the result is still wanted: an attempt counts until it has ended.
func (d *Door) mayTouch(ctx context.Context, a Attempt) error {
	if d.config.Large == nil {
		return payload.ErrNone
	}
	task, out, err := d.taskOut(ctx, a.Job, a.Reply)
	if err != nil {
		return err
	}
	now := d.config.Now()
	switch {
	case !out || task.Agent != a.Agent:
		return ErrOver
	case task.Shared && now.Before(task.CompleteBy):
		return nil // A shared task has no claim, so its token suffices.
	}
	_, held, err := d.claimOf(ctx, task, a.Reply.LockedBy, now)
	if err == nil && !held {
		err = ErrOver
	}
	return err
}

// askEvery is the number of bytes between two checks that they are still wanted.
const askEvery = 4 << 20

// lasting reads from another reader, and checks now and then, and at the end, that the bytes are still wanted.
type lasting struct {
	from    io.Reader
	still   func() error
	unasked int
}

// Read reads on. An end is one only if it is in time.
func (l *lasting) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	l.unasked += n
	ends := errors.Is(err, io.EOF)
	if !ends && l.unasked < askEvery {
		return n, err
	}
	l.unasked = 0
	if over := l.still(); over != nil {
		return n, over
	}
	return n, err
}

// Package together puts the messages of several callers into one request: while a request to a queue is under way,
// other messages for it wait, and go with the next. So batches fill by themselves the busier a process is, and a caller
// that is alone never waits.
//
// It keeps no message for later: each caller waits for the answer. A process that dies meanwhile loses no message that
// its caller would not send again.
package together

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// patience is how long messages wait at most for a request that is under way: one that hangs holds up its own alone.
const patience = 50 * time.Millisecond

// errNoAnswer: the sender beneath has panicked.
var errNoAnswer = errors.New("the request ended without an answer")

// Sender is a queue.Sender. It may be used by many goroutines at once.
type Sender struct {
	queue.Sender
	mu    sync.Mutex
	lines map[string]*line
}

// New returns a Sender that sends with another.
func New(with queue.Sender) *Sender { return &Sender{Sender: with, lines: make(map[string]*line)} }

// line is where messages for one queue wait.
type line struct {
	underWay int
	waiting  []*parcel
	messages int // of all that wait
	// ended is closed when the next request ends.
	ended chan struct{}
}

// parcel is the messages of one caller.
type parcel struct {
	ctx      context.Context
	messages []queue.Message
	// left says that a request takes it; answer has room for the outcome.
	left   bool
	answer chan []error
}

// Send implements queue.Sender. A request that takes along messages of other callers has the time of the one that has
// most.
func (s *Sender) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	p := &parcel{ctx: ctx, messages: messages, answer: make(chan []error, 1)}
	going, l, ended := s.join(name, p)
	if going == nil {
		going = s.await(l, p, ended)
	}
	if going != nil {
		s.request(name, l, going)
	}
	return p.wait()
}

// wait returns the answer, or that the caller has no more time for one.
func (p *parcel) wait() []error {
	select {
	case errs := <-p.answer:
		return errs
	case <-p.ctx.Done():
	}
	select {
	case errs := <-p.answer: // It was sent, or not, before the time was over.
		return errs
	default:
		return p.failed(context.Cause(p.ctx))
	}
}

// join puts a parcel into the line of a queue, and returns all that must go now: a full batch does not wait. nil: it
// waits until ended is closed.
func (s *Sender) join(name string, p *parcel) (going []*parcel, l *line, ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l = s.lines[name]
	if l == nil {
		l = &line{ended: make(chan struct{})}
		s.lines[name] = l
	}
	l.waiting = append(l.waiting, p)
	l.messages += len(p.messages)
	if l.underWay == 0 || l.messages >= limits.MaxBatch {
		return l.take(), l, nil
	}
	return nil, l, l.ended
}

// await waits for the end of a request, and returns all that must go then; nil: the parcel goes with another, or its
// caller has left.
func (s *Sender) await(l *line, p *parcel, ended <-chan struct{}) (going []*parcel) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	case <-p.ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.left:
		return nil
	case p.ctx.Err() != nil:
		l.remove(p)
		return nil
	}
	return l.take()
}

// take takes all that waits, for a request.
func (l *line) take() (going []*parcel) {
	for _, p := range l.waiting {
		p.left = true
	}
	going, l.waiting, l.messages = l.waiting, nil, 0
	l.underWay++
	return going
}

func (l *line) remove(p *parcel) {
	l.waiting = slices.DeleteFunc(l.waiting, func(other *parcel) bool { return other == p })
	l.messages -= len(p.messages)
}

// request makes a request, and gives each parcel in it its answer.
func (s *Sender) request(name string, l *line, going []*parcel) {
	ctx, cancel := longest(going)
	defer cancel()
	all := slices.Clip(going[0].messages)
	for _, p := range going[1:] {
		all = append(all, p.messages...)
	}
	said := func(p *parcel) []error { return p.failed(errNoAnswer) }
	defer func() {
		for _, p := range going {
			p.answer <- said(p)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		l.underWay--
		close(l.ended)
		l.ended = make(chan struct{})
	}()
	errs := s.Sender.Send(ctx, name, all...)
	said = func(p *parcel) (own []error) {
		if errs != nil {
			own, errs = errs[:len(p.messages)], errs[len(p.messages):]
		}
		return own
	}
}

// longest returns a context that ends when the last of these would. One that is alone has its own.
func longest(going []*parcel) (ctx context.Context, cancel context.CancelFunc) {
	ctx = going[0].ctx
	if len(going) == 1 {
		return ctx, func() {}
	}
	ctx = context.WithoutCancel(ctx)
	var latest time.Time
	for _, p := range going {
		end, ends := p.ctx.Deadline()
		if !ends {
			return ctx, func() {}
		}
		if end.After(latest) {
			latest = end
		}
	}
	return context.WithDeadline(ctx, latest)
}

// failed is an error for each message.
func (p *parcel) failed(err error) []error {
	errs := make([]error, len(p.messages))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

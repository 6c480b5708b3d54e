package faultqueue

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
)

// fate is what becomes of one message of a Send.
type fate struct {
	fault Fault
	// copies are the messages to send for it: none, itself, or two.
	copies []queue.Message
}

// parcel is a message on its way to the inner Send, and which one of the caller's it is.
type parcel struct {
	message queue.Message
	of      int
}

// Send is that of inner, with every fault at its rate for each message on its own. A message that
// inner refuses is refused, unless it was lost before.
func (q *Queues) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	errs := make([]error, len(messages))
	call, fault, err := q.begin(Send, name)
	if err != nil {
		return fill(errs, err)
	}
	fates, parcels := q.decide(messages)
	sent := make([]queue.Message, len(parcels))
	for i, p := range parcels {
		sent[i] = p.message
	}
	for i, err := range q.inner.Send(ctx, name, sent...) {
		// The other copy of a message may have been sent. It is unknown then, as an error says.
		if err != nil {
			errs[parcels[i].of] = err
		}
	}
	for i, f := range fates {
		if f.fault != None && errs[i] == nil {
			errs[i] = call.failed(ErrInjected)
		}
	}
	if err := q.end(call, fault, nil); err != nil {
		return fill(errs, err)
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	return errs
}

func fill(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// decide throws the dice for every message, and returns the messages to send, in their sending order.
func (q *Queues) decide(messages []queue.Message) ([]fate, []parcel) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fates := make([]fate, len(messages))
	var parcels []parcel
	for i, m := range messages {
		fates[i] = q.fateOf(m)
		for _, message := range fates[i].copies {
			parcels = append(parcels, parcel{message, i})
		}
	}
	if q.hit(q.options.Reorder) && len(parcels) > 1 {
		q.injected.Reordered++
		q.random.Shuffle(len(parcels), func(i, j int) { parcels[i], parcels[j] = parcels[j], parcels[i] })
	}
	return fates, parcels
}

// fateOf throws the same number of dice for every message, so that a changed rate leaves the faults of other kinds
// where they were. The caller holds mu.
func (q *Queues) fateOf(m queue.Message) fate {
	o := q.options
	before, lost, after, twice := q.hit(o.FailBefore), q.hit(o.Lose), q.hit(o.FailAfter), q.hit(o.Duplicate)
	first, firstLate := q.delayed(m)
	second, secondLate := q.delayed(m)
	switch {
	case before:
		q.injected.FailedBefore++
		return fate{fault: FailBefore}
	case lost:
		q.injected.Lost++
		return fate{}
	}
	f := fate{copies: []queue.Message{first}}
	if twice {
		q.injected.Duplicated++
		f.copies = append(f.copies, second)
	}
	if firstLate || twice && secondLate {
		q.injected.Delayed++
	}
	if after {
		q.injected.FailedAfter++
		f.fault = FailAfter
	}
	return f
}

// delayed returns m with the delay that fate adds to it, and whether there is one.
func (q *Queues) delayed(m queue.Message) (queue.Message, bool) {
	hit := q.hit(q.options.Delay)
	more := 1 + time.Duration(q.random.Int64N(int64(MaxDelay)))
	if !hit || m.Delay < 0 || m.Delay >= queue.MaxDelay {
		return m, false
	}
	m.Delay = min(m.Delay+more, queue.MaxDelay)
	return m, true
}

package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	claims     kind = "claim"
	heartbeats kind = "heartbeat"
	closes     kind = "close"
	looks      kind = "look"
)

// askedSlot is a call on a slot. Which fields count depends on its kind.
type askedSlot struct {
	kind    kind
	claim   job.Claim
	closing store.Closing
}

func (a askedSlot) String() string {
	c, from := a.closing, a.claim.StartedAt
	switch a.kind {
	case claims, heartbeats:
		return fmt.Sprintf("%s #%d by %s until %v", a.kind, a.claim.Attempt, a.claim.LockedBy, a.claim.CompleteBy.Sub(from))
	case looks:
		return fmt.Sprintf("look at #%d", c.Attempt)
	}
	return fmt.Sprintf("close #%d at %v, replied by %q, unwanted: %t", c.Attempt, c.Now.Sub(from), c.LockedBy, !c.Ends.IsZero())
}

// slotState is what lies in a slot.
type slotState struct{ store.ClaimItem }

func (s slotState) step(input, output any) (bool, state) {
	a, got, want, next := input.(askedSlot), output.(answer), answer{}, s.ClaimItem
	until := a.closing.Until
	switch a.kind {
	case claims:
		next, want.err = store.Claimed(s.ClaimItem, a.claim, until)
	case heartbeats:
		if next, want.err = store.Extended(s.ClaimItem, a.claim, until); !errors.Is(want.err, store.ErrTaken) {
			want.completeBy = next.CompleteBy
		}
	case closes:
		next, want.found = store.Closed(s.ClaimItem, a.closing)
	default:
		want.found = store.Looked(s.ClaimItem, a.closing.Attempt, until, a.closing.Now)
	}
	return got == want, slotState{next}
}

// slotClient claims, extends, closes and looks at a slot.
type slotClient struct {
	*scene
	// newest is the newest attempt that this client knows of.
	newest int
}

func (c *slotClient) next(d *rand.Rand, name string, _ int) any {
	// Mostly the newest attempt, sometimes one that is over.
	attempt := max(1, c.newest-d.IntN(4)/3)
	a := askedSlot{claim: c.claim(attempt, name, time.Duration(1+d.IntN(3))*time.Minute)}
	a.closing = c.closing(attempt, time.Duration(d.IntN(4))*time.Minute)
	switch n := d.IntN(12); {
	case n < 4:
		a.kind = claims
		// A time of its own would tell one try of a claim from another.
		a.claim.CompleteBy = c.at(time.Minute)
	case n < 7:
		a.kind = heartbeats
	case n < 8:
		a.kind, a.closing.LockedBy = closes, name
	case n < 9:
		a.kind, a.closing.Ends = closes, c.at(3*time.Minute)
	case n < 11:
		a.kind = closes
	default:
		a.kind = looks
	}
	return a
}

func (c *slotClient) ask(input any) (any, error) {
	a := input.(askedSlot)
	var got answer
	var err error
	switch a.kind {
	case claims:
		err = c.store.Claim(c.ctx, c.slot, a.claim, a.closing.Until)
	case heartbeats:
		got.completeBy, err = c.store.Heartbeat(c.ctx, c.slot, a.claim, a.closing.Until)
	case closes:
		got.found, err = c.store.Close(c.ctx, c.slot, a.closing)
		c.learn(a.closing.Attempt, got.found)
	default:
		got.found, err = c.store.Look(c.ctx, c.slot, a.closing.Attempt, a.closing.Until, a.closing.Now)
		c.learn(a.closing.Attempt, got.found)
	}
	got.err, err = sentinel(err)
	if errors.Is(got.err, store.ErrTaken) {
		got.completeBy = time.Time{}
	}
	return got, err
}

// learn goes on to the attempt after one that has ended, or to a newer one that was found.
func (c *slotClient) learn(attempt int, found job.Found) {
	switch found.Finding {
	case job.FoundNobody, job.FoundSilent, job.FoundReplied:
		c.newest = max(c.newest, attempt+1)
	case job.FoundOver:
		c.newest = max(c.newest, found.Claim.Attempt)
	}
}

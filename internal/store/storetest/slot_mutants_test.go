package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Each mutant changes one thing of what package store says about slots.

// claiming returns a store whose claims see another item, or write another.
func claiming(see func(item *store.ClaimItem, c *job.Claim, until *time.Time), write func(before store.ClaimItem, next *store.ClaimItem)) func(m *model) store.Store {
	return func(m *model) store.Store {
		m.Rules.Claimed = func(item store.ClaimItem, c job.Claim, until time.Time) (store.ClaimItem, error) {
			before := item
			if see != nil {
				see(&item, &c, &until)
			}
			next, err := store.Claimed(item, c, until)
			if err == nil && write != nil {
				write(before, &next)
			}
			return next, err
		}
		return m
	}
}

// extending does the same to heartbeats.
func extending(see func(item *store.ClaimItem, c *job.Claim), write func(before store.ClaimItem, next *store.ClaimItem, err *error)) func(m *model) store.Store {
	return func(m *model) store.Store {
		m.Rules.Extended = func(item store.ClaimItem, c job.Claim, until time.Time) (store.ClaimItem, error) {
			before := item
			if see != nil {
				see(&item, &c)
			}
			next, err := store.Extended(item, c, until)
			if write != nil {
				write(before, &next, &err)
			}
			return next, err
		}
		return m
	}
}

// closing does the same to closings.
func closing(see func(item *store.ClaimItem, c *store.Closing), write func(before store.ClaimItem, next *store.ClaimItem, found *job.Found)) func(m *model) store.Store {
	return func(m *model) store.Store {
		m.Rules.Closed = func(item store.ClaimItem, c store.Closing) (store.ClaimItem, job.Found) {
			before := item
			if see != nil {
				see(&item, &c)
			}
			next, found := store.Closed(item, c)
			if write != nil {
				write(before, &next, &found)
			}
			return next, found
		}
		return m
	}
}

func claimMutants() map[string]mutant {
	return map[string]mutant{
		"a claim takes any slot": {
			"claim, then claim by another: taken, and the first stands",
			claiming(func(item *store.ClaimItem, c *job.Claim, _ *time.Time) {
				if item.Attempt == c.Attempt && item.Closed == "" {
					*item = store.ClaimItem{}
				}
			}, nil),
		},
		"a claim does not know its own": {
			"claim whose answer was lost, then the same claim again: it holds, and nothing changes",
			claiming(func(item *store.ClaimItem, _ *job.Claim, _ *time.Time) { item.LockedBy += "?" }, nil),
		},
		"a claim that is made again writes again": {
			"claim, heartbeat, then the same claim again: it holds, and what the heartbeat moved stays",
			claiming(func(item *store.ClaimItem, c *job.Claim, _ *time.Time) {
				if item.LockedBy == c.LockedBy {
					*item = store.ClaimItem{}
				}
			}, nil),
		},
		"a claim cannot follow an older one": {
			"claim of attempt 1, then claim of attempt 2: attempt 2 is held, and 1 is over",
			claiming(func(item *store.ClaimItem, c *job.Claim, _ *time.Time) {
				if item.LockedBy != "" && item.Attempt < c.Attempt {
					item.Attempt = c.Attempt
				}
			}, nil),
		},
		"a claim does not see a newer one": {
			"claim of attempt 2, then late task of attempt 1 claims: withdrawn",
			claiming(func(item *store.ClaimItem, c *job.Claim, _ *time.Time) {
				if item.Attempt > c.Attempt && item.Closed == "" {
					*item = store.ClaimItem{}
				}
			}, nil),
		},
		"a claim does not see that nobody was found": {
			"close: nobody, then late task claims: withdrawn",
			claiming(func(item *store.ClaimItem, _ *job.Claim, _ *time.Time) {
				if item.Closed == job.FoundNobody {
					*item = store.ClaimItem{}
				}
			}, nil),
		},
		"a claim that was closed holds still": {
			"claim, close: silent, then the same claim again: withdrawn",
			claiming(func(item *store.ClaimItem, _ *job.Claim, _ *time.Time) {
				if item.LockedBy != "" {
					item.Closed = ""
				}
			}, nil),
		},
		"a claim is made whenever it comes": {
			"claimUntil has passed, then claim: withdrawn, though nothing is there",
			claiming(func(_ *store.ClaimItem, c *job.Claim, until *time.Time) { *until = c.StartedAt }, nil),
		},
		"a claim comes too late when its time has come": {
			"claimUntil has come, then claim: it is held",
			claiming(func(_ *store.ClaimItem, _ *job.Claim, until *time.Time) { *until = until.Add(-time.Millisecond) }, nil),
		},
		"a claim keeps the mark of an older one": {
			"claim, close: held and unwanted, then claim of the next attempt: it is held, and not marked",
			claiming(nil, func(before store.ClaimItem, next *store.ClaimItem) { next.Ends = before.Ends }),
		},
		"a heartbeat moves nothing": {
			"claim, then heartbeat: CompleteBy moves",
			extending(nil, func(before store.ClaimItem, next *store.ClaimItem, _ *error) { next.CompleteBy = before.CompleteBy }),
		},
		"a heartbeat moves back": {
			"claim, heartbeat, then a heartbeat that asks for less: CompleteBy stays",
			extending(func(item *store.ClaimItem, c *job.Claim) {
				if item.LockedBy == c.LockedBy && item.Ends.IsZero() {
					item.CompleteBy = c.CompleteBy
				}
			}, nil),
		},
		"a heartbeat has no limit": {
			"claim, then heartbeat past thirty days: CompleteBy moves to thirty days after the claim",
			extending(func(_ *store.ClaimItem, c *job.Claim) { c.StartedAt = c.CompleteBy }, nil),
		},
		"a heartbeat of anybody holds": {
			"claim, then heartbeat of another, or of another attempt: over, and the claim stands",
			extending(func(item *store.ClaimItem, c *job.Claim) {
				if item.Attempt == c.Attempt {
					c.LockedBy = item.LockedBy
				}
			}, nil),
		},
		"a heartbeat does not see that it was closed": {
			"claim, close: silent, then heartbeat: over",
			extending(func(item *store.ClaimItem, _ *job.Claim) { item.Closed = "" }, nil),
		},
		"a heartbeat goes past its end": {
			"claim, close: held and unwanted, then heartbeat: withdrawn, and not past its end",
			extending(func(item *store.ClaimItem, _ *job.Claim) {
				if !item.Ends.IsZero() {
					item.Ends = item.Ends.Add(1000 * time.Hour)
				}
			}, nil),
		},
		"a heartbeat does not say that nobody wants it": {
			"claim, close: held and unwanted, then heartbeat: withdrawn, and not past its end",
			extending(nil, func(before store.ClaimItem, _ *store.ClaimItem, err *error) {
				if !before.Ends.IsZero() {
					*err = nil
				}
			}),
		},
	}
}

func closeMutants() map[string]mutant {
	return map[string]mutant{
		"a close keeps nothing": {
			"close: nobody, then late task claims: withdrawn",
			closing(nil, func(before store.ClaimItem, next *store.ClaimItem, _ *job.Found) { *next = before }),
		},
		"a close does not see the claim": {
			"claim, then close: held, and the claim stays",
			closing(func(item *store.ClaimItem, _ *store.Closing) { *item = store.ClaimItem{} }, nil),
		},
		"a close comes too early": {
			"claim, then close: held, and the claim stays",
			closing(func(_ *store.ClaimItem, c *store.Closing) { c.Now = c.Now.Add(time.Millisecond) }, nil),
		},
		"a close comes too late": {
			"claim, then close when CompleteBy has come: silent, and the same when asked again",
			closing(func(_ *store.ClaimItem, c *store.Closing) { c.Now = c.Now.Add(-time.Millisecond) }, nil),
		},
		"a close closes what is newer": {
			"claim of attempt 3, then close of attempt 2: over, and attempt 3 is untouched",
			closing(func(item *store.ClaimItem, c *store.Closing) { item.Attempt = min(item.Attempt, c.Attempt) }, nil),
		},
		"a close finds nobody whenever it comes": {
			"claimUntil has passed, then close: silent, though nothing is there: it may have expired",
			closing(func(_ *store.ClaimItem, c *store.Closing) { c.Until = c.Until.Add(1000 * time.Hour) }, nil),
		},
		"a close marks what is wanted": {
			"claim, then close: held, and the claim stays",
			closing(func(_ *store.ClaimItem, c *store.Closing) { c.Ends = c.Now }, nil),
		},
		"a close marks nothing": {
			"claim, then close of what is not wanted: held, and it is marked once",
			closing(func(_ *store.ClaimItem, c *store.Closing) { c.Ends = time.Time{} }, nil),
		},
		"a close marks again": {
			"claim, then close of what is not wanted: held, and it is marked once",
			closing(func(item *store.ClaimItem, c *store.Closing) {
				if !c.Ends.IsZero() {
					item.Ends = time.Time{}
				}
			}, nil),
		},
		"a mark cuts a claim short": {
			"claim, close: held and unwanted, with an end before its CompleteBy, then heartbeat: withdrawn, and its CompleteBy stays",
			closing(nil, func(_ store.ClaimItem, next *store.ClaimItem, found *job.Found) {
				if found.Finding == job.FoundHeld && !next.Ends.IsZero() {
					next.Ends = next.StartedAt.Add(time.Minute)
					next.CompleteBy = next.Ends
				}
			}),
		},
		"a failure reply is taken of anybody": {
			"claim, then failure reply of another than the holder: held, and the claim stays",
			closing(func(item *store.ClaimItem, c *store.Closing) {
				if c.LockedBy != "" {
					c.LockedBy = item.LockedBy
				}
			}, nil),
		},
		"a failure reply is taken late": {
			"claim, close: silent, then failure reply of its holder: silent: a late failure is never taken",
			closing(func(item *store.ClaimItem, c *store.Closing) {
				if c.LockedBy != "" && item.LockedBy == c.LockedBy {
					item.Closed = ""
				}
			}, nil),
		},
		"a failure reply closes what nobody claimed": {
			"nothing, then failure reply: open, and it can be claimed",
			closing(func(item *store.ClaimItem, c *store.Closing) {
				if item.Attempt == 0 {
					c.LockedBy = ""
				}
			}, nil),
		},
		"a failure reply is forgotten": {
			"claim, then failure reply of its holder: replied, and silent to anybody else",
			closing(nil, func(_ store.ClaimItem, next *store.ClaimItem, _ *job.Found) {
				if next.Closed == job.FoundReplied {
					next.Closed = job.FoundSilent
				}
			}),
		},
		"a failure reply is everybody's": {
			"claim, then failure reply of its holder: replied, and silent to anybody else",
			closing(func(item *store.ClaimItem, c *store.Closing) {
				if item.Closed == job.FoundReplied {
					c.LockedBy = item.LockedBy
				}
			}, nil),
		},
	}
}

func slotMutants() map[string]mutant {
	ctx := context.Background()
	looking := func(f func(item *store.ClaimItem, now *time.Time)) func(m *model) store.Store {
		return func(m *model) store.Store {
			m.Rules.Looked = func(item store.ClaimItem, attempt int, until, now time.Time) job.Found {
				f(&item, &now)
				return store.Looked(item, attempt, until, now)
			}
			return m
		}
	}
	return map[string]mutant{
		"a look does not see what was closed": {
			"claim, then close when CompleteBy has come: silent, and the same when asked again",
			looking(func(item *store.ClaimItem, _ *time.Time) { item.Closed = "" }),
		},
		"a look does not know what has expired": {
			"claimUntil has passed, then look: closed, though nothing is there",
			looking(func(_ *store.ClaimItem, now *time.Time) { *now = now.Add(-1000 * time.Hour) }),
		},
		"an overrule takes any claim": {
			"claim by another than the liar, then overrule: conflict, and the claim stays",
			func(m *model) store.Store {
				m.Rules.Overruled = func(item store.ClaimItem, attempt int, _ string, until time.Time) (store.ClaimItem, error) {
					return store.Overruled(item, attempt, item.LockedBy, until)
				}
				return m
			},
		},
		"an overrule keeps the number of the lie": {
			"overrule, then claim of the next attempt: it is held",
			func(m *model) store.Store {
				m.Rules.Overruled = func(item store.ClaimItem, _ int, lie string, until time.Time) (store.ClaimItem, error) {
					return store.Overruled(item, item.Attempt, lie, until)
				}
				return m
			},
		},
		"slots of all births are one": {
			"claim, then claims of the same attempt in the slots of another agent, job, birth and step: each is held",
			func(m *model) store.Store {
				return hooked{model: m, claim: func(slot store.Slot, c job.Claim, until time.Time) error {
					slot.Birth = slot.Birth[:len("birth-")+12]
					return m.Claim(ctx, slot, c, until)
				}}
			},
		},
		"a claim looks and then leaps": {
			"of many concurrent claims of an attempt exactly one wins",
			func(m *model) store.Store {
				return hooked{model: m, claim: leapingClaims(m, leapPatience)}
			},
		},
		"a close looks and then leaps": {
			"of a claim and a close that finds nobody exactly one wins",
			func(m *model) store.Store {
				var looked visits
				return hooked{
					model: m, close: leapingCloses(m, leapPatience, &looked),
					claim: func(slot store.Slot, c job.Claim, claimUntil time.Time) error {
						// It comes when a close has looked, and before that writes.
						until(leapPatience, func() bool { return looked.of(slot).Load() > 0 })
						return m.Claim(ctx, slot, c, claimUntil)
					},
				}
			},
		},
	}
}

// leapPatience is how long a call that looks and then leaps waits for the one that it is to miss. One that is sure to
// come comes sooner, on however busy a machine.
const leapPatience = 10 * time.Second

// until waits for what others do.
func until(patience time.Duration, happened func() bool) {
	for deadline := time.Now().Add(patience); !happened() && time.Now().Before(deadline); {
		time.Sleep(50 * time.Microsecond)
	}
}

// visits counts who has looked at a slot.
type visits struct{ sync.Map }

func (v *visits) of(slot store.Slot) *atomic.Int64 {
	n, _ := v.LoadOrStore(slot, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// leapingClaims look at a slot, and write what they have made of it later: the first one when a second has looked, too.
func leapingClaims(m *model, patience time.Duration) func(slot store.Slot, c job.Claim, until time.Time) error {
	var looked visits
	return func(slot store.Slot, c job.Claim, claimUntil time.Time) error {
		next, err := store.Claimed(m.InSlot(slot), c, claimUntil)
		if n := looked.of(slot); n.Add(1) == 1 {
			until(patience, func() bool { return n.Load() > 1 })
		}
		if err == nil {
			m.Lay(slot, next)
		}
		return err
	}
}

// leapingCloses write when the slot that they have seen empty is no longer so, and note in looked that they have looked.
func leapingCloses(m *model, patience time.Duration, looked *visits) func(slot store.Slot, c store.Closing) (job.Found, error) {
	return func(slot store.Slot, c store.Closing) (job.Found, error) {
		item := m.InSlot(slot)
		looked.of(slot).Add(1)
		next, found := store.Closed(item, c)
		until(patience, func() bool { return item.Attempt > 0 || m.InSlot(slot) != item })
		m.Lay(slot, next)
		return found, nil
	}
}

package agentrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// counted succeeds, and counts how often it was called.
func counted(calls *atomic.Int64) handler {
	return func(context.Context, makegood.Task) (json.RawMessage, error) {
		calls.Add(1)
		return nil, nil
	}
}

func TestAnAttemptThatIsNotOursIsDroppedWithoutWork(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(*world)
		want    []int64
	}{
		{"taken", func(w *world) { w.table.heldBy("j/pay", "i-2:x", 3) }, []int64{0, 1, 0, 0, 0, 0, 0}},
		{"withdrawn", func(w *world) {
			w.table.claims.Lay(slotOf("j/pay"), store.ClaimItem{Claim: job.Claim{Attempt: 3}, Closed: job.FoundNobody})
		}, []int64{0, 0, 1, 0, 0, 0, 0}},
		{"replaced", func(w *world) { w.table.heldBy("j/pay", "i-2:x", 4) }, []int64{0, 0, 1, 0, 0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int64
			w := newWorld(t, counted(&calls))
			task := w.task("pay")
			c.prepare(w)
			w.wantFailed(w.handle(t.Context(), task))
			w.wantCounters(c.want...)
			w.wantSilence()
			if calls.Load() != 0 || len(w.table.tried) != 1 {
				t.Errorf("got %d calls of the agent and %d of the store, want 0 and 1", calls.Load(), len(w.table.tried))
			}
		})
	}
}

// What a queue brings back when the items that stood against it may have expired can never run.
func TestATaskThatComesBackTooLateIsDropped(t *testing.T) {
	w := newWorld(t, succeed)
	w.handle(t.Context(), w.task("pay", func(task *makegood.Task) { task.ClaimUntil = time.Now().Add(-time.Second) }))
	w.wantCounters(0, 0, 1, 0, 0, 0, 0)
	w.wantSilence()
}

// The store decides who may claim; StartBy is only when the task is sent again.
func TestATaskPastItsStartByIsStillClaimed(t *testing.T) {
	w := newWorld(t, succeed)
	w.handle(t.Context(), w.task("pay", func(task *makegood.Task) { task.StartBy = time.Now().Add(-time.Hour) }))
	w.wantCounters(1, 0, 0, 1, 0, 0, 0)
}

func TestOfManyDeliveriesOfAnAttemptOneWorks(t *testing.T) {
	var calls atomic.Int64
	w := newWorld(t, counted(&calls))
	task := w.task("pay")
	w.wantFailed(w.handle(t.Context(), task, task, task, task, task, task, task, task, task, task))
	w.wantCounters(1, 9, 0, 1, 0, 0, 0)
	if calls.Load() != 1 || len(w.replies()) != 1 {
		t.Errorf("got %d calls, %d replies, want one of each", calls.Load(), len(w.replies()))
	}
	seen := map[string]bool{}
	for _, claim := range w.table.tried {
		seen[claim.LockedBy] = true
	}
	if len(seen) != 10 {
		t.Errorf("ten deliveries claimed as %d, want each under a name of its own", len(seen))
	}
}

// Law 11, in pairs: the claim was not written, and it was written but the answer was lost. The next
// try says the same, so that the second case is recognised as our own.
func TestAClaimWhoseAnswerIsLostIsTriedAgainAsTheSame(t *testing.T) {
	for _, faults := range [][]string{{"unwritten"}, {"lost"}, {"unwritten", "lost"}, {"lost", "unwritten"}} {
		t.Run(fmt.Sprint(faults), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				w := newWorld(t, counted(&calls))
				w.table.faults = faults
				w.wantFailed(w.handle(t.Context(), w.task("pay")))
				w.wantCounters(1, 0, 0, 1, 0, 0, 0)
				if len(w.table.tried) != len(faults)+1 || calls.Load() != 1 {
					t.Fatalf("got %d tries and %d calls, want %d and one", len(w.table.tried), calls.Load(), len(faults)+1)
				}
				for _, claim := range w.table.tried {
					if claim != w.table.slot("j/pay") {
						t.Errorf("tried %+v, want the same claim every time: %+v", claim, w.table.slot("j/pay"))
					}
				}
			})
		})
	}
}

// After the tries are used up nobody knows whether the claim stands. The work must not be done; the
// redelivery finds out.
func TestAnUnsettledClaimIsDeliveredAgainWithoutWork(t *testing.T) {
	for last, want := range map[string][]int64{
		"unwritten": {1, 0, 0, 1, 0, 0, 0}, // the redelivery claims and works
		"lost":      {0, 1, 0, 0, 0, 0, 0}, // the redelivery finds a claim that nobody works on
	} {
		t.Run(last, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := newWorld(t, succeed)
				w.table.faults = []string{"unwritten", "unwritten", last}
				task := w.task("pay")
				w.wantFailed(w.handle(t.Context(), task), "0")
				w.wantCounters(0, 0, 0, 0, 0, 0, 0)
				w.wantSilence()
				if spent := time.Since(began); spent > time.Second {
					t.Errorf("gave up after %v, want within a second", spent)
				}
				w.wantFailed(w.handle(t.Context(), task))
				w.wantCounters(want...)
			})
		})
	}
}

// A store that hangs costs the attempt its budget, not the invocation.
func TestAClaimThatHangsEndsWithItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := newWorld(t, succeed)
		w.table.faults = []string{"unwritten"}
		w.table.answer = func(ctx context.Context, _ string) { <-ctx.Done() }
		w.wantFailed(w.handle(t.Context(), w.task("pay")), "0")
		if spent := time.Since(began); spent != 9*time.Second {
			t.Errorf("gave up after %v, want 9s", spent)
		}
	})
}

// The claim was answered when the margin had begun: no effect may start now, and it is still time
// to say that none did.
func TestAnAttemptClaimedTooLateIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		w := newWorld(t, counted(&calls))
		w.table.answer = func(context.Context, string) { time.Sleep(9500 * time.Millisecond) }
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantFailure("pay", job.StepError{Message: "out of time: it took too long to get the attempt", Retryable: true, Kind: makegood.KindTimeout, Applied: makegood.AppliedNo})
		if calls.Load() != 0 {
			t.Error("the agent was called")
		}
	})
}

func TestASharedTaskIsNotClaimed(t *testing.T) {
	w := newWorld(t, succeed)
	w.wantFailed(w.handle(t.Context(), w.task("pay", shared)))
	w.wantCounters(0, 0, 0, 1, 0, 0, 0)
	replies := w.replies()
	if len(replies) != 1 || len(w.table.tried) != 0 {
		t.Fatalf("got %+v and %d claims, want one reply and none", replies, len(w.table.tried))
	}
	got := replies[0].(job.StepSucceeded)
	if got.Step != "pay" || got.Attempt != 3 || got.LockedBy != "" || got.Token != "1.t" || string(got.Output.Inline) != `{"ok":true}` {
		t.Errorf("got %+v, want a success of pay#3 with its token and by nobody", got)
	}
}

func TestASharedTaskThatIsTooLateIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration][]int64{
			1001 * time.Millisecond: {0, 0, 0, 1, 0, 0, 0},
			1000 * time.Millisecond: {0, 0, 0, 0, 0, 1, 0},
			-time.Hour:              {0, 0, 0, 0, 0, 1, 0},
		} {
			w := newWorld(t, succeed)
			w.wantFailed(w.handle(t.Context(), w.task("pay", shared, func(task *makegood.Task) {
				task.CompleteBy = domain.Instant(time.Now().Add(left))
			})))
			w.wantCounters(want...)
			if want[5] == 1 {
				w.wantSilence()
			}
		}
	})
}

// WRK-8: our clock may be hours behind or ahead of the Scheduler's. A claimed attempt has its whole
// budget all the same, since it counts from the claim.
func TestASkewedClockCostsAClaimedAttemptNothing(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := newWorld(t, nil)
				w.runner = w.newRunner(handler(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
					<-ctx.Done()
					if spent := time.Since(began); spent != 9*time.Second {
						t.Errorf("had %v, want 9s", spent)
					}
					return nil, nil
				}), func() time.Time { return time.Now().Add(skew) })
				w.wantFailed(w.handle(t.Context(), w.task("pay")))
				w.wantCounters(1, 0, 0, 1, 0, 0, 0)
				if got, want := w.table.slot("j/pay").CompleteBy, domain.Instant(began.Add(skew+10*time.Second)); !got.Equal(want) {
					t.Errorf("stored CompleteBy %v, want %v", got, want)
				}
			})
		})
	}
}

// A shared task has the Scheduler's CompleteBy; a clock that is far behind must not make it run for
// longer than an attempt may.
func TestASharedTaskRunsNoLongerThanItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay", shared)))
		w.wantCounters(0, 0, 0, 0, 1, 0, 0)
		if spent := time.Since(began); spent != 9*time.Second {
			t.Errorf("ran for %v, want 9s", spent)
		}
	})
}

// With less than the reserve left nothing is claimed: another invocation can have it at once.
func TestAnInvocationThatIsAboutToEndClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, succeed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w.wantFailed(w.handle(ctx, w.task("pay"), w.task("ship", shared)), "0", "1")
		if len(w.table.tried) != 0 {
			t.Errorf("claimed %+v, want nothing", w.table.tried)
		}
		w.wantSilence()
	})
}

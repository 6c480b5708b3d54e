package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
)

// seedVariable replays a random test: MAKEGOOD_STORETEST_SEED=N go test -run ...
const seedVariable = "MAKEGOOD_STORETEST_SEED"

// randomOperations is how many operations a random test makes; against a remote store each costs a
// round trip or two.
const randomOperations = 500

func randomRules() []rule {
	return []rule{
		{"random operations on jobs answer and leave what the contract says", randomAgreesWithModel},
		{"random operations on slots answer and leave what the contract says", randomSlotsAgreeWithModel},
	}
}

// model is what the random tests compare a store with.
type model = memstore.Store

// dice makes random operations on a few jobs or slots, so that they meet.
type dice struct {
	*rand.Rand
	w *world
	// loaded are jobs as they were at some time: saves are decided on old ones, too.
	loaded map[string][]job.Job
}

func newDice(w *world) *dice {
	seed := rand.Int64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseInt(text, 10, 64)
		w.want(seedVariable, err, nil)
	}
	w.Logf("replay with %s=%d", seedVariable, seed)
	return &dice{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), w: w, loaded: map[string][]job.Job{}}
}

func randomAgreesWithModel(w *world) {
	d, m := newDice(w), memstore.New()
	for i := range randomOperations {
		name := fmt.Sprint("a", d.IntN(3))
		what, operation := d.operation(name)
		want, got := operation(m), operation(w.store)
		if !sameAnswer(got, want) {
			w.Fatalf("operation %d, %s: got %v, want %v", i, what, got, want)
		}
		d.compare(fmt.Sprintf("after operation %d, %s", i, what), m, w.id(name))
	}
	w.sees("keys after all of them", w.at(100*time.Hour), keys(m))
}

func keys(m *model) map[string]time.Time {
	all := map[string]time.Time{}
	for _, j := range m.All() {
		if !j.CompleteBy.IsZero() {
			all[j.ID] = j.CompleteBy
		}
	}
	return all
}

// sameAnswer compares by the sentinels, which are all that a caller may act on.
func sameAnswer(got, want error) bool {
	if want == nil {
		return got == nil
	}
	return errors.Is(got, want)
}

func (d *dice) compare(when string, m *model, id string) {
	want, wantErr := m.Load(d.w.ctx, id)
	got, err := d.w.store.Load(d.w.ctx, id)
	if !sameAnswer(err, wantErr) {
		d.w.Fatalf("%s: load: got %v, want %v", when, err, wantErr)
	}
	if err != nil {
		return
	}
	if !reflect.DeepEqual(got, want) {
		d.w.Fatalf("%s:\n got %s\nwant %s", when, show(got), show(want))
	}
	d.loaded[id] = append(d.loaded[id], got)
}

// operation returns a random operation on the job, and its name.
func (d *dice) operation(name string) (what string, do func(s store.Store) error) {
	id, ctx := d.w.id(name), d.w.ctx
	switch n := d.IntN(10); {
	case n < 1 || len(d.loaded[id]) == 0:
		j := d.w.job(name)
		d.w.made = append(d.w.made, id)
		return "create " + name, func(s store.Store) error { return s.Create(ctx, j) }
	case n < 3:
		seen, key := d.recent(id).CompleteBy, d.w.at(d.after())
		return fmt.Sprintf("park %s, seen %v, key %v", name, seen, key), func(s store.Store) error { return s.Park(ctx, id, seen, "parked", key) }
	default:
		change := d.change(id)
		return fmt.Sprintf("save %+v", change), func(s store.Store) error { return s.Save(ctx, change) }
	}
}

// change is a save of a job as it was loaded lately, or a little earlier.
func (d *dice) change(id string) store.Change {
	j := d.recent(id).Clone()
	c := store.Change{Seen: j.CompleteBy}
	j.FailureCount++
	// A save has a name of its own, by which a store recognises one that was made and lost its answer.
	j.LockedBy = fmt.Sprint("engine/", d.Uint64())
	j.ProcessState, j.Reason = makegood.JobProcessing, d.pick("", "because")
	switch d.IntN(6) {
	case 0:
		j.CompleteBy = time.Time{}
	case 1, 2:
		j.CompleteBy = d.w.at(d.after())
	}
	c.Job = j
	return c
}

func (d *dice) pick(of ...string) string { return of[d.IntN(len(of))] }

func (d *dice) after() time.Duration { return time.Duration(1+d.IntN(60)) * time.Second }

func (d *dice) recent(id string) job.Job {
	all := d.loaded[id]
	return all[len(all)-1-min(d.IntN(3), len(all)-1)]
}

// answer is all that an operation on a slot may say.
type answer struct {
	completeBy time.Time
	found      job.Found
	err        error
}

func (a answer) String() string {
	if a.found.Finding == "" {
		return fmt.Sprintf("%v, CompleteBy %v", a.err, a.completeBy)
	}
	return fmt.Sprintf("%s, #%d of %q until %v", a.found.Finding, a.found.Claim.Attempt, a.found.Claim.LockedBy, a.found.Claim.CompleteBy)
}

// randomSlotsAgreeWithModel: claims, heartbeats, closings and all else on slots that are neighbours. The attempts rise
// slowly, so that most calls meet the newest. Times are near each other: no item expires meanwhile.
func randomSlotsAgreeWithModel(w *world) {
	d, m := newDice(w), memstore.New()
	slots := []store.Slot{w.scene("a").slot, w.scene("a").step("charge").slot, w.scene("b").slot}
	for i := range randomOperations {
		slot, newest := slots[d.IntN(len(slots))], 1+i*len(slots)/60
		what, operation := d.slotOperation(slot, max(1, newest-d.IntN(5)/3))
		want, got := operation(m), operation(w.store)
		if !sameAnswer(got.err, want.err) || !got.completeBy.Equal(want.completeBy) || got.found != want.found {
			w.Fatalf("operation %d, %s:\n got %+v\nwant %+v", i, what, got, want)
		}
		for attempt := max(1, newest-1); attempt <= newest; attempt++ {
			want, _ := m.Look(w.ctx, slot, attempt, w.at(time.Hour), w.base)
			got, err := w.store.Look(w.ctx, slot, attempt, w.at(time.Hour), w.base)
			if err != nil || got != want {
				w.Fatalf("after operation %d, %s: look at attempt %d:\n got %+v, %v\nwant %+v", i, what, attempt, got, err, want)
			}
		}
	}
}

// slotOperation returns a random operation on a slot, and its name.
func (d *dice) slotOperation(slot store.Slot, attempt int) (what string, do func(s store.Store) answer) {
	w, ctx, by := d.w, d.w.ctx, d.pick("x", "y", "z")
	claim, now, until := w.claim(attempt, by, d.after()), w.at(d.after()), w.at(d.after())
	switch n := d.IntN(20); {
	case n < 6:
		claim.StartedAt = now
		return fmt.Sprintf("claim %+v until %v", claim, until), func(s store.Store) answer {
			return answer{err: s.Claim(ctx, slot, claim, until)}
		}
	case n < 11:
		return fmt.Sprintf("heartbeat %+v until %v", claim, until), func(s store.Store) answer {
			completeBy, err := s.Heartbeat(ctx, slot, claim, until)
			if errors.Is(err, store.ErrTaken) {
				// Over: there is no time to tell.
				completeBy = time.Time{}
			}
			return answer{completeBy: completeBy, err: err}
		}
	case n < 17:
		c := d.closing(store.Closing{Attempt: attempt, Until: until, Now: now})
		return fmt.Sprintf("close %+v", c), func(s store.Store) answer {
			found, err := s.Close(ctx, slot, c)
			return answer{found: found, err: err}
		}
	case n < 18:
		return fmt.Sprintf("overrule %s as of %d", by, attempt), func(s store.Store) answer {
			return answer{err: s.Overrule(ctx, slot, attempt, by, until)}
		}
	default:
		return fmt.Sprintf("look at %d", attempt), func(s store.Store) answer {
			found, err := s.Look(ctx, slot, attempt, until, now)
			return answer{found: found, err: err}
		}
	}
}

// closing makes of a closing one with an end, or one that takes a failure, or both.
func (d *dice) closing(c store.Closing) store.Closing {
	if d.IntN(3) == 0 {
		c.Ends = d.w.at(d.after())
	}
	if d.IntN(3) == 0 {
		c.LockedBy = d.pick("x", "y", "z")
	}
	return c
}

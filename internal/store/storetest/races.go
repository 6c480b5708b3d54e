package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// seedVariable replays a random test: MAKEGOOD_STORETEST_SEED=N go test -run ...
const seedVariable = "MAKEGOOD_STORETEST_SEED"

// randomOperations is how many operations the random test makes; against a remote store each costs a
// round trip or two.
const randomOperations = 500

func raceRules() []rule {
	return []rule{
		{"random operations answer and leave what the contract says", randomAgreesWithModel},
		{"claims and saves of many goroutines lose nothing", nothingLostInARace},
	}
}

// dice makes random operations on a few jobs, so that they meet.
type dice struct {
	*rand.Rand
	w *world
	// loaded are jobs as they were at some time: saves are decided on old ones, too.
	loaded map[string][]makegood.Job
}

func randomAgreesWithModel(w *world) {
	seed := rand.Int64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseInt(text, 10, 64)
		w.want(seedVariable, err, nil)
	}
	w.Logf("replay with %s=%d", seedVariable, seed)
	d := dice{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), w: w, loaded: map[string][]makegood.Job{}}
	m := newModel()
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
	for id, job := range m.jobs {
		if !job.CompleteBy.IsZero() {
			all[id] = job.CompleteBy
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

// operation gives a random operation on the job, and says what it is.
func (d *dice) operation(name string) (what string, do func(s store.Store) error) {
	id, ctx := d.w.id(name), d.w.ctx
	step := d.pick("reserve", "charge")
	claim := d.w.claim(1+d.IntN(3), d.pick("x", "y"), d.after())
	switch n := d.IntN(20); {
	case n < 1 || len(d.loaded[id]) == 0:
		job := d.w.job(name)
		d.w.made = append(d.w.made, id)
		return "create " + name, func(s store.Store) error { return s.Create(ctx, job) }
	case n < 9:
		return fmt.Sprintf("claim %s of %s: %+v", step, name, claim), func(s store.Store) error { return s.Claim(ctx, id, step, claim) }
	case n < 12:
		return fmt.Sprintf("beat %s of %s: %+v", step, name, claim), func(s store.Store) error { return s.Beat(ctx, id, step, claim) }
	case n < 13:
		seen, key := d.recent(id).CompleteBy, d.w.at(d.after())
		return fmt.Sprintf("park %s, seen %v, key %v", name, seen, key), func(s store.Store) error { return s.Park(ctx, id, seen, "parked", key) }
	default:
		change := d.change(id)
		return fmt.Sprintf("save %+v", change), func(s store.Store) error { return s.Save(ctx, change) }
	}
}

// change is a save of a job as it was loaded lately, or a little earlier.
func (d *dice) change(id string) store.Change {
	job := d.recent(id).Clone()
	c := store.Change{Seen: job.CompleteBy, OnClaims: d.IntN(3) == 0}
	job.FailureCount++
	// A save has a name of its own, by which a store knows that one whose answer was lost was made.
	job.LockedBy = fmt.Sprint("engine/", d.Uint64())
	job.ProcessState, job.Reason = makegood.Processing, d.pick("", "because")
	job.Open = nil
	for _, step := range []string{"reserve", "charge"} {
		if attempt := d.IntN(4); attempt > 0 {
			job.Open = makeOpen(job.Open, step, attempt)
		}
		if d.IntN(3) == 0 {
			c.Ended = append(c.Ended, step)
		}
	}
	switch d.IntN(6) {
	case 0:
		job.CompleteBy = time.Time{}
	case 1, 2:
		job.CompleteBy = d.w.at(d.after())
	}
	c.Job = job
	return c
}

func makeOpen(open map[string]int, step string, attempt int) map[string]int {
	if open == nil {
		open = map[string]int{}
	}
	open[step] = attempt
	return open
}

func (d *dice) pick(of ...string) string { return of[d.IntN(len(of))] }

func (d *dice) after() time.Duration { return time.Duration(1+d.IntN(60)) * time.Second }

func (d *dice) recent(id string) makegood.Job {
	all := d.loaded[id]
	return all[len(all)-1-min(d.IntN(3), len(all)-1)]
}

// nothingLostInARace: agents claim and beat whatever attempt is open while schedulers save the job and
// open the next. Whatever was answered must be counted in the end.
func nothingLostInARace(w *world) {
	const agents, schedulers, rounds = 6, 2, 15
	id := w.create(w.job("a")).ID
	r := &race{w: w, id: id, won: map[int]string{}}
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() { r.agent(fmt.Sprint("agent/", i), rounds) })
	}
	for range schedulers {
		all.Go(func() { r.scheduler(rounds) })
	}
	all.Wait()
	if r.failed.Load() {
		return
	}
	job := w.load(id)
	if job.Rev != 1+r.saves.Load() || job.Claims.Rev != r.claims.Load() || int64(job.FailureCount) != r.saves.Load() {
		w.Fatalf("got Rev %d, Claims.Rev %d and %d counted; want %d saves and %d claims and beats",
			job.Rev, job.Claims.Rev, job.FailureCount, r.saves.Load(), r.claims.Load())
	}
	if s := slot(job); s.LockedBy != "" && r.won[s.Attempt] != s.LockedBy {
		w.Fatalf("the slot of attempt %d is of %s, but %q was told that it won", s.Attempt, s.LockedBy, r.won[s.Attempt])
	}
}

type race struct {
	w             *world
	id            string
	saves, claims atomic.Int64
	failed        atomic.Bool
	mu            sync.Mutex
	// won says who was told that the attempt is his.
	won map[int]string
}

func (r *race) errorf(format string, args ...any) {
	r.failed.Store(true)
	r.w.Errorf(format, args...)
}

func (r *race) agent(name string, rounds int) {
	for range rounds {
		job, err := r.w.store.Load(r.w.ctx, r.id)
		if err != nil {
			r.errorf("load: %v", err)
			return
		}
		claim := r.w.claim(job.Open["reserve"], name, time.Hour)
		err = r.w.store.Claim(r.w.ctx, r.id, "reserve", claim)
		switch {
		case err == nil:
			r.mine(claim)
		case !errors.Is(err, store.ErrTaken) && !errors.Is(err, store.ErrWithdrawn):
			r.errorf("claim: %v", err)
			return
		}
	}
}

// mine notes a claim that was won, and beats it once.
func (r *race) mine(claim makegood.Claim) {
	r.mu.Lock()
	before, again := r.won[claim.Attempt]
	r.won[claim.Attempt] = claim.LockedBy
	r.mu.Unlock()
	if again && before != claim.LockedBy {
		r.errorf("attempt %d was given to %s and to %s", claim.Attempt, before, claim.LockedBy)
	}
	if !again {
		r.claims.Add(1)
	}
	err := r.w.store.Beat(r.w.ctx, r.id, "reserve", claim)
	switch {
	case err == nil || errors.Is(err, store.ErrWithdrawn):
		r.claims.Add(1)
	case !errors.Is(err, store.ErrTaken):
		r.errorf("beat: %v", err)
	}
}

// scheduler opens the next attempt: after a claim whose slot it ends, or over an unclaimed one. Each
// conflict is the progress of somebody else, and there are not as many others as it tries.
func (r *race) scheduler(rounds int) {
	const tries = 10_000
	saved := 0
	for range tries {
		if saved == rounds || r.failed.Load() {
			return
		}
		job, err := r.w.store.Load(r.w.ctx, r.id)
		if err != nil {
			r.errorf("load: %v", err)
			return
		}
		change := store.Change{Job: job, Seen: job.CompleteBy, OnClaims: true}
		if slot(job).Attempt == job.Open["reserve"] {
			change.Ended, change.OnClaims = []string{"reserve"}, false
		}
		change.Job.FailureCount++
		change.Job.Open = map[string]int{"reserve": job.Open["reserve"] + 1}
		err = r.w.store.Save(r.w.ctx, change)
		switch {
		case err == nil:
			r.saves.Add(1)
			saved++
		case !errors.Is(err, store.ErrConflict):
			r.errorf("save: %v", err)
			return
		}
	}
	r.errorf("a scheduler saved %d times in %d tries, want %d", saved, tries, rounds)
}

// Package storetest holds every adapter of store.Store to its contract. One test is one rule of internal/store, and
// each interleaving of claims, heartbeats, closings and saves is a test of its own, played step by step. It does not
// look inside an adapter.
//
// The ids are new in every run and no test needs an empty store, so the suite also runs against a table that others
// use. The index may lag: the tests wait for its entries.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Harness gives one test its store.
type Harness struct {
	// Open returns the store under test. The harness closes it when the test has ended.
	Open func() store.Store
	// Reopen closes the store that Open returned, and opens one on the same data. Nil: the store keeps no data.
	Reopen func() store.Store
	// Damage makes the stored item of this job one that cannot be decoded, and leaves its key in the
	// index as it is.
	Damage func(id string)
	// Overwrite stores job in the place of the one of its id, as a later release would. Nil: the store keeps no bytes.
	Overwrite func(j job.Job)
	// Delete deletes a job, as its expiry does. Nil: jobs of this store do not expire.
	Delete func(id string)
	// Fill makes the claim item of a slot as large as an item may be by one of its attributes, as a thief of its agent's
	// role can. Nil: no agent writes to this store by itself.
	Fill func(slot store.Slot, attribute string)
	// Full stores job in the place of the one of its id, whole, in an item as large as one may be, as a release of before
	// could. Nil: items of this store have no bound.
	Full func(j job.Job)
	// Lag is how long the index may lag behind the items. Zero: it never does.
	Lag time.Duration
}

// rule is one test, named for the rule that it checks.
type rule struct {
	name string
	test func(w *world)
}

// Run runs the suite. It calls newHarness once for each test.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) { r.test(newWorld(t, newHarness(t))) })
	}
}

// rules are all of the suite.
func rules() []rule {
	var all []rule
	for _, rules := range [][]rule{
		jobRules(), saveRules(), claimRules(), parkRules(), newerRules(), indexRules(), listRules(), auditRules(), leaseRules(), scheduleRules(), holdRules(), gateRules(), payloadRules(), historyRules(), changeRules(), randomRules(), raceRules(),
	} {
		all = append(all, rules...)
	}
	return all
}

// world is what a test has: a store, and names and a stretch of time that no other test uses.
type world struct {
	*testing.T
	ctx     context.Context
	harness Harness
	store   store.Store
	prefix  string
	base    time.Time
	made    []string
}

func newWorld(t *testing.T, h Harness) *world {
	past := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{
		T: t, ctx: context.Background(), harness: h, store: h.Open(),
		prefix: strings.ToLower(rand.Text()[:12]),
		base:   past.Add(time.Duration(random(int64(20*365*24*time.Hour/time.Millisecond))) * time.Millisecond),
	}
	t.Cleanup(w.tidy)
	return w
}

// also returns the store as a further port. It skips the test of a store that is not one.
func also[S any](w *world) S {
	s, is := w.store.(S)
	if !is {
		w.Skipf("this store is no %v", reflect.TypeFor[S]())
	}
	return s
}

// portRule is a rule of a store that is an S.
type portRule[S any] struct {
	name string
	test func(w *world, s S)
}

// rulesOf skip a store that is no S. begin, if set, prepares each test.
func rulesOf[S any](begin func(w *world, s S), rules []portRule[S]) (all []rule) {
	for _, r := range rules {
		all = append(all, rule{r.name, func(w *world) {
			s := also[S](w)
			if begin != nil {
				begin(w, s)
			}
			r.test(w, s)
		}})
	}
	return all
}

// onlyOf skips the rules where the store is no S.
func onlyOf[S any](rules []rule) (all []rule) {
	for _, r := range rules {
		all = append(all, rule{r.name, func(w *world) {
			also[S](w)
			r.test(w)
		}})
	}
	return all
}

func random(below int64) int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(below))
	if err != nil {
		panic(err)
	}
	return n.Int64()
}

// tidy takes the jobs of the test out of the index, for the tests after it.
func (w *world) tidy() {
	for _, id := range w.made {
		j, err := w.store.Load(w.ctx, id)
		if err != nil {
			continue
		}
		seen := j.CompleteBy
		j.CompleteBy = time.Time{}
		// No test relies on it: an index that is not empty makes later tests slower, not wrong.
		_ = w.store.Save(w.ctx, store.Change{Job: j, Seen: seen})
	}
}

// id returns a job's id, the same for the same name in one test.
func (w *world) id(name string) string { return "storetest-" + w.prefix + "-" + name }

// at returns a time of this test, a whole number of milliseconds.
func (w *world) at(after time.Duration) time.Time { return w.base.Add(after) }

// job returns a job that may be created: its step reserve is dispatched, and a key is set.
func (w *world) job(name string) job.Job {
	j := job.Job{
		ID: w.id(name), Workflow: "order", Definition: "hash-of-order", Round: 1,
		ProcessState: makegood.JobPending, Desired: makegood.JobProcessed,
		CompleteBy: w.at(time.Minute), CreatedAt: w.base, Deadline: w.at(time.Hour),
		Input: wire.Inline([]byte(`{"sku":"A1","quantity":2}`)), InputHash: "hash-of-input",
		Birth: "birth-" + w.prefix, Secret: []byte("secret-" + w.prefix), Transitions: 1,
	}
	for _, step := range []string{"reserve", "charge", "notify"} {
		j.Steps = append(j.Steps, job.StepState{Name: step})
	}
	j.Steps[0].Attempt = 1
	j.Steps[0].Forward = job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: w.base, Cause: "submit"}
	return j
}

// create stores a job and returns it as it is loaded.
func (w *world) create(j job.Job) job.Job {
	w.Helper()
	w.made = append(w.made, j.ID)
	w.want("create", w.store.Create(w.ctx, j), nil)
	return w.load(j.ID)
}

func (w *world) load(id string) job.Job {
	w.Helper()
	j, err := w.store.Load(w.ctx, id)
	if err != nil {
		w.Fatalf("load %s: %v", id, err)
	}
	return j
}

// save stores a job with an unchanged key.
func (w *world) save(j job.Job) error {
	return w.store.Save(w.ctx, store.Change{Job: j, Seen: j.CompleteBy})
}

// mustSave saves and returns the job as it is loaded.
func (w *world) mustSave(j job.Job) job.Job {
	w.Helper()
	w.want("save", w.save(j), nil)
	return w.load(j.ID)
}

// claim returns a claim that starts at the base and ends after d.
func (w *world) claim(attempt int, lockedBy string, d time.Duration) job.Claim {
	return job.Claim{Attempt: attempt, LockedBy: lockedBy, StartedAt: w.base, CompleteBy: w.at(d)}
}

// want fails the test unless err is the wanted one; nil wants none.
func (w *world) want(what string, err, want error) {
	w.Helper()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		w.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// same fails the test unless the two are deeply equal.
func (w *world) same(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

// sameTime fails the test unless the two are the same instant.
func (w *world) sameTime(what string, got, want time.Time) {
	w.Helper()
	if !got.Equal(want) {
		w.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func show(v any) string {
	text := fmt.Sprintf("%+v", v)
	if len(text) > 4000 {
		text = text[:4000] + "..."
	}
	return text
}

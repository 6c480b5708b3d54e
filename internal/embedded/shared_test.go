package embedded_test

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// keptShared is how many shared jobs a test looks at again.
const keptShared = 500

// guard is the store of an engine, whose jobs are shared with all who read and write them. Nobody may change one that they were
// given, or have given: each is written down then, and looked at again later.
type guard struct {
	store.Store
	t    testing.TB
	seed maphash.Seed

	mu   sync.Mutex
	seen []seen
	next int
}

// seen is a job as it was shared.
type seen struct {
	job  job.Job
	hash uint64
}

func guarded(t testing.TB) func(store.Store) store.Store {
	return func(inner store.Store) store.Store {
		g := &guard{Store: inner, t: t, seed: maphash.MakeSeed()}
		t.Cleanup(g.look)
		return g
	}
}

func (g *guard) Shared() store.Jobs { return guardedJobs{store.Shared(g.Store), g} }

type guardedJobs struct {
	store.Jobs
	guard *guard
}

func (g guardedJobs) Create(ctx context.Context, j job.Job) error {
	g.guard.note(j)
	return g.Jobs.Create(ctx, j)
}

func (g guardedJobs) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := g.Jobs.Load(ctx, id)
	if err == nil {
		g.guard.note(j)
	}
	return j, err
}

func (g guardedJobs) Save(ctx context.Context, c store.Change) error {
	g.guard.note(c.Job)
	return g.Jobs.Save(ctx, c)
}

// note writes a job down, in the place of one that is looked at again.
func (g *guard) note(j job.Job) {
	one := seen{j, g.hash(j)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen) < keptShared {
		g.seen = append(g.seen, one)
		return
	}
	g.check(g.seen[g.next])
	g.seen[g.next] = one
	g.next = (g.next + 1) % keptShared
}

func (g *guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.seen {
		g.check(s)
	}
}

func (g *guard) check(s seen) {
	if g.hash(s.job) != s.hash {
		g.t.Errorf("job %s, revision %d: somebody has changed it who shares it", s.job.ID, s.job.Rev)
	}
}

func (g *guard) hash(j job.Job) uint64 {
	text, err := json.Marshal(j)
	if err != nil {
		g.t.Errorf("job %s: %v", j.ID, err)
	}
	return maphash.Bytes(g.seed, text)
}

// The guard sees who changes a job that is shared.
func TestWhoChangesASharedJobIsSeen(t *testing.T) {
	seeing := &witness{TB: t}
	g := &guard{t: seeing, seed: maphash.MakeSeed()}
	j := job.Job{ID: "j", Steps: []job.StepState{{Name: "a"}}}
	g.note(j)
	g.look()
	if seeing.errors != 0 {
		t.Error("nobody has changed it")
	}
	j.Steps[0].Name = "b"
	if g.look(); seeing.errors != 1 {
		t.Errorf("got %d errors, want one", seeing.errors)
	}
}

// witness counts errors.
type witness struct {
	testing.TB
	errors int
}

func (w *witness) Errorf(string, ...any) { w.errors++ }

package storetest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// Each store breaks what a history must show. How the goroutines meet is chance, so it has some tries.
func TestAHistoryOfABrokenStoreIsNotLinearizable(t *testing.T) {
	const tries = 30
	for name, wrap := range map[string]func(m *model) store.Store{
		"claims are not exclusive":     claimsOfAll,
		"claims of what was closed":    claimsOfTheClosed,
		"a claim looks and then leaps": func(m *model) store.Store { return hooked{model: m, claim: leapingClaims(m, time.Second)} },
		"a close looks and then leaps": func(m *model) store.Store {
			return hooked{model: m, close: leapingCloses(m, time.Millisecond, new(visits))}
		},
		"a load is stale":             staleLoads,
		"an id is created twice":      createsAgain,
		"a save looks and then leaps": leapingSaves,
	} {
		t.Run(name, func(t *testing.T) {
			first := seed.Of(t)
			for seed := first; seed < first+tries; seed++ {
				if _, err := linearize(newWorld(t, harnessOf(wrap)), seed); err != nil {
					t.Logf("found with seed %d: %.300s", seed, err)
					return
				}
			}
			t.Errorf("nothing was found in %d histories", tries)
		})
	}
}

func claimsOfAll(m *model) store.Store {
	return claiming(func(item *store.ClaimItem, c *job.Claim, _ *time.Time) {
		if item.Attempt == c.Attempt && item.Closed == "" {
			*item = store.ClaimItem{}
		}
	}, nil)(m)
}

func claimsOfTheClosed(m *model) store.Store {
	return claiming(func(item *store.ClaimItem, _ *job.Claim, _ *time.Time) {
		if item.Closed != "" {
			*item = store.ClaimItem{}
		}
	}, nil)(m)
}

// staleLoads shows every third load what the one before it has shown.
func staleLoads(m *model) store.Store {
	var mu sync.Mutex
	last, n := map[string]job.Job{}, 0
	return hooked{model: m, load: func(id string) (job.Job, error) {
		mu.Lock()
		defer mu.Unlock()
		if old, known := last[id]; known && n%3 == 2 {
			n++
			return old.Clone(), nil
		}
		n++
		j, err := m.Load(context.Background(), id)
		if err == nil {
			last[id] = j.Clone()
		}
		return j, err
	}}
}

func createsAgain(m *model) store.Store {
	return hooked{model: m, create: func(j job.Job) error {
		if err := m.Create(context.Background(), j); err == nil || j.Reason != "client/3" {
			return err
		}
		return nil
	}}
}

func leapingSaves(m *model) store.Store {
	return hooked{model: m, save: func(c store.Change) error {
		j, err := m.Load(context.Background(), c.Job.ID)
		if err != nil || j.Rev != c.Job.Rev {
			return m.Save(context.Background(), c)
		}
		for range 10 {
			runtime.Gosched()
		}
		if now, err := m.Load(context.Background(), c.Job.ID); err == nil {
			c.Job.Rev = now.Rev
		}
		return m.Save(context.Background(), c)
	}}
}

package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Store = (*model)(nil)

// model is the contract of store.Store in as few words as possible: what the random test compares a
// store with. It keeps jobs as they are, so it could not be an adapter.
type model struct {
	mu          sync.Mutex
	jobs        map[string]makegood.Job
	damaged     map[string]bool
	payloads    map[[2]string][]byte
	definitions map[string][]byte
	current     map[string]string
}

func newModel() *model {
	return &model{
		jobs: map[string]makegood.Job{}, damaged: map[string]bool{}, payloads: map[[2]string][]byte{},
		definitions: map[string][]byte{}, current: map[string]string{},
	}
}

func (m *model) damage(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.damaged[id] = true
}

func (m *model) put(job makegood.Job) {
	job = job.Clone()
	if len(job.Open) == 0 {
		job.Open = nil
	}
	if len(job.Claims.Slots) == 0 {
		job.Claims.Slots = nil
	}
	m.jobs[job.ID] = job
}

func (m *model) Create(_ context.Context, job makegood.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.jobs[job.ID]; taken {
		return store.ErrExists
	}
	job.Rev, job.Claims = 1, makegood.Claims{}
	m.put(job)
	return nil
}

func (m *model) Load(_ context.Context, id string) (makegood.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	job, found := m.jobs[id]
	switch {
	case !found:
		return makegood.Job{}, store.ErrNotFound
	case m.damaged[id]:
		return makegood.Job{}, store.ErrDamaged
	}
	return job.Clone(), nil
}

func (m *model) Save(_ context.Context, c store.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, found := m.jobs[c.Job.ID]
	if !found {
		return store.ErrConflict
	}
	if err := store.MaySave(old, c); err != nil {
		return err
	}
	job := c.Job.Clone()
	job.Rev++
	job.Claims = makegood.Claims{Rev: old.Claims.Rev, Slots: maps.Clone(old.Claims.Slots)}
	for _, step := range c.Ended {
		delete(job.Claims.Slots, step)
	}
	if !c.MovesKey() {
		job.CompleteBy = old.CompleteBy
	}
	m.put(job)
	delete(m.damaged, job.ID)
	return nil
}

func (m *model) Park(_ context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	job, found := m.jobs[id]
	switch {
	case !found:
		return store.ErrNotFound
	case !job.CompleteBy.Equal(seen):
		return store.ErrConflict
	}
	job.ProcessState, job.Reason, job.CompleteBy = makegood.Error, reason, completeBy
	m.put(job)
	return nil
}

func (m *model) Claim(_ context.Context, id, step string, claim makegood.Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	job, found := m.jobs[id]
	if !found {
		return store.ErrNotFound
	}
	if err := store.MayClaim(job, step, claim); err != nil || store.Holds(job, step, claim) {
		return err
	}
	if job.CompleteBy.After(claim.CompleteBy) {
		job.CompleteBy = claim.CompleteBy
	}
	m.setSlot(job, step, claim)
	return nil
}

func (m *model) Beat(_ context.Context, id, step string, claim makegood.Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	job, found := m.jobs[id]
	switch {
	case !found:
		return store.ErrNotFound
	case !store.Holds(job, step, claim):
		return store.ErrTaken
	}
	slot := job.Claims.Slots[step]
	slot.CompleteBy = claim.CompleteBy
	m.setSlot(job, step, slot)
	if job.Open[step] != claim.Attempt {
		return store.ErrWithdrawn
	}
	return nil
}

func (m *model) setSlot(job makegood.Job, step string, claim makegood.Claim) {
	job = job.Clone()
	if job.Claims.Slots == nil {
		job.Claims.Slots = map[string]makegood.Claim{}
	}
	job.Claims.Slots[step] = claim
	job.Claims.Rev++
	m.put(job)
}

func (m *model) Shards() int { return 1 }

func (m *model) Due(_ context.Context, _ int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due []store.Entry
	for id, job := range m.jobs {
		e := store.Entry{CompleteBy: job.CompleteBy, Job: id}
		if !job.CompleteBy.IsZero() && !job.CompleteBy.After(now) && compareEntries(e, after) > 0 {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, compareEntries)
	return due[:min(limit, len(due))], nil
}

func compareEntries(a, b store.Entry) int {
	return cmp.Or(a.CompleteBy.Compare(b.CompleteBy), cmp.Compare(a.Job, b.Job))
}

func (m *model) PutPayload(_ context.Context, job, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.payloads[[2]string{job, key}]; !taken {
		m.payloads[[2]string{job, key}] = slices.Clone(value)
	}
	return nil
}

func (m *model) Payload(_ context.Context, job, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return found(m.payloads, [2]string{job, key})
}

func (m *model) PutDefinition(_ context.Context, name, hash string, definition []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.definitions[hash]; !taken {
		m.definitions[hash] = slices.Clone(definition)
	}
	m.current[name] = hash
	return nil
}

func (m *model) Definition(_ context.Context, hash string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return found(m.definitions, hash)
}

func (m *model) CurrentDefinition(_ context.Context, name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return found(m.current, name)
}

func found[K comparable, V any](m map[K]V, key K) (V, error) {
	v, ok := m[key]
	if !ok {
		return v, store.ErrNotFound
	}
	return v, nil
}

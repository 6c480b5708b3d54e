package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

var _ store.Store = (*model)(nil)

// model is the contract of store.Store in as few words as possible: what the random test compares a
// store with. It keeps jobs as they are, so it could not be an adapter.
type model struct {
	mu          sync.Mutex
	jobs        map[string]job.Job
	damaged     map[string]bool
	payloads    map[[2]string][]byte
	definitions map[string][]byte
	current     map[string]string
	slots       map[store.Slot]store.ClaimItem

	// What a slot becomes is said by package store; a mutant says otherwise.
	claimed   func(item store.ClaimItem, claim job.Claim, until time.Time) (store.ClaimItem, error)
	beaten    func(item store.ClaimItem, claim job.Claim, until time.Time) (store.ClaimItem, error)
	closed    func(item store.ClaimItem, c store.Closing) (store.ClaimItem, job.Found)
	looked    func(item store.ClaimItem, attempt int, until, now time.Time) job.Found
	overruled func(item store.ClaimItem, attempt int, lie string, until time.Time) (store.ClaimItem, error)
}

func newModel() *model {
	return &model{
		jobs: map[string]job.Job{}, damaged: map[string]bool{}, payloads: map[[2]string][]byte{},
		definitions: map[string][]byte{}, current: map[string]string{}, slots: map[store.Slot]store.ClaimItem{},
		claimed: store.Claimed, beaten: store.Beaten, closed: store.Closed, looked: store.Looked, overruled: store.Overruled,
	}
}

func (m *model) damage(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.damaged[id] = true
}

func (m *model) overwrite(j job.Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(j)
}

func (m *model) put(j job.Job) { m.jobs[j.ID] = j.Clone() }

func (m *model) Create(_ context.Context, j job.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.jobs[j.ID]; taken {
		return store.ErrExists
	}
	j.Rev = 1
	m.put(j)
	return nil
}

func (m *model) Load(_ context.Context, id string) (job.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, found := m.jobs[id]
	switch {
	case !found:
		return job.Job{}, store.ErrNotFound
	case m.damaged[id]:
		return job.Job{}, store.ErrDamaged
	}
	return j.Clone(), jobformat.Newer(j)
}

func (m *model) Save(_ context.Context, c store.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, found := m.jobs[c.Job.ID]
	if !found {
		return store.ErrConflict
	}
	if err := jobformat.Newer(c.Job); err != nil {
		return err
	}
	if err := store.MaySave(old, c); err != nil {
		return err
	}
	j := c.Job.Clone()
	j.Rev++
	if !c.MovesKey() {
		j.CompleteBy = old.CompleteBy
	}
	m.put(j)
	delete(m.damaged, j.ID)
	return nil
}

func (m *model) Park(_ context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, found := m.jobs[id]
	switch {
	case !found:
		return store.ErrNotFound
	case j.Needs > jobformat.Level:
		return store.ErrNewer
	case !j.CompleteBy.Equal(seen):
		return store.ErrConflict
	}
	j.ProcessState, j.Reason, j.CompleteBy = makegood.Error, reason, completeBy
	j.Rev++
	m.put(j)
	return nil
}

func (m *model) Claim(_ context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := m.claimed(m.slots[slot], claim, until)
	if err == nil {
		m.slots[slot] = next
	}
	return err
}

func (m *model) Beat(_ context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := m.beaten(m.slots[slot], claim, until)
	if err != nil && !errors.Is(err, store.ErrWithdrawn) {
		return time.Time{}, err
	}
	m.slots[slot] = next
	return next.CompleteBy, err
}

func (m *model) Close(_ context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, found := m.closed(m.slots[slot], c)
	m.slots[slot] = next
	return found, nil
}

func (m *model) Look(_ context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.looked(m.slots[slot], attempt, until, now), nil
}

func (m *model) Overrule(_ context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := m.overruled(m.slots[slot], attempt, lie, until)
	if err == nil {
		m.slots[slot] = next
	}
	return err
}

func (m *model) Shards() int { return 1 }

func (m *model) Due(_ context.Context, _ int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due []store.Entry
	for id, j := range m.jobs {
		e := store.Entry{CompleteBy: j.CompleteBy, Job: id}
		if !j.CompleteBy.IsZero() && !j.CompleteBy.After(now) && compareEntries(e, after) > 0 {
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
	return valueOf(m.payloads, [2]string{job, key})
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
	return valueOf(m.definitions, hash)
}

func (m *model) CurrentDefinition(_ context.Context, name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return valueOf(m.current, name)
}

// valueOf gives what a map has under a key.
func valueOf[K comparable, V any](m map[K]V, key K) (V, error) {
	v, ok := m[key]
	if !ok {
		return v, store.ErrNotFound
	}
	return v, nil
}

package sim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ interface {
	store.Store
	store.Leases
} = (*Store)(nil)

// Store is the simulated store: the contract over maps, with the shipped predicates for what may be
// written, and an index that can be as old as a simulation wants. It passes storetest as the adapters do.
type Store struct {
	// Lag, if set, says how old the index is when it is read.
	Lag func() time.Duration
	// Wrote, if set, sees a job before and after each write of its item, one write at a time.
	Wrote func(before, after job.Job)
	// WroteClaim, if set, sees a claim item before and after each write, in the same way.
	WroteClaim func(slot store.Slot, before, after store.ClaimItem)

	mu          sync.Mutex
	jobs        map[string]job.Job
	claims      map[store.Slot]store.ClaimItem
	unflushed   []unflushed
	damaged     map[string]bool
	keys        map[string][]keyed
	payloads    map[[2]string][]byte
	definitions map[string][]byte
	current     map[string]string
	leases      map[string]lease
}

// keyed is a key of the index, and since when it has stood there.
type keyed struct {
	since time.Time
	key   time.Time
}

// unflushed is a write of a claim item that the power can take along.
type unflushed struct {
	slot   store.Slot
	before store.ClaimItem
}

type lease struct {
	holder string
	until  time.Time
}

// NewStore gives an empty store.
func NewStore() *Store {
	return &Store{
		jobs: map[string]job.Job{}, claims: map[store.Slot]store.ClaimItem{}, damaged: map[string]bool{}, keys: map[string][]keyed{},
		payloads: map[[2]string][]byte{}, definitions: map[string][]byte{}, current: map[string]string{}, leases: map[string]lease{},
	}
}

// write puts a job into its place, and its key into the index. s.mu is held.
func (s *Store) write(j job.Job) {
	j = j.Clone()
	before := s.jobs[j.ID]
	s.jobs[j.ID] = j
	s.unflushed = nil
	if before.Rev == 0 || !before.CompleteBy.Equal(j.CompleteBy) {
		s.keys[j.ID] = append(s.keys[j.ID], keyed{since: time.Now(), key: j.CompleteBy})
	}
	if s.Wrote != nil {
		s.Wrote(before, j)
	}
}

// Create is what store.Jobs says.
func (s *Store) Create(_ context.Context, j job.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.jobs[j.ID]; taken {
		return store.ErrExists
	}
	j.Rev = 1
	s.write(j)
	return nil
}

// Load is what store.Jobs says.
func (s *Store) Load(_ context.Context, id string) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, found := s.jobs[id]
	switch {
	case !found:
		return job.Job{}, store.ErrNotFound
	case s.damaged[id]:
		return job.Job{}, store.ErrDamaged
	}
	return j.Clone(), nil
}

// Save is what store.Jobs says. A save that finds its own write there has been made already.
func (s *Store) Save(_ context.Context, c store.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, found := s.jobs[c.Job.ID]
	if !found {
		return store.ErrConflict
	}
	if c.Job.LockedBy != "" && old.LockedBy == c.Job.LockedBy && old.Rev == c.Job.Rev+1 {
		return nil
	}
	if err := store.MaySave(old, c); err != nil {
		return err
	}
	j := c.Job.Clone()
	j.Rev++
	if !c.MovesKey() {
		j.CompleteBy = old.CompleteBy
	}
	delete(s.damaged, j.ID)
	s.write(j)
	return nil
}

// Park is what store.Jobs says.
func (s *Store) Park(_ context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, found := s.jobs[id]
	switch {
	case !found:
		return store.ErrNotFound
	case !j.CompleteBy.Equal(seen):
		return store.ErrConflict
	}
	j.ProcessState, j.Reason, j.CompleteBy = makegood.Error, reason, completeBy
	j.Rev++
	s.write(j)
	return nil
}

// Claim is what store.Claims says.
func (s *Store) Claim(_ context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, err := store.Claimed(s.claims[slot], claim, until)
	if err != nil {
		return err
	}
	s.writeClaim(slot, item)
	return nil
}

// Beat is what store.Claims says.
func (s *Store) Beat(_ context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, err := store.Beaten(s.claims[slot], claim, until)
	if err == nil || errors.Is(err, store.ErrWithdrawn) {
		s.writeClaim(slot, item)
	}
	return item.CompleteBy, err
}

// Close is what store.Closings says.
func (s *Store) Close(_ context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, found := store.Closed(s.claims[slot], c)
	s.writeClaim(slot, item)
	return found, nil
}

// Look is what store.Closings says.
func (s *Store) Look(_ context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Looked(s.claims[slot], attempt, until, now), nil
}

// Overrule is what store.Closings says.
func (s *Store) Overrule(_ context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, err := store.Overruled(s.claims[slot], attempt, lie, until)
	if err != nil {
		return err
	}
	s.writeClaim(slot, item)
	return nil
}

// writeClaim puts a claim item into its place. s.mu is held.
func (s *Store) writeClaim(slot store.Slot, item store.ClaimItem) {
	before := s.claims[slot]
	if before == item {
		return
	}
	s.claims[slot] = item
	s.unflushed = append(s.unflushed, unflushed{slot, before})
	if s.WroteClaim != nil {
		s.WroteClaim(slot, before, item)
	}
}

// Shards is 1.
func (s *Store) Shards() int { return 1 }

// Due is what store.Index says, as of Lag ago.
func (s *Store) Due(_ context.Context, _ int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asOf := time.Now()
	if s.Lag != nil {
		asOf = asOf.Add(-s.Lag())
	}
	var due []store.Entry
	for id, keys := range s.keys {
		e := store.Entry{CompleteBy: keyAt(keys, asOf), Job: id}
		if !e.CompleteBy.IsZero() && !e.CompleteBy.After(now) && compareEntries(e, after) > 0 {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, compareEntries)
	return due[:min(limit, len(due))], nil
}

// keyAt is the key that stood in the index at a time; zero: none.
func keyAt(keys []keyed, at time.Time) time.Time {
	for _, k := range slices.Backward(keys) {
		if !k.since.After(at) {
			return k.key
		}
	}
	return time.Time{}
}

func compareEntries(a, b store.Entry) int {
	return cmp.Or(a.CompleteBy.Compare(b.CompleteBy), cmp.Compare(a.Job, b.Job))
}

// PutPayload is what store.Payloads says.
func (s *Store) PutPayload(_ context.Context, job, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.payloads[[2]string{job, key}]; !taken {
		s.payloads[[2]string{job, key}] = slices.Clone(value)
	}
	return nil
}

// Payload is what store.Payloads says.
func (s *Store) Payload(_ context.Context, job, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(s.payloads, [2]string{job, key})
}

// PutDefinition is what store.Definitions says.
func (s *Store) PutDefinition(_ context.Context, name, hash string, definition []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.definitions[hash]; !taken {
		s.definitions[hash] = slices.Clone(definition)
	}
	s.current[name] = hash
	return nil
}

// Definition is what store.Definitions says.
func (s *Store) Definition(_ context.Context, hash string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(s.definitions, hash)
}

// CurrentDefinition is what store.Definitions says.
func (s *Store) CurrentDefinition(_ context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash, err := found(s.current, name)
	return hash, err
}

// found gives what a map holds, or store.ErrNotFound. What it holds is never changed.
func found[K comparable, V any](m map[K]V, key K) (V, error) {
	value, ok := m[key]
	if !ok {
		return value, store.ErrNotFound
	}
	return value, nil
}

// TakeLease is what store.Leases says.
func (s *Store) TakeLease(_ context.Context, name, holder string, now, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.leases[name]
	if ok && held.holder != holder && held.until.After(now) {
		return store.ErrTaken
	}
	s.leases[name] = lease{holder: holder, until: until}
	return nil
}

// ReleaseLease is what store.Leases says.
func (s *Store) ReleaseLease(_ context.Context, name, holder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[name].holder == holder {
		delete(s.leases, name)
	}
	return nil
}

// Damage makes the stored item of a job one that cannot be decoded.
func (s *Store) Damage(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged[id] = true
}

// peek gives a job as it is stored, to look at.
func (s *Store) peek(id string) (job.Job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peekLocked(id)
}

// peekLocked is peek. s.mu is held.
func (s *Store) peekLocked(id string) (job.Job, bool) {
	j, found := s.jobs[id]
	return j, found
}

// peekClaim gives what is in the slot of a step: of whichever agent has the latest attempt.
func (s *Store) peekClaim(job, step string) (item store.ClaimItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimOf(job, step)
}

// claimOf is peekClaim. s.mu is held.
func (s *Store) claimOf(job, step string) (item store.ClaimItem) {
	for slot, i := range s.claims {
		if slot.Job == job && slot.Step == step && i.Attempt > item.Attempt {
			item = i
		}
	}
	return item
}

// All gives every job, by id.
func (s *Store) All() []job.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]job.Job, 0, len(s.jobs))
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		all = append(all, s.jobs[id].Clone())
	}
	return all
}

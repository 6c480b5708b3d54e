package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
)

// Store is the simulated store: one in memory, with an index that can be as old as a simulation wants, and with claims
// that the power can take along. It passes storetest as the adapters do.
type Store struct {
	*memstore.Store
	// Lag, if set, says how old the index is when it is read.
	Lag func() time.Duration
	// Wrote, if set, sees a job before and after each write of its item, one write at a time; and WroteClaim a claim item.
	// Both may read the store.
	Wrote      func(before, after job.Job)
	WroteClaim func(slot store.Slot, before, after store.ClaimItem)

	mu        sync.Mutex
	keys      map[string][]keyed
	unflushed []unflushed
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

// NewStore returns an empty store.
func NewStore() *Store {
	s := &Store{Store: memstore.New(), keys: map[string][]keyed{}}
	s.Store.Wrote, s.Store.WroteClaim = s.wrote, s.wroteClaim
	// Processes of two releases use it, and each says for itself what it must leave alone.
	s.Rules.Newer = func(job.Job) error { return nil }
	return s
}

// wrote notes the key of a job that was written, and that all claims are flushed with it.
func (s *Store) wrote(before, after job.Job) {
	s.mu.Lock()
	s.unflushed = nil
	if before.Rev == 0 || !before.CompleteBy.Equal(after.CompleteBy) {
		s.keys[after.ID] = append(s.keys[after.ID], keyed{since: time.Now(), key: after.CompleteBy})
	}
	s.mu.Unlock()
	if s.Wrote != nil {
		s.Wrote(before, after)
	}
}

func (s *Store) wroteClaim(slot store.Slot, before, after store.ClaimItem) {
	s.mu.Lock()
	s.unflushed = append(s.unflushed, unflushed{slot, before})
	s.mu.Unlock()
	if s.WroteClaim != nil {
		s.WroteClaim(slot, before, after)
	}
}

// losePower takes back some of the last writes of claims: they are flushed with the next write of a job. It returns how many.
func (s *Store) losePower(r *rand.Rand) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := r.IntN(len(s.unflushed) + 1)
	for range lost {
		last := s.unflushed[len(s.unflushed)-1]
		s.unflushed = s.unflushed[:len(s.unflushed)-1]
		s.Lay(last.slot, last.before)
	}
	return lost
}

// latestOf returns the item of the slot of a step: of whichever agent has the latest attempt.
func (s *Store) latestOf(j job.Job, step string) (latest store.ClaimItem) {
	for _, agent := range agents {
		item := s.InSlot(store.Slot{Agent: agent, Job: j.ID, Birth: j.Birth, Step: step})
		if item.Attempt > latest.Attempt || item.Attempt == latest.Attempt && item.LockedBy > latest.LockedBy {
			latest = item
		}
	}
	return latest
}

// Due is what store.Index says, as of Lag ago.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	if shard > 0 {
		return s.Store.Due(ctx, shard, now, after, limit) // of schedules
	}
	asOf := time.Now()
	if s.Lag != nil {
		asOf = asOf.Add(-s.Lag())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return memstore.Due(func(yield func(store.Entry) bool) {
		for id, keys := range s.keys {
			if !yield(store.Entry{CompleteBy: keyAt(keys, asOf), Job: id}) {
				return
			}
		}
	}, now, after, limit), nil
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

// DueOfAll is Due for all shards as one, since a Supervisor goes through several in an order that no seed knows.
func (s *Store) DueOfAll(ctx context.Context, now time.Time, after store.Entry, limit int) []store.Entry {
	var all []store.Entry
	for shard := range s.Shards() {
		due, _ := s.Due(ctx, shard, now, after, limit) // memory never fails
		all = append(all, due...)
	}
	return memstore.Due(slices.Values(all), now, after, limit)
}

// overdue reports whether a key has passed.
func (s *Store) overdue(now time.Time) bool {
	for shard := range s.Shards() {
		if due, _ := s.Store.Due(context.Background(), shard, now, store.Entry{}, 1); len(due) > 0 { // memory never fails
			return true
		}
	}
	return false
}

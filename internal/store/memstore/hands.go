package memstore

import (
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// This file has what tests and simulations see and do behind the contract's back. Wrote and WroteClaim do not see it.

// Stored returns a job as it is stored, damaged or not, to look at and not to change.
func (s *Store) Stored(id string) (job.Job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, found := s.jobs[id]
	return stored.job, found
}

// All returns every job, by id.
func (s *Store) All() []job.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]job.Job, 0, len(s.jobs))
	for j := range s.after("") {
		all = append(all, j.Clone())
	}
	return all
}

// Overwrite stores a job as it is, in the place of the one of its id.
func (s *Store) Overwrite(j job.Job) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.keep(item{job: j.Clone(), damaged: s.jobs[j.ID].damaged})
}

// FillClaim makes the claim item of a slot larger than any may be.
func (s *Store) FillClaim(slot store.Slot) {
	s.writing.Lock()
	defer s.writing.Unlock()
	filled := s.claims[slot]
	filled.Bytes = 400 << 10
	s.keepClaim(slot, filled)
}

// Damage makes the stored item of a job one that cannot be decoded.
func (s *Store) Damage(id string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.keep(item{job: s.jobs[id].job, damaged: true})
}

// InSlot returns the item of a slot.
func (s *Store) InSlot(slot store.Slot) store.ClaimItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[slot]
}

// Lay lays an item into a slot.
func (s *Store) Lay(slot store.Slot, item store.ClaimItem) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.keepClaim(slot, item)
}

// ForgetClaims empties every slot.
func (s *Store) ForgetClaims() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.claims)
}

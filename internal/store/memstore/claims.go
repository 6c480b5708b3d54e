package memstore

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Claim takes an attempt; see store.Claims.
func (s *Store) Claim(_ context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	next, err := s.Rules.Claimed(s.claims[slot], claim, until)
	if err != nil {
		return err
	}
	s.putClaim(slot, next)
	return nil
}

// Heartbeat extends a claim; see store.Claims.
func (s *Store) Heartbeat(_ context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	next, err := s.Rules.Extended(s.claims[slot], claim, until)
	if err != nil && !errors.Is(err, store.ErrWithdrawn) {
		return time.Time{}, err
	}
	s.putClaim(slot, next)
	return next.CompleteBy, err
}

// Close ends an attempt, or names its holder; see store.Closings.
func (s *Store) Close(_ context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	next, found := s.Rules.Closed(s.claims[slot], c)
	s.putClaim(slot, next)
	return found, nil
}

// Look reads the state of an attempt; see store.Closings.
func (s *Store) Look(_ context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Rules.Looked(s.claims[slot], attempt, until, now), nil
}

// Overrule writes over the claim of an agent that lies; see store.Closings.
func (s *Store) Overrule(_ context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	next, err := s.Rules.Overruled(s.claims[slot], attempt, lie, until)
	if err != nil {
		return err
	}
	s.putClaim(slot, next)
	return nil
}

// putClaim writes what a slot has become, if it has changed. s.writing is held.
func (s *Store) putClaim(slot store.Slot, next store.ClaimItem) {
	before := s.claims[slot]
	if next == before {
		return
	}
	s.keepClaim(slot, next)
	if s.WroteClaim != nil {
		s.WroteClaim(slot, before, next)
	}
}

func (s *Store) keepClaim(slot store.Slot, item store.ClaimItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[slot] = item
}

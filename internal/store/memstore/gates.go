package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// gate is the gate of an agent: its permits by their numbers, its tickets by their ranks.
type gate struct {
	permits map[int]job.Permit
	waiting map[string]job.Ticket
}

// gateOf returns the gate of an agent. s.mu is held.
func (s *Store) gateOf(agent string) gate {
	g, ok := s.gates[agent]
	if !ok {
		g = gate{map[int]job.Permit{}, map[string]job.Ticket{}}
		s.gates[agent] = g
	}
	return g
}

// Gate reads a gate; see store.Gates.
func (s *Store) Gate(_ context.Context, agent string, most int) (store.Gate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all store.Gate
	g := s.gateOf(agent)
	for _, p := range g.permits {
		all.Permits = append(all.Permits, p)
	}
	slices.SortFunc(all.Permits, func(a, b job.Permit) int { return a.N - b.N })
	for rank := ""; len(all.Waiting) < most; {
		t, ok := g.behind(rank)
		if !ok {
			break
		}
		all.Waiting, rank = append(all.Waiting, t), t.Rank()
	}
	return all, nil
}

// PutPermit stores a permit; see store.Gates.
func (s *Store) PutPermit(_ context.Context, agent string, was, is job.Permit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	permits := s.gateOf(agent).permits
	writes, err := store.PutOver(permits[was.N], was, is)
	switch {
	case !writes:
		return err
	case is.Free():
		delete(permits, is.N)
	default:
		permits[is.N] = is
	}
	return nil
}

// Enter stores a ticket; see store.Gates.
func (s *Store) Enter(_ context.Context, agent string, t job.Ticket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateOf(agent).waiting[t.Rank()] = t
	return nil
}

// Leave deletes a ticket; see store.Gates.
func (s *Store) Leave(_ context.Context, agent string, t job.Ticket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.gateOf(agent).waiting
	if _, ok := waiting[t.Rank()]; !ok {
		return fmt.Errorf("ticket %s of %s: %w", t.Rank(), agent, store.ErrNotFound)
	}
	delete(waiting, t.Rank())
	return nil
}

// Behind reads a ticket; see store.Gates.
func (s *Store) Behind(_ context.Context, agent, rank string) (job.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.gateOf(agent).behind(rank)
	return t, nil
}

func (g gate) behind(rank string) (first job.Ticket, ok bool) {
	least := ""
	for r, t := range g.waiting {
		if r > rank && (!ok || r < least) {
			least, first, ok = r, t, true
		}
	}
	return first, ok
}

// CountWaiting counts tickets; see store.Gates.
func (s *Store) CountWaiting(_ context.Context, agent string, most int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(most, len(s.gateOf(agent).waiting)), nil
}

// NextGate finds a gate; see store.Gates.
func (s *Store) NextGate(_ context.Context, agent, value string) (first string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, g := range s.gates {
		of, at, _ := strings.Cut(name, "/")
		if of == agent && at > value && len(g.permits)+len(g.waiting) > 0 && (first == "" || name < first) {
			first = name
		}
	}
	return first, nil
}

package sqlitestore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Leases = (*Store)(nil)

// leases are kept in memory: the folder has one engine, and its leases die with it.
type leases struct {
	mu   sync.Mutex
	held map[string]store.Lease
}

// TakeLease takes or extends a lease; see store.Leases. Leases are known in this process only.
func (s *Store) TakeLease(_ context.Context, name, holder string, now, until time.Time) error {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	lease, err := store.Leased(s.leases.held[name], store.Lease{Holder: holder, Until: until}, now)
	if err != nil {
		return fmt.Errorf("take lease %s: %w", name, err)
	}
	if s.leases.held == nil {
		s.leases.held = make(map[string]store.Lease)
	}
	s.leases.held[name] = lease
	return nil
}

// ReleaseLease gives a lease up; see store.Leases.
func (s *Store) ReleaseLease(_ context.Context, name, holder string) error {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	if s.leases.held[name].Holder == holder {
		delete(s.leases.held, name)
	}
	return nil
}

package memstore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// PutPayload stores a value once; see store.Payloads.
func (s *Store) PutPayload(_ context.Context, job, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.payloads[job] == nil {
		s.payloads[job] = map[string][]byte{}
	}
	putOnce(s.payloads[job], key, value)
	return nil
}

// Payload reads a value; see store.Payloads.
func (s *Store) Payload(_ context.Context, job, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return valueOf(s.payloads[job], key)
}

// HistoryPages reads the pages of a job's history; see store.Histories.
func (s *Store) HistoryPages(_ context.Context, id string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pages := map[string][]byte{}
	for key, value := range s.payloads[id] {
		if strings.HasPrefix(key, job.HistoryPrefix) {
			pages[key] = value
		}
	}
	return pages, nil
}

// DropPages deletes pages of a job's history; see store.Histories.
func (s *Store) DropPages(_ context.Context, id string, after, before int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.payloads[id], func(key string, _ []byte) bool { return job.Falls(key, after, before) })
	return nil
}

// PutDefinition stores a definition and makes it current; see store.Definitions.
func (s *Store) PutDefinition(_ context.Context, name, hash string, definition []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	putOnce(s.definitions, hash, definition)
	s.current[name] = hash
	return nil
}

// Definition reads a definition; see store.Definitions.
func (s *Store) Definition(_ context.Context, hash string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return valueOf(s.definitions, hash)
}

// CurrentDefinition returns the hash that is current for a name; see store.Definitions.
func (s *Store) CurrentDefinition(_ context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return valueOf(s.current, name)
}

// TakeLease takes or extends a lease; see store.Leases.
func (s *Store) TakeLease(_ context.Context, name, holder string, now, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, err := store.Leased(s.leases[name], store.Lease{Holder: holder, Until: until}, now)
	if err == nil {
		s.leases[name] = lease
	}
	return err
}

// ReleaseLease gives a lease up; see store.Leases.
func (s *Store) ReleaseLease(_ context.Context, name, holder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[name].Holder == holder {
		delete(s.leases, name)
	}
	return nil
}

// Place returns the place kept under a name; see store.Places.
func (s *Store) Place(_ context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[name], nil
}

// KeepPlace keeps a place under a name; see store.Places.
func (s *Store) KeepPlace(_ context.Context, name, seen, place string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[name] != seen {
		return store.ErrConflict
	}
	s.places[name] = place
	return nil
}

// putOnce keeps a copy of a value under a key that is free.
func putOnce(m map[string][]byte, key string, value []byte) {
	if _, taken := m[key]; !taken {
		m[key] = slices.Clone(value)
	}
}

// valueOf returns what a map has under a key.
func valueOf[V any](m map[string]V, key string) (V, error) {
	value, ok := m[key]
	if !ok {
		return value, store.ErrNotFound
	}
	return value, nil
}

// Package mempayload keeps payloads in memory, for engines without storage and for tests. They are lost with the
// process, and deleted by Drop.
package mempayload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
)

var _ payload.Store = (*Store)(nil)

// Store keeps payloads. The zero value keeps none yet.
type Store struct {
	mu   sync.Mutex
	jobs map[string]map[key]kept
}

// kept is a payload, and when it was written or kept last.
type kept struct {
	value []byte
	at    time.Time
}

type key struct{ by, sha256 string }

// Write stores bytes; see payload.Store. It holds all bytes in memory.
func (s *Store) Write(ctx context.Context, at payload.Place, from io.Reader) (payload.Written, error) {
	if err := at.Check(); err != nil {
		return payload.Written{}, fmt.Errorf("write a payload: %w", err)
	}
	limited := payload.Limit(from)
	value, err := io.ReadAll(limited)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return payload.Written{}, fmt.Errorf("write a payload of job %s: %w", at.Job, err)
	}
	w := limited.Written()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[string]map[key]kept{}
	}
	if s.jobs[at.Job] == nil {
		s.jobs[at.Job] = map[key]kept{}
	}
	s.jobs[at.Job][key{at.By, w.SHA256}] = kept{value, time.Now()}
	return w, nil
}

// Open reads bytes; see payload.Store.
func (s *Store) Open(_ context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	value, err := s.find(job, p)
	if err == nil {
		err = payload.CheckRange(p, offset, n)
	}
	if err != nil {
		return nil, fmt.Errorf("open %v of job %s: %w", p, job, err)
	}
	if n < 0 {
		n = p.Bytes - offset
	}
	part := io.NopCloser(bytes.NewReader(value[offset : offset+n]))
	if n < p.Bytes {
		return part, nil
	}
	return payload.Checked(p, part), nil
}

// Keep makes a payload young again; see payload.Store.
func (s *Store) Keep(_ context.Context, job string, p makegood.Payload) error {
	value, err := s.find(job, p)
	if err != nil {
		return fmt.Errorf("keep %v of job %s: %w", p, job, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[job] == nil {
		s.jobs[job] = map[key]kept{}
	}
	s.jobs[job][key{p.By, p.SHA256}] = kept{value, time.Now()}
	return nil
}

func (s *Store) find(job string, p makegood.Payload) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, there := s.jobs[job][key{p.By, p.SHA256}]
	switch {
	case !there:
		return nil, payload.ErrNotFound
	case int64(len(k.value)) != p.Bytes:
		return nil, fmt.Errorf("%w: it has %d bytes", payload.ErrAltered, len(k.value))
	}
	return k.value, nil
}

// Drop lets go of what a job had that was written and kept last before a time.
func (s *Store) Drop(_ context.Context, job string, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.jobs[job], func(_ key, k kept) bool { return k.at.Before(before) })
	if len(s.jobs[job]) == 0 {
		delete(s.jobs, job)
	}
	return nil
}

// Collect deletes payloads without a job, last written or kept over limits.KeepPayload ago. more is always false.
func (s *Store) Collect(ctx context.Context, known func(ctx context.Context, job string) (bool, error)) (more bool, err error) {
	old := time.Now().Add(-limits.KeepPayload)
	for _, job := range s.allBefore(old) {
		there, err := known(ctx, job)
		if err != nil {
			return false, fmt.Errorf("collect payloads of job %s: %w", job, err)
		}
		if !there {
			_ = s.Drop(ctx, job, old) // never fails
		}
	}
	return false, nil
}

// allBefore are the jobs with all payloads older than a time.
func (s *Store) allBefore(old time.Time) (jobs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for job, all := range s.jobs {
		youngest := time.Time{}
		for _, k := range all {
			if k.at.After(youngest) {
				youngest = k.at
			}
		}
		if youngest.Before(old) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// Close has no effect.
func (s *Store) Close() {}

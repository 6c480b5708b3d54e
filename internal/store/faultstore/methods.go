package faultstore

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var (
	_ store.Store   = (*Store)(nil)
	_ store.Auditor = (*Store)(nil)
)

// claimed is a call about the claim of an attempt.
func claimed(op string, slot store.Slot, attempt int) Call {
	return Call{Op: op, Job: slot.Job, Step: slot.Step, Attempt: attempt}
}

// Create is store.Jobs' with its fault.
func (s *Store) Create(ctx context.Context, j job.Job) error {
	return s.do(Call{Op: "Create", Job: j.ID, Written: j}, func() error { return s.inner.Create(ctx, j) })
}

// Load is store.Jobs' with its fault.
func (s *Store) Load(ctx context.Context, id string) (job.Job, error) {
	return ask(s, Call{Op: "Load", Job: id}, func() (job.Job, error) { return s.inner.Load(ctx, id) })
}

// Save is store.Jobs' with its fault.
func (s *Store) Save(ctx context.Context, change store.Change) error {
	return s.do(Call{Op: "Save", Job: change.Job.ID, Written: change.Job}, func() error { return s.inner.Save(ctx, change) })
}

// Park is store.Jobs' with its fault.
func (s *Store) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	return s.do(Call{Op: "Park", Job: id, Of: reason}, func() error { return s.inner.Park(ctx, id, seen, reason, completeBy) })
}

// Claim is store.Claims' with its fault.
func (s *Store) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	return s.do(claimed("Claim", slot, claim.Attempt), func() error { return s.inner.Claim(ctx, slot, claim, until) })
}

// Heartbeat is store.Claims' with its fault. The time that comes with ErrWithdrawn is part of the answer.
func (s *Store) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	var completeBy time.Time
	err := s.do(claimed("Heartbeat", slot, claim.Attempt), func() (err error) {
		completeBy, err = s.inner.Heartbeat(ctx, slot, claim, until)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrWithdrawn) {
		return time.Time{}, err
	}
	return completeBy, err
}

// Close is store.Closings' with its fault.
func (s *Store) Close(ctx context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	return ask(s, claimed("Close", slot, c.Attempt), func() (job.Found, error) { return s.inner.Close(ctx, slot, c) })
}

// Look is store.Closings' with its fault.
func (s *Store) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	return ask(s, claimed("Look", slot, attempt), func() (job.Found, error) { return s.inner.Look(ctx, slot, attempt, until, now) })
}

// Overrule is store.Closings' with its fault.
func (s *Store) Overrule(ctx context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	return s.do(claimed("Overrule", slot, attempt), func() error { return s.inner.Overrule(ctx, slot, attempt, lie, until) })
}

// Shards is the inner store's. It does not read the store, so it is no call.
func (s *Store) Shards() int { return s.inner.Shards() }

// Due is store.Index' with its fault.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	return ask(s, Call{Op: "Due"}, func() ([]store.Entry, error) { return s.inner.Due(ctx, shard, now, after, limit) })
}

// PutPayload is store.Payloads' with its fault.
func (s *Store) PutPayload(ctx context.Context, job, key string, value []byte) error {
	return s.do(Call{Op: "PutPayload", Job: job, Of: key}, func() error { return s.inner.PutPayload(ctx, job, key, value) })
}

// Payload is store.Payloads' with its fault.
func (s *Store) Payload(ctx context.Context, job, key string) ([]byte, error) {
	return ask(s, Call{Op: "Payload", Job: job, Of: key}, func() ([]byte, error) { return s.inner.Payload(ctx, job, key) })
}

// HistoryPages is store.Histories' with its fault.
func (s *Store) HistoryPages(ctx context.Context, job string) (map[string][]byte, error) {
	return ask(s, Call{Op: "HistoryPages", Job: job}, func() (map[string][]byte, error) { return s.inner.HistoryPages(ctx, job) })
}

// DropPages is store.Histories' with its fault.
func (s *Store) DropPages(ctx context.Context, job string, after, before int) error {
	return s.do(Call{Op: "DropPages", Job: job}, func() error { return s.inner.DropPages(ctx, job, after, before) })
}

// PutDefinition is store.Definitions' with its fault.
func (s *Store) PutDefinition(ctx context.Context, name, hash string, definition []byte) error {
	return s.do(Call{Op: "PutDefinition"}, func() error { return s.inner.PutDefinition(ctx, name, hash, definition) })
}

// Definition is store.Definitions' with its fault.
func (s *Store) Definition(ctx context.Context, hash string) ([]byte, error) {
	return ask(s, Call{Op: "Definition"}, func() ([]byte, error) { return s.inner.Definition(ctx, hash) })
}

// CurrentDefinition is store.Definitions' with its fault.
func (s *Store) CurrentDefinition(ctx context.Context, name string) (string, error) {
	return ask(s, Call{Op: "CurrentDefinition"}, func() (string, error) { return s.inner.CurrentDefinition(ctx, name) })
}

// AuditPage reads a page of jobs; see store.Auditor. The inner store must be one.
func (s *Store) AuditPage(ctx context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	inner, ok := s.inner.(store.Auditor)
	if !ok {
		return nil, "", errors.New("audit: this store has no audit")
	}
	var jobs []store.Audited
	next, err := ask(s, Call{Op: "AuditPage"}, func() (next string, err error) {
		jobs, next, err = inner.AuditPage(ctx, cursor, limit)
		return next, err
	})
	if err != nil {
		return nil, "", err
	}
	return jobs, next, nil
}

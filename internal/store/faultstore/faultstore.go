// Package faultstore makes a store fail as a plan says: before a call is executed, after it was, or by the death of the
// process at that moment. The plan alone decides which calls fail, and the package keeps no data.
//
// A crash is what a killed process sees of its store: from then on every call fails, and so does a call that was under
// way, since its caller is gone. To go on, put a new Store round the inner one.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Store = (*Store)(nil)

var (
	// ErrInjected is what FailBefore and FailAfter answer. It is none of the store's sentinels, so it
	// leaves it unknown whether the write happened.
	ErrInjected = errors.New("injected fault")
	// ErrCrashed: the process is dead.
	ErrCrashed = errors.New("crashed")
)

// Call is a call that the plan may let fail.
type Call struct {
	// N is its number among all calls, reads too; the first is 1.
	N int
	// Op is the name of the method: "Create", "Load", "Save", ...
	Op string
	// Job is the job's id; empty where a call names none.
	Job string
}

// Effect is how a call fails, or that it does not.
type Effect int

// The effects.
const (
	// None: the call goes through.
	None Effect = iota
	// FailBefore: the call is not executed, and fails with ErrInjected.
	FailBefore
	// FailAfter: the call is executed, and fails with ErrInjected all the same.
	FailAfter
	// CrashBefore: the process dies before the call is executed.
	CrashBefore
	// CrashAfter: the process dies after the call was executed, before its answer arrives.
	CrashAfter
)

// Fault is the effect on a call, and how long the call takes. The zero value: none.
type Fault struct {
	Effect Effect
	// Delay passes before the call is executed, or fails.
	Delay time.Duration
}

// Store is a store.Store that fails as planned.
type Store struct {
	// OnCrash, if set, is called once, by the call that crashes, before that call returns. It is set
	// before the first call.
	OnCrash func()

	inner store.Store
	plan  func(Call) Fault

	mu      sync.Mutex
	calls   int
	crashed bool
}

// New returns a store that asks plan at every call for its fault. The plan is asked one call at a time, in the order of
// their numbers; a nil plan has no faults.
func New(inner store.Store, plan func(Call) Fault) *Store {
	if plan == nil {
		plan = func(Call) Fault { return Fault{} }
	}
	return &Store{inner: inner, plan: plan}
}

// Calls is how many calls were made before the crash.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Crashed reports whether a crash has happened.
func (s *Store) Crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed
}

// next numbers a call and asks the plan.
func (s *Store) next(op, job string) (Fault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return Fault{}, ErrCrashed
	}
	s.calls++
	return s.plan(Call{N: s.calls, Op: op, Job: job}), nil
}

func (s *Store) crash() error {
	s.mu.Lock()
	first := !s.crashed
	s.crashed = true
	s.mu.Unlock()
	if first && s.OnCrash != nil {
		s.OnCrash()
	}
	return ErrCrashed
}

// call makes a call with its fault.
func (s *Store) call(ctx context.Context, op, job string, execute func() error) error {
	fault, err := s.next(op, job)
	if err == nil {
		err = s.suffer(ctx, fault, execute)
	}
	if errors.Is(err, ErrCrashed) || errors.Is(err, ErrInjected) {
		return fmt.Errorf("%s %s: %w", op, job, err)
	}
	return err
}

func (s *Store) suffer(ctx context.Context, fault Fault, execute func() error) error {
	if fault.Delay > 0 {
		if err := pause.For(ctx, fault.Delay); err != nil {
			return err
		}
	}
	// It may have died while this call was delayed, and again while it was executed.
	if s.Crashed() {
		return ErrCrashed
	}
	switch fault.Effect {
	case FailBefore:
		return ErrInjected
	case CrashBefore:
		return s.crash()
	}
	err := execute()
	switch {
	case s.Crashed():
		return ErrCrashed
	case fault.Effect == FailAfter:
		return ErrInjected
	case fault.Effect == CrashAfter:
		return s.crash()
	}
	return err
}

// ask is call for methods that return a value; a call that fails returns none.
func ask[T any](ctx context.Context, s *Store, op, job string, execute func() (T, error)) (T, error) {
	var value T
	err := s.call(ctx, op, job, func() (err error) {
		value, err = execute()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return value, nil
}

// Create is store.Jobs' with its fault.
func (s *Store) Create(ctx context.Context, j job.Job) error {
	return s.call(ctx, "Create", j.ID, func() error { return s.inner.Create(ctx, j) })
}

// Load is store.Jobs' with its fault.
func (s *Store) Load(ctx context.Context, id string) (job.Job, error) {
	return ask(ctx, s, "Load", id, func() (job.Job, error) { return s.inner.Load(ctx, id) })
}

// Save is store.Jobs' with its fault.
func (s *Store) Save(ctx context.Context, change store.Change) error {
	return s.call(ctx, "Save", change.Job.ID, func() error { return s.inner.Save(ctx, change) })
}

// Park is store.Jobs' with its fault.
func (s *Store) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	return s.call(ctx, "Park", id, func() error { return s.inner.Park(ctx, id, seen, reason, completeBy) })
}

// Claim is store.Claims' with its fault.
func (s *Store) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	return s.call(ctx, "Claim", slot.Job, func() error { return s.inner.Claim(ctx, slot, claim, until) })
}

// Heartbeat is store.Claims' with its fault. The time that comes with ErrWithdrawn is part of the answer.
func (s *Store) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	var completeBy time.Time
	err := s.call(ctx, "Heartbeat", slot.Job, func() (err error) {
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
	return ask(ctx, s, "Close", slot.Job, func() (job.Found, error) { return s.inner.Close(ctx, slot, c) })
}

// Look is store.Closings' with its fault.
func (s *Store) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	return ask(ctx, s, "Look", slot.Job, func() (job.Found, error) { return s.inner.Look(ctx, slot, attempt, until, now) })
}

// Overrule is store.Closings' with its fault.
func (s *Store) Overrule(ctx context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	return s.call(ctx, "Overrule", slot.Job, func() error { return s.inner.Overrule(ctx, slot, attempt, lie, until) })
}

// Shards is the inner store's. It does not read the store, so it is no call.
func (s *Store) Shards() int { return s.inner.Shards() }

// Due is store.Index' with its fault.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	return ask(ctx, s, "Due", "", func() ([]store.Entry, error) { return s.inner.Due(ctx, shard, now, after, limit) })
}

// PutPayload is store.Payloads' with its fault.
func (s *Store) PutPayload(ctx context.Context, job, key string, value []byte) error {
	return s.call(ctx, "PutPayload", job, func() error { return s.inner.PutPayload(ctx, job, key, value) })
}

// Payload is store.Payloads' with its fault.
func (s *Store) Payload(ctx context.Context, job, key string) ([]byte, error) {
	return ask(ctx, s, "Payload", job, func() ([]byte, error) { return s.inner.Payload(ctx, job, key) })
}

// HistoryPages is store.Histories' with its fault.
func (s *Store) HistoryPages(ctx context.Context, job string) (map[string][]byte, error) {
	return ask(ctx, s, "HistoryPages", job, func() (map[string][]byte, error) { return s.inner.HistoryPages(ctx, job) })
}

// DropPages is store.Histories' with its fault.
func (s *Store) DropPages(ctx context.Context, job string, after, before int) error {
	return s.call(ctx, "DropPages", job, func() error { return s.inner.DropPages(ctx, job, after, before) })
}

// PutDefinition is store.Definitions' with its fault.
func (s *Store) PutDefinition(ctx context.Context, name, hash string, definition []byte) error {
	return s.call(ctx, "PutDefinition", "", func() error { return s.inner.PutDefinition(ctx, name, hash, definition) })
}

// Definition is store.Definitions' with its fault.
func (s *Store) Definition(ctx context.Context, hash string) ([]byte, error) {
	return ask(ctx, s, "Definition", "", func() ([]byte, error) { return s.inner.Definition(ctx, hash) })
}

// CurrentDefinition is store.Definitions' with its fault.
func (s *Store) CurrentDefinition(ctx context.Context, name string) (string, error) {
	return ask(ctx, s, "CurrentDefinition", "", func() (string, error) { return s.inner.CurrentDefinition(ctx, name) })
}

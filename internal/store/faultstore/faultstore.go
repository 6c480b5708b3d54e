// Package faultstore makes a store fail as a plan says: before a call is executed, after it was, or by the death of the
// process at that moment. The plan alone decides which calls fail, and the package keeps no data.
//
// A crash is what a killed process sees of its store: from then on every call fails, and so does a call that was under
// way, since its caller is gone. To go on, put a new Store round the inner one.
package faultstore

import (
	"errors"
	"fmt"
	"sync"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var (
	// ErrInjected is what FailBefore and FailAfter answer. It is none of the store's sentinels, so it
	// leaves it unknown whether the write happened.
	ErrInjected = errors.New("injected fault")
	// ErrCrashed: the process is dead.
	ErrCrashed = errors.New("crashed")
)

// Call is a call that may fail. Its fields are empty where it has no such part.
type Call struct {
	// N is its number among all calls, reads too; the first is 1. Around counts none.
	N int
	// Op is the name of the method: "Create", "Load", "Save", ...
	Op string
	// Job is the job's id.
	Job string
	// Step and Attempt say whose claim it is about.
	Step    string
	Attempt int
	// Of is the key of a payload, or the reason for which a job is parked.
	Of string
	// Written is the job as Create or Save writes it.
	Written job.Job
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

// Store is a store.Store that fails as planned.
type Store struct {
	// OnCrash, if set, is called once, by the call that crashes, before that call returns. It is set
	// before the first call.
	OnCrash func()

	inner store.Store
	plan  func(Call) Effect
	do    func(Call, func() error) error

	mu      sync.Mutex
	calls   int
	crashed bool
}

// New returns a store that asks plan at every call for its effect. The plan is asked one call at a time, in the order
// of their numbers; a nil plan has no faults.
func New(inner store.Store, plan func(Call) Effect) *Store {
	if plan == nil {
		plan = func(Call) Effect { return None }
	}
	s := &Store{inner: inner, plan: plan}
	s.do = s.call
	return s
}

// Around returns a store whose calls do makes: it executes a call, or not, and returns its error.
func Around(inner store.Store, do func(c Call, execute func() error) error) *Store {
	return &Store{inner: inner, do: do}
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
func (s *Store) next(c Call) (Effect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return None, ErrCrashed
	}
	s.calls++
	c.N = s.calls
	return s.plan(c), nil
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

// call makes a call with its effect.
func (s *Store) call(c Call, execute func() error) error {
	effect, err := s.next(c)
	if err == nil {
		err = s.suffer(effect, execute)
	}
	if errors.Is(err, ErrCrashed) || errors.Is(err, ErrInjected) {
		return fmt.Errorf("%s %s: %w", c.Op, c.Job, err)
	}
	return err
}

func (s *Store) suffer(effect Effect, execute func() error) error {
	switch effect {
	case FailBefore:
		return ErrInjected
	case CrashBefore:
		return s.crash()
	}
	err := execute()
	switch {
	case s.Crashed(): // The process died while the call was executed.
		return ErrCrashed
	case effect == FailAfter:
		return ErrInjected
	case effect == CrashAfter:
		return s.crash()
	}
	return err
}

// ask is do for methods that return a value; a call that fails returns none.
func ask[T any](s *Store, c Call, execute func() (T, error)) (T, error) {
	var value T
	err := s.do(c, func() (err error) {
		value, err = execute()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return value, nil
}

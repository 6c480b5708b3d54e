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
	// N is its number among all calls of the process, reads too; the first is 1.
	N int
	// Op is the name of the method: "Create", "Load", "Save", ...
	Op string
	// Job is the job's id.
	Job string
	// Step and Attempt are those of the claim that it is about.
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

// Process is the process that makes the calls. It lives until a call crashes it.
type Process struct {
	// OnCrash, if set, is called once, by the call that crashes, before that call returns. It is set
	// before the first call.
	OnCrash func()

	plan func(Call) Effect

	mu      sync.Mutex
	calls   int
	crashed bool
}

// NewProcess returns a process that asks plan at every call for its effect. The plan is asked one call at a time, in
// the order of their numbers; a nil plan has no faults.
func NewProcess(plan func(Call) Effect) *Process {
	if plan == nil {
		plan = func(Call) Effect { return None }
	}
	return &Process{plan: plan}
}

// Calls is how many calls were made before the crash.
func (p *Process) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Crashed reports whether a crash has happened.
func (p *Process) Crashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// next numbers a call and asks the plan.
func (p *Process) next(c Call) (Effect, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed {
		return None, ErrCrashed
	}
	p.calls++
	c.N = p.calls
	return p.plan(c), nil
}

// Crash ends the process, and returns ErrCrashed.
func (p *Process) Crash() error {
	p.mu.Lock()
	first := !p.crashed
	p.crashed = true
	p.mu.Unlock()
	if first && p.OnCrash != nil {
		p.OnCrash()
	}
	return ErrCrashed
}

// Do makes a call with its effect.
func (p *Process) Do(c Call, execute func() error) error {
	effect, err := p.next(c)
	if err == nil {
		err = p.suffer(effect, execute)
	}
	if errors.Is(err, ErrCrashed) || errors.Is(err, ErrInjected) {
		return fmt.Errorf("%s %s: %w", c.Op, c.Job, err)
	}
	return err
}

func (p *Process) suffer(effect Effect, execute func() error) error {
	switch effect {
	case FailBefore:
		return ErrInjected
	case CrashBefore:
		return p.Crash()
	}
	err := execute()
	switch {
	case p.Crashed(): // The process died while the call was executed.
		return ErrCrashed
	case effect == FailAfter:
		return ErrInjected
	case effect == CrashAfter:
		return p.Crash()
	}
	return err
}

// Store is a store.Store that fails as planned.
type Store struct {
	*Process
	inner store.Store
	do    func(Call, func() error) error
}

// New returns the store of a new process; see NewProcess.
func New(inner store.Store, plan func(Call) Effect) *Store {
	p := NewProcess(plan)
	return &Store{Process: p, inner: inner, do: p.Do}
}

// Around returns a store that leaves its calls to do, which executes a call, or not, and returns its error. It has no
// process.
func Around(inner store.Store, do func(c Call, execute func() error) error) store.Store {
	return &Store{inner: inner, do: do}
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

// Package jq runs untrusted jq expressions: bounded, deterministic, and without access to the outside. It does not
// depend on workflows.
//
// # Bounds
//
//	source       MaxSourceBytes
//	steps        MaxSteps of gojq's machine
//	bytes        MaxBytes that are read and made: see meter.go
//	values       the arguments of a builtin function, and so its result: see limit.go
//	result       the limit that the caller gives to Encode
//
// Steps and bytes are counts, so that an expression ends at the same place on every computer, however busy that is.
//
// # No bound
//
// Time. A single builtin function is not interrupted; with the limits on its arguments the slowest known ones take
// about a second (TestHostileExpressionsEndSoonAndSmall keeps a list). Functions of floating-point numbers (sin, pow)
// may differ in the last digit between kinds of processor.
package jq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// MaxSourceBytes is how long an expression may be.
	MaxSourceBytes = 16 << 10
	// MaxSteps is how many steps of gojq's machine an evaluation may take.
	MaxSteps = limits.MaxEvaluationSteps
	// MaxBytes is how many bytes of values an evaluation may read and make, as meter.go counts them.
	MaxBytes = limits.MaxEvaluationBytes
)

// Program is a compiled expression. It may be run by many goroutines at once.
type Program struct {
	source string
	// idle are unused runners of the program.
	idle sync.Pool
	// patterns: it makes regular expressions at run time. gojq keeps each one for as long as the
	// code lives, so such a program is compiled afresh for every run.
	patterns bool
}

// UnknownFunction is the error of an expression that calls a function of this name, which there is not.
type UnknownFunction string

func (e UnknownFunction) Error() string { return "there is no function " + string(e) }

// runner is the code of a program, and the meter that is compiled into it: for one evaluation at a time.
type runner struct {
	code  *gojq.Code
	meter *meter
}

// Parse reads an expression for analysis, and refuses the same as Compile, but for functions that do not exist. The
// caller owns the result.
func Parse(source string) (query *gojq.Query, err error) {
	defer recovered(&err)
	if _, _, err := bound(source); err != nil {
		return nil, err
	}
	return gojq.Parse(source)
}

// bound reads an expression and writes the limits into it.
func bound(source string) (*gojq.Query, *rewriter, error) {
	if len(source) > MaxSourceBytes {
		return nil, nil, fmt.Errorf("an expression of %d bytes, the limit is %d", len(source), MaxSourceBytes)
	}
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, nil, fmt.Errorf("not jq: %w", err)
	}
	r := newRewriter(query)
	query = r.query(query)
	return query, r, r.err
}

// Compile makes a program of an expression. It refuses invalid jq, and functions that would read the clock, the
// environment, the local time zone, files or other input.
func Compile(source string) (program *Program, err error) {
	defer recovered(&err)
	first, patterns, err := compile(source)
	if err != nil {
		return nil, err
	}
	p := &Program{source: source, patterns: patterns}
	p.idle.Put(first)
	return p, nil
}

func compile(source string) (r *runner, patterns bool, err error) {
	query, rewritten, err := bound(source)
	if err != nil {
		return nil, false, err
	}
	m := &meter{}
	limits, err := m.limits()
	if err != nil {
		return nil, false, err
	}
	code, err := gojq.Compile(query, limits...)
	if err != nil {
		return nil, false, err
	}
	return &runner{code: code, meter: m}, rewritten.patterns, nil
}

// begin returns a runner that is not in use.
func (p *Program) begin() (*runner, error) {
	if r, ok := p.idle.Get().(*runner); ok {
		return r, nil
	}
	r, _, err := compile(p.source)
	return r, err
}

// end keeps a runner for the next evaluation.
func (p *Program) end(r *runner) {
	if p.patterns {
		return
	}
	*r.meter = meter{plus: r.meter.plus} // without the values of the caller
	p.idle.Put(r)
}

// Source is the expression as it was written.
func (p *Program) Source() string { return p.source }

// Run evaluates the program on input, a value of Decode, which it does not change, and returns its one
// value. It is an error if there is none or a second one. When ctx ends, so does the evaluation, with
// an error that is that of ctx; every other error is the expression's own.
func (p *Program) Run(ctx context.Context, input any) (value any, err error) {
	return p.RunWithin(ctx, input, nil)
}

// Budget is how much several evaluations may take together.
type Budget struct{ steps, bytes, most int }

// BudgetOf has room for so many of the largest evaluations.
func BudgetOf(evaluations int) *Budget { return &Budget{most: evaluations} }

func (b *Budget) charge(m *meter) error {
	b.steps += m.steps
	b.bytes += m.bytes
	switch {
	case b.steps/b.most >= MaxSteps:
		return fmt.Errorf("takes more than %d steps, together with the evaluations before it", b.most*MaxSteps)
	case b.bytes/b.most >= MaxBytes:
		return fmt.Errorf("reads and makes more than %d bytes, together with the evaluations before it", b.most*MaxBytes)
	default:
		return nil
	}
}

// RunWithin is Run, and charges the evaluation to a budget, unless that is nil. The one that exceeds it is an error.
func (p *Program) RunWithin(ctx context.Context, input any, b *Budget) (value any, err error) {
	defer recovered(&err)
	r, err := p.begin()
	if err != nil {
		return nil, err
	}
	r.meter.reset(ctx)
	value, err = one(r.code.RunWithContext(r.meter, input))
	if b != nil && err == nil {
		err = b.charge(r.meter)
	}
	p.end(r)
	return value, err
}

// one returns the only value of an evaluation.
func one(results gojq.Iter) (any, error) {
	value, ok := results.Next()
	if !ok {
		return nil, errors.New("gives no value, want one")
	}
	if err, failed := value.(error); failed {
		return nil, err
	}
	switch second, more := results.Next(); second := second.(type) {
	case error:
		return nil, second
	default:
		if more {
			return nil, errors.New("gives more than one value, want one")
		}
		return value, nil
	}
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("jq panicked: %v", r)
	}
}

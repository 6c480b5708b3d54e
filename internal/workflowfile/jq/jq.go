// Package jq runs jq expressions that nobody here has read: bounded, deterministic, and without a
// view of the outside. It knows nothing of workflows.
//
// # What is bounded
//
//	source       MaxSourceBytes
//	steps        MaxSteps of gojq's machine, the same on every computer
//	time         MaxTime, looked at between steps
//	values       what a builtin function may be given, so what it can make of it: see limit.go
//	result       the limit that the caller gives to Encode
//
// # What is not
//
// A single builtin function is not interrupted; with the limits on what it is given the slowest
// known ones take about a second. Memory is bounded by the steps and the limits together, to some
// 150 MB in the worst cases known (TestHostileExpressionsEndSoonAndSmall keeps a list); there is no
// count of bytes. Functions of floating-point numbers (sin, pow) may differ in the last digit
// between kinds of processor.
package jq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"
)

const (
	// MaxSourceBytes is how long an expression may be.
	MaxSourceBytes = 16 << 10
	// MaxSteps is how many steps of gojq's machine an evaluation may take.
	MaxSteps = 1_000_000
	// MaxTime is how long an evaluation may take. MaxSteps are done in about a tenth of it where a
	// processor is free; the rest is for a small Lambda function, which has a fraction of one.
	MaxTime = time.Second
)

// Program is a compiled expression. It may be run by many goroutines at once.
type Program struct {
	source string
	code   *gojq.Code
	// patterns: it makes regular expressions at run time. gojq keeps each one for as long as the
	// code lives, so such a program is compiled afresh for every run.
	patterns bool
}

// Parse reads an expression for those who look into it, and refuses what Compile refuses, but for
// functions that do not exist. The caller owns the result.
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

// Compile makes a program of an expression. It refuses what is not jq and what would read the clock,
// the environment, the local time zone, files or other input.
func Compile(source string) (program *Program, err error) {
	defer recovered(&err)
	query, r, err := bound(source)
	if err != nil {
		return nil, err
	}
	limits, err := limits()
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query, limits...)
	if err != nil {
		return nil, err
	}
	return &Program{source: source, code: code, patterns: r.patterns}, nil
}

// Source is the expression as it was written.
func (p *Program) Source() string { return p.source }

// Run evaluates the program on input, a value of Decode, which it does not change, and gives its one
// value. It is an error if there is none or a second one. When ctx ends, so does the evaluation, with
// an error that is that of ctx; every other error is the expression's own.
func (p *Program) Run(ctx context.Context, input any) (value any, err error) {
	defer recovered(&err)
	code := p.code
	if p.patterns {
		fresh, err := Compile(p.source)
		if err != nil {
			return nil, err
		}
		code = fresh.code
	}
	results := code.RunWithContext(&meter{Context: ctx, end: time.Now().Add(MaxTime)}, input)
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

// meter is a context that counts how often it is asked whether it is done, which gojq does at each
// step of its machine.
type meter struct {
	context.Context
	end   time.Time
	steps int
	err   error
	done  chan struct{}
}

// Done is closed when an evaluation has had its steps or its time, or when its caller's context ended.
func (m *meter) Done() <-chan struct{} {
	m.steps++
	const lookEvery = 256
	switch {
	case m.err != nil:
	case m.steps > MaxSteps:
		m.stop(fmt.Errorf("takes more than %d steps", MaxSteps))
	case m.steps%lookEvery != 1:
	case m.Context.Err() != nil:
		m.stop(m.Context.Err())
	case time.Now().After(m.end):
		m.stop(fmt.Errorf("takes longer than %s", MaxTime))
	}
	return m.done
}

func (m *meter) stop(err error) {
	m.err, m.done = err, make(chan struct{})
	close(m.done)
}

// Err says why the meter is done.
func (m *meter) Err() error { return m.err }

package agent

import (
	"errors"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/limits"
)

var (
	// ErrWithdrawn: the job no longer needs the result, because it is to be undone. The attempt still stands until its
	// CompleteBy, and its reply until then counts: a success says that there is an effect to undo, NotApplied that there
	// is none.
	ErrWithdrawn = errors.New("withdrawn: the result is not wanted any more")
	// ErrOver: the attempt is over. Another may have begun, and the reply of this one is ignored.
	ErrOver = errors.New("the attempt is over")
)

// The kinds of knowledge about a failure. Each is a wrapper that errors.Is and errors.As see through, so they combine
// in any order.
type (
	finalError      struct{ error }
	notAppliedError struct{ error }
	retryAfterError struct {
		error
		after    time.Duration
		slowDown bool
	}
	kindError struct {
		error
		kind string
	}
)

func (e finalError) Unwrap() error      { return e.error }
func (e notAppliedError) Unwrap() error { return e.error }
func (e retryAfterError) Unwrap() error { return e.error }
func (e kindError) Unwrap() error       { return e.error }

// Final says that another attempt would fail too: the step is given up. Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return finalError{err}
}

// NotApplied says that the attempt surely had no effect, so there is no effect to undo after it. When in doubt do not
// use it. NotApplied(nil) is nil.
func NotApplied(err error) error {
	if err == nil {
		return nil
	}
	return notAppliedError{err}
}

// RetryAfter says that the remote service asked for a pause of d; the next attempt waits that long, up to the step's
// retry.max. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return retryAfterError{err, d, false}
}

// SlowDown is RetryAfter for all attempts of the agent: none begins before d is over, at most an hour. The attempt is
// not counted (the first 100 of a step), and the next is not bounded by retry.max. SlowDown(d, nil) is nil.
func SlowDown(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return retryAfterError{err, d, true}
}

// Kind sets the kind of an error, [a-z][a-z0-9_]{0,62} such as "card_declined", which selects a route in the step's
// onError. A kind of another form is ignored. Where errors are wrapped, the outermost kind counts. Kind(kind, nil) is
// nil.
func Kind(kind string, err error) error {
	if err == nil || limits.ErrorKind.Check(kind) != nil {
		return err
	}
	return kindError{err, kind}
}

// Failure converts err: its text, clipped to 1,024 bytes, and its Kind, and whether it is Final, NotApplied,
// RetryAfter and SlowDown; a plain error is retryable, and leaves it unknown whether there was an effect. Where several
// errors are joined or wrapped by one, a single Final or SlowDown suffices, the longest RetryAfter counts, and
// NotApplied holds only if each error says so. err is not nil.
func Failure(err error) makegood.StepError {
	wait := longestWait(err)
	failure := makegood.StepError{
		Message:    limits.Clip(err.Error()),
		Retryable:  !isFinal(err),
		Applied:    makegood.AppliedUnknown,
		RetryAfter: makegood.Duration(wait.after.Truncate(time.Millisecond)),
		SlowDown:   wait.slowDown,
	}
	if kind := (kindError{}); errors.As(err, &kind) {
		failure.Kind = kind.kind
	}
	if isNotApplied(err) {
		failure.Applied = makegood.AppliedNo
	}
	return failure
}

func isFinal(err error) bool {
	return errors.As(err, new(finalError))
}

// isNotApplied differs from errors.As at a fork: one sure branch is no proof for the others.
func isNotApplied(err error) bool {
	if _, sure := err.(notAppliedError); sure {
		return true
	}
	branches := unwrap(err)
	for _, branch := range branches {
		if !isNotApplied(branch) {
			return false
		}
	}
	return len(branches) > 0
}

// longestWait returns the longest pause, for all attempts if one of several is.
func longestWait(err error) (longest retryAfterError) {
	if r, ok := err.(retryAfterError); ok {
		longest.after, longest.slowDown = max(0, r.after), r.slowDown
	}
	for _, branch := range unwrap(err) {
		wait := longestWait(branch)
		longest.after, longest.slowDown = max(longest.after, wait.after), longest.slowDown || wait.slowDown
	}
	return longest
}

// Wait is the error that an action returns when another party will complete the step: a person, a bank, a webhook. The
// step waits then, without a claim and without compute, until a holder of TaskOf(ctx).Completion completes it, or
// until deadline, after which the workflow's waiting.onTimeout applies. A deadline that is further ahead than
// makegood.MaxWait, or a zero deadline, becomes that far ahead. Hand the token over before you return: a completion
// that arrives before this answer counts, too.
func Wait(deadline time.Time) error { return agentctx.WaitError{Deadline: deadline} }

func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

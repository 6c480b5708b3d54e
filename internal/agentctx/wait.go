package agentctx

import (
	"errors"
	"time"
)

// WaitError is what agent.Wait returns.
type WaitError struct{ Deadline time.Time }

// Error says until when the step waits.
func (e WaitError) Error() string {
	return "the step waits until " + e.Deadline.UTC().Format(time.RFC3339)
}

// Waits reports whether err is what agent.Wait returned, and the deadline that it was given.
func Waits(err error) (deadline time.Time, ok bool) {
	var w WaitError
	if !errors.As(err, &w) {
		return time.Time{}, false
	}
	return w.Deadline, true
}

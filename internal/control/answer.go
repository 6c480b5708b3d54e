package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Answer is a completion or a failure of a step.
type Answer struct {
	// Output is the step's output; none: null. Error, if set, is why the step failed; its RetryAfter is ignored.
	Output json.RawMessage
	Error  *makegood.StepError
	// Request names the request: the same name again is the same request. Empty: the content of the answer names it.
	Request string
	// By is the author's name where the endpoint authenticates no caller, at most limits.MaxAnswererBytes in one line. Why
	// is the author's reason, at most limits.MaxReasonBytes.
	By, Why string
}

func (a Answer) verb() string {
	if a.Error != nil {
		return "fail"
	}
	return "complete"
}

// event checks an answer, and returns the event for the Scheduler.
func (a Answer) event(p job.Place, by string) (job.StepCompleted, error) {
	e := job.StepCompleted{Place: p, Request: a.Request, By: by, Why: a.Why}
	if _, err := requestName(a.Request); err != nil {
		return e, err
	}
	switch {
	case len(a.By) > limits.MaxAnswererBytes || limits.CheckWho(a.By) != nil:
		return e, invalid("by: want a name of at most %d bytes in one line", limits.MaxAnswererBytes)
	case len(a.Why) > limits.MaxReasonBytes:
		return e, invalid("why has %d bytes, the limit is %d", len(a.Why), limits.MaxReasonBytes)
	}
	if a.Error != nil {
		failure, err := failure(*a.Error)
		e.Error = &failure
		return e, err
	}
	output, err := checkOutput(a.Output)
	e.Output = output
	return e, err
}

// checkOutput checks a step's output.
func checkOutput(given json.RawMessage) (job.Payload, error) {
	if len(given) == 0 {
		return job.Payload{}, nil
	}
	// Canonical, so that the same value in another spelling is the same answer.
	output, err := canonical.JSON(given)
	if err != nil {
		return job.Payload{}, invalid("output is not JSON as it must be: %v", err)
	}
	if len(output) > makegood.MaxPayloadBytes {
		return job.Payload{}, &api.InvalidError{
			Message: fmt.Sprintf("output has %d bytes, the limit is %d", len(output), makegood.MaxPayloadBytes), Status: http.StatusRequestEntityTooLarge,
		}
	}
	return wire.Inline(output), nil
}

// settled checks a settlement, and returns its event.
func settled(p job.Place, s api.SettleOptions) (job.Settled, error) {
	e := job.Settled{Place: p, Done: !s.Skipped && !s.NotDone, NotDone: s.NotDone, Attempt: s.Attempt, Reason: s.Reason, Request: s.Name}
	if _, err := requestName(s.Name); err != nil {
		return e, err
	}
	output, err := checkOutput(s.Output)
	e.Output = output
	switch {
	case err != nil:
		return e, err
	case len(s.Reason) > limits.MaxReasonBytes:
		return e, invalid("reason has %d bytes, the limit is %d", len(s.Reason), limits.MaxReasonBytes)
	case s.Attempt < 0:
		return e, invalid("attempt is %d: want 1 or more, or 0 for whichever is the latest", s.Attempt)
	case s.Skipped && s.NotDone:
		return e, invalid("a step is settled as skipped or as not done, and not as both")
	case s.Skipped && s.Reason == "":
		return e, invalid("reason is missing: say why the step is skipped")
	case s.NotDone && s.Reason == "":
		return e, invalid("reason is missing: say how it is known that no effect of the step stands")
	case !e.Done && output.Bytes > 0:
		return e, invalid("output: only a step that is settled as done has one")
	}
	return e, nil
}

// failure checks the error of a failed step.
func failure(given makegood.StepError) (job.StepError, error) {
	f := job.StepError{Message: given.Message, Kind: given.Kind, Retryable: given.Retryable, Applied: given.Applied}
	f.Applied = cmp.Or(f.Applied, makegood.AppliedUnknown)
	switch {
	case f.Message == "":
		return f, invalid("error.message is missing: say why it failed")
	case len(f.Message) > limits.MaxReasonBytes:
		return f, invalid("error.message has %d bytes, the limit is %d", len(f.Message), limits.MaxReasonBytes)
	case f.Applied != makegood.AppliedUnknown && f.Applied != makegood.AppliedNo:
		return f, invalid("error.applied is %.40q: want %s or %s", f.Applied, makegood.AppliedUnknown, makegood.AppliedNo)
	case f.Kind != "" && limits.ErrorKind.Check(f.Kind) != nil:
		return f, invalid("error.kind: %v", limits.ErrorKind.Check(f.Kind))
	}
	return f, nil
}

// deadline checks a new deadline; a zero time is no deadline.
func deadline(until time.Time) (time.Time, error) {
	until = domain.Instant(until)
	if _, err := until.MarshalJSON(); err != nil {
		return until, invalid("deadline: %v", err)
	}
	return until, nil
}

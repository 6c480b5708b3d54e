package jobformat

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// readActivity reads what writer.details wrote, and what a later release keeps beside it, into a.
func readActivity(a *job.Activity, data []byte, epoch int64) error {
	r := activityReader{Activity: a}
	kept, err := readFields(data, func(f *field) bool {
		return r.times(f, epoch) || r.output(f) || r.ending(f) || r.routes(f) || r.settled(f, epoch) || r.waits(f, epoch) || r.redefined(f)
	})
	if err != nil {
		return err
	}
	a.Kept += kept
	if !r.sized && len(a.Output.Inline) > 0 {
		a.Output.Bytes = len(a.Output.Inline)
	}
	if !a.At.IsZero() {
		epoch = epochOf(a.At)
	}
	for _, late := range r.after[:r.late] {
		t, ok := moment(epoch, late.ms)
		if !ok {
			return damaged("a time %d ms after the latest of an activity", late.ms)
		}
		*late.at = t
	}
	return nil
}

// activityReader reads one activity.
type activityReader struct {
	*job.Activity
	// after are the times that are counted from At, the late ones: At may be read after them. A time that is repeated
	// replaces the first.
	after [9]after
	late  int
	// sized: the size of the output is not that of its inline value.
	sized bool
}

type after struct {
	at *time.Time
	ms int64
}

func (r *activityReader) fromAt(at *time.Time, f *field) {
	for i := range r.late {
		if r.after[i].at == at {
			r.after[i].ms = f.signed()
			return
		}
	}
	r.after[r.late] = after{at, f.signed()}
	r.late++
}

func (r *activityReader) times(f *field, epoch int64) bool {
	switch f.num {
	case actAt:
		r.At = f.time(epoch)
	case actStartedAt:
		r.fromAt(&r.StartedAt, f)
	case actFinishedAt:
		r.fromAt(&r.FinishedAt, f)
	case actLookAt:
		r.fromAt(&r.LookAt, f)
	case actOpenedAt:
		r.fromAt(&r.OpenedAt, f)
	case actSilentStarted:
		r.fromAt(&r.Silent.StartedAt, f)
	case actSilentComplete:
		r.fromAt(&r.Silent.CompleteBy, f)
	case actRepeatSince:
		r.fromAt(&r.RepeatSince, f)
	case actFailingSince:
		r.fromAt(&r.FailingSince, f)
	case actLastStartedAt:
		r.fromAt(&r.LastStartedAt, f)
	default:
		return false
	}
	return true
}

// routes reads how the step began, and where it went.
func (r *activityReader) routes(f *field) bool {
	switch f.num {
	case actBy:
		r.By = f.text()
	case actWentTo:
		r.WentTo = f.text()
	case actRepeats:
		r.Repeats = f.int()
	case actRepeatTries:
		r.RepeatTries = f.int()
	default:
		return false
	}
	return true
}

func (r *activityReader) output(f *field) bool {
	switch f.num {
	case actOutputInline:
		r.Output.Inline = f.copied()
	case actOutputRef, actOwnRef:
		r.Output.Ref = f.text()
	case actOwnRefHex:
		r.Output.Ref = f.hash()
	case actOutputBytes:
		r.Output.Bytes, r.sized = f.int(), true
	default:
		return false
	}
	return true
}

func (r *activityReader) ending(f *field) bool {
	switch f.num {
	case actCause:
		r.Cause = f.text()
	case actError:
		r.Error = readError(f)
	case actClosing:
		r.Closing = f.flag()
	case actSilentAttempt:
		r.Silent.Attempt = f.int()
	case actSilentLockedBy:
		r.Silent.LockedBy = f.text()
	default:
		return false
	}
	return true
}

func readError(f *field) *job.StepError {
	var e job.StepError
	e.Kept = f.message(func(f *field) bool {
		switch f.num {
		case errorMessage:
			e.Message = f.text()
		case errorApplied:
			e.Applied = makegood.Applied(f.text())
		case errorRetryable:
			e.Retryable = f.flag()
		case errorKind:
			e.Kind = f.text()
		case errorRetryAfter:
			e.RetryAfter = makegood.Duration(f.uint())
		default:
			return false
		}
		return true
	})
	return &e
}

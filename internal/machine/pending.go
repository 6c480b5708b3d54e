package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// alertFrom is the resend of a task from which on somebody is told that nobody claims it.
const alertFrom = 3

// Pending says what event makes due that nobody has answered: the tasks of the attempts that it opened or sent again,
// the closings that it asked for, what was not told, and the alert about an agent that claims nothing. It is derived
// from the saved job alone, so the same event delivered again derives the same, and an event that is not the cause of
// an attempt never sends it again.
func Pending(w makegood.Workflow, job makegood.Job, event makegood.Event, now time.Time) []makegood.Command {
	if forged(job, event) {
		// A stranger makes nothing due, not even again, nor anybody hear of it before the tasks are out.
		return nil
	}
	var commands []makegood.Command
	cause := event.Cause()
	if key, ok := remind(job, event); ok {
		commands = append(commands, makegood.Remind{Key: key})
	}
	for i, s := range job.Steps {
		a, undo, ok := dispatched(s)
		switch {
		case !ok || a.Cause != cause:
		case a.Closing:
			unwanted := undo == (job.Desired == makegood.Processed)
			commands = append(commands, makegood.CloseAttempt{Step: s.Name, Attempt: a.Attempt, Undo: undo, Mark: unwanted, Asked: cause})
		case wanted(job, undo):
			commands = append(commands, makegood.Dispatch{Step: s.Name, Attempt: a.Attempt, Undo: undo})
			if a.Resent >= alertFrom {
				commands = append(commands, makegood.AlertAgent{Agent: agentOf(w.Steps[i], undo)})
			}
		}
	}
	return append(commands, untold(job, now)...)
}

// forged reports whether an event is a reply without the token of its attempt.
func forged(job makegood.Job, event makegood.Event) bool {
	switch e := event.(type) {
	case makegood.StepSucceeded:
		return !Genuine(job, e.Reply)
	case makegood.StepFailed:
		return !Genuine(job, e.Reply)
	default:
		return false
	}
}

// untold gives the announcements that are to be made now: an operator is told at every occasion, a listener who could
// not be told when his time has come.
func untold(job makegood.Job, now time.Time) (commands []makegood.Command) {
	for _, a := range job.Untold {
		a.Listener = a.Listener && !now.Before(job.TellAt)
		if a.Operator || a.Listener {
			commands = append(commands, makegood.Announce{Announcement: a})
		}
	}
	return commands
}

// remind gives the job's key if event is what made something due at it: a retry, or the start.
func remind(job makegood.Job, event makegood.Event) (time.Time, bool) {
	key, cause := job.CompleteBy, event.Cause()
	if _, ok := event.(makegood.Submitted); ok && !key.IsZero() && key.Equal(job.StartAt) {
		return key, true
	}
	for _, s := range job.Steps {
		for _, a := range []makegood.Activity{s.Forward, s.Undo} {
			if a.State == makegood.Backoff && a.Cause == cause && a.At.Equal(key) {
				return key, true
			}
		}
	}
	return time.Time{}, false
}

// wanted reports whether an attempt in this direction may be sent: a shared one is not withdrawn when
// the job stops, pauses or turns round, only never sent again.
func wanted(job makegood.Job, undo bool) bool {
	forwards := job.Desired == makegood.Processed
	return undo != forwards && !job.Paused() && job.ProcessState != makegood.Error
}

func agentOf(s makegood.Step, undo bool) string {
	if undo {
		return s.Undo.Agent
	}
	return s.Agent
}

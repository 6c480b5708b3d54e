package machine

import "github.com/makegood-dev/makegood"

// alertFrom is the resend of a task from which on somebody is told that nobody claims it.
const alertFrom = 3

// Pending says what event makes due that nobody has taken up: the tasks of the attempts that it
// opened or sent again and that are unclaimed, what was not told, and the alert about an agent that
// claims nothing. It is derived from the saved job alone, so the same event delivered again derives
// the same, and an event that is not the cause of an attempt never sends it again.
func Pending(w makegood.Workflow, job makegood.Job, event makegood.Event) []makegood.Command {
	var commands []makegood.Command
	cause := event.Cause()
	for i, s := range job.Steps {
		a, undo, ok := dispatched(s)
		if !ok || a.Cause != cause || !wanted(job, undo) {
			continue
		}
		if _, claimed := claimOf(job, s.Name, a); claimed {
			continue
		}
		commands = append(commands, makegood.Dispatch{Step: s.Name, Attempt: a.Attempt, Undo: undo})
		if a.Resent >= alertFrom {
			commands = append(commands, makegood.AlertAgent{Agent: agentOf(w.Steps[i], undo)})
		}
	}
	for _, a := range job.Untold {
		commands = append(commands, makegood.Announce{Announcement: a})
	}
	return commands
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

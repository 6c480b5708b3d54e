package job

import (
	"time"
)

// Command is work that must now be done. Commands are derived from the saved job, never remembered beside it. The set
// is closed.
type Command interface{ isCommand() }

// Dispatch: send the task of this attempt to its agent.
type Dispatch struct {
	Step    string
	Attempt int
	Undo    bool
}

// PassEdit: have the child of this attempt, which does a map, take the edit of the map. Begin: put the child there,
// if it is absent.
type PassEdit struct {
	Dispatch
	Begin bool
}

// CloseAttempt: end an attempt that is no longer wanted, and report the finding (AttemptClosed, with the same Asked).
type CloseAttempt struct {
	Step    string
	Attempt int
	Undo    bool
	// Mark: the holder is told, at its next heartbeat, that the result is not wanted.
	Mark bool
	// Redrives is the number of redrives that the child of the attempt was asked for.
	Redrives int
	// Asked is the cause of the event that asked for it.
	Asked string
}

// Announce: tell those that the announcement names of a change of ProcessState.
type Announce struct{ Announcement }

// Publish: publish the pending changes, up to Seq. Confirm: say so at once (Published), since no other save may come.
type Publish struct {
	Seq     int
	Confirm bool
}

// TellParent: the job has ended, and is a child: its parent is to look at it.
type TellParent struct {
	Parent string
	ChildEnded
}

// AlertAgent: the tasks of this agent are not claimed. One alert an agent is enough for many jobs.
type AlertAgent struct{ Agent string }

// Remind: work is due at Key, which is the job's CompleteBy; send DeadlinePassed for then. It only spares the job the
// wait for the next sweep.
type Remind struct{ Key time.Time }

// Ask: tell the people asked that a step waits to be completed, at the N-th moment.
type Ask struct {
	Step    string
	Attempt int
	Undo    bool
	N       int
}

func (Ask) isCommand()          {}
func (Remind) isCommand()       {}
func (Dispatch) isCommand()     {}
func (PassEdit) isCommand()     {}
func (CloseAttempt) isCommand() {}
func (Announce) isCommand()     {}
func (Publish) isCommand()      {}
func (TellParent) isCommand()   {}
func (AlertAgent) isCommand()   {}

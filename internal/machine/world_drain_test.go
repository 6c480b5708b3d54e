package machine_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// drain lets agents succeed and time pass, until the job ends. Closings may be carried out, or be lost for ever.
func (x *world) drain() {
	x.nested, x.draining = true, true
	x.holds = nil
	deaf := rapid.Bool().Draw(x.t, "closings are lost")
	silent := x.w.OnFailure.Action != makegood.FailureWait && rapid.Bool().Draw(x.t, "nobody answers")
	undo := rapid.Bool().Draw(x.t, "undone at last")
	for range 2000 {
		x.requests++
		if x.job.ProcessState == makegood.JobProcessed && undo {
			undo = false
			x.move(x.job.Clone(), job.Requested{Verb: makegood.VerbUndo, Request: fmt.Sprintf("r%d", x.requests)})
			continue
		}
		if x.job.ProcessState.Finished() {
			return
		}
		if x.job.ProcessState == makegood.JobError {
			x.help()
			continue
		}
		if x.job.HeldBy != "" && !x.job.PausedToo {
			x.hint()
			continue
		}
		if x.job.Paused() {
			x.move(x.job.Clone(), job.Requested{Verb: makegood.VerbResume, Request: fmt.Sprintf("r%d", x.requests)})
			continue
		}
		if x.serve() || x.serveChildren() || x.attend(silent) || !deaf && x.closeAll() {
			continue
		}
		x.untilDue()
		x.move(x.job.Clone(), job.DeadlinePassed{Key: x.job.CompleteBy})
	}
	x.t.Fatalf("the job did not end: %+v", x.job)
}

// untilDue lets time pass until something is due.
func (x *world) untilDue() {
	if x.now.Before(x.job.CompleteBy) {
		x.now = x.job.CompleteBy
	}
}

// serve claims what is out and replies to it.
func (x *world) serve() (progress bool) {
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			which := id(s.Name, a.Attempt)
			if a.State != job.Dispatched || x.ofChild(which) {
				continue
			}
			x.claimOf(which)
			progress = x.move(x.job.Clone(), x.replyOf(which, saysDone)) == machine.Applied || progress
		}
	}
	return progress
}

// help is what an operator does about a job that waits for one: after the first time they see to what has failed themselves.
func (x *world) help() {
	x.helped++
	name, yes := fmt.Sprintf("r%d", x.requests), job.Payload{Inline: []byte(`"yes"`), Bytes: len(`"yes"`)}
	for _, s := range x.job.Steps {
		for i, a := range []job.Activity{s.Forward, s.Undo} {
			undo := i == 1
			if x.helped > 1 && a.State == job.Failed && undo == (x.job.Desired != makegood.JobProcessed) {
				x.move(x.job.Clone(), job.Settled{Place: job.Place{Step: s.Name, Undo: undo}, Done: true, Output: yes, By: "anna", Request: name})
			}
		}
	}
	if x.job.ProcessState != makegood.JobError {
		return
	}
	verb := rapid.SampledFrom([]makegood.Verb{makegood.VerbResubmit, makegood.VerbUndo, makegood.VerbCancel}).Draw(x.t, "help")
	x.move(x.job.Clone(), job.Requested{Verb: verb, Request: name})
}

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
	x.nested = true
	x.holds = nil
	deaf := rapid.Bool().Draw(x.t, "closings are lost")
	silent := x.w.OnFailure.Action != makegood.FailureWait && rapid.Bool().Draw(x.t, "nobody answers")
	for range 2000 {
		if x.job.ProcessState.Finished() || x.job.ProcessState == makegood.Error {
			return
		}
		x.requests++
		if x.job.HeldBy != "" && !x.job.PausedToo {
			x.hint()
			continue
		}
		if x.job.Paused() {
			x.move(x.job.Clone(), job.Requested{Verb: makegood.Resume, Request: fmt.Sprintf("r%d", x.requests)})
			continue
		}
		if x.serve() || x.attend(silent) || !deaf && x.closeAll() {
			continue
		}
		if x.now.Before(x.job.CompleteBy) {
			x.now = x.job.CompleteBy
		}
		x.move(x.job.Clone(), job.DeadlinePassed{Key: x.job.CompleteBy})
	}
	x.t.Fatalf("the job did not end: %+v", x.job)
}

// serve claims what is out and replies to it.
func (x *world) serve() (progress bool) {
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			which := id(s.Name, a.Attempt)
			if a.State != job.Dispatched {
				continue
			}
			x.claimOf(which)
			progress = x.move(x.job.Clone(), x.replyOf(which, saysDone)) == machine.Applied || progress
		}
	}
	return progress
}

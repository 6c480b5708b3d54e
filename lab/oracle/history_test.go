package oracle_test

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/lab/oracle"
)

// told is what a naive reader knows of a job whose history is compared with that, and what the core has noted since.
type told struct {
	noted []job.Entry
	// granted are the requests and answers that the oracle granted since.
	granted []string

	failures, round int
	state           makegood.ProcessState
	forwards        bool
}

// grants notes what the oracle grants, which the core must note.
func (x *world) grants(kind makegood.EntryKind, what makegood.Verb, answer oracle.Answer) {
	if answer == oracle.Granted {
		x.told.granted = append(x.told.granted, string(kind)+" "+string(what))
	}
}

// compareHistory wants that what the core has noted since it was last compared is what the oracle knows to have changed: who
// failed, which requests and answers were granted, and that the job turned, stopped, or began again.
func (x *world) compareHistory() {
	was, now := x.told, told{failures: x.want.Failures, round: x.want.Round, state: x.want.State, forwards: x.want.Wanted == makegood.JobProcessed}
	x.told = now
	n, forward, failures, granted := map[makegood.EntryKind]int{}, 0, was.failures, []string(nil)
	for _, e := range was.noted {
		n[e.Kind]++
		if e.Failure > 0 {
			if failures++; e.Failure != failures {
				x.fail("failure %d is noted as number %d", failures, e.Failure)
			}
		}
		if e.Kind == makegood.EntryRequest || e.Kind == makegood.EntryCompleted || e.Kind == makegood.EntrySettled {
			granted = append(granted, string(e.Kind)+" "+string(e.Verb))
		}
		if e.Kind == makegood.EntryTurned && e.State == makegood.JobProcessed {
			forward++
		}
	}
	turned := 0
	if was.forwards {
		turned++
	}
	if now.forwards {
		turned--
	}
	switch {
	case failures != now.failures:
		x.fail("it has failed %d times, and %d are noted", now.failures, failures)
	case !slices.Equal(granted, was.granted):
		x.fail("granted were %q, and noted are %q", was.granted, granted)
	case n[makegood.EntryRound] != now.round-was.round:
		x.fail("it goes from round %d to %d, and %d are noted", was.round, now.round, n[makegood.EntryRound])
	case n[makegood.EntryTurned]-2*forward-n[makegood.EntryRound] != turned:
		x.fail("it was wanted done: %t, and is: %t, and it is noted that it turned %d times", was.forwards, now.forwards, n[makegood.EntryTurned])
	case was.state != makegood.JobError && (now.state == makegood.JobError) != (n[makegood.EntryStopped] > 0):
		x.fail("it was %s and is %s, and it is noted that it stopped %d times", was.state, now.state, n[makegood.EntryStopped])
	}
}

// nothingNoted wants that an event that came again has left no entry.
func (x *world) nothingNoted() {
	if len(x.told.noted) > 0 {
		x.fail("it came again, and is noted again: %s", fmt.Sprint(x.told.noted))
	}
}

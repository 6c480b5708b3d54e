package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// A workflow states how long its jobs are expected to take. An operator is told, once a round, of a job that will
// take longer, while there is time left to act; the notice has no other effect. The time counts like the job's
// timeout: from its start, over all rounds that begin by themselves, not during a pause, and anew after a resubmit. A
// job that waits for a person, or for an absent agent, can be late too, and its operator should hear so. A job that
// is being undone for good, or has stopped, will not be done, and has its own announcements.

// expect grants the job the time that its workflow expects it to take.
func (t *turn) expect() {
	told := !t.job.ExpectBy.IsZero() && t.job.WarnAt.IsZero()
	expect := t.w.Expect.Std()
	t.job.ExpectBy, t.job.WarnAt = time.Time{}, time.Time{}
	if expect == 0 {
		return
	}
	t.job.ExpectBy = domain.Instant(t.from().Add(expect))
	if !told {
		t.job.WarnAt = domain.Instant(t.job.ExpectBy.Add(-expect / limits.ExpectMargin))
	}
}

// expectLater moves the expected time by the time that the job stood still.
func (t *turn) expectLater(stood time.Duration) {
	for _, at := range []*time.Time{&t.job.ExpectBy, &t.job.WarnAt} {
		if !at.IsZero() {
			*at = at.Add(stood)
		}
	}
}

// foresee tells an operator of a job that will miss its expected time: a retry, a round or a wait is known to end
// after it, or nearly all of the time is over. A wait that the workflow itself asks for is no reason to worry: after
// one, the last part is measured from the time left then.
func (t *turn) foresee() {
	if t.job.WarnAt.IsZero() || !t.job.Expected() {
		return
	}
	waits, soonest := t.soonest()
	if waits.After(t.now) && waits.Before(t.job.ExpectBy) {
		margin := t.job.ExpectBy.Sub(waits) / limits.ExpectMargin
		t.job.WarnAt = later(t.job.WarnAt, domain.Instant(t.job.ExpectBy.Add(-margin)))
	}
	if !soonest.After(t.job.ExpectBy) && !passed(t.job.WarnAt, t.now) {
		return
	}
	t.job.WarnAt = time.Time{}
	why := limits.Clip(t.standsAt())
	t.announce(true, false)
	last := &t.job.Untold[len(t.job.Untold)-1]
	last.ExpectBy, last.Reason = t.job.ExpectBy, why
	t.note(job.Entry{Kind: makegood.EntryLate, Reason: why})
}

// soonest returns until when the workflow itself makes the job wait, and the earliest time at which the job can be
// done; zero: unknown.
func (t *turn) soonest() (waits, soonest time.Time) {
	soonest = t.job.NextRoundAt
	for i := range t.job.Steps {
		at := t.inDirection(i)
		a := t.activity(at)
		switch {
		case a.State == job.Backoff:
			soonest = later(soonest, a.At)
		case a.State == job.Waiting && agentOf(t.w.Steps[i], at.undo) == makegood.AgentWait:
			waits = later(waits, a.Wait.Deadline)
		}
	}
	return waits, later(soonest, waits)
}

// standsAt says in words what the job waits for, of its first steps that are under way.
func (t *turn) standsAt() string {
	const most = 3
	var at []string
	if next := t.job.NextRoundAt; !next.IsZero() {
		at = append(at, "the next round begins at "+clock(next))
	}
	under := 0
	for i := range t.job.Steps {
		for _, side := range sides(i) {
			says := t.sideStands(side)
			if says == "" {
				continue
			}
			if under++; under <= most {
				at = append(at, says)
			}
		}
	}
	if under > most {
		at = append(at, fmt.Sprintf("%d more steps are under way", under-most))
	}
	return strings.Join(at, "; ")
}

func (t *turn) sideStands(at side) string {
	name := "step " + t.name(at)
	if at.undo {
		name = "the undo of " + t.name(at)
	}
	switch a := t.activity(at); a.State {
	case job.Dispatched:
		return fmt.Sprintf("%s is with agent %s, attempt %d", name, agentOf(t.w.Steps[at.step], at.undo), a.Attempt)
	case job.Backoff:
		return fmt.Sprintf("%s has failed %s and is tried again at %s", name, times(a.FailureCount), clock(a.At))
	case job.Waiting:
		return fmt.Sprintf("%s waits, until %s", name, clock(a.Wait.Deadline))
	default:
		return ""
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func clock(at time.Time) string { return at.UTC().Format(time.RFC3339) }

package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// attacked is a job of one step whose claim item the test writes as it likes, as a stolen role of its agent can.
type attacked struct {
	t    *testing.T
	w    makegood.Workflow
	job  job.Job
	now  time.Time
	item store.ClaimItem
	// alerts are those about a silent agent.
	alerts int
}

func newAttacked(t *testing.T, step makegood.Step) *attacked {
	t.Helper()
	step.Name, step.Agent = "s", "a"
	x := &attacked{t: t, now: time.UnixMilli(1_000_000).UTC(), w: domain.WithDefaults(makegood.Workflow{Name: "w", Steps: []makegood.Step{step}})}
	facts := x.facts(nil)
	for {
		j, v := machine.Submit(x.w, machine.Submission{ID: "j", Definition: "d"}, facts, x.now)
		if v.Kind == machine.Wanting {
			facts.Values = map[machine.Want]machine.Fact{{Step: "s"}: {Run: true}}
			continue
		}
		x.job = j
		return x
	}
}

func (x *attacked) facts(found map[machine.Ask]job.Found) machine.Facts {
	return machine.Facts{
		Secret: []byte("sixteen bytes ok"), Period: time.Minute, Found: found,
		Values: map[machine.Want]machine.Fact{{Step: "s"}: {Run: true}, {Step: "s", Undo: true}: {Run: true}},
	}
}

// due brings the job the deadline that its key names, at that time.
func (x *attacked) due() {
	x.t.Helper()
	if x.job.CompleteBy.After(x.now) {
		x.now = x.job.CompleteBy
	}
	event := job.DeadlinePassed{Key: x.job.CompleteBy}
	found := map[machine.Ask]job.Found{}
	for range 20 {
		next, v := machine.Apply(x.w, x.job, event, x.facts(found), x.now)
		if v.Kind != machine.Wanting {
			x.job = next
			for _, c := range machine.Pending(x.w, x.job, event, x.now) {
				if _, ok := c.(job.AlertAgent); ok {
					x.alerts++
				}
			}
			return
		}
		for _, ask := range v.Asks {
			until := x.job.Steps[0].Forward.ClaimUntil()
			switch ask.Kind {
			case machine.AskLook:
				found[ask] = store.Looked(x.item, ask.Attempt, until, x.now)
			case machine.AskClose:
				c := store.Closing{Attempt: ask.Attempt, Until: until, Now: x.now, LockedBy: ask.LockedBy}
				x.item, found[ask] = store.Closed(x.item, c)
			case machine.AskOverrule:
				item, err := store.Overruled(x.item, ask.Attempt, ask.LockedBy, until)
				if err != nil {
					x.t.Fatal(err)
				}
				x.item, found[ask] = item, job.Found{Finding: job.FoundSilent}
			}
		}
	}
	x.t.Fatal("it asks without end")
}

// What an agent writes into Closed is no answer of ours: whatever it says, the attempt ends, as silent.
func TestAnAgentThatWritesClosedNeitherStopsNorPanicsTheJob(t *testing.T) {
	for _, closed := range []job.Finding{"over", "held", "open", "closed", "replied", "garbage"} {
		t.Run(string(closed), func(t *testing.T) {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("the core panics, so the job is parked, again at each look: %v", r)
				}
			}()
			x := newAttacked(t, makegood.Step{})
			x.item = store.ClaimItem{Claim: job.Claim{Attempt: 1, CompleteBy: x.now.Add(time.Second)}, Closed: closed}
			x.due()
			if !x.job.CompleteBy.After(x.now) {
				t.Errorf("its key stays %s, at %s: it is due at every sweep, and never goes on", x.job.CompleteBy, x.now)
			}
			if x.job.FailureCount != 1 {
				t.Errorf("got %d failures, want 1", x.job.FailureCount)
			}
		})
	}
}

// Who was there was somebody: an agent that says of a claimed attempt that nobody claimed it is not believed, and what
// it did is unknown.
func TestAClaimedAttemptIsNotClosedAsNobodys(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	x.item = store.ClaimItem{Claim: job.Claim{Attempt: 1, LockedBy: "l", CompleteBy: x.now.Add(time.Second)}, Closed: job.FoundNobody}
	x.due()
	if !x.job.Steps[0].Forward.Unknown {
		t.Error("a step that was claimed is taken for one that never started: it would not be undone")
	}
}

// Nothing moves an attempt past 30 days from its claim, whatever its agent writes.
func TestAClaimThatIsMovedForEverEnds(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	start := x.now
	for x.job.FailureCount == 0 {
		x.item = store.ClaimItem{Claim: job.Claim{Attempt: 1, LockedBy: "thief", StartedAt: x.now, CompleteBy: x.now.Add(59 * time.Minute)}}
		x.due()
		if x.now.Sub(start) > 60*24*time.Hour {
			t.Fatalf("attempt 1 is held after %s, and nobody was told (announcements: %d)", x.now.Sub(start), x.job.Seq)
		}
	}
}

// A claim whose item a thief has filled is a lie, though all that it says of the attempt could be true: the reason says what it was.
func TestAClaimWhoseItemIsFilledIsALie(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	if x.job.CompleteBy.After(x.now) {
		x.now = x.job.CompleteBy
	}
	honest := job.Claim{Attempt: 1, LockedBy: "l", StartedAt: x.now, CompleteBy: x.now.Add(30 * time.Second)}
	x.item = store.ClaimItem{Claim: honest}
	x.due()
	if x.job.FailureCount != 0 {
		t.Fatalf("got %d failures of a claim that fits, want none", x.job.FailureCount)
	}
	x.now = x.now.Add(time.Second)
	honest.CompleteBy, honest.Bytes = x.job.CompleteBy.Add(time.Minute), 400<<10
	x.item = store.ClaimItem{Claim: honest}
	x.due()
	if x.job.FailureCount != 1 || x.item.Bytes != 0 {
		t.Errorf("got %d failures, and an item of %d bytes, want 1, and one that fits", x.job.FailureCount, x.item.Bytes)
	}
	if got, want := x.job.Steps[0].Forward.Error, "409600 bytes"; got == nil || !strings.Contains(got.Message, want) {
		t.Errorf("got %v, want an error that says %q", got, want)
	}
}

// However long its task may wait, somebody is told that nobody claims it.
func TestAnAgentThatNeverClaimsIsToldOfWhateverItsStartBy(t *testing.T) {
	for _, startBy := range []makegood.Duration{10 * makegood.Minute, 24 * 60 * makegood.Minute, 36 * 60 * makegood.Minute, makegood.Duration(limits.MaxStartBy)} {
		t.Run(fmt.Sprint(startBy), func(t *testing.T) {
			x := newAttacked(t, makegood.Step{StartBy: startBy})
			start := x.now
			for x.alerts == 0 {
				x.due()
				if x.now.Sub(start) > 90*24*time.Hour {
					t.Fatalf("after %s, attempt %d, nobody was told", x.now.Sub(start), x.job.Steps[0].Attempt)
				}
			}
		})
	}
}

// An operator who cannot be told is not reminded of what they have not heard: a job would grow for ever.
func TestRemindersOfADeafOperatorAreNotKept(t *testing.T) {
	x := newAttacked(t, makegood.Step{Retry: makegood.Retry{Attempts: 1}})
	for x.job.ProcessState != makegood.JobError {
		x.due()
		if x.job.ProcessState == makegood.JobUndone {
			t.Fatal("it was undone")
		}
		if x.job.Steps[0].Forward.State == job.Dispatched {
			x.item = store.ClaimItem{Claim: job.Claim{Attempt: 1, LockedBy: "l", CompleteBy: x.now}}
		}
	}
	for range 400 {
		x.now = x.now.Add(limits.FarKey)
		x.due()
	}
	if got := len(x.job.Untold); got > 2 {
		t.Errorf("after 400 days %d announcements are kept in the job, each of up to 1 KB: DynamoDB refuses it at 400 KB, and then no event can be saved", got)
	}
}

// A stranger's message comes when it likes, so also before the tasks that a crash cut off are out: who is to hear of the
// job hears of it at the next true event, and not from a stranger.
func TestAForgedReplyLetsNobodyHearOfTheJob(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	x.job.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.JobError, At: x.now, Operator: true, Listener: true}}
	reply := job.Reply{Step: "s", Attempt: 1, LockedBy: "thief", Token: "1.x"}
	if got := machine.Pending(x.w, x.job, job.StepSucceeded{Reply: reply}, x.now); len(got) != 0 {
		t.Errorf("a forged reply made due: %v", got)
	}
	reply.Token = machine.Token(x.job, "s", 1)
	got := machine.Pending(x.w, x.job, job.StepSucceeded{Reply: reply}, x.now)
	if len(got) != 1 {
		t.Fatalf("a true reply made due %v, want the announcement alone", got)
	}
	if _, ok := got[0].(job.Announce); !ok {
		t.Errorf("got %T, want an announcement", got[0])
	}
}

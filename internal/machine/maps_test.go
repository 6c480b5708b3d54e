package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// mapJob is a job with maps, or a part of one, and how the children of its steps have ended.
type mapJob struct {
	t    *testing.T
	w    makegood.Workflow
	j    job.Job
	ends map[string]job.ChildEnd
	held job.Holds
}

func newMapJob(t *testing.T, w makegood.Workflow) *mapJob {
	t.Helper()
	m := &mapJob{t: t, w: domain.WithDefaults(w), ends: map[string]job.ChildEnd{}}
	facts := machine.Facts{Secret: make([]byte, 16), Values: map[machine.Want]machine.Fact{}}
	j, v := machine.Submit(m.w, machine.Submission{ID: "j", Definition: "d", Birth: "b"}, facts, m.now())
	for ; v.Kind == machine.Wanting; j, v = machine.Submit(m.w, machine.Submission{ID: "j", Definition: "d", Birth: "b"}, facts, m.now()) {
		for _, want := range v.Wants {
			facts.Values[want] = machine.Fact{Run: true}
		}
	}
	m.j = j
	return m
}

func (m *mapJob) now() time.Time { return time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC) }

// on lets an event happen.
func (m *mapJob) on(e job.Event) machine.Verdict {
	m.t.Helper()
	facts := machine.Facts{Values: map[machine.Want]machine.Fact{}, Found: map[machine.Ask]job.Found{}, Held: m.held}
	for {
		j, v := machine.Apply(m.w, m.j, e, facts, m.now())
		if v.Kind != machine.Wanting {
			m.j = j
			return v
		}
		for _, want := range v.Wants {
			facts.Values[want] = machine.Fact{Run: true}
		}
		for _, ask := range v.Asks {
			end := m.ends[ask.Step]
			facts.Found[ask] = job.Found{Finding: job.FoundEnded, Child: &end}
		}
	}
}

// ended lets the child of a step end.
func (m *mapJob) ended(step string, end job.ChildEnd) {
	m.t.Helper()
	m.ends[step] = end
	s, _ := m.j.Step(step)
	if v := m.on(job.ChildEnded{Step: step, Attempt: s.Forward.Attempt}); v.Kind != machine.Applied {
		m.t.Fatalf("the end of the child of %s: %s", step, v.Reason)
	}
}

func (m *mapJob) replies(step string, failed bool) {
	m.t.Helper()
	s, _ := m.j.Step(step)
	r := job.Reply{Step: step, Attempt: s.Attempt, Token: machine.Token(m.j, step, s.Attempt)}
	var e job.Event = job.StepSucceeded{Reply: r}
	if failed {
		e = job.StepFailed{Reply: r, Error: job.StepError{Message: "no", Applied: makegood.AppliedNo}}
	}
	if v := m.on(e); v.Kind != machine.Applied {
		m.t.Fatalf("the reply of %s: %s", step, v.Reason)
	}
}

func (m *mapJob) asked(verb makegood.Verb) machine.Verdict {
	m.t.Helper()
	return m.on(job.Requested{Verb: verb, Request: string(verb)})
}

// is compares the states of the steps, forward and back, and the state of the job.
func (m *mapJob) is(want string) {
	m.t.Helper()
	got := string(m.j.ProcessState)
	for _, s := range m.j.Steps {
		got += " " + string(s.Forward.State) + "/" + string(s.Undo.State)
	}
	if got != want {
		m.t.Fatalf("got %s (%s), want %s", got, m.j.Reason, want)
	}
}

func partOf(names ...string) makegood.Workflow {
	w := makegood.Workflow{
		Name: "w~s", OnFailure: makegood.OnFailure{Action: makegood.FailureStop},
		Part: &makegood.Part{Of: "s", Items: len(names), Concurrency: 1, Tolerate: makegood.Tolerance{Items: 3}},
	}
	for _, name := range names {
		w.Steps = append(w.Steps, makegood.Step{
			Name: name, Agent: makegood.AgentWorkflow, Action: "s", Needs: []string{}, Undo: &makegood.Undo{Action: "s"}, Map: &makegood.Map{Count: 100},
		})
	}
	return w
}

var oneFailed = job.ChildEnd{State: makegood.JobProcessed, Failed: 1}

// The items that failed before the share counts are too many once it does, whether that item is done or not.
func TestAShareCountsFromAnItemOnThatIsDone(t *testing.T) {
	w := makegood.Workflow{
		Name: "w~s", OnFailure: makegood.OnFailure{Action: makegood.FailureStop},
		Part: &makegood.Part{Of: "s", Items: 4, Concurrency: 4, Tolerate: makegood.Tolerance{Share: 0.3, After: 4}},
	}
	for _, name := range []string{"item_0", "item_1", "item_2", "item_3"} {
		w.Steps = append(w.Steps, makegood.Step{Name: name, Agent: "a", Needs: []string{}, Shared: true, Retry: makegood.Retry{Attempts: 1}, Undo: &makegood.Undo{None: true}})
	}
	m := newMapJob(t, w)
	m.replies("item_0", true)
	m.replies("item_1", true)
	m.replies("item_2", false)
	m.is("Processing skipped/ skipped/ done/ dispatched/")
	m.replies("item_3", false)
	m.is("Error skipped/ skipped/ done/ done/")
}

// Parts that are redriven begin as others do: no more at once than may be.
func TestPartsAreRedrivenAsManyAtOnceAsMayBe(t *testing.T) {
	m := newMapJob(t, partOf("part_0", "part_1"))
	m.ended("part_0", oneFailed)
	m.is("Processing done/ dispatched/")
	m.ended("part_1", oneFailed)
	m.is("Processed done/ done/")
	m.asked(makegood.VerbRedrive)
	m.is("Processing dispatched/ done/")
	m.ended("part_0", job.ChildEnd{State: makegood.JobProcessed})
	m.is("Processing done/ dispatched/")
	if f := m.j.Steps[1].Forward; f.Attempt != 1 || f.Repeats != 1 {
		t.Errorf("got attempt %d, redriven %d times, want the first attempt again, once", f.Attempt, f.Repeats)
	}
	m.ended("part_1", job.ChildEnd{State: makegood.JobProcessed})
	m.is("Processed done/ done/")
}

// The items of a part that waits for its redrive have their effects still, so the part is undone.
func TestAPartThatIsYetToBeRedrivenIsUndone(t *testing.T) {
	m := newMapJob(t, partOf("part_0", "part_1"))
	m.ended("part_0", oneFailed)
	m.ended("part_1", oneFailed)
	m.asked(makegood.VerbRedrive)
	m.asked(makegood.VerbUndo)
	m.ended("part_0", job.ChildEnd{State: makegood.JobUndone})
	m.is("Undoing withdrawn/skipped done/dispatched")
}

// A step that follows reads the output of the map, and all attempts under its key read the same.
func TestNothingIsRedrivenWhileWhatFollowsIsUnderWay(t *testing.T) {
	m := newMapJob(t, userJob())
	m.ended("s", oneFailed)
	m.is("Processing done/ dispatched/")
	if v := m.asked(makegood.VerbRedrive); v.Kind != machine.Refused || !strings.Contains(v.Reason, "step f follows") {
		t.Errorf("got %s: %s", v.Kind, v.Reason)
	}
	m.replies("f", false)
	m.is("Processed done/ done/")
	m.asked(makegood.VerbRedrive)
	m.is("Processing dispatched/ done/")
}

// The child of the attempt after a redrive is another job, which is born and not redriven.
func TestTheAttemptAfterARedriveHasNone(t *testing.T) {
	m := newMapJob(t, userJob())
	m.ended("s", oneFailed)
	m.replies("f", false)
	m.asked(makegood.VerbRedrive)
	m.ended("s", job.ChildEnd{State: makegood.JobUndone, Reason: "too many"})
	m.is("Error failed/ done/")
	m.asked(makegood.VerbResubmit)
	m.is("Processing dispatched/ done/")
	if f := m.j.Steps[0].Forward; f.Attempt != 2 || f.Repeats != 0 {
		t.Errorf("got attempt %d, redriven %d times, want the second, never", f.Attempt, f.Repeats)
	}
}

// Its items are its input: with another they would all be null.
func TestAPartKeepsItsInput(t *testing.T) {
	m := newMapJob(t, partOf("part_0"))
	m.ended("part_0", job.ChildEnd{State: makegood.JobUndone})
	m.is("Error failed/")
	v := m.on(job.Requested{Verb: makegood.VerbResubmit, Request: "r", Input: &job.Payload{Inline: []byte("{}"), Bytes: 2}})
	if v.Kind != machine.Refused || !strings.Contains(v.Reason, "items of a map") {
		t.Errorf("got %s: %s", v.Kind, v.Reason)
	}
}

// A redrive that a pause of the workflow holds is made when it is resumed, by the same job.
func TestARedriveThatIsHeldIsMadeLater(t *testing.T) {
	m := newMapJob(t, userJob())
	m.ended("s", oneFailed)
	m.replies("f", false)
	m.held = job.Holds{{Kind: makegood.HoldWorkflow, Name: "w", Since: m.now()}}
	m.asked(makegood.VerbRedrive)
	m.is("Processing done/ done/")
	m.held = nil
	m.asked(makegood.VerbResume)
	m.is("Processing dispatched/ done/")
	if f := m.j.Steps[0].Forward; f.Attempt != 1 || f.Repeats != 1 {
		t.Errorf("got attempt %d, redriven %d times, want the first attempt again, once", f.Attempt, f.Repeats)
	}
}

func userJob() makegood.Workflow {
	return makegood.Workflow{Name: "w", OnFailure: makegood.OnFailure{Action: makegood.FailureStop}, Steps: []makegood.Step{
		{Name: "s", Agent: "a", Needs: []string{}, Undo: &makegood.Undo{None: true}, Map: &makegood.Map{Over: "${ .input }"}},
		{Name: "f", Agent: "a", Needs: []string{"s"}, Shared: true, Undo: &makegood.Undo{None: true}},
	}}
}

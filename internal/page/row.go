package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/graph"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// maxPips is how many of a job's steps are drawn in its row, and pipWidth how far apart, in pixels.
	maxPips  = 12
	pipWidth = 13
	// maxRowProgress is how many characters of an attempt's reported progress a row has.
	maxRowProgress = 60
)

// row is a job in the list.
type row struct {
	ID, Workflow string
	Mark         mark
	Doing        doing
	Pips         pips
	Started      time.Time
	// Took is how long it was under way. Zero: it still is.
	Took time.Duration
	// Due is when the job should be done, or its own timeout passes, or since when a part is overdue; nil: none applies.
	Due  *time.Time
	Late bool
	// Open: it has not ended. Kept: it has left the list, but a screen still shows it.
	Open, Kept bool
}

// doing describes the current work of a job, or why it stopped.
type doing struct {
	Step string
	// Why is a problem, Text a good state, Quiet a minor remark. Until and At are when that changes.
	Why, Text, Quiet string
	Until            *time.Time
}

// pips are the steps of a job as small shapes.
type pips struct {
	Shapes []pip
	// More is how many further ones there are, Says all of the pips in words.
	More int
	Says string
}

// pip is a step as a small shape, X pixels from the left.
type pip struct {
	Shape string
	X     int
}

// Width is the width of all pips, in pixels.
func (p pips) Width() int { return pipWidth*len(p.Shapes) - 2 }

// rowOf returns the row of a job: l as a list has it, with the job itself.
func rowOf(l api.Listed, now time.Time) row {
	j := *l.Job
	r := row{
		ID: j.ID, Workflow: j.Workflow, Mark: markOf(j.ProcessState, j.Paused, waits(j)), Doing: doingOf(l, j, now), Pips: pipsOf(j.Steps),
		Started: j.CreatedAt, Open: !j.ProcessState.Finished(),
	}
	if j.FinishedAt != nil {
		r.Took = max(j.FinishedAt.Sub(j.CreatedAt), time.Millisecond)
	}
	if !r.Open {
		return r
	}
	r.Due = earliest(j.ExpectBy, j.Deadline)
	if overdue := j.CompleteBy != nil && now.Sub(*j.CompleteBy) > limits.LateGrace; overdue && (r.Due == nil || now.Before(*r.Due)) {
		r.Due = j.CompleteBy
	}
	r.Late = r.Due != nil && r.Due.Before(now)
	return r
}

// earliest returns the first of two moments; nil: there is none.
func earliest(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// waits reports whether all open steps of a job wait for an outside answer.
func waits(j makegood.Job) bool {
	open := underWay(j)
	return len(open) > 0 && !slices.ContainsFunc(open, func(a activity) bool { return a.State != makegood.StepWaiting })
}

// activity is a step or its undo, by its name.
type activity struct {
	Name string
	Undo bool
	makegood.Activity
}

// Says names it.
func (a activity) Says() string {
	if a.Undo {
		return "undo of " + a.Name
	}
	return a.Name
}

// activitiesOf returns the steps of a job, and their undos.
func activitiesOf(j makegood.Job) []activity {
	var all []activity
	for _, s := range j.Steps {
		all = append(all, activity{s.Name, false, s.Activity})
		if s.Undo != nil {
			all = append(all, activity{s.Name, true, *s.Undo})
		}
	}
	return all
}

// underWay returns the activities of a job that are under way now.
func underWay(j makegood.Job) []activity {
	return slices.DeleteFunc(activitiesOf(j), func(a activity) bool { return !underWayNow(a.Activity) })
}

// doingOf describes the current work of a job, or why it stopped.
func doingOf(l api.Listed, j makegood.Job, now time.Time) doing {
	open := underWay(j)
	switch {
	case j.ProcessState == makegood.JobProcessed:
		return doing{Quiet: wentWell(j)}
	case j.ProcessState.Finished():
		return doing{Text: j.Reason}
	case j.ProcessState == makegood.JobError:
		step := stoppedAt(l, j)
		return doing{Step: step, Why: without(j.Reason, step)}
	case j.Paused && j.HeldBy != "":
		return doing{Why: j.HeldBy + " is paused", Text: quoted(j.HeldReason)}
	case j.Paused:
		return doing{Text: "starts no new step: paused by " + cmp.Or(deref(j.RequestedBy), "somebody"), Quiet: quoted(j.Reason)}
	case j.StartAt != nil && now.Before(*j.StartAt):
		return doing{Text: "starts", Until: j.StartAt}
	case j.NextRoundAt != nil && len(open) == 0:
		return doing{Text: "begins again", Until: j.NextRoundAt, Quiet: brackets(j.Reason)}
	case len(open) > 0:
		d := doingNow(open[0])
		if more := len(open) - 1; more > 0 {
			d.Quiet = strings.TrimSpace(fmt.Sprintf("%s and %s more", d.Quiet, many(more, "step")))
		}
		if d.Quiet == "" && j.ProcessState == makegood.JobUndoing {
			d.Quiet = brackets(j.Reason)
		}
		return d
	}
	return doing{Quiet: j.Reason}
}

// stoppedAt names the step at which a job in Error has stopped.
func stoppedAt(l api.Listed, j makegood.Job) string {
	if len(l.Steps) == 0 {
		return ""
	}
	return activity{Name: l.Steps[0], Undo: j.Desired != makegood.JobProcessed}.Says()
}

// without is a reason beside the step that it names.
func without(reason, step string) string {
	if step == "" {
		return reason
	}
	for _, named := range []string{"step " + step + " failed: ", step + " failed: "} {
		if rest, cut := strings.CutPrefix(reason, named); cut {
			return rest
		}
	}
	return reason
}

// doingNow describes the progress of an activity.
func doingNow(a activity) doing {
	d := doing{Step: a.Says()}
	switch a.State {
	case makegood.StepWaiting:
		d.Text, d.Until = "waits for an answer", a.CompleteBy
		if a.CompleteBy != nil {
			d.Text += ", until"
		}
	case makegood.StepBackoff:
		d.Text = fmt.Sprintf("attempt %d is to follow", a.Attempt+1)
	case makegood.StepClaimed:
		d.Text = fmt.Sprintf("attempt %d, under way", a.Attempt)
		if a.Progress != nil {
			// The progress says more than an earlier failure.
			d.Text += ", reported " + cut(string(a.Progress.Value), maxRowProgress)
			return d
		}
	case makegood.StepQueued:
		d.Text = fmt.Sprintf("attempt %d, before the gate of its agent", a.Attempt)
	default:
		d.Text = fmt.Sprintf("attempt %d, sent", a.Attempt)
	}
	if a.Error != nil {
		d.Quiet = brackets("before: " + a.Error.Message)
	}
	return d
}

// wentWell describes the complications of a job that is Processed.
func wentWell(j makegood.Job) string {
	worst := slices.MaxFunc(activitiesOf(j), func(a, b activity) int { return a.FailureCount - b.FailureCount })
	if worst.FailureCount > 0 {
		return fmt.Sprintf("%s took %d attempts", worst.Says(), worst.FailureCount+1)
	}
	skipped := 0
	for _, s := range j.Steps {
		if s.State == makegood.StepSkipped {
			skipped++
		}
	}
	if skipped > 0 {
		return fmt.Sprintf("%s, %d skipped", many(len(j.Steps), "step"), skipped)
	}
	return many(len(j.Steps), "step") + ", no retries"
}

func brackets(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return "“" + text + "”"
}

// pipsOf draws the steps of a job.
func pipsOf(steps []makegood.JobStep) pips {
	var p pips
	counts := map[string]int{}
	var order []string
	for i, s := range steps {
		state, says := graph.StateOf(s)
		if i < maxPips {
			p.Shapes = append(p.Shapes, pip{state.Class(), i * pipWidth})
		} else {
			p.More++
		}
		if counts[says]++; counts[says] == 1 {
			order = append(order, says)
		}
	}
	for i, says := range order {
		order[i] = fmt.Sprintf("%d %s", counts[says], says)
	}
	p.Says = strings.Join(order, ", ")
	return p
}

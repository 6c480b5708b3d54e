package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// Changes is the record of a job's transitions for the subscribers of every change. Zero without subscribers.
type Changes struct {
	// Seq is the number of the last one.
	Seq int `json:"seq,omitempty"`
	// Rev is that of the save that has brought this up to date: a later one was made by a release that does not publish.
	Rev int64 `json:"rev,omitempty"`
	// Pending are the last ones, not yet known to be published: those that end with Seq, with none left out.
	Pending []Change `json:"pending,omitempty"`
	// Tries is how often it passed that they could have been published and were not, and At when that is tried again; zero:
	// with the next event of the job.
	Tries int       `json:"tries,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Change is a transition of a job or of one of its steps, as the job keeps it. Its number follows from its place.
type Change struct {
	// Of is the place that has changed.
	Of ChangePlace `json:"of"`
	// Gone is the name of the step, once the job has lost it by being moved to another definition.
	Gone string `json:"gone,omitempty"`
	// From and To are states of the job, or of the activity.
	From ChangeState `json:"from,omitempty"`
	To   ChangeState `json:"to,omitempty"`
	// Attempt is the latest of the activity.
	Attempt int       `json:"attempt,omitempty"`
	Round   int       `json:"round,omitempty"`
	Paused  bool      `json:"paused,omitempty"`
	At      time.Time `json:"at"`
	// Outcome, Kind and Reason say how the attempt or round that it ended had gone, where it did not simply go well.
	Outcome makegood.EntryKind `json:"outcome,omitempty"`
	Kind    string             `json:"kind,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	// Lost is how many changes it stands for that were not kept; zero: it is one.
	Lost int `json:"lost,omitempty"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// ChangeState is a state of a job, or of an activity.
type ChangeState string

// ChangeState returns the state of the activity as readers and its changes have it: before its gate it is queued.
func (a *Activity) ChangeState() ChangeState {
	if a.Queued {
		return ChangeState(makegood.StepQueued)
	}
	return ChangeState(a.State)
}

// ChangePlace says what of a job has changed: 0 is the job, 2i+1 the step i, and 2i+2 its undo.
type ChangePlace int

// PlaceOfChange is that of a step, or of its undo.
func PlaceOfChange(step int, undo bool) ChangePlace {
	if undo {
		return ChangePlace(2*step + 2)
	}
	return ChangePlace(2*step + 1)
}

// Step returns the index of the step, and whether it is its undo. ok is false for the job.
func (p ChangePlace) Step() (i int, undo, ok bool) {
	return (int(p) - 1) / 2, p > 0 && p%2 == 0, p > 0
}

// numbers is how many numbers a change takes.
func (c Change) numbers() int { return max(1, c.Lost) }

// First is the number of the first that is pending; Seq+1 where none is.
func (c Changes) First() int {
	first := c.Seq + 1
	for _, p := range c.Pending {
		first -= p.numbers()
	}
	return first
}

// Add adds a change, and keeps no more than limit: the oldest beyond it become one, which has their number.
func (c *Changes) Add(one Change, limit int) {
	c.Seq += one.numbers()
	c.Pending = append(c.Pending, one)
	over := len(c.Pending) - limit
	if over <= 0 {
		return
	}
	lost := Change{At: c.Pending[over].At}
	for _, p := range c.Pending[:over+1] {
		lost.Lost += p.numbers()
	}
	c.Pending = append([]Change{lost}, c.Pending[over+1:]...)
}

// Forget drops those up to a number, which were published, and reports whether there were any.
func (c *Changes) Forget(upTo int) bool {
	n, drop := c.First(), 0
	for _, p := range c.Pending {
		if n += p.numbers(); n-1 > upTo {
			break
		}
		drop++
	}
	if drop == 0 {
		return false
	}
	c.Pending = slices.Clone(c.Pending[drop:])
	if len(c.Pending) == 0 {
		c.Pending = nil
	}
	c.Tries, c.At = 0, time.Time{}
	return true
}

// After returns the job's pending changes with numbers above number, as they are published.
func (j Job) After(number int) makegood.Changes {
	all := makegood.Changes{Version: domain.ChangesVersion, Job: j.ID, Workflow: j.Workflow, Tenant: j.Tenant, CreatedAt: j.CreatedAt}
	n := j.Changes.First() - 1
	for _, c := range j.Changes.Pending {
		if n += c.numbers(); n > number {
			all.Changes = append(all.Changes, j.published(c, n))
		}
	}
	return all
}

func (j Job) published(c Change, number int) makegood.Change {
	out := makegood.Change{
		Number: number, At: c.At.UTC(), From: string(c.From), To: string(c.To), Attempt: c.Attempt, Round: c.Round, Paused: c.Paused,
		Outcome: c.Outcome, ErrorKind: c.Kind, Reason: c.Reason, Lost: c.Lost,
	}
	i, undo, ok := c.Of.Step()
	if !ok || c.Lost > 0 {
		return out
	}
	out.Undo, out.Step = undo, c.Gone
	if out.Step == "" && i < len(j.Steps) {
		out.Step = j.Steps[i].Name
	}
	out.From, out.To = cmp.Or(out.From, string(makegood.StepNotStarted)), cmp.Or(out.To, string(makegood.StepNotStarted))
	return out
}

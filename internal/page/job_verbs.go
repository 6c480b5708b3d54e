package page

import (
	"slices"

	"github.com/makegood-dev/makegood"
)

// verb is something that can be asked for, with what it would do; or why it would be refused.
type verb struct {
	Label, ID string
	// Href is the page on which it is asked for; empty: it is asked for at once, by a form to Post.
	Href, Post string
	// Says is what it would do, or why it is refused.
	Says    string
	Refused bool
	// Proposed: it is what is most likely wanted.
	Proposed bool
}

// labels are what verbs are called on a button. One with dots leads to a page on which it is asked for.
var labels = map[string]string{
	string(makegood.Cancel): "Cancel…", string(makegood.UndoJob): "Undo…", string(makegood.Resubmit): "Resubmit…", string(makegood.Pause): "Pause",
	string(makegood.Resume): "Resume", string(makegood.Reschedule): "Reschedule…", string(makegood.Edit): "Edit timeout…", makegood.AskWake: "Wake",
}

// atOnce are the verbs that are asked for by one click: each can be taken back, or does what would be done anyhow.
var atOnce = []string{string(makegood.Pause), string(makegood.Resume), makegood.AskWake}

// verbsOf are all verbs of a job: those that would be granted first, and one of them proposed.
func verbsOf(s seen) []verb {
	var granted, refused []verb
	for i, o := range failedSides(s) {
		what := o.Step
		if o.Undo {
			what = "undo of " + o.Step
		}
		if v := settleOf(s, o, "Settle "+what+"…"); i < settles && !v.Refused {
			granted = append(granted, v)
		}
	}
	for _, o := range s.offers.Verbs {
		v := verbOf(s, o)
		switch {
		case o.Ask == makegood.AskWake && !o.Granted():
		case v.Refused:
			refused = append(refused, v)
		default:
			granted = append(granted, v)
		}
	}
	propose(s, granted)
	slices.SortStableFunc(granted, func(a, b verb) int { return boolRank(!a.Proposed) - boolRank(!b.Proposed) })
	return append(granted, refused...)
}

func verbOf(s seen, o makegood.Offer) verb {
	v := verb{Label: labels[o.Ask], ID: "verb-" + o.Ask, Says: o.Effect}
	path := "jobs/" + s.job.ID + "/ask/" + o.Ask
	if slices.Contains(atOnce, o.Ask) {
		v.Post = path
	} else {
		v.Href = path
	}
	if !o.Granted() {
		v.Refused, v.Says = true, o.Reason
	}
	return v
}

// propose marks what is most likely wanted of a job that waits for a person: to settle what was refused for good on the way back, or
// else to resubmit; and to resume one that is paused.
func propose(s seen, granted []verb) {
	want := ""
	switch {
	case s.job.ProcessState == makegood.Error:
		want = "verb-" + string(makegood.Resubmit)
		for _, step := range s.job.Steps {
			if a := side(s.job, step); back(s.job) && a.State == makegood.Failed && a.Error != nil && !a.Error.Retryable {
				want = "settle-" + step.Name + "-undo"
				break
			}
		}
	case s.job.Paused:
		want = "verb-" + string(makegood.Resume)
	}
	for i := range granted {
		granted[i].Proposed = granted[i].ID == want
	}
}

package page

import (
	"net/url"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// verb is a possible request, with its effect, or the reason for its refusal.
type verb struct {
	// Label is the text of the button; one with dots leads to a page.
	Label, ID string
	// Href is the page of the verb; empty: a form to Post requests it at once.
	Href, Post string
	// Says is the effect, or the reason for the refusal.
	Says    string
	Refused bool
	// Proposed: it is the most likely choice.
	Proposed bool
}

// verbsOf are all verbs of a job: the allowed ones first, and one proposed.
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
		case o.Ask == domain.AskWake && !o.Granted():
		case v.Refused:
			refused = append(refused, v)
		default:
			granted = append(granted, v)
		}
	}
	granted = append(granted, withEditedInput(s)...)
	propose(s, granted)
	slices.SortStableFunc(granted, func(a, b verb) int { return boolRank(!a.Proposed) - boolRank(!b.Proposed) })
	return append(granted, refused...)
}

// withEditedInput are the forms that hold the job's input for editing: of a resubmit, if allowed, and of a new similar
// job.
func withEditedInput(s seen) (all []verb) {
	if resubmit, _ := domain.OfferOf(s.offers, string(makegood.VerbResubmit)); resubmit.Granted() {
		all = append(all, verb{
			Label: "Resubmit with edited input…", ID: "verb-resubmit-edited", Href: "jobs/" + s.job.ID + "/ask/resubmit?edit=true",
			Says: "its input stands in the form; what would become of it is said before",
		})
	}
	if s.job.ProcessState.Finished() {
		all = append(all, verb{
			Label: "Run again with edited input…", ID: "run-again", Href: "workflows/" + s.job.Workflow + "/submit?like=" + url.QueryEscape(s.job.ID),
			Says: "a new job, with its input, tenant and labels in the form",
		})
	}
	return all
}

func verbOf(s seen, o makegood.Offer) verb {
	of := domain.VerbOf(o.Ask)
	path := "jobs/" + s.job.ID + "/ask/" + o.Ask
	v := verb{Label: of.Label + "…", ID: "verb-" + o.Ask, Says: o.Effect, Href: path}
	if of.AtOnce {
		v.Label, v.Href, v.Post = of.Label, "", path
	}
	if !o.Granted() {
		v.Refused, v.Says = true, o.Reason
	}
	return v
}

// propose marks the most likely choice for a job that waits for a person: to settle a final failure of an undo, or else
// to resubmit; to resume one that is paused; and to redrive one with failed items.
func propose(s seen, granted []verb) {
	want := ""
	switch {
	case s.job.ProcessState == makegood.JobError:
		want = "verb-" + string(makegood.VerbResubmit)
		for _, step := range s.job.Steps {
			if a := side(s.job, step); back(s.job) && a.State == makegood.StepFailed && a.Error != nil && !a.Error.Retryable {
				want = "settle-" + step.Name + "-undo"
				break
			}
		}
	case s.job.Paused:
		want = "verb-" + string(makegood.VerbResume)
	case slices.ContainsFunc(s.job.Steps, func(step makegood.JobStep) bool { return step.Items != nil && step.Items.Failed > 0 }):
		want = "verb-" + string(makegood.VerbRedrive)
	}
	for i := range granted {
		granted[i].Proposed = granted[i].ID == want
	}
}

// Granted are the verbs of a job that would be granted, the one that is proposed first.
func (d jobData) Granted() []verb { return verbsWhere(d.Verbs, false) }

// RefusedVerbs are the refused verbs, with their reasons.
func (d jobData) RefusedVerbs() []verb { return verbsWhere(d.Verbs, true) }

func verbsWhere(all []verb, refused bool) []verb {
	return slices.DeleteFunc(slices.Clone(all), func(v verb) bool { return v.Refused != refused })
}

// Granted are the buttons of a side that would be granted.
func (d askData) Granted() []verb { return verbsWhere(d.Buttons, false) }

// Refused are the refused requests, with their reasons.
func (d askData) Refused() []verb { return verbsWhere(d.Buttons, true) }

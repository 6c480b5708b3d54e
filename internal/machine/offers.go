package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The effects of the actions that are no verbs.
const (
	putsBack   = "does the due work, and puts it in the index again"
	endsDone   = "counts as done, settled by hand"
	endsPassed = "counts as skipped, settled by hand"
	takesBack  = "counts as not done, settled by hand: it is not undone, and may be tried again"
	answersIt  = "ends the step, with this output"
	failsIt    = "fails the step, which is tried again or given up as its workflow says"
	waitsOn    = "waits longer"
)

// asItShould is the reason why waking a job has no effect.
const asItShould = "it does not stand still"

// Offers returns the actions that a job allows at now. Each verb is tried on a copy, which is thrown away, so the
// verdict equals that of a real request; facts are those of any decision except Found. held are the claims on its
// open attempts, by step. Answers that only closing an attempt could give are taken as granted. It panics where Apply
// would.
func Offers(w makegood.Workflow, j job.Job, held map[string]job.Claim, facts Facts, now time.Time) makegood.Offers {
	offers := makegood.Offers{Job: j.ID, ProcessState: j.ProcessState, Round: j.Round, Steps: []makegood.StepOffers{}}
	for _, verb := range domain.Verbs() {
		_, v := Apply(w, j, sample(verb, j, now), facts, now)
		offers.Verbs = append(offers.Verbs, offer(string(verb), onItsWay(RuleFor(verb, j.ProcessState).Effect, j), v))
	}
	_, v := Apply(w, j, job.DeadlinePassed{}, facts, now)
	if v.Kind == Stale {
		v = Verdict{Kind: Duplicate, Reason: asItShould}
	}
	offers.Verbs = append(offers.Verbs, offer(domain.AskWake, putsBack, v))
	t := newTurn(w, j.Clone(), facts, "", now)
	t.hold(!t.going()) // As Apply does, before it takes any event.
	for i := range j.Steps {
		for _, at := range sides(i) {
			if s := t.offersOf(at, held[j.Steps[i].Name]); t.worthSaying(at, s) {
				offers.Steps = append(offers.Steps, s)
			}
		}
	}
	return offers
}

// sample is a request for a verb that would be granted if any would.
func sample(verb makegood.Verb, j job.Job, now time.Time) job.Requested {
	e := job.Requested{Verb: verb}
	switch verb {
	case makegood.VerbReschedule:
		e.StartAt = now.Add(time.Minute)
		if domain.Instant(e.StartAt).Equal(j.StartAt) {
			e.StartAt = e.StartAt.Add(time.Minute)
		}
	case makegood.VerbEdit:
		e.Timeout = makegood.Duration(limits.MaxJobTimeout)
	}
	return e
}

// offer turns a verdict into an offer for the caller.
func offer(ask, effect string, v Verdict) makegood.Offer {
	switch v.Kind {
	case Refused:
		return makegood.Offer{Ask: ask, Effect: limits.OfferRefused, Reason: v.Reason}
	case Duplicate, Stale:
		return makegood.Offer{Ask: ask, Effect: limits.OfferAlready, Reason: v.Reason}
	default:
		return makegood.Offer{Ask: ask, Effect: effect}
	}
}

// unless is the offer of an effect that is refused for a reason, if there is one.
func unless(refused, ask, effect string) makegood.Offer {
	if refused != "" {
		return offer(ask, effect, Verdict{Kind: Refused, Reason: refused})
	}
	return offer(ask, effect, Verdict{Kind: Applied})
}

// offersOf returns the actions that a side allows. claim is its claim, if it has one.
func (t *turn) offersOf(at side, claim job.Claim) makegood.StepOffers {
	place := job.Place{Step: t.name(at), Undo: at.undo}
	var answer, longer string
	var allowed []string
	if _, v := t.place(place); v.Kind == Applied {
		answer, longer = t.closedTo(at, job.StepCompleted{Place: place}), t.notWaiting(at)
		allowed = choices(t.w.Steps[at.step], at.undo)
	} else {
		answer, longer = v.Reason, v.Reason
	}
	s := makegood.StepOffers{Step: place.Step, Undo: place.Undo, Choices: []string{}, Asks: []makegood.Offer{
		unless(t.settleRefused(at, job.Settled{Place: place, Done: true}, claim), domain.AskSettleDone, endsDone),
		unless(t.settleRefused(at, job.Settled{Place: place}, claim), domain.AskSettleSkipped, endsPassed),
		unless(answer, domain.AskComplete, answersIt),
		unless(answer, domain.AskFail, failsIt),
		unless(longer, domain.AskHeartbeat, waitsOn),
	}}
	if !at.undo {
		s.Asks = slices.Insert(s.Asks, 2, t.notDoneOffer(at))
	}
	if t.w.Steps[at.step].Map != nil && at == t.inDirection(at.step) && !t.job.ProcessState.Finished() {
		s.Asks = append(s.Asks, unless(t.notToEdit(job.MapEdit{Step: place.Step, Concurrency: 1}), domain.AskEdit, string(EditsMap)))
	}
	if allowed != nil {
		s.Choices = allowed
	}
	return s
}

// notDoneOffer is what would come of settling a step as not done.
func (t *turn) notDoneOffer(at side) makegood.Offer {
	why := t.notToTakeBack(at, job.Settled{})
	if why == "" && !t.activity(at).Unknown {
		return offer(domain.AskSettleNotDone, takesBack, Verdict{Kind: Duplicate, Reason: nothingStands(t.name(at))})
	}
	return unless(why, domain.AskSettleNotDone, takesBack)
}

// settleRefused says why a side would not be settled, as far as that can be known without closing an attempt.
func (t *turn) settleRefused(at side, e job.Settled, claim job.Claim) string {
	if why := t.notToSettle(at, e); why != "" {
		return why
	}
	a := t.activity(at)
	isHeld := a.State == job.Dispatched && claim.Attempt == a.Attempt && t.now.Before(claim.CompleteBy)
	if isHeld && !t.lie(at, job.Found{Finding: job.FoundHeld, Claim: claim}) {
		return t.heldUntil(at, claim)
	}
	return ""
}

// worthSaying reports whether the offers of a side are of interest: an action is allowed, or the job stands there.
func (t *turn) worthSaying(at side, s makegood.StepOffers) bool {
	switch t.activity(at).State {
	case job.Dispatched, job.Backoff, job.Waiting, job.Failed:
		return true
	}
	for _, o := range s.Asks {
		if o.Granted() {
			return true
		}
	}
	return false
}

// Plan returns the effect of a resubmit without changing the job. Its verdict is Applied if the resubmit would be
// granted; Wanting, with Definition alone, if it needs the definition.
func Plan(w makegood.Workflow, j job.Job, e job.Requested, facts Facts) (makegood.Plan, Verdict) {
	t := newTurn(w, j.Clone(), facts, e.Cause(), j.CreatedAt)
	plan := makegood.Plan{Job: j.ID, Workflow: j.Workflow, From: j.Definition, To: j.Definition, Input: e.Input != nil}
	rule := RuleFor(e.Verb, j.ProcessState)
	plan.Effect = onItsWay(rule.Effect, j)
	switch {
	case e.Verb != makegood.VerbResubmit:
		return plan, Verdict{Kind: Refused, Reason: fmt.Sprintf("there is no plan of %s", e.Verb)}
	case t.granted(e):
		plan.Existed, plan.Effect = true, string(Already)
	case rule.Effect == Refuses:
		return plan, Verdict{Kind: Refused, Reason: rule.Reason}
	default:
		if v := t.redefine(rule, e); v.Kind != Applied {
			return plan, v
		}
	}
	plan.To = t.job.Definition
	if plan.Existed {
		e.Input = nil
	}
	plan.Steps = t.planned(w, j, rule, e.Input)
	return plan, Verdict{Kind: Applied}
}

// planned says what becomes of each step of a job that was moved and given an input, if any, as the turn has it now.
func (t *turn) planned(from makegood.Workflow, j job.Job, rule Rule, input *job.Payload) (steps []makegood.PlannedStep) {
	for i, s := range t.w.Steps {
		state, known := j.Step(s.Name)
		p := makegood.PlannedStep{Name: s.Name, State: makegood.StepNotStarted, Fate: makegood.FateNew}
		if known {
			old := from.Steps[slices.IndexFunc(from.Steps, func(o makegood.Step) bool { return o.Name == s.Name })]
			p = plannedStep(state, fateOf(j, state, rule))
			p.Differs = append(forwardDiffers(old, s), undoDiffers(old, s)...)
			another := input != nil && !sameInput(*input, j.Input) && slices.Contains(t.facts.Definition.Reads, s.Name)
			p.SameKey = rule.Effect != NewRound && sameKey(state, t.forwards(), works(old, s, p.Differs), another)
			p.FormerInput = rule.Effect != NewRound && t.undoneAsBefore(i)
		}
		steps = append(steps, p)
	}
	for _, s := range from.Steps {
		if !slices.ContainsFunc(t.w.Steps, func(n makegood.Step) bool { return n.Name == s.Name }) {
			state, _ := j.Step(s.Name)
			steps = append(steps, plannedStep(state, makegood.FateGone))
		}
	}
	return steps
}

// sameKey reports whether a step that was asked before in its round, or its undo on the way back, would be asked for
// different work under the same key: its action differs so, or its input. Another agent makes no difference.
func sameKey(s job.StepState, forwards bool, differs []string, anotherInput bool) bool {
	a := s.Forward
	if !forwards {
		a = s.Undo
	}
	if a.Attempt == 0 || a.State != job.Failed && a.State != job.NotStarted && a.State != job.Backoff {
		return false
	}
	if !forwards {
		return slices.Contains(differs, "undo.action") || slices.Contains(differs, "undo.with")
	}
	return anotherInput || slices.ContainsFunc(differs, func(name string) bool { return name != "agent" && !strings.HasPrefix(name, "undo") })
}

// undoneAsBefore reports whether the undo of a step is ahead, and made of an input of before.
func (t *turn) undoneAsBefore(i int) bool {
	s := t.job.Steps[i]
	if s.Forward.Former == 0 || !domain.CanUndo(t.w.Steps[i]) || t.undoOver(i) {
		return false
	}
	return t.facts.Definition == nil || slices.Contains(t.facts.Definition.UndoReads, s.Name)
}

func plannedStep(s job.StepState, fate makegood.StepFate) makegood.PlannedStep {
	state := makegood.StepState(s.Forward.State)
	return makegood.PlannedStep{Name: s.Name, State: cmp.Or(state, makegood.StepNotStarted), Undo: makegood.StepState(s.Undo.State), Fate: fate}
}

// fateOf says what becomes of a step that stays.
func fateOf(j job.Job, s job.StepState, rule Rule) makegood.StepFate {
	a := s.Forward
	back := j.Desired != makegood.JobProcessed
	if back {
		a = s.Undo
	}
	switch {
	case rule.Effect == NewRound:
		return makegood.FateAhead
	case a.State == job.Failed:
		return makegood.FateAgain
	case a.State == job.NotStarted && !(back && s.Forward.State != job.Done && !s.Forward.Unknown):
		return makegood.FateAhead
	default:
		return makegood.FateStays
	}
}

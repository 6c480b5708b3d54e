package machine

import (
	"slices"
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
	next := j.Clone()
	t := newTurn(w, &next, facts, "", now)
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

package domain

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The asks of makegood.Offer that are no verb of the job. The doc comment of Offer.Ask names them.
const (
	AskWake          = "wake"
	AskSettleDone    = "settle done"
	AskSettleSkipped = "settle skipped"
	AskSettleNotDone = "settle notDone"
	AskComplete      = "complete"
	AskFail          = "fail"
	AskHeartbeat     = "heartbeat"
	AskEdit          = string(makegood.VerbEdit)
)

// OfferOf returns the offer for a verb, or for AskWake.
func OfferOf(o makegood.Offers, ask string) (makegood.Offer, bool) { return offerOf(o.Verbs, ask) }

// StepOffer returns the offer for an ask.
func StepOffer(s makegood.StepOffers, ask string) (makegood.Offer, bool) { return offerOf(s.Asks, ask) }

func offerOf(all []makegood.Offer, ask string) (makegood.Offer, bool) {
	for _, o := range all {
		if o.Ask == ask {
			return o, true
		}
	}
	return makegood.Offer{}, false
}

// OffersOfStep returns the requests possible for a step, or for its undo; ok is false where there are none.
func OffersOfStep(o makegood.Offers, name string, undo bool) (s makegood.StepOffers, ok bool) {
	for _, s := range o.Steps {
		if s.Step == name && s.Undo == undo {
			return s, true
		}
	}
	return makegood.StepOffers{}, false
}

// OfferToEdit returns the offer to edit the map of a step; ok is false where no map of it is under way, or will be.
func OfferToEdit(o makegood.Offers, step string) (offer makegood.Offer, ok bool) {
	for _, undo := range []bool{false, true} {
		s, _ := OffersOfStep(o, step, undo)
		if offer, ok = StepOffer(s, AskEdit); ok {
			return offer, true
		}
	}
	return makegood.Offer{Effect: limits.OfferRefused, Reason: "no map of a step " + step + " is under way"}, false
}

// Notes describes the warnings of the step in words: SameKey and FormerInput.
func Notes(s makegood.PlannedStep) (notes []string) {
	if s.SameKey {
		notes = append(notes, "asks for another thing under the same key")
	}
	if s.FormerInput {
		notes = append(notes, "is undone with the input that it had")
	}
	return notes
}

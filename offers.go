package makegood

// Offers says what may be asked of a job as it stands: of each verb what it would do, or why it would be refused. Nothing is
// promised by it: the job may have moved on by the time that somebody asks.
type Offers struct {
	// Job is its id, ProcessState the state that it is in, Round its round.
	Job          string       `json:"job"`
	ProcessState ProcessState `json:"processState"`
	Round        int          `json:"round"`
	// Verbs has an offer for each verb, in their order, and at the end one for wake.
	Verbs []Offer `json:"verbs"`
	// Steps are what may be asked of steps and their undos, in the order of the workflow. One of which nothing may be asked is
	// left out, unless it is under way or has failed.
	Steps []StepOffers `json:"steps"`
}

// Offer is what would come of asking for something.
type Offer struct {
	// Ask is what is asked for: a Verb, or AskWake; of a step one of the other asks.
	Ask string `json:"ask"`
	// Effect is what it would do, in the words of docs/states.md; OfferAlready, where that would change nothing; or OfferRefused.
	Effect string `json:"effect"`
	// Reason is why it would be refused, in the words in which it would be, or would change nothing; empty: it would be granted.
	Reason string `json:"reason"`
}

// StepOffers are what may be asked of a step, or of its undo.
type StepOffers struct {
	Step string  `json:"step"`
	Undo bool    `json:"undo"`
	Asks []Offer `json:"asks"`
	// Choices are the answers that an approval takes, and Question is what it asks, while it waits. Of others there are none.
	Choices  []string `json:"choices"`
	Question string   `json:"question"`
}

// What may be asked that is no verb of the job.
const (
	AskWake          = "wake"
	AskSettleDone    = "settle done"
	AskSettleSkipped = "settle skipped"
	AskSettleNotDone = "settle notDone"
	AskComplete      = "complete"
	AskFail          = "fail"
	AskHeartbeat     = "heartbeat"
)

// The effects that change nothing.
const (
	OfferAlready = "is so already"
	OfferRefused = "refused"
)

// Granted reports whether asking would change something.
func (o Offer) Granted() bool { return o.Effect != OfferRefused && o.Effect != OfferAlready }

// Of returns the offer for a verb, or for AskWake.
func (o Offers) Of(ask string) (Offer, bool) { return offerOf(o.Verbs, ask) }

// Of returns the offer for an ask.
func (s StepOffers) Of(ask string) (Offer, bool) { return offerOf(s.Asks, ask) }

func offerOf(all []Offer, ask string) (Offer, bool) {
	for _, o := range all {
		if o.Ask == ask {
			return o, true
		}
	}
	return Offer{}, false
}

// Step returns what may be asked of a step, or of its undo; ok is false where that is nothing.
func (o Offers) Step(name string, undo bool) (s StepOffers, ok bool) {
	for _, s := range o.Steps {
		if s.Step == name && s.Undo == undo {
			return s, true
		}
	}
	return StepOffers{}, false
}

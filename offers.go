package makegood

import "github.com/makegood-dev/makegood/internal/limits"

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
	// Ask is what is asked for: a Verb, or "wake"; of a step "settle done", "settle skipped", "settle notDone",
	// "complete", "fail" or "heartbeat".
	Ask string `json:"ask"`
	// Effect is what it would do, in the words of docs/states.md; "is so already", where that would change nothing; or
	// "refused". Granted tells these two from the others.
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

// Granted reports whether asking would change something.
func (o Offer) Granted() bool {
	return o.Effect != limits.OfferRefused && o.Effect != limits.OfferAlready
}

package makegood

import "github.com/makegood-dev/makegood/internal/limits"

// Offers has, for each verb, its effect on a job in its present state, or the reason why it would be refused. It is no
// promise: the job may have moved on by the time of the request.
type Offers struct {
	// Job is the job's id, ProcessState its state, Round its round.
	Job          string       `json:"job"`
	ProcessState ProcessState `json:"processState"`
	Round        int          `json:"round"`
	// Verbs has an offer for each verb, in their order, and at the end one for wake.
	Verbs []Offer `json:"verbs"`
	// Steps are the requests possible for steps and their undos, in the order of the workflow. A step without any is left
	// out, unless it is under way or has failed.
	Steps []StepOffers `json:"steps"`
}

// Offer is the expected result of a request.
type Offer struct {
	// Ask is the request: a Verb, or "wake"; for a step "settle done", "settle skipped", "settle notDone", "complete",
	// "fail", "heartbeat", or "edit" of its map.
	Ask string `json:"ask"`
	// Effect is the effect, in the words of docs/states.md; "is so already", where the request would not change the job;
	// or "refused". Granted distinguishes the last two from the others.
	Effect string `json:"effect"`
	// Reason is why the request would be refused, in the words of the refusal, or would not change the job; empty: it
	// would be granted.
	Reason string `json:"reason"`
}

// StepOffers are the requests possible for a step, or for its undo.
type StepOffers struct {
	Step string  `json:"step"`
	Undo bool    `json:"undo"`
	Asks []Offer `json:"asks"`
	// Choices are the answers that an approval takes, and Question is its text, while it waits. Other steps have none.
	Choices  []string `json:"choices"`
	Question string   `json:"question"`
}

// Granted reports whether the request would change the job.
func (o Offer) Granted() bool {
	return o.Effect != limits.OfferRefused && o.Effect != limits.OfferAlready
}

package machine

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// transitions is the law: which ProcessState may follow which in one event. A state may always follow
// itself. docs/states.md is generated from it, Apply asserts it, random tests try to break it.
var transitions = map[makegood.ProcessState][]makegood.ProcessState{
	makegood.JobPending: {
		makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	},
	makegood.JobProcessing: {
		makegood.JobProcessed, makegood.JobError, makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	},
	// A redrive has a job that is Processed go on.
	makegood.JobProcessed: {makegood.JobProcessing, makegood.JobUndoing, makegood.JobError, makegood.JobUndone},
	makegood.JobError: {
		makegood.JobProcessing, makegood.JobProcessed, makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	},
	// Where onFailure is restart a job that is being undone goes forward again, by itself.
	makegood.JobUndoing:   {makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndone, makegood.JobCancelled},
	makegood.JobUndone:    {makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndoing},
	makegood.JobCancelled: {},
}

// Transitions returns the states that may follow a state.
func Transitions(from makegood.ProcessState) []makegood.ProcessState {
	return slices.Clone(transitions[from])
}

func mustAllow(from, to makegood.ProcessState) {
	if from != to && !slices.Contains(transitions[from], to) {
		panic(fmt.Sprintf("machine: no transition from %s to %s", from, to))
	}
}

// Effect is what a verb does to a job in a state.
type Effect string

// The effects. A verb that changes the wanted state ends a pause: its caller wants it now.
const (
	TurnsRound Effect = "undoes its steps"
	EndsOther  Effect = "ends Cancelled instead of Undone"
	EndsUndone Effect = "ends Undone, without another round"
	GoesOn     Effect = "goes on from what failed"
	NewRound   Effect = "starts again in a new round"
	Pauses     Effect = "starts no new step"
	Resumes    Effect = "goes on"
	MovesStart Effect = "moves its start, while no step has begun"
	MovesEnd   Effect = "has that long from now on, or from its start if that is ahead"
	TurnsAgain Effect = "undoes its steps, and then starts again in a new round"
	EndsAgain  Effect = "starts again in a new round, once it is undone"
	TurnsBack  Effect = "goes forward again, if no step was undone yet"
	ForLater   Effect = "has that long once it is resubmitted, if it goes forward then"
	Redrives   Effect = "does the failed items of its maps again"
	EditsMap   Effect = "has these figures for the items that begin from now on"
	Already    Effect = limits.OfferAlready
	Refuses    Effect = limits.OfferRefused
)

// Rule is a cell of the table of verbs.
type Rule struct {
	Effect Effect
	Reason string // why it is refused
}

// onItsWay returns the effect of a verb on the job. A verb that goes on from the failed step names its direction: a
// job that stopped in an undo goes on undoing, which surprises a person after mending the first failure.
func onItsWay(effect Effect, j job.Job) string {
	switch {
	case effect != GoesOn:
		return string(effect)
	case j.Desired == makegood.JobProcessed:
		return string(GoesOn) + ", forwards"
	case j.AnotherRound:
		return "goes on undoing, from what failed, and then begins another round"
	default:
		return "goes on undoing, from what failed, and will end " + string(j.Desired)
	}
}

// verbs says what each verb does in each ProcessState. docs/states.md is generated from it.
var verbs = map[makegood.Verb]map[makegood.ProcessState]Rule{
	makegood.VerbCancel: {
		makegood.JobPending:    {Effect: TurnsRound},
		makegood.JobProcessing: {Effect: TurnsRound},
		makegood.JobProcessed:  {Refuses, "it is Processed; undo takes it back"},
		makegood.JobError:      {Effect: TurnsRound},
		makegood.JobUndoing:    {Effect: EndsOther},
		makegood.JobUndone:     {Refuses, "it is Undone; there is no step to cancel"},
		makegood.JobCancelled:  {Effect: Already},
	},
	makegood.VerbUndo: {
		makegood.JobPending:    {Effect: TurnsRound},
		makegood.JobProcessing: {Effect: TurnsRound},
		makegood.JobProcessed:  {Effect: TurnsRound},
		makegood.JobError:      {Effect: TurnsRound},
		makegood.JobUndoing:    {Effect: EndsUndone},
		makegood.JobUndone:     {Effect: Already},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, and undone with that"},
	},
	makegood.VerbResubmit: {
		makegood.JobPending:    {Refuses, "it has not stopped"},
		makegood.JobProcessing: {Refuses, "it has not stopped"},
		makegood.JobProcessed:  {Refuses, "it is Processed; submit a new job to do it again"},
		makegood.JobError:      {Effect: GoesOn},
		makegood.JobUndoing:    {Refuses, "it has not stopped: it is being undone"},
		makegood.JobUndone:     {Effect: NewRound},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbPause: {
		makegood.JobPending:    {Effect: Pauses},
		makegood.JobProcessing: {Effect: Pauses},
		makegood.JobProcessed:  {Refuses, "it is Processed; no step is left to pause"},
		makegood.JobError:      {Refuses, "it is in Error and waits already"},
		makegood.JobUndoing:    {Effect: Pauses},
		makegood.JobUndone:     {Refuses, "it is Undone; no step is left to pause"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled; no step is left to pause"},
	},
	makegood.VerbResume: {
		makegood.JobPending:    {Effect: Resumes},
		makegood.JobProcessing: {Effect: Resumes},
		makegood.JobProcessed:  {Refuses, "it is Processed, not paused"},
		makegood.JobError:      {Refuses, "it is in Error, not paused; resubmit goes on from what failed"},
		makegood.JobUndoing:    {Effect: Resumes},
		makegood.JobUndone:     {Refuses, "it is Undone, not paused"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, not paused"},
	},
	makegood.VerbReschedule: {
		makegood.JobPending:    {Effect: MovesStart},
		makegood.JobProcessing: {Effect: MovesStart}, // Its start was announced, or it was paused at its start.
		makegood.JobProcessed:  {Refuses, "it is Processed; submit a new job to do it again"},
		makegood.JobError:      {Refuses, "it is in Error; resubmit goes on from what failed"},
		makegood.JobUndoing:    {Refuses, "it is being undone"},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbEdit: {
		makegood.JobPending:    {Effect: MovesEnd},
		makegood.JobProcessing: {Effect: MovesEnd},
		makegood.JobProcessed:  {Refuses, "it is Processed; no step is left that could take too long"},
		makegood.JobError:      {Effect: ForLater},
		makegood.JobUndoing:    {Refuses, backUntimed},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again, with the timeout that it has"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled; no step is left that could take too long"},
	},
	makegood.VerbRedo: {
		makegood.JobPending:    {Effect: TurnsAgain},
		makegood.JobProcessing: {Effect: TurnsAgain},
		makegood.JobProcessed:  {Effect: TurnsAgain},
		makegood.JobError:      {Effect: TurnsAgain},
		makegood.JobUndoing:    {Effect: EndsAgain},
		makegood.JobUndone:     {Effect: NewRound},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbRedrive: {
		makegood.JobPending:    {Refuses, "it has not begun"},
		makegood.JobProcessing: {Effect: Redrives},
		makegood.JobProcessed:  {Effect: Redrives},
		makegood.JobError:      {Refuses, "it is in Error; resubmit goes on from what failed"},
		makegood.JobUndoing:    {Refuses, "it is being undone"},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbForward: {
		makegood.JobPending:    {Refuses, goesForward},
		makegood.JobProcessing: {Refuses, goesForward},
		makegood.JobProcessed:  {Refuses, "it is Processed; submit a new job to do it again"},
		makegood.JobError:      {Effect: TurnsBack},
		makegood.JobUndoing:    {Effect: TurnsBack},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
}

const (
	goesForward  = "it goes forward"
	itsCancelled = "it is being cancelled, which is final; submit a new job"
	// backUntimed is why the timeout of a job is not changed that is being undone.
	backUntimed = "it is being undone, which its timeout never stops"
)

// RuleFor returns the cell of the table for a verb in a state.
func RuleFor(v makegood.Verb, s makegood.ProcessState) Rule {
	rule, ok := verbs[v][s]
	if !ok {
		return Rule{Refuses, fmt.Sprintf("there is no verb %q", v)}
	}
	return rule
}

// granted reports whether a request was granted before.
func (t *turn) granted(e job.Requested) bool {
	return e.Request != "" && slices.Contains(t.job.Requests, job.ShortHash(e.Cause()))
}

// remember adds a granted name to the last of its kind, so that the same request again is a duplicate.
func remember(names []string, name string) []string {
	names = append(names, name)
	return names[max(0, len(names)-limits.MaxRequests):]
}

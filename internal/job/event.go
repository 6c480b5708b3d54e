package job

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// Event is an event in the life of a job. The set is closed.
type Event interface {
	// Cause names the event: the same event delivered again has the same cause.
	Cause() string
	isEvent()
}

// Submitted: the job was stored. It makes the first attempts due, and makes them if the job was stored
// without them: in a transaction of the submitter's own.
type Submitted struct{}

// Reply names the attempt that an agent's reply is about, and the replying holder.
type Reply struct {
	Step    string
	Attempt int
	// Token is the one that the task brought.
	Token string
	// LockedBy is that of the claim; empty for a shared step.
	LockedBy string
	// StartedAt is when the attempt was claimed; for people to look at.
	StartedAt time.Time
}

// Said returns the reply, of whatever event holds one.
func (r Reply) Said() Reply { return r }

// StepSucceeded: an agent's reply.
type StepSucceeded struct {
	Reply
	Output Payload
}

// StepFailed: an agent's reply.
type StepFailed struct {
	Reply
	Error StepError
	// Batch is set where the reply answers for a batch of items. The Scheduler makes it of the output of the reply.
	Batch *BatchAnswers `json:",omitempty"`
}

// BatchAnswers are the answers of an agent for the items of a batch: those of all attempts so far.
type BatchAnswers struct {
	// Output has the answers.
	Output Payload
	// Done counts the items that are done. Refused has a bit for each item that failed and is not to be tried again.
	Done, Refused int
}

// StepWaiting: an agent's reply. A person or program outside will complete the step, until Deadline.
type StepWaiting struct {
	Reply
	Deadline time.Time
}

// StepHeld: an agent's reply. It has not begun the attempt, because it is paused. Of an inline attempt it is the word
// of the process that holds it (LockedBy), which has begun neither this attempt nor those behind it in its chain.
type StepHeld struct {
	Reply
}

// StepCompleted: a person or program outside says how a step has ended.
type StepCompleted struct {
	Place
	// Output is the step's output; Error, if set, why it failed.
	Output Payload
	Error  *StepError
	// Request names the asking; empty: its content does.
	Request string
	// By is the caller's name, as the receiver of the request knows it. Why is the caller's reason, no part of the cause;
	// at most MaxReasonBytes.
	By, Why string
	// Early: a step that does not wait yet takes it when it does. Of one named by its address only.
	Early bool
}

// WaitExtended: a step that waits is to wait longer.
type WaitExtended struct {
	Place
	// Until is its new deadline; zero: as far ahead again as it was when the wait began.
	Until time.Time
}

// Settled: a person has dealt with a step, or with its undo, outside the job.
type Settled struct {
	Place
	// Done: it counts as done, with Output. NotDone: its attempts count as having had no effect. Else it is skipped.
	Done, NotDone bool
	Output        Payload
	// Attempt, if it is not 0, must be the latest of the step, or of its undo: of a later one they do not speak.
	Attempt int
	Reason  string
	// By is the caller's name, as the receiver of the request knows it; it is no part of the cause.
	By string
	// Request names the asking; empty: the content does.
	Request string
}

// Asked: the people asked to complete the step were told, at the N-th moment.
type Asked struct {
	Step    string
	Attempt int
	N       int
}

// NotAsked: they could not be told.
type NotAsked struct {
	Step    string
	Attempt int
	N       int
}

// AttemptClosed: an attempt that is not wanted any more was asked to end, and this is the answer.
type AttemptClosed struct {
	Step    string
	Attempt int
	Found   Found
	// Asked is the cause of the event that asked. What the answer makes due has the same cause.
	Asked string
}

// DispatchRefused: a task could not be sent, and never can be (too large, bad characters).
type DispatchRefused struct {
	Step    string
	Attempt int
	Reason  string
}

// DeadlinePassed: the Supervisor's hint that the job's CompleteBy has passed. It acts only if Key
// is still the one stored, and has passed.
type DeadlinePassed struct{ Key time.Time }

// ChildEnded: the child of this attempt has ended, or may have. It is a hint: it has the child looked at.
type ChildEnded struct {
	Step    string
	Attempt int
}

// Admitted: the gate of its agent has given this attempt a permit, or may have. It is a hint: it has the permit looked
// at.
type Admitted struct {
	Step    string
	Attempt int
}

// Interrupted: the embedded engine was started again as its Incarnation-th run; attempts that an earlier run dispatched
// are over, and may have started. Clean: the run that the job knows did not die, it was told to stop.
type Interrupted struct {
	Incarnation int
	Clean       bool
}

// Told: the announcements up to Seq were delivered, to the operator, the listener, or both.
type Told struct {
	Seq                int
	Operator, Listener bool
}

// NotHeard: the listener could not be told of the announcement Seq.
type NotHeard struct{ Seq int }

// Published: the job's changes up to Seq were published.
type Published struct{ Seq int }

// NotPublished: they could not be told of those up to Seq.
type NotPublished struct{ Seq int }

// Requested: a request of an operator or submitter. Request names the asking, so that the same one twice is the same.
type Requested struct {
	Verb    makegood.Verb
	Request string
	Reason  string
	// By is the caller's name, as the receiver of the request knows it, and never as the caller states it. It is no part of
	// the cause.
	By string
	// StartAt is when a job that is rescheduled is to start; zero, or past: at once.
	StartAt time.Time
	// Definition is the definition that a job which is resubmitted is moved to: a hash, or CurrentDefinition. Empty: it
	// keeps its own. Input is its new input; nil: it keeps its own.
	Definition string
	Input      *Payload
	// Timeout is what a job that is edited gets: below zero: none.
	Timeout makegood.Duration
	// Step and Indexes name the failed items that a redrive is for. A parent names no step: its Indexes are items of the
	// job. No Indexes: all failed items, of Step if it is named.
	Step    string
	Indexes Indexes
	// Redrives is set by the parent of a job: the number of the redrive that it asks for, from 1.
	Redrives int
	// Edit has the new figures of a map: of one of the job's, or, with its number, of the one that the job is a part of. A
	// parent hands it down with whatever it asks of a part; with another verb it is an addition.
	Edit *MapEdit
	// Never: the parent withdraws that redrive, while the request for it may still be on its way.
	Never bool
}

// CurrentDefinition stands for the definition that is current for the name of a job's workflow.
const CurrentDefinition = "current"

func (Submitted) isEvent()       {}
func (StepSucceeded) isEvent()   {}
func (StepFailed) isEvent()      {}
func (StepWaiting) isEvent()     {}
func (StepHeld) isEvent()        {}
func (StepCompleted) isEvent()   {}
func (WaitExtended) isEvent()    {}
func (Settled) isEvent()         {}
func (Asked) isEvent()           {}
func (NotAsked) isEvent()        {}
func (AttemptClosed) isEvent()   {}
func (DispatchRefused) isEvent() {}
func (DeadlinePassed) isEvent()  {}
func (ChildEnded) isEvent()      {}
func (Admitted) isEvent()        {}
func (Interrupted) isEvent()     {}
func (Told) isEvent()            {}
func (NotHeard) isEvent()        {}
func (Published) isEvent()       {}
func (NotPublished) isEvent()    {}
func (Requested) isEvent()       {}

// Cause is "submit".
func (Submitted) Cause() string { return "submit" }

// Cause is STEP#ATTEMPT: an attempt has one reply.
func (r Reply) Cause() string { return r.Step + "#" + strconv.Itoa(r.Attempt) }

// Cause is held:STEP#ATTEMPT. The attempt may have another reply later.
func (e StepHeld) Cause() string { return "held:" + e.Reply.Cause() }

// Cause is completed:STEP/ROUND:NAME, with /undo behind the round of an undo. NAME is that of the asking, or of the
// answer.
func (e StepCompleted) Cause() string { return "completed:" + e.Place.String() + ":" + e.Asking() }

// Asking names the request, or, where that has no name, the answer.
func (e StepCompleted) Asking() string {
	if e.Request != "" {
		return ShortHash("request\n" + e.Request)
	}
	return e.Answer()
}

// Answer names the answer by its content.
func (e StepCompleted) Answer() string {
	if e.Error != nil {
		return ShortHash(fmt.Sprintf("failed\n%t\n%s\n%s\n%s", e.Error.Retryable, e.Error.Applied, e.Error.Kind, e.Error.Message))
	}
	return ofOutput(e.Output)
}

// ofOutput names an output by its content.
func ofOutput(output Payload) string {
	// The key of a value that is kept elsewhere ends with a hash of the value.
	return ShortHash("done\n" + output.Ref[strings.LastIndexByte(output.Ref, '#')+1:] + "\n" + string(output.Inline))
}

// Cause is settled:STEP/ROUND:NAME, with /undo behind the round of an undo. NAME is that of the asking, or of the
// answer.
func (e Settled) Cause() string {
	if e.Request != "" {
		return "settled:" + e.Place.String() + ":" + ShortHash("request\n"+e.Request)
	}
	return "settled:" + e.Place.String() + ":" + e.Answer()
}

// Answer names the settlement by its content, without its reason and its author.
func (e Settled) Answer() string {
	switch {
	case e.NotDone:
		return ShortHash("not done")
	case !e.Done:
		return ShortHash("skipped")
	default:
		return ofOutput(e.Output)
	}
}

// ShortHash names a text in eleven characters, for what a job remembers.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// Cause is extended:STEP/ROUND. The event makes no work due.
func (e WaitExtended) Cause() string { return "extended:" + e.Place.String() }

// Cause is asked:STEP#ATTEMPT/N.
func (e Asked) Cause() string { return fmt.Sprintf("asked:%s#%d/%d", e.Step, e.Attempt, e.N) }

// Cause is unasked:STEP#ATTEMPT/N.
func (e NotAsked) Cause() string { return fmt.Sprintf("unasked:%s#%d/%d", e.Step, e.Attempt, e.N) }

// Cause is that of the event that asked.
func (e AttemptClosed) Cause() string { return e.Asked }

// Cause is refused:STEP#ATTEMPT.
func (e DispatchRefused) Cause() string { return fmt.Sprintf("refused:%s#%d", e.Step, e.Attempt) }

// Cause is due:KEY in Unix milliseconds.
func (e DeadlinePassed) Cause() string { return fmt.Sprintf("due:%d", e.Key.UnixMilli()) }

// Cause is child:STEP#ATTEMPT.
func (e ChildEnded) Cause() string { return fmt.Sprintf("child:%s#%d", e.Step, e.Attempt) }

// Cause is admitted:STEP#ATTEMPT.
func (e Admitted) Cause() string { return fmt.Sprintf("admitted:%s#%d", e.Step, e.Attempt) }

// Cause is run:INCARNATION.
func (e Interrupted) Cause() string { return fmt.Sprintf("run:%d", e.Incarnation) }

// Cause is told:SEQ.
func (e Told) Cause() string { return fmt.Sprintf("told:%d", e.Seq) }

// Cause is unheard:SEQ.
func (e NotHeard) Cause() string { return fmt.Sprintf("unheard:%d", e.Seq) }

// Cause is published:SEQ.
func (e Published) Cause() string { return fmt.Sprintf("published:%d", e.Seq) }

// Cause is unpublished:SEQ.
func (e NotPublished) Cause() string { return fmt.Sprintf("unpublished:%d", e.Seq) }

// Cause is VERB:REQUEST, or edit:N of an edit that a parent hands down: the first one makes no task of a later one due.
func (e Requested) Cause() string {
	if e.Verb == makegood.VerbEdit && e.Edit != nil && e.Edit.N > 0 {
		return fmt.Sprintf("%s:%d", e.Verb, e.Edit.N)
	}
	return string(e.Verb) + ":" + e.Request
}

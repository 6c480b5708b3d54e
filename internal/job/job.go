// Package job holds the engine's own record of a job and the engine's messages to itself: Job, the Event that happened
// to one, the Command that must now be done. It is data, and makes no decision: that is internal/machine. Users see a
// job as makegood.Job.
package job

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Job is one run of a workflow. The zero value of a field means "not yet".
type Job struct {
	// ID is given by the submitter or made for it, and unique over all workflows of a deployment.
	ID string `json:"id"`
	// Workflow is the name of its workflow, Definition the hash of the one it keeps.
	Workflow   string `json:"workflow"`
	Definition string `json:"definition"`
	// Round counts the runs from the start; the first is 1.
	Round int `json:"round"`
	// RoundsAgain is how many rounds onFailure: restart began since the birth, or since the last request for a new round.
	RoundsAgain int `json:"roundsAgain,omitempty"`
	// AnotherRound: when everything is undone, the job is tried again from the start (Undoing, or Error on the way).
	// NextRoundAt is when; zero: a step is still to be undone.
	AnotherRound bool      `json:"anotherRound,omitempty"`
	NextRoundAt  time.Time `json:"nextRoundAt,omitzero"`
	// RoundAsked: that round was asked for (Redo). It has the job's whole time, and all the rounds of onFailure: restart.
	RoundAsked bool `json:"roundAsked,omitempty"`
	// ProcessState is the current state; Desired the wanted one: Processed, Undone or Cancelled.
	ProcessState makegood.ProcessState `json:"processState"`
	Desired      makegood.ProcessState `json:"desired"`
	// PausedAt is set while the job is paused, a desire that keeps the state under it.
	PausedAt time.Time `json:"pausedAt,omitzero"`
	// HeldBy is the hold of the job while it is paused ("agent payments", "workflow order": Hold.String), and HeldReason
	// the person that paused that, and why. Empty: a person has paused the job itself.
	HeldBy     string `json:"heldBy,omitempty"`
	HeldReason string `json:"heldReason,omitempty"`
	// PausedToo: a person has paused the job itself while it was held. It stays paused when what holds it is resumed.
	PausedToo bool `json:"pausedToo,omitempty"`
	// Reason says why the job stopped, is undone or was cancelled; at most MaxReasonBytes.
	Reason string `json:"reason,omitempty"`
	// FirstReason is the reason of before, where the job stopped or was turned round again in its round: the first that it
	// had in it. Empty: it has had no other.
	FirstReason string `json:"firstReason,omitempty"`
	// FailureCount is how many started attempts failed or ran out of time, over all steps and undos, also those that it
	// has lost by being moved to another definition.
	FailureCount int `json:"failureCount"`
	// LockedBy is instance and nonce of the last save; empty until the first one after birth.
	LockedBy string `json:"lockedBy,omitempty"`
	// CompleteBy is the key in the index: never later than the earliest moment at which anything can
	// be due, so when the Supervisor must look. Zero: finished and told, out of the index.
	CompleteBy time.Time `json:"completeBy,omitzero"`
	CreatedAt  time.Time `json:"createdAt"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	// StartAt is when the job may start; zero: at once.
	StartAt time.Time `json:"startAt,omitzero"`
	// ReplyTo is the registered name of the receiver of every change of ProcessState; empty: none. An operator is told of
	// an Error all the same.
	ReplyTo string `json:"replyTo,omitempty"`
	// Tenant is the tenant of the job, and Labels say more about it; both as they were submitted, and never changed: a copy
	// of a job shares its labels.
	Tenant string            `json:"tenant,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Priority is that of the submission; empty: normal. A word that this release does not know counts as normal.
	Priority makegood.Priority `json:"priority,omitempty"`
	// Trace is the trace context that the submission brought: trace (16 bytes), span (8) and flags (1) of a traceparent.
	// Nil: it brought none, and the job's trace is made from its birth.
	Trace []byte `json:"trace,omitempty"`
	// Deadline is when the job's own timeout passes; zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
	// ExpectBy is when its workflow expects it to be done; zero: never. WarnAt is when an operator is told that it will not
	// be; zero, where ExpectBy is set: they were told in this round.
	ExpectBy time.Time `json:"expectBy,omitzero"`
	WarnAt   time.Time `json:"warnAt,omitzero"`
	// Input is the input of the submission, or of the last resubmit that gave one; InputHash is of the submission, and
	// distinguishes the same id with other content.
	Input     Payload `json:"input,omitzero"`
	InputHash string  `json:"inputHash"`
	// Former are the inputs that it had before in this round and that a step has used, which may have to be undone; at most
	// MaxFormerInputs.
	Former []Payload `json:"former,omitempty"`
	// Steps are in the order of the workflow.
	Steps []StepState `json:"steps"`

	// Birth is a nonce of the job's birth: it tells the items of this job from those of an earlier one of the same
	// id. Agents know it, since the names of claim items hold it.
	Birth string `json:"birth,omitempty"`
	// Secret is what the tokens of its attempts are made with: SecretBytes random bytes that never leave the store.
	// None until the save that makes the first attempt.
	Secret []byte `json:"secret,omitempty"`

	// Rev counts the saves; the first is 1.
	Rev int64 `json:"rev"`
	// Requests names the last MaxRequests requests that were granted, oldest first: one that comes again is a duplicate.
	Requests []string `json:"requests,omitempty"`
	// Answers names the last MaxRequests failures of steps that were reported from outside under a name, oldest first.
	Answers []string `json:"answers,omitempty"`
	// RemindAt is when the operator hears again of a job that is in Error still.
	RemindAt time.Time `json:"remindAt,omitzero"`
	// RequestedBy names the author of the last granted request, at most MaxReasonBytes; empty where the name was not known.
	RequestedBy string `json:"requestedBy,omitempty"`
	// Gone is the highest attempt of a step that the job has lost by being moved to another definition. Those that come in
	// go on from it: the numbers of one are never used again.
	Gone int `json:"gone,omitempty"`
	// Timeout is how long the job may go forward; zero: what its workflow says; below zero: as long as it takes.
	Timeout makegood.Duration `json:"timeout,omitzero"`
	// Redrives is the number of the last redrive that a part of a map has had from its parent.
	Redrives int `json:"redrives,omitempty"`
	// Edits are the edits of its maps, or, of a part of a map, the one of that map. It is never changed in place.
	Edits []MapEdit `json:"edits,omitempty"`
	// Transitions counts the attempts made since the cap on them was last renewed.
	Transitions int `json:"transitions,omitempty"`
	// Incarnation is the run of the embedded engine that last touched the job; 0 on AWS.
	Incarnation int `json:"incarnation,omitempty"`
	// Seq is the number of the last announcement; Untold are the unconfirmed ones.
	Seq    int            `json:"seq,omitempty"`
	Untold []Announcement `json:"untold,omitempty"`
	// TellTries is how often in a row the listener could not be told, and TellAt when that is tried again; zero: at once.
	TellTries int       `json:"tellTries,omitempty"`
	TellAt    time.Time `json:"tellAt,omitzero"`
	// Unheard is how many announcements were given up: undeliverable for MaxTell, or displaced by MaxUntold others.
	Unheard int `json:"unheard,omitempty"`

	// Changes is the record of its transitions for the subscribers of every change.
	Changes Changes `json:"changes,omitzero"`

	// History is what the job knows of its history, which is kept beside it.
	History History `json:"history,omitzero"`

	// Spent is the job's usage of AWS, as far as its saves know; zero: it was not counted. No decision rests on it.
	Spent Spent `json:"spent,omitzero"`

	// Needs is the lowest level of the stored job (internal/store/jobformat) that may decide about it; others leave it. A
	// store raises it where it keeps the job in a form of a level.
	Needs int `json:"needs,omitempty"`
	// Kept is the fields that a later release has stored here and this one does not know, encoded. It is never read, and
	// every write of the job writes it back. The parts of a job have theirs. It is text so that values can be compared.
	Kept string `json:"-"`
}

// MaxUntold is how many unconfirmed announcements a job keeps. Beyond it the oldest are given up, those that are for
// the listener alone first.
const MaxUntold = 100

// Announcement is a change of ProcessState to be announced, or that a job will be late. Its identity is job/seq.
type Announcement struct {
	Seq          int                   `json:"seq"`
	ProcessState makegood.ProcessState `json:"processState"`
	Reason       string                `json:"reason,omitempty"`
	At           time.Time             `json:"at"`
	// Operator and Listener mark the receivers that have not confirmed it yet. The two are distinguished: one that is gone
	// neither silences the other nor makes them hear twice.
	Operator bool `json:"operator,omitempty"`
	Listener bool `json:"listener,omitempty"`
	// ExpectBy is set if it is not of a change: the job is expected to be done then, and will not be.
	ExpectBy time.Time `json:"expectBy,omitzero"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Claim is the holder of an attempt, and the time until which it has the attempt.
type Claim struct {
	Attempt int `json:"attempt"`
	// LockedBy is the agent's instance and a nonce, fresh for every message received, never an instance alone.
	LockedBy   string    `json:"lockedBy"`
	StartedAt  time.Time `json:"startedAt"`
	CompleteBy time.Time `json:"completeBy"`
	// Beside is how many other tasks the process that claimed it had, or could have had, under way, then or later: one such
	// task may have ended it. Zero: it ran alone, or its holder did not say. No job keeps it.
	Beside int `json:"beside,omitempty"`
	// Progress is the last report, by this attempt or one before it. No job keeps it.
	Progress Progress `json:"progress,omitzero"`
	// Bytes is the size of an item above MaxClaimItemBytes: a lie of its agent. Zero of every other. No job keeps it.
	Bytes int `json:"-"`
}

// MaxClaimItemBytes is how large the item of a claim may be. This release writes up to 1 KB, a later one perhaps more.
const MaxClaimItemBytes = 4 << 10

// Reported returns the progress that the holder of the claim has reported; the zero value where that is none.
func (c Claim) Reported() Progress {
	if c.Progress.At.Before(c.StartedAt) {
		return Progress{}
	}
	return c.Progress
}

// Progress is how far work has come, as its agent says it.
type Progress struct {
	// Value is JSON of at most MaxProgressBytes. It is text so that claims can be compared.
	Value string    `json:"value"`
	At    time.Time `json:"at"`
}

// Fits returns the progress if it may be kept and shown: an agent writes it, so anything may be there.
func (p Progress) Fits() Progress {
	if len(p.Value) > makegood.MaxProgressBytes || !utf8.ValidString(p.Value) || !json.Valid([]byte(p.Value)) || p.At.IsZero() {
		return Progress{}
	}
	return p
}

// OutsidePrefix begins the LockedBy of a claim that an embedded engine has given to another process. The engine alone
// writes it: no instance of its own is called so.
const OutsidePrefix = "outside:"

// OutsideShared is the LockedBy of an attempt that is not claimed, since its step is not exclusive, and that has a task
// which an embedded engine has given to other processes: one or more. No other has it, since an instance and a nonce
// follow the prefix there.
const OutsideShared = OutsidePrefix + "shared"

// Outside reports whether the claim was given to another process by the engine. Such a claim is flushed before its task
// is handed out, and it survives the engine: a restart does not interrupt its attempt.
func (c Claim) Outside() bool { return strings.HasPrefix(c.LockedBy, OutsidePrefix) }

// StepState is what a job knows of one of its steps.
type StepState struct {
	Name string `json:"name"`
	// Attempt is the highest number ever given to an attempt of this step or its undo, in any round.
	Attempt int      `json:"attempt,omitempty"`
	Forward Activity `json:"forward,omitzero"`
	Undo    Activity `json:"undo,omitzero"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// ActivityState is the state of a step, or of its undo. makegood.StepState describes all but NotStarted.
type ActivityState string

// The states of an activity.
const (
	// NotStarted: it waits for its dependencies, or for being wanted.
	NotStarted   ActivityState = ""
	Dispatched                 = ActivityState(makegood.StepDispatched)
	Backoff                    = ActivityState(makegood.StepBackoff)
	Done                       = ActivityState(makegood.StepDone)
	Skipped                    = ActivityState(makegood.StepSkipped)
	Failed                     = ActivityState(makegood.StepFailed)
	Withdrawn                  = ActivityState(makegood.StepWithdrawn)
	Irreversible               = ActivityState(makegood.StepIrreversible)
	// Waiting: no agent works on it. The holder of its completion token completes it, or its deadline ends it.
	Waiting = ActivityState(makegood.StepWaiting)
)

// Activity is a step going forward, or its undo.
type Activity struct {
	State ActivityState `json:"state,omitempty"`
	// Attempt is the number of its latest attempt; zero before the first.
	Attempt int `json:"attempt,omitempty"`
	// Tries is how many attempts were made of those granted; a resubmit grants afresh.
	Tries int `json:"tries,omitempty"`
	// FailureCount is how many attempts failed; of a step with a map that is done, how many items failed.
	FailureCount int `json:"failureCount,omitempty"`
	// FailingSince: when the first of those granted failed, moved on by the time without attempts (Retry.For).
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Interruptions counts claimed attempts over which the embedded engine died: the first few, and of the later ones those
	// that ran alone in it.
	Interruptions int `json:"interruptions,omitempty"`
	// At is when the latest attempt was last sent (Dispatched), or when the next is due (Backoff).
	At time.Time `json:"at,omitzero"`
	// Resent is how often the task of the latest attempt was sent again because it was not claimed.
	Resent int `json:"resent,omitempty"`
	// Cause names the event that made the latest attempt due, or asked for its end; the same event derives its task,
	// or its closing, again.
	Cause string `json:"cause,omitempty"`
	// OpenedAt is when the latest attempt was made, if it was sent again since; else At is.
	OpenedAt time.Time `json:"openedAt,omitzero"`
	// LookAt is when the latest attempt is looked at, or closed, if it stays silent (Dispatched).
	LookAt time.Time `json:"lookAt,omitzero"`
	// Inline is the LockedBy of the save that opened the latest attempt, where the process which saved it runs it
	// (Dispatched). The claim is these fields then: from At to LookAt. Empty: its task goes to the queue of its agent.
	Inline string `json:"inline,omitempty"`
	// QueuedOver is the Rev of the job over which the latest attempt was opened, while it is Queued.
	QueuedOver int64 `json:"queuedOver,omitempty"`
	// Queued: the latest attempt stands before the gate of its agent, so no task of it was sent (Dispatched).
	Queued bool `json:"queued,omitempty"`
	// Closing: its end was asked for, by Cause, and the answer is not known yet (Dispatched).
	Closing bool `json:"closing,omitempty"`
	// Unknown: some started attempt ended in silence, or in an error that does not say "not applied".
	Unknown bool `json:"unknown,omitempty"`
	// Alone: an attempt since the last that was replied to ended in silence with others beside it in its process,
	// uncounted, and the next ones run alone. Or the embedded engine has died over a few of its attempts.
	Alone bool `json:"alone,omitempty"`
	// Deferred is how many attempts were not counted because the service of its agent was down, or asked for a pause.
	Deferred uint8 `json:"deferred,omitempty"`
	// Former is the number, from 1, of the one of Job.Former that its attempts saw; zero: the input that the job has. Only
	// a step that may have to be undone has one.
	Former uint8 `json:"former,omitempty"`
	// Silent is the claim of the last started attempt that ended in silence: its late success is still taken while
	// the latest can be closed. It is never changed in place. Silence reads it.
	Silent *Claim `json:"silent,omitempty"`
	// By is the step that a step with any needs began by: of those that it needs it sees the output of this one alone.
	By string `json:"by,omitempty"`
	// Generation is the highest attempt that its step had when it came to be another in this round: described by another
	// definition, or to be asked with another input. The completion tokens of those attempts are of the former step.
	Generation int `json:"generation,omitempty"`
	// WentTo is the step that its onError or its onAnswer went to; the step itself is Skipped.
	WentTo string `json:"wentTo,omitempty"`
	// Repeats counts the successes after which the step was not ready; RepeatTries those since repetitions were granted
	// afresh. RepeatSince is when the first attempt since then was made. Of a step with a map, Repeats counts the redrives
	// of its child, and RepeatTries is 1 while a further one is due.
	Repeats     int       `json:"repeats,omitempty"`
	RepeatTries int       `json:"repeatTries,omitempty"`
	RepeatSince time.Time `json:"repeatSince,omitzero"`
	// Redriven names the items of the redrive of its child that is due or under way; empty: all that have failed.
	Redriven Indexes `json:"redriven,omitempty"`
	Output   Payload `json:"output,omitzero"`
	// Answered counts the items of its batch that are done, until all are. Output has the answers then. Refused has a bit
	// for each item that has failed and is not tried again before attempts are granted afresh.
	Answered   int        `json:"answered,omitempty"`
	Refused    int        `json:"refused,omitempty"`
	Error      *StepError `json:"error,omitempty"`
	StartedAt  time.Time  `json:"startedAt,omitzero"`
	FinishedAt time.Time  `json:"finishedAt,omitzero"`
	// LastStartedAt is when the last attempt with a known claim was claimed, if not the first. No decision rests on it.
	LastStartedAt time.Time `json:"lastStartedAt,omitzero"`
	// Wait is the state of its waiting, while it waits. It is never changed in place.
	Wait *Wait `json:"wait,omitempty"`
	// Completion is the last that was given to it from outside, in this round. It is never changed in place.
	Completion *Completion `json:"completion,omitempty"`
	// Settled is the person that settled it by hand, and why; see Job.Settled. It is never changed in place.
	Settled *Settlement `json:"settled,omitempty"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Settlement is that a person has dealt with a step, or its undo, outside the job.
type Settlement struct {
	// Round is that of the job when they did. A release that does not know of settlements takes one along into later
	// rounds, in which it has no effect.
	Round int `json:"round"`
	// Answer names the settlement: the same one again is the same.
	Answer string `json:"answer"`
	// By is its author, as the request's receiver knows it, at most MaxCompletedByBytes; Reason at most MaxReasonBytes.
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Wait is how long an activity waits, and the people asked to complete it. It began at the activity's At, which moves
// with its deadline when the job was paused meanwhile.
type Wait struct {
	// Deadline is when it ends, if it is not completed.
	Deadline time.Time `json:"deadline"`
	// For is how long it was to wait when it began.
	For makegood.Duration `json:"for,omitzero"`
	// Asked counts the moments that came at which people are to be asked or reminded, Heard those at which they were.
	Asked int `json:"asked,omitempty"`
	Heard int `json:"heard,omitempty"`
	// Tries is how often in a row they could not be told, and AskAt when that is tried again; zero: at once.
	Tries int       `json:"tries,omitempty"`
	AskAt time.Time `json:"askAt,omitzero"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Completion is an answer from outside: by the holder of the completion token of a step, or by its address.
type Completion struct {
	// Answer names the answer, Request the asking: the same one again is the same.
	Answer  string `json:"answer"`
	Request string `json:"request,omitempty"`
	// By is its author, as the request's receiver knows it, at most MaxCompletedByBytes; Why at most MaxReasonBytes.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Held: it is taken when the attempt that is out has ended. Early: it is taken when the activity begins to wait.
	Held  bool `json:"held,omitempty"`
	Early bool `json:"early,omitempty"`
	// Output and Error are its content, until it is taken: a success, or with Error a failure.
	Output Payload    `json:"output,omitzero"`
	Error  *StepError `json:"error,omitempty"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Held reports whether an answer was given that ends the attempt which is out: that is not wanted any more.
func (a Activity) Held() bool { return a.Completion != nil && a.Completion.Held }

// Taken is the part of a completion that is remembered when it was taken.
func (c Completion) Taken() *Completion {
	return &Completion{Answer: c.Answer, Request: c.Request, By: c.By, Why: c.Why, Kept: c.Kept}
}

// Opened is when the latest attempt was made.
func (a Activity) Opened() time.Time {
	if a.OpenedAt.IsZero() {
		return a.At
	}
	return a.OpenedAt
}

// ClaimUntil is until when the latest attempt can be claimed: the same in every send of its task, so that what a
// queue brings back later than any claim is kept can never run.
func (a Activity) ClaimUntil() time.Time { return a.Opened().Add(limits.MaxClaimDelay) }

// StepError is why an attempt failed.
type StepError struct {
	Message string `json:"message"`
	// Retryable: another attempt may succeed. Otherwise the step is given up.
	Retryable bool `json:"retryable,omitempty"`
	// Applied is unknown unless the agent knows better.
	Applied makegood.Applied `json:"applied,omitempty"`
	// Kind is a limits.ErrorKind; empty: none.
	Kind string `json:"kind,omitempty"`
	// RetryAfter is how long the remote asked to be left alone; kept to up to the step's retry.max.
	RetryAfter makegood.Duration `json:"retryAfter,omitzero"`
	// SlowDown: RetryAfter holds for all attempts of the agent, and this attempt is not one of those granted.
	SlowDown bool `json:"slowDown,omitempty"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// Payload is a JSON value: inside the job's item, or referred to.
type Payload struct {
	// Inline is the value itself; nil when the value is elsewhere, or null.
	Inline json.RawMessage `json:"inline,omitempty"`
	// Ref is the key under which the value is kept in the job's partition: "input#HASH", or
	// "output#STEP#ATTEMPT#HASH", with a hash of the value.
	Ref string `json:"ref,omitempty"`
	// Bytes is the size of the value.
	Bytes int `json:"bytes,omitempty"`
}

// Values are the input and the outputs of the job, without those that are not there.
func (j Job) Values() []Payload {
	all := append([]Payload{j.Input}, j.Former...)
	for _, s := range j.Steps {
		for _, a := range []Activity{s.Forward, s.Undo} {
			all = append(all, a.Output)
			if a.Completion != nil {
				all = append(all, a.Completion.Output)
			}
		}
	}
	return slices.DeleteFunc(all, func(p Payload) bool { return p.Inline == nil && p.Ref == "" })
}

// Step returns what the job knows of the step of this name.
func (j Job) Step(name string) (StepState, bool) {
	for i := range j.Steps { // By index: a step is large.
		if j.Steps[i].Name == name {
			return j.Steps[i], true
		}
	}
	return StepState{}, false
}

// InputOf returns the input that a step is asked with, or its undo: an undo has that of the attempts of its step.
func (j Job) InputOf(step string, undo bool) Payload {
	if s, _ := j.Step(step); undo && s.Forward.Former > 0 {
		return j.Former[s.Forward.Former-1]
	}
	return j.Input
}

// Settled returns how an activity of the job was settled by hand in this round; nil: it was not.
func (j Job) Settled(a Activity) *Settlement {
	if a.Settled == nil || a.Settled.Round != j.Round {
		return nil
	}
	return a.Settled
}

// Paused reports whether the job is paused.
func (j Job) Paused() bool { return !j.PausedAt.IsZero() }

// Expected reports whether its workflow expects it to be done by ExpectBy and it is on its way, in whichever round.
func (j Job) Expected() bool {
	goes := !j.ProcessState.Finished() && j.ProcessState != makegood.JobError && !j.Paused()
	return !j.ExpectBy.IsZero() && goes && (j.Desired == makegood.JobProcessed || j.AnotherRound)
}

// Warned reports whether an operator was told, or is to be told, that an expected job will not be done in time.
func (j Job) Warned() bool { return j.Expected() && j.WarnAt.IsZero() }

// Told reports whether every receiver was told of everything, of every change, too.
func (j Job) Told() bool { return len(j.Untold) == 0 && len(j.Changes.Pending) == 0 }

// Clone returns a copy that shares no part that is ever changed: payloads and errors are written once.
func (j Job) Clone() Job { return j.CloneIn(nil) }

// CloneIn is Clone, but its steps lie in room, where that is large enough: room must not be in use any more.
func (j Job) CloneIn(room []StepState) Job {
	if n := len(j.Steps); n > 0 && n <= cap(room) {
		j.Steps = append(room[:0], j.Steps...)
	} else {
		j.Steps = slices.Clone(j.Steps)
	}
	j.Untold = slices.Clone(j.Untold)
	j.Requests, j.Answers = slices.Clone(j.Requests), slices.Clone(j.Answers)
	j.Former = slices.Clone(j.Former)
	j.Changes.Pending = slices.Clone(j.Changes.Pending)
	return j
}

package makegood

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of Makegood, all in one place. What is over one is refused at the door with a message
// that names it.
const (
	// MaxSteps is how many steps a workflow may have.
	MaxSteps = 200
	// MaxAttempts is how many attempts a step, or its undo, may be granted at a time.
	MaxAttempts = 100
	// MaxRetryFor is the longest Retry.For. At RetryPaces times Retry.Max it takes some 60 attempts, with full jitter, so MaxAttempts
	// suffice; a longer one is refused unless it says how many attempts.
	MaxRetryFor = 7 * 24 * time.Hour
	RetryPaces  = 30
	// MaxRounds is how many rounds a job may make by itself (onFailure: restart), the first one counted too.
	MaxRounds = 100
	// MaxRoutes is how many routes the onError of a step may have.
	MaxRoutes = 20
	// MaxRepeats is how often a step may succeed without being ready, and be repeated.
	MaxRepeats = 10_000
	// MaxNameBytes is how long the name of a workflow, a step, an agent or an action may be.
	MaxNameBytes = 63
	// MaxJobIDBytes is how long a job's id may be.
	MaxJobIDBytes = 128
	// MaxTenantBytes is how long the name of a tenant may be.
	MaxTenantBytes = MaxNameBytes
	// MaxLabels is how many labels a job may have, and MaxLabelBytes how long the value of one may be. The name of a label
	// is a LabelName.
	MaxLabels     = 8
	MaxLabelBytes = 128
	// MaxPayloadBytes is how large a job's input, a task's input and a step's output may each be, as JSON.
	MaxPayloadBytes = 256 << 10
	// MaxInputSchemaBytes is how large the JSON Schema of a workflow's input may be, as JSON, and MaxInputSchemaDepth how deep it may
	// be nested. MaxMisfits is how many places are told of an input that does not fit.
	MaxInputSchemaBytes = 64 << 10
	MaxInputSchemaDepth = 64
	MaxMisfits          = 20
	// MaxLargePayloadBytes is how large what a Payload refers to may be: bytes of anything, kept apart from jobs and messages.
	MaxLargePayloadBytes = 100 << 20
	// MaxPayloadRefs is how many payloads one input or output may refer to, and MaxPayloadTypeBytes how long the type of one
	// may be.
	MaxPayloadRefs      = 100
	MaxPayloadTypeBytes = 100
	// MaxDecodedPayloadBytes is how large a payload may be that is read into memory for an action whose input is a value, and
	// no Payload.
	MaxDecodedPayloadBytes = 16 << 20
	// KeepPayload is how long a payload is kept that no job refers to: longer than an upload, the attempt that it is part of
	// (MaxClaim), and the message that brings its reference (MaxClaimDelay) can take together.
	KeepPayload = MaxClaim + MaxClaimDelay + 2*24*time.Hour
	// MaxInlineBytes is how large an input or output may be and still live inside the job's hot item.
	MaxInlineBytes = 256
	// MaxOutlineBytes is how large an input or output may be that the outline of a job has, and MaxOutline how large all of them are
	// together, in bytes.
	MaxOutlineBytes = 4 << 10
	MaxOutline      = 64 << 10
	// MaxEvaluationSteps is how many steps of jq the evaluation of an expression may take, and MaxEvaluationBytes
	// how many bytes of values it may read and make, as internal/workflowfile/jq counts them. Neither depends
	// on how busy a computer is.
	MaxEvaluationSteps = 1_000_000
	MaxEvaluationBytes = 128 << 20
	// MaxOutputsBytes is how much of the outputs of other steps the expressions of a step may read together,
	// as JSON; a value counts as 8 bytes at least. Only the paths that they name are read.
	MaxOutputsBytes = 8 << 20
	// MaxTaskSecrets is how many places for secrets the with of a step may have, and MaxSecretBytes how large the value
	// of one may be (Secrets Manager: 64 KB).
	MaxTaskSecrets = 50
	MaxSecretBytes = 64 << 10
	// MaxMessageBytes is how large a message on a queue may be (SQS: 1 MiB, attributes included).
	MaxMessageBytes = 1 << 20
	// MaxBatch is how many messages one send or one receive may carry (SQS).
	MaxBatch = 10
	// MaxTaskWait is how long a request of an agent outside may wait for tasks, and MaxTaskPolls how many requests of one
	// agent may wait at once on an engine.
	MaxTaskWait  = 20 * time.Second
	MaxTaskPolls = 256
	// MaxUploads is how many payloads each agent outside may write at once on an engine, and all who submit together.
	MaxUploads = 64
	// MaxAgentTokenBytes is how long the token may be that an agent outside shows.
	MaxAgentTokenBytes = 1024
	// MaxReasonBytes is how much of an error's text is kept.
	MaxReasonBytes = 1024
	// MaxInterruptions is how often a claimed attempt of a step may be cut off by the death of the embedded engine, all but
	// the first times while nothing else runs in it, before the job goes to Error: such a step may be what kills the engine.
	MaxInterruptions = 20

	// MaxRequestBytes is how long the name of a request or a completion may be.
	MaxRequestBytes = 128
	// MaxMetricNames is how many workflows, how many agents and how many steps metrics tell apart in one process; what comes
	// beyond counts as "other".
	MaxMetricNames = 200
	// MaxWhoBytes is how long the name may be that somebody gives as who asks.
	MaxWhoBytes = 128
	// MaxRequests is how many of the requests that were granted last a job remembers by name.
	MaxRequests = 16
	// MaxFormerInputs is how many inputs of before a job keeps in a round, for undos of what was done with them.
	MaxFormerInputs = 16
	// MaxHistoryFirst and MaxHistoryLast are how many of the entries of a job's history are kept, from its beginning and
	// from its end.
	MaxHistoryFirst = 100
	MaxHistoryLast  = 100
	// MaxLockedByBytes is how long the LockedBy of a claim may be: an instance and a nonce.
	MaxLockedByBytes = 512
	// SecretBytes is how many random bytes the secret of a job has.
	SecretBytes = 16

	// MaxClaimDelay is how long after its opening an attempt can be claimed: as long as SQS keeps a message.
	MaxClaimDelay = 14 * 24 * time.Hour
	// MaxClaim is how long after its claim the CompleteBy of an attempt may lie, however often it is moved.
	MaxClaim = 30 * 24 * time.Hour
	// KeepClaim is how long a claim item is kept after its attempt can neither be claimed nor run any more.
	KeepClaim = 2 * 24 * time.Hour
	// MaxUnclaimed is how long an attempt is sent again that nobody claims. Then it gets a successor.
	MaxUnclaimed = 7 * 24 * time.Hour
	// MaxProgressBytes is how large the progress may be that an agent reports, as JSON: its claim item stays within 1 KB, and
	// a heartbeat one write unit.
	MaxProgressBytes = 512
	// LateGrace is how long the key of a job (CompleteBy) may have passed before the job is called late: the Supervisor looks twice a
	// second embedded, and once a minute on AWS, so a key that has just passed is a job in good health.
	LateGrace = 2 * time.Minute
	// MaxSentInputBytes is how large an input may be, in bytes, that stands among those of all steps of a job (SentInputs), and
	// MaxSentInputs is how many of them an answer has. What is beyond that is given by its step alone.
	MaxSentInputBytes = 4 << 10
	MaxSentInputs     = 200
	// AbsentAfter is the time without a request for tasks after which an agent outside counts as absent. A request that waits for a
	// task (up to MaxTaskWait) is one.
	AbsentAfter = 30 * time.Second
	// MaxClaimAhead is how much further ahead than its step allows a claim may be before it is a lie.
	MaxClaimAhead = time.Hour
	// CloseAgain is when a closing that was not answered is asked for again.
	CloseAgain = time.Minute

	// MaxWait is how far ahead the deadline of a step that waits may lie, however often it is moved.
	MaxWait = 365 * 24 * time.Hour
	// MaxReminders is how many reminders a step that waits may have, and MaxAsked how many names are asked at once.
	MaxReminders = 10
	MaxAsked     = 10
	// MaxChoices is how many answers an approval may offer, and MaxChoiceBytes how long each may be.
	MaxChoices     = 10
	MaxChoiceBytes = 64
	// MaxQuestionBytes is how long the question of an approval may be.
	MaxQuestionBytes = 4 << 10
	// MaxCompletionTokenBytes is how long a completion token can be.
	MaxCompletionTokenBytes = 512
	// MaxAnswererBytes is how long the name may be that whoever holds a completion token gives as theirs.
	MaxAnswererBytes = 80
	// MaxCompletedByBytes is how much is kept of who completed a step.
	MaxCompletedByBytes = 100

	// MinTimeout is the shortest timeout, startBy and wait; backoffs may be shorter.
	MinTimeout = 10 * time.Millisecond
	// MaxTimeout is how long an attempt may be silent at most: the longest heartbeat of a step, and the longest timeout of
	// one without. With a heartbeat, the longest timeout is MaxClaim.
	MaxTimeout = time.Hour
	// MaxStartBy is the longest startBy.
	MaxStartBy = 72 * time.Hour
	// MaxBackoff is the longest retry.backoff, retry.max, and either wait of onFailure.
	MaxBackoff = 30 * 24 * time.Hour
	// MaxJobTimeout is the longest timeout of a job.
	MaxJobTimeout = 365 * 24 * time.Hour
	// ExpectMargin is which part of what a workflow expects is left when a job that is not done counts as one that will take
	// longer: one in so many.
	ExpectMargin = 5

	// MaxStartDelay is how far ahead the start of a job may lie.
	MaxStartDelay = 365 * 24 * time.Hour
	// MinScheduleEvery and MaxScheduleEvery bound the rate of a schedule.
	MinScheduleEvery = 10 * time.Second
	MaxScheduleEvery = 365 * 24 * time.Hour
	// MaxSchedules is how many schedules a store keeps.
	MaxSchedules = 1000
	// MaxScheduleInputBytes is how large the input of a schedule may be as it is written, expressions and all.
	MaxScheduleInputBytes = 16 << 10
	// MaxCronBytes is how long a cron may be.
	MaxCronBytes = 256
	// MaxMissed is how many missed fires of a schedule are made up for at most.
	MaxMissed = 100
	// MissedAfter is how late a fire may be before it counts as missed.
	MissedAfter = 5 * time.Minute
	// RemindWithin is how near something due must be for the Scheduler to send itself a delayed event
	// for it, where the Supervisor's schedule is too coarse.
	RemindWithin = 3 * time.Minute

	// FarKey is how far ahead the CompleteBy of a job lies that waits for a person (Error, paused).
	FarKey = 24 * time.Hour
	// MaxTell is how long it is tried to tell a listener of something.
	MaxTell = 24 * time.Hour
	// MaxTellAgain is how long at most is waited between two tries to tell a listener.
	MaxTellAgain = time.Hour
	// TellAgain is when an announcement that was not confirmed is made again.
	TellAgain = time.Minute

	// MaxUnpublished is how many changes a job keeps that nobody is known to have been told of. Of more the oldest become one,
	// which says how many were lost.
	MaxUnpublished = 64
	// MaxChangeReasonBytes is how much of a reason a change says.
	MaxChangeReasonBytes = 160
	// MaxPublish is how long it is tried to publish what is left of a job that is at its end.
	MaxPublish = 7 * 24 * time.Hour

	// MaxHolds is how many agents and workflows may be paused at once.
	MaxHolds = 100
	// MaxHoldReasonBytes is how much is kept of why one was paused, and MaxHoldByBytes of who did it.
	MaxHoldReasonBytes = 512
	MaxHoldByBytes     = 256
	// HoldsFresh is how old what a busy process knows of holds may be.
	HoldsFresh = 5 * time.Second
	// ResumeFirst is how many jobs go on in the first ResumeEvery after what held them was resumed; then twice as many,
	// and so on, up to MaxResume.
	ResumeFirst = 60
	ResumeEvery = time.Minute
	MaxResume   = 10_000
	// MaxRelease is how long a release looks for jobs that it has not found. What is left then goes on by its own key.
	MaxRelease = 24 * time.Hour

	// LeaveFor is how long a message stays hidden at first that is left to a newer release; it doubles each time, up to
	// MaxLeaveFor, the longest delay of SQS.
	LeaveFor    = time.Minute
	MaxLeaveFor = 15 * time.Minute
	// MaxLeft is how long a message is left: a day less than an attempt can be claimed (MaxClaimDelay), so that no task
	// comes back in vain, and that whoever can send makes nothing that goes round for ever.
	MaxLeft = 13 * 24 * time.Hour
	// MinKeepEffect is how long what a fence knows of an effect is kept at least (agent/dynamofence, agent/sqlitefence): twice
	// as long as an attempt can last (MaxClaimDelay, MaxClaim), and so long enough for whoever repairs the job.
	MinKeepEffect = 90 * 24 * time.Hour
)

// The values that a workflow gets where it says nothing.
const (
	DefaultStartBy = 10 * Minute
	DefaultTimeout = 30 * Second
	DefaultBackoff = 1 * Second
	DefaultMax     = 1 * Minute
	DefaultEvery   = 10 * Second
	DefaultFor     = 1 * Hour

	// DefaultRetryFor is how long a step is tried again that does not say how often or how long, and DefaultUndoRetryFor its undo:
	// longer than an ordinary outage of the service that it asks.
	DefaultRetryFor     = 15 * Minute
	DefaultUndoRetryFor = 1 * Hour
	// DefaultApproval is how long an approval waits for its answer.
	DefaultApproval = 7 * 24 * Hour
	// DefaultRestartWait is how long a job that was undone waits before its next round (onFailure: restart).
	DefaultRestartWait = 10 * Second
)

// Clip shortens a text to MaxReasonBytes at a character's edge, and replaces what no queue carries:
// bytes that are not UTF-8, U+FFFE and U+FFFF.
func Clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.NewReplacer("\uFFFE", "\uFFFD", "\uFFFF", "\uFFFD").Replace(text)
	if len(text) <= MaxReasonBytes {
		return text
	}
	cut := MaxReasonBytes - len("...")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// CheckWho refuses what cannot be the name of who asks: more than MaxWhoBytes, or what is no text in one line.
func CheckWho(who string) error {
	switch {
	case len(who) > MaxWhoBytes:
		return fmt.Errorf("has %d bytes, the limit is %d", len(who), MaxWhoBytes)
	case !utf8.ValidString(who) || strings.ContainsFunc(who, func(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 }):
		return fmt.Errorf("%.40q is no text in one line", who)
	}
	return nil
}

// CheckJobID refuses what cannot be a job's id: anything but [A-Za-z0-9._:-]{1,128}, and "." and "..",
// which cannot stand in the path of a URL.
func CheckJobID(id string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	switch {
	case id == "":
		return fmt.Errorf("is empty: want [A-Za-z0-9._:-]{1,%d}", MaxJobIDBytes)
	case len(id) > MaxJobIDBytes:
		return fmt.Errorf("has %d bytes, the limit is %d", len(id), MaxJobIDBytes)
	case id == "." || id == "..", strings.ContainsFunc(id, func(c rune) bool { return !strings.ContainsRune(allowed, c) }):
		return fmt.Errorf("%q cannot be a job's id: want [A-Za-z0-9._:-]{1,%d}, and neither . nor .. alone", id, MaxJobIDBytes)
	}
	return nil
}

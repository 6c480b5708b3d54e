// Package limits has the limits for a job, its workflow and the engine: sizes in bytes, counts and durations; and the
// rules of names, labels and other short texts. users.go has the limits of texts and requests of users; the limits
// that a user's program can act on are constants of the root package. limits.go has the tuning of the engine that no
// user sets. The package is a leaf: the root package imports it, and it imports no package of ours.
package limits

import "time"

const (
	// MaxInputSchemaDepth bounds how deep the JSON Schema of an input may be nested.
	MaxInputSchemaDepth = 64
	// MaxMisfits bounds how many places an error names of an input that does not fit its schema.
	MaxMisfits = 20
	// MaxDecodedPayloadBytes is how large a payload may be that is read into memory for an action with a value, and no
	// Payload, as its input.
	MaxDecodedPayloadBytes = 16 << 20
	// MaxOutlineBytes is how large an input or output may be that the outline of a job has, and MaxOutline how large all
	// inputs and outputs are together, in bytes.
	MaxOutlineBytes = 4 << 10
	MaxOutline      = 64 << 10
	// MaxEvaluationSteps is how many steps of jq the evaluation of an expression may take, and MaxEvaluationBytes
	// how many bytes of values it may read and make, as internal/workflowfile/jq counts them. Neither depends
	// on how busy a computer is.
	MaxEvaluationSteps = 1_000_000
	MaxEvaluationBytes = 128 << 20
	// MaxMessageBytes is how large a message on a queue may be (SQS: 1 MiB, attributes included).
	MaxMessageBytes = 1 << 20
	// MaxBatch is how many messages one send or one receive may carry (SQS).
	MaxBatch = 10
	// MaxTaskWait is how long a request of an agent outside may wait for tasks, and MaxTaskPolls how many requests of one
	// agent may wait at once on an engine.
	MaxTaskWait  = 20 * time.Second
	MaxTaskPolls = 256
	// MaxUploads is how many payloads each agent outside may write at once on an engine, and all submitters together.
	MaxUploads = 64
	// MaxInterruptions is how often a claimed attempt of a step may be cut off by the death of the embedded engine, all
	// but the first times while no other attempt runs in it, before the job goes to Error: such a step may be killing the
	// engine.
	MaxInterruptions = 20
	// MaxMetricNames is how many workflows, how many agents and how many steps metrics distinguish in one process; further
	// names count as "other".
	MaxMetricNames = 200
	// MaxChain is how many inline steps run one after the other without a save between them, and ChainTime is within how
	// long after the first of them the last may begin.
	MaxChain  = 20
	ChainTime = 50 * time.Millisecond
	// MaxRequests is how many of the requests granted last a job remembers by name.
	MaxRequests = 16
	// MaxFormerInputs is how many former inputs a job keeps in a round, for undos of the steps that used them.
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
	// KeepClaim is how long a claim item is kept after its attempt can neither be claimed nor run any more.
	KeepClaim = 2 * 24 * time.Hour
	// MaxUnclaimed is how long an unclaimed attempt is sent again. Then it gets a successor.
	MaxUnclaimed = 7 * 24 * time.Hour
	// LateGrace is how long the key of a job (CompleteBy) may have passed before the job is called late: the Supervisor
	// looks twice a second embedded, and once a minute on AWS, so a key that has just passed is a job in good health.
	LateGrace = 2 * time.Minute
	// AbsentAfter is the time without a request for tasks after which an agent outside counts as absent. A request that
	// waits for a task (up to MaxTaskWait) is one.
	AbsentAfter = 30 * time.Second
	// MaxClaimAhead is how much further ahead than its step allows a claim may be before it counts as false.
	MaxClaimAhead = time.Hour
	// CloseAgain is when a closing that was not answered is asked for again.
	CloseAgain = time.Minute
	// MaxCompletionTokenBytes is how long a completion token can be.
	MaxCompletionTokenBytes = 512
	// MaxAnswererBytes is how long the name may be that the holder of a completion token gives as their own.
	MaxAnswererBytes = 80
	// MaxCompletedByBytes is how much is kept of the name of a step's completer.
	MaxCompletedByBytes = 100
	// ExpectMargin is the part of the expected duration that is left when an unfinished job counts as one that will take
	// longer: one in so many.
	ExpectMargin = 5
	// MaxCronBytes is how long a cron may be.
	MaxCronBytes = 256
	// RemindWithin is how near a due time must be for the Scheduler to send itself a delayed event
	// for it, where the Supervisor's schedule is too coarse.
	RemindWithin = 3 * time.Minute
	// FarKey is how far ahead the CompleteBy of a job lies that waits for a person (Error, paused).
	FarKey = 24 * time.Hour
	// MaxTell is how long the notification of a listener is tried.
	MaxTell = 24 * time.Hour
	// MaxTellAgain is the longest pause between two tries to notify a listener.
	MaxTellAgain = time.Hour
	// ChildLook is how long after its beginning a child is looked at that has not said that it has ended. The waits double,
	// up to MaxChildLook.
	ChildLook    = time.Minute
	MaxChildLook = time.Hour
	// TellAgain is when an announcement that was not confirmed is made again.
	TellAgain = time.Minute
	// MaxPublish is how long the publication of the remaining changes of a job that is at its end is tried.
	MaxPublish = 7 * 24 * time.Hour
	// GateLook is how often the gates of agents are looked at. MaxPermits is the highest limit of attempts that are with an
	// agent at once, or that are admitted at one moment. MaxRate is the highest number a second, or a minute.
	GateLook   = time.Minute
	MaxPermits = 100
	MaxRate    = 1000
	// MaxKeyBytes is how long the key of a limit may be. MaxGatesLook is how many gates of its values are looked at, or
	// counted, at once; the looks after it come to the others.
	MaxKeyBytes  = 1024
	MaxGatesLook = 200
	// RiseEvery is how long an attempt waits before a gate until it rises a class: from idle to normal to urgent.
	RiseEvery = 10 * time.Minute
	// MaxHolds is how many agents and workflows may be paused, or have a limit, at once.
	MaxHolds = 100
	// MaxHoldReasonBytes is how much is kept of the reason of a pause, and MaxHoldByBytes of its author.
	MaxHoldReasonBytes = 512
	MaxHoldByBytes     = 256
	// MaxDeferrals is how many attempts of a step, or of its undo, are not counted because its service is down or asked for
	// a pause; MaxSlowDown is the longest such pause.
	MaxDeferrals = 100
	MaxSlowDown  = time.Hour
	// FirstProbe is how long after the breaker has paused an agent one job is let through; then it is twice as long each
	// time, up to MaxProbe. ProbeAmong is how many jobs take turns.
	FirstProbe = 10 * time.Second
	MaxProbe   = 5 * time.Minute
	ProbeAmong = 20
	// HoldsFresh is how old the pauses that a busy process has read may be.
	HoldsFresh = 5 * time.Second
	// ResumeFirst is how many jobs go on in the first ResumeEvery after a pause was lifted; then twice as many, and so on,
	// up to MaxResume.
	ResumeFirst = 60
	ResumeEvery = time.Minute
	MaxResume   = 10_000
	// MaxRelease is how long a release looks for jobs that it has not found. Any job left then goes on by its own key.
	MaxRelease = 24 * time.Hour
	// LeaveFor is how long a message that is deferred to a newer release stays hidden at first; it doubles each time, up
	// to MaxLeaveFor, the longest delay of SQS.
	LeaveFor    = time.Minute
	MaxLeaveFor = 15 * time.Minute
	// MaxLeft is how long a message may be deferred: a day less than an attempt can be claimed (MaxClaimDelay), so that a
	// deferred task can still be claimed, and a hostile message cannot circulate for ever.
	MaxLeft = 13 * 24 * time.Hour
)

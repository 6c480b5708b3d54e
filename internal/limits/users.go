package limits

import "time"

const (
	// MaxSteps is how many steps a workflow may have.
	MaxSteps = 200
	// PartItems is how many items of a map one part has at most, and how many parts one job has.
	PartItems = 100
	// MaxBatchItems is how many items of a map one task does at most.
	MaxBatchItems = 50
	// MaxIndexes is how many items of a map one redrive may name: the job keeps their places, and each is looked at.
	MaxIndexes = 1000
	// MaxMapBytes is how many bytes the inputs of all items of a map may have together, as JSON: all are in memory at once.
	MaxMapBytes = 32 << 20
	// MapEvaluations bounds the work of all evaluations of a map, in evaluations of the largest size: some 1,000 steps of
	// jq for each of 100,000 items, which take seconds in the Scheduler.
	MapEvaluations = 100
	// MaxConcurrency is how many items of a map may be under way at once.
	MaxConcurrency = 10_000
	// MaxAttempts is how many attempts a step, or its undo, may be granted at a time.
	MaxAttempts = 100
	// MaxRetryFor is the longest Retry.For. At RetryPaces times Retry.Max it takes some 60 attempts, with full jitter, so
	// MaxAttempts suffice; a longer one is refused unless it sets the number of attempts.
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
	// MaxLabels is how many labels a job may have, and MaxLabelBytes how long the value of one may be. The name of a
	// label is a LabelName.
	MaxLabels     = 8
	MaxLabelBytes = 128
	// MaxInputSchemaBytes is how large the JSON Schema of a workflow's input may be, as JSON.
	MaxInputSchemaBytes = 64 << 10
	// MaxPayloadRefs is how many payloads one input or output may refer to, and MaxPayloadTypeBytes how long the type
	// of one may be.
	MaxPayloadRefs      = 100
	MaxPayloadTypeBytes = 100
	// MaxInlineBytes is how large an input or output may be and still live inside the job's hot item.
	MaxInlineBytes = 256
	// MaxOutputsBytes is how much of the outputs of other steps the expressions of a step may read together, as JSON; a
	// value counts as 8 bytes at least. Only the paths that the expressions name are read.
	MaxOutputsBytes = 8 << 20
	// MaxTaskSecrets is how many places for secrets the with of a step may have, and MaxSecretBytes how large the value
	// of one may be (Secrets Manager: 64 KB).
	MaxTaskSecrets = 50
	MaxSecretBytes = 64 << 10
	// MaxReasonBytes is how much of an error's text is kept.
	MaxReasonBytes = 1024
	// MaxRequestBytes is how long the name of a request or a completion may be.
	MaxRequestBytes = 128
	// MaxAgentTokenBytes is how long the token of an agent outside may be.
	MaxAgentTokenBytes = 1024
	// KeepPayload is how long a payload without a job that refers to it is kept. Its upload, the attempt that it is part
	// of (MaxClaim) and the message that brings its reference (14 days on SQS) together take less.
	KeepPayload = MaxClaim + 16*24*time.Hour
	// MinKeepEffect is the least time for which a fence keeps its record of an effect (agent/dynamofence,
	// agent/sqlitefence): twice as long as an attempt can last, so a person who repairs the job finds it.
	MinKeepEffect = 90 * 24 * time.Hour
	// MaxWhoBytes is how long the name of a caller may be.
	MaxWhoBytes = 128
	// MaxClaim is how long after its claim the CompleteBy of an attempt may lie, however often it is moved.
	MaxClaim = 30 * 24 * time.Hour
	// MaxSentInputBytes is how large an input may be, in bytes, that stands among those of all steps of a job
	// (SentInputs), and MaxSentInputs is how many inputs an answer has. Further and larger inputs are available by their
	// step alone.
	MaxSentInputBytes = 4 << 10
	MaxSentInputs     = 200
	// MaxReminders is how many reminders a step that waits may have, and MaxAsked how many names are asked at once.
	MaxReminders = 10
	MaxAsked     = 10
	// MaxChoices is how many answers an approval may offer, and MaxChoiceBytes how long each may be.
	MaxChoices     = 10
	MaxChoiceBytes = 64
	// MaxQuestionBytes is how long the question of an approval may be.
	MaxQuestionBytes = 4 << 10
	// MinTimeout is the shortest timeout, startBy and wait; backoffs may be shorter.
	MinTimeout = 10 * time.Millisecond
	// MaxTimeout is how long an attempt may be silent at most: the longest heartbeat of a step, and the longest timeout
	// of one without. With a heartbeat, the longest timeout is MaxClaim.
	MaxTimeout = time.Hour
	// MaxStartBy is the longest startBy.
	MaxStartBy = 72 * time.Hour
	// MaxBackoff is the longest retry.backoff, retry.max, and either wait of onFailure.
	MaxBackoff = 30 * 24 * time.Hour
	// MaxJobTimeout is the longest timeout of a job.
	MaxJobTimeout = 365 * 24 * time.Hour
	// MinScheduleEvery and MaxScheduleEvery bound the rate of a schedule.
	MinScheduleEvery = 10 * time.Second
	MaxScheduleEvery = 365 * 24 * time.Hour
	// MaxSchedules is how many schedules a store keeps.
	MaxSchedules = 1000
	// MaxScheduleInputBytes is how large the input of a schedule may be as it is written, expressions and all.
	MaxScheduleInputBytes = 16 << 10
	// MaxMissed is how many missed fires of a schedule are made up for at most.
	MaxMissed = 100
	// MissedAfter is how late a fire may be before it counts as missed.
	MissedAfter = 5 * time.Minute
	// MaxUnpublished is how many changes a job keeps that are not known to be published. After more the oldest become one,
	// which says how many were lost.
	MaxUnpublished = 64
	// MaxChangeReasonBytes is how much of a reason a change contains.
	MaxChangeReasonBytes = 160
)

package jobformat

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood/internal/job"

	"google.golang.org/protobuf/encoding/protowire"
)

// The bits of a summary; the lowest four are the state of the activity. job.proto says what each bit means.
const (
	sumState    = 1<<4 - 1
	sumRest     = 1 << 4
	sumDetailed = 1 << 5
	sumUndo     = 1 << 6
	sumUnknown  = 1 << 7
	sumTries    = 1 << 8
	sumTrouble  = 1 << 9
	sumOwnRef   = 1 << 10
	sumAttempt  = 1 << 11
	sumAll      = 1<<12 - 1
)

// Encode writes a job without the fields that stand beside its data, and without the parts that are kept apart. A state
// that no release gave is a mistake of ours.
func Encode(j job.Job, apart Apart) []byte {
	e := encoder{epoch: epochOf(j.CreatedAt)}
	e.latest = later(e.epoch, j.FinishedAt)
	e.out = make([]byte, 0, 512)
	e.head(j)
	if apart.Names == nil {
		for _, s := range j.Steps {
			e.message(jobNames, []byte(s.Name))
		}
	}
	e.steps(j.Steps, apart.Held)
	e.tail(j, apart)
	return e.out
}

// encoder writes one job.
type encoder struct {
	writer
	epoch int64
	// latest is the time from which times of changes are counted: the latest time in the job at which it has ended or an
	// activity was sent.
	latest int64
	// inner is what a message within it is made in.
	inner writer
	// summaries, activities and numbers are what a job has of its steps.
	summaries, activities, numbers []byte
}

// head writes what most jobs have, which takes a byte for the number of each field.
func (e *encoder) head(j job.Job) {
	e.uint(jobFormat, format)
	e.time(jobCreatedAt, j.CreatedAt, 0)
	e.hex(jobDefinitionHex, j.Definition)
	e.hex(jobInputHashHex, j.InputHash)
	e.uint(jobDesired, numberOf(j.Desired, processStates()))
	e.int(jobRound, j.Round)
	e.hex(jobBirthHex, j.Birth)
	e.bytes(jobSecret, j.Secret)
	e.bytes(jobInputInline, j.Input.Inline)
	e.int(jobTransitions, j.Transitions)
}

// tail writes the rest: what most jobs have not.
func (e *encoder) tail(j job.Job, apart Apart) {
	e.int(jobSeq, j.Seq)
	e.int(jobNeeds, j.Needs)
	e.bytes(jobNamesAt, apart.Names)
	for _, key := range apart.Details {
		e.message(jobDetailsAt, key)
	}
	e.plain(jobDefinition, j.Definition)
	e.plain(jobInputHash, j.InputHash)
	e.plain(jobBirth, j.Birth)
	e.text(jobInputRef, j.Input.Ref)
	e.size(jobInputBytes, j.Input)
	e.time(jobDeadline, j.Deadline, e.epoch)
	e.time(jobFinishedAt, j.FinishedAt, e.epoch)
	e.text(jobReason, j.Reason)
	for _, name := range j.Requests {
		e.message(jobRequests, []byte(name))
	}
	e.time(jobPausedAt, j.PausedAt, e.epoch)
	e.time(jobStartAt, j.StartAt, e.epoch)
	e.text(jobReplyTo, j.ReplyTo)
	e.int(jobIncarnation, j.Incarnation)
	for _, a := range j.Untold {
		e.announcement(a)
	}
	e.time(jobRemindAt, j.RemindAt, e.epoch)
	e.int(jobTellTries, j.TellTries)
	e.time(jobTellAt, j.TellAt, e.epoch)
	e.int(jobUnheard, j.Unheard)
	e.text(jobRequestedBy, j.RequestedBy)
	for i, s := range j.Steps {
		e.keptOfStep(i, s.Kept)
	}
	e.int(jobRoundsAgain, j.RoundsAgain)
	e.flag(jobAnotherRound, j.AnotherRound)
	e.time(jobNextRoundAt, j.NextRoundAt, e.epoch)
	e.int(jobHistoryCount, j.History.Count)
	e.text(jobHistoryHead, j.History.Head)
	e.text(jobHistoryFirsts, j.History.Firsts)
	e.int(jobGone, j.Gone)
	e.int(jobTimeout, int(j.Timeout))
	e.text(jobHeldBy, j.HeldBy)
	e.text(jobHeldReason, j.HeldReason)
	e.flag(jobPausedToo, j.PausedToo)
	e.text(jobTenant, j.Tenant)
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		e.message(jobLabels, []byte(name))
		e.message(jobLabels, []byte(j.Labels[name]))
	}
	e.bytes(jobTrace, j.Trace)
	e.time(jobExpectBy, j.ExpectBy, e.epoch)
	e.time(jobWarnAt, j.WarnAt, e.epoch)
	e.counts(jobSpentData, j.Spent.Writes, j.Spent.HalfReads)
	e.counts(jobSpentWork, j.Spent.Requests, j.Spent.Invocations, j.Spent.GBMicros)
	e.changes(j.Changes)
	e.former(j.Former)
	for _, name := range j.Answers {
		e.message(jobAnswers, []byte(name))
	}
	e.text(jobFirstReason, j.FirstReason)
	e.flag(jobRoundAsked, j.RoundAsked)
	e.kept(j.Kept)
}

func (e *encoder) announcement(a job.Announcement) {
	w := e.begin()
	w.int(toldSeq, a.Seq)
	w.uint(toldState, numberOf(a.ProcessState, processStates()))
	w.text(toldReason, a.Reason)
	w.time(toldAt, a.At, e.epoch)
	w.flag(toldOperator, a.Operator)
	w.flag(toldListener, a.Listener)
	w.time(toldExpectBy, a.ExpectBy, e.epoch)
	w.kept(a.Kept)
	e.message(jobUntold, w.out)
}

// begin returns an empty message within this one.
func (e *encoder) begin() *writer {
	e.inner.out = e.inner.out[:0]
	return &e.inner
}

// keptOfStep writes the fields of a step that a later release knows. This release has only summaries of a step.
func (e *encoder) keptOfStep(i int, kept string) {
	if kept == "" {
		return
	}
	w := e.begin()
	w.int(stepIndex, i)
	w.kept(kept)
	e.message(jobSteps, w.out)
}

func (e *encoder) steps(steps []job.StepState, held map[Place]bool) {
	for i := range steps {
		e.step(&steps[i], held[Place{Step: i}], held[Place{Step: i, Undo: true}])
	}
	e.bytes(jobSummaries, e.summaries)
	e.out = append(e.out, e.activities...)
	e.bytes(jobNumbers, e.numbers)
}

// step writes a step but for its name. Attempt is nearly always that of its latest activity.
func (e *encoder) step(s *job.StepState, heldForward, heldUndo bool) {
	forward := e.activity(s.Name, &s.Forward, heldForward)
	if s.Attempt != max(s.Forward.Attempt, s.Undo.Attempt) {
		forward |= sumAttempt
		e.number(s.Attempt)
	}
	undo := e.activity(s.Name, &s.Undo, heldUndo)
	if undo != 0 {
		forward |= sumUndo
	}
	e.summaries = protowire.AppendVarint(e.summaries, forward)
	if undo != 0 {
		e.summaries = protowire.AppendVarint(e.summaries, undo)
	}
}

func (e *encoder) number(n int) { e.numbers = protowire.AppendVarint(e.numbers, uint64(n)) }

// activity returns the summary of an activity, and writes its numbers and other fields. The summary of an empty
// activity is 0.
func (e *encoder) activity(step string, a *job.Activity, held bool) uint64 {
	sum := numberOf(a.State, activityStates())
	rest, own := ownRef(step, a)
	if a.Unknown {
		sum |= sumUnknown
	}
	if usual := usualTries(a.State); a.Attempt != usual || a.Tries != usual {
		sum |= sumTries
		e.number(a.Attempt)
		e.number(a.Tries)
	}
	if a.FailureCount != 0 || a.Interruptions != 0 || a.Resent != 0 {
		sum |= sumTrouble
		e.number(a.FailureCount)
		e.number(a.Interruptions)
		e.number(a.Resent)
	}
	if own {
		sum |= sumOwnRef
		e.number(a.Output.Bytes)
	}
	w := e.begin()
	detailKept, hotKept := splitKept(a.Kept)
	if held {
		sum |= sumDetailed
	} else {
		e.latest = later(e.latest, a.At)
		w.details(a, rest, detailKept, e.epoch)
	}
	w.waits(a, e.epoch)
	w.redefined(a)
	w.kept(hotKept)
	if len(w.out) > 0 {
		sum |= sumRest
		e.activities = protowire.AppendBytes(protowire.AppendTag(e.activities, jobActivities, protowire.BytesType), w.out)
	}
	return sum
}

// usualTries is what attempt and tries of most activities are.
func usualTries(s job.ActivityState) int {
	if s == job.NotStarted {
		return 0
	}
	return 1
}

// ownRef reports whether the output is kept where outputs of this attempt are, and returns the rest of its key,
// which identifies its content.
func ownRef(step string, a *job.Activity) (rest string, own bool) {
	if a.Output.Ref == "" || len(a.Output.Inline) > 0 {
		return "", false
	}
	rest, own = strings.CutPrefix(a.Output.Ref, outputPrefix(step, a.Attempt))
	if !own || rest == "" {
		return "", false
	}
	return rest, true
}

// outputPrefix is what the keys of an attempt's outputs begin with.
func outputPrefix(step string, attempt int) string {
	return "output#" + step + "#" + strconv.Itoa(attempt) + "#"
}

// details writes what of an activity may move to an item of its own. rest is the end of the key of an output that is
// kept under its attempt.
func (w *writer) details(a *job.Activity, rest, kept string, epoch int64) {
	created := epoch
	w.time(actAt, a.At, epoch)
	if !a.At.IsZero() {
		epoch = epochOf(a.At)
	}
	output := a.Output
	if rest != "" {
		output = job.Payload{}
	}
	w.time(actStartedAt, a.StartedAt, epoch)
	w.time(actFinishedAt, a.FinishedAt, epoch)
	w.bytes(actOutputInline, output.Inline)
	w.text(actCause, a.Cause)
	w.time(actLookAt, a.LookAt, epoch)
	w.time(actOpenedAt, a.OpenedAt, epoch)
	if a.Error != nil {
		w.message(actError, encodeError(*a.Error))
	}
	w.text(actOutputRef, output.Ref)
	w.size(actOutputBytes, output)
	w.hex(actOwnRefHex, rest)
	w.plain(actOwnRef, rest)
	w.flag(actClosing, a.Closing)
	w.int(actSilentAttempt, a.Silent.Attempt)
	w.text(actSilentLockedBy, a.Silent.LockedBy)
	w.time(actSilentStarted, a.Silent.StartedAt, epoch)
	w.time(actSilentComplete, a.Silent.CompleteBy, epoch)
	w.text(actBy, a.By)
	w.text(actWentTo, a.WentTo)
	w.int(actRepeats, a.Repeats)
	w.time(actRepeatSince, a.RepeatSince, epoch)
	w.int(actRepeatTries, a.RepeatTries)
	w.settled(a, created)
	w.time(actLastStartedAt, a.LastStartedAt, epoch)
	w.time(actFailingSince, a.FailingSince, epoch)
	w.kept(kept)
}

func encodeError(e job.StepError) []byte {
	var w writer
	w.text(errorMessage, e.Message)
	w.text(errorApplied, string(e.Applied))
	w.flag(errorRetryable, e.Retryable)
	w.uint(errorRetryAfter, uint64(e.RetryAfter))
	w.text(errorKind, e.Kind)
	w.kept(e.Kept)
	return w.out
}

// splitKept splits the unknown fields of an activity by where they belong.
func splitKept(kept string) (details, hot string) {
	if kept == "" {
		return "", ""
	}
	var d, h []byte
	_, err := readFields([]byte(kept), func(f *field) bool {
		if f.num < actHot {
			d = append(d, f.raw...)
		} else {
			h = append(h, f.raw...)
		}
		return true
	})
	if err != nil {
		panic("jobformat: a kept field of an activity was never read: " + err.Error())
	}
	return string(d), string(h)
}

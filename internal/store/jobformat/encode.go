package jobformat

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/job"
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
	sumChained  = 1 << 12
)

// The bytes that most jobs do not exceed: in all, of their rests, and of each column of their steps.
const usualBytes, usualRests, usualColumn = 448, 192, 32

// Encode writes a job without the fields that stand beside its data, and without the parts that are kept apart. A state
// that no release gave is a mistake of ours.
func Encode(j job.Job, apart Apart) []byte {
	r := record{codec: writer(j), rests: rests{codec: writer(j)}, namesAt: apart.Names, detailsAt: apart.Details, chained: apart.Chained}
	// The parts of most jobs have room in one piece of memory.
	room := make([]byte, usualBytes+usualRests+2*usualColumn)
	r.out, room = room[:0:usualBytes], room[usualBytes:]
	r.rests.out, room = room[:0:usualRests], room[usualRests:]
	r.summaries.in, r.numbers.in = room[:0:usualColumn], room[usualColumn:usualColumn]
	latest := r.pack(j.Steps, apart.Held, later(r.epoch, j.FinishedAt))
	r.brief.in, r.isBrief = brief(j.Changes, latest)
	r.fields(nil, &j)
	return r.out
}

// pack writes summaries, numbers and activities of steps. It returns the time from which times of changes are counted:
// latest, or a later one at which an activity was sent.
func (r *record) pack(steps []job.StepState, held map[Place]bool, latest int64) int64 {
	for i := range steps {
		s := &steps[i]
		forward, undo := held[Place{Step: i}], held[Place{Step: i, Undo: true}]
		r.step(s, forward, undo)
		if !forward {
			latest = later(latest, s.Forward.At)
		}
		if !undo {
			latest = later(latest, s.Undo.At)
		}
	}
	return latest
}

// step writes a step but for its name. Attempt is nearly always that of its latest activity.
func (r *record) step(s *job.StepState, heldForward, heldUndo bool) {
	forward := r.summary(s.Name, &s.Forward, heldForward)
	if s.Attempt != max(s.Forward.Attempt, s.Undo.Attempt) {
		forward |= sumAttempt
		r.numbers.add(s.Attempt)
	}
	undo := r.summary(s.Name, &s.Undo, heldUndo)
	if undo != 0 {
		forward |= sumUndo
	}
	if r.chained && len(r.summaries.in) == 0 {
		forward |= sumChained
	}
	r.summaries.add(forward)
	if undo != 0 {
		r.summaries.add(undo)
	}
}

// summary returns the summary of an activity, and writes its numbers and other fields. The summary of an empty
// activity is 0.
func (r *record) summary(step string, a *job.Activity, held bool) int {
	sum := int(numberOf(a.State, activityStates()))
	rest, own := ownRef(step, a)
	if a.Unknown {
		sum |= sumUnknown
	}
	if usual := usualTries(a.State); a.Attempt != usual || a.Tries != usual {
		sum |= sumTries
		r.numbers.add(a.Attempt)
		r.numbers.add(a.Tries)
	}
	if a.FailureCount != 0 || a.Interruptions != 0 || a.Resent != 0 {
		sum |= sumTrouble
		r.numbers.add(a.FailureCount)
		r.numbers.add(a.Interruptions)
		r.numbers.add(a.Resent)
	}
	if own {
		sum |= sumOwnRef
		r.numbers.add(a.Output.Bytes)
	}
	if held {
		sum |= sumDetailed
	}
	before := len(r.rests.out)
	detailKept, hotKept := splitKept(a.Kept)
	m := r.rests.open(jobActivities)
	if !held {
		r.rests.putDetails(a, rest, detailKept)
	}
	r.rests.decides(a)
	r.rests.out = append(r.rests.out, hotKept...)
	if len(r.rests.out) == m.start {
		r.rests.out = r.rests.out[:before]
		return sum
	}
	r.rests.close(m.start)
	return sum | sumRest
}

// putDetails writes the details of an activity. rest is the end of the key of an output that is kept under its attempt.
func (c *codec) putDetails(a *job.Activity, rest, kept string) {
	output := a.Output
	if rest != "" {
		output = job.Payload{}
	}
	c.details(a, &output, &rest)
	c.out = append(c.out, kept...)
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

// splitKept splits the unknown fields of an activity by where they belong.
func splitKept(kept string) (details, hot string) {
	if kept == "" {
		return "", ""
	}
	var d, h []byte
	for rest := []byte(kept); len(rest) > 0; {
		num, _, size := protowire.ConsumeField(rest)
		switch {
		case size < 0:
			panic("jobformat: a kept field of an activity was never read: " + protowire.ParseError(size).Error())
		case num < actHot:
			d = append(d, rest[:size]...)
		default:
			h = append(h, rest[:size]...)
		}
		rest = rest[size:]
	}
	return string(d), string(h)
}

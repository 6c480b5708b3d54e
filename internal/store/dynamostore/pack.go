package dynamostore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// packVersion is the first byte of all that is packed here.
const packVersion = 2

// maxCount is more than any number of steps, attempts or announcements that a job may have.
const maxCount = 1 << 20

// packed is a job as its item holds it, in two parts: data is what every decision needs, details are
// what people want to know of steps that are over. A small job has no details: all of it is in data.
//
// What the item keeps beside data, unpacked, is in neither: ID, Workflow, ProcessState, FailureCount,
// LockedBy, CompleteBy and Rev.
type packed struct {
	data    []byte
	details []detail
	// names are the names of the steps, if data refers to them by their hash.
	names *shape
}

// detail is an item that holds the details of some activities. It is never changed.
type detail struct {
	key  string
	body []byte // nil: it is stored already
	// holds is what the activities were when they were written: one that has changed since is not
	// described by it any more.
	holds map[place]makegood.Activity
}

// place is where an activity is in a job.
type place struct {
	step int
	undo bool
}

func activityAt(steps []makegood.StepState, p place) *makegood.Activity {
	if p.undo {
		return &steps[p.step].Undo
	}
	return &steps[p.step].Forward
}

// packData packs a job. Activities that a detail holds are left out of data.
func packData(job makegood.Job, names *shape, details []detail) []byte {
	out := make([]byte, 0, 512)
	w := &writer{out: append(out, packVersion)}
	w.head(job)
	w.uint(uint64(len(details)))
	held := map[place]bool{}
	for _, d := range details {
		w.out = append(w.out, keyBytes(d.key)...)
		for p := range d.holds {
			held[p] = true
		}
	}
	w.uint(uint64(len(job.Steps)))
	w.names(job.Steps, names)
	for i, s := range job.Steps {
		w.step(i, s, held)
	}
	return w.out
}

// head writes what is not of the steps. CreatedAt comes first: lists read no further.
func (w *writer) head(job makegood.Job) {
	w.fields(field{!job.CreatedAt.IsZero(), func() { w.time(job.CreatedAt) }})
	w.epoch = epochOf(job.CreatedAt)
	w.text(job.Definition)
	w.text(job.InputHash)
	w.state(job.Desired)
	w.int(job.Round)
	w.fields(
		w.ifText(job.Birth),
		field{len(job.Secret) > 0, func() { w.bytes(job.Secret) }},
		field{!isZero(job.Input), func() { w.payload(job.Input) }},
		w.ifInt(job.Transitions),
		w.ifTime(job.Deadline),
		w.ifTime(job.FinishedAt),
		w.ifInt(job.Seq),
		// What most jobs have not takes no byte of them from here on.
		w.ifText(job.Reason),
		field{len(job.Requests) > 0, func() { w.requests(job.Requests) }},
		w.ifTime(job.PausedAt),
		w.ifTime(job.StartAt),
		w.ifText(job.ReplyTo),
		w.ifInt(job.Incarnation),
		field{len(job.Untold) > 0, func() { w.untold(job.Untold) }},
		w.ifTime(job.RemindAt),
		w.ifInt(job.TellTries),
		w.ifTime(job.TellAt),
		w.ifInt(job.Unheard),
		w.ifText(job.RequestedBy),
	)
}

func (w *writer) requests(all []string) {
	w.uint(uint64(len(all)))
	for _, name := range all {
		w.text(name)
	}
}

func epochOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (w *writer) ifTime(t time.Time) field { return field{!t.IsZero(), func() { w.time(t) }} }
func (w *writer) ifInt(n int) field        { return field{n != 0, func() { w.int(n) }} }
func (w *writer) ifText(s string) field    { return field{s != "", func() { w.text(s) }} }

// ifTrue is a field that says all by being there.
func ifTrue(b bool) field { return field{b, func() {}} }

func isZero(p makegood.Payload) bool { return len(p.Inline) == 0 && p.Ref == "" && p.Bytes == 0 }

// state writes a ProcessState as its number from 1 on; one that is not known, as 0 and its name.
func (w *writer) state(s makegood.ProcessState) {
	i := slices.Index(makegood.ProcessStates(), s) + 1
	w.uint(uint64(i))
	if i == 0 {
		w.text(string(s))
	}
}

func (w *writer) untold(all []makegood.Announcement) {
	w.uint(uint64(len(all)))
	for _, a := range all {
		w.int(a.Seq)
		w.state(a.ProcessState)
		w.fields(w.ifText(a.Reason), w.ifTime(a.At), ifTrue(a.Operator), ifTrue(a.Listener))
	}
}

func (w *writer) payload(p makegood.Payload) {
	// An inline value says its own size, unless somebody gave another.
	size := field{p.Bytes != len(p.Inline), func() { w.int(p.Bytes) }}
	w.fields(field{len(p.Inline) > 0, func() { w.bytes(p.Inline) }}, w.ifText(p.Ref), size)
}

// names writes the names of the steps, or the hash under which they are kept.
func (w *writer) names(steps []makegood.StepState, names *shape) {
	if names != nil {
		w.out = append(append(w.out, 1), keyBytes(names.key)...)
		return
	}
	w.out = append(w.out, 0)
	for _, s := range steps {
		w.bytes([]byte(s.Name))
	}
}

const (
	stepForward = 1 << iota
	stepUndo
	stepAttempt
)

// step writes a step but for its name. Attempt is nearly always that of its latest activity.
func (w *writer) step(i int, s makegood.StepState, held map[place]bool) {
	var flags byte
	if !isNothing(s.Forward) {
		flags |= stepForward
	}
	if !isNothing(s.Undo) {
		flags |= stepUndo
	}
	if s.Attempt != max(s.Forward.Attempt, s.Undo.Attempt) {
		flags |= stepAttempt
	}
	w.out = append(w.out, flags)
	if flags&stepAttempt != 0 {
		w.int(s.Attempt)
	}
	if flags&stepForward != 0 {
		w.activity(s.Name, s.Forward, held[place{i, false}])
	}
	if flags&stepUndo != 0 {
		w.activity(s.Name, s.Undo, held[place{i, true}])
	}
}

func isNothing(a makegood.Activity) bool { return equal(a, makegood.Activity{}) }

// activityStates are numbered by their place here, for ever: a new one goes to the end.
func activityStates() []makegood.ActivityState {
	return []makegood.ActivityState{
		makegood.NotStarted, makegood.Dispatched, makegood.Backoff, makegood.Done, makegood.Skipped,
		makegood.Failed, makegood.Withdrawn, makegood.Irreversible,
	}
}

// The flags of an activity; the lowest four bits are its state.
const (
	stateMask   = 15
	actUnknown  = 1 << 4
	actPlain    = 1 << 5 // attempt 1 of 1, and nothing went wrong
	actDetailed = 1 << 6 // its details are elsewhere
	actRef      = 1 << 7 // its output is under a key of its attempt, whose end is among the details
	actTrouble  = 1 << 8 // failures, interruptions, or tasks sent again
)

// activity writes what decisions need of an activity: 12 bytes at the most once it is over and its
// details are elsewhere.
func (w *writer) activity(step string, a makegood.Activity, detailed bool) {
	flags := uint64(stateMask)
	if i := slices.Index(activityStates(), a.State); i >= 0 {
		flags = uint64(i)
	}
	set := func(when bool, flag uint64) {
		if when {
			flags |= flag
		}
	}
	set(a.Unknown, actUnknown)
	set(a.Attempt == 1 && a.Tries == 1, actPlain)
	set(detailed, actDetailed)
	_, own := ownRef(step, a)
	set(own, actRef)
	set(a.FailureCount != 0 || a.Interruptions != 0 || a.Resent != 0, actTrouble)
	w.uint(flags)
	if flags&stateMask == stateMask {
		w.text(string(a.State))
	}
	if flags&actPlain == 0 {
		w.int(a.Attempt)
		w.int(a.Tries)
	}
	if flags&actTrouble != 0 {
		w.fields(w.ifInt(a.FailureCount), w.ifInt(a.Interruptions), w.ifInt(a.Resent))
	}
	if flags&actRef != 0 {
		w.int(a.Output.Bytes)
	}
	if !detailed {
		w.detail(step, a)
	}
}

// ownRef reports whether the output is kept where outputs of this attempt are, and gives the rest of its key,
// which tells its content.
func ownRef(step string, a makegood.Activity) (rest string, own bool) {
	rest, own = strings.CutPrefix(a.Output.Ref, outputPrefix(step, a.Attempt))
	return rest, own && rest != "" && len(a.Output.Inline) == 0
}

// outputPrefix is what the keys of an attempt's outputs begin with.
func outputPrefix(step string, attempt int) string {
	return "output#" + step + "#" + strconv.Itoa(attempt) + "#"
}

// detail writes the rest of an activity. The last three are of an attempt that is out, and cost what is over nothing.
func (w *writer) detail(step string, a makegood.Activity) {
	rest, own := ownRef(step, a)
	w.fields(
		w.ifTime(a.At),
		w.ifTime(a.StartedAt),
		w.ifTime(a.FinishedAt),
		field{!isZero(a.Output) && !own, func() { w.payload(a.Output) }},
		w.ifText(a.Cause),
		field{a.Error != nil, func() { w.failure(*a.Error) }},
		field{a.Silent != makegood.Claim{}, func() { w.claim(a.Silent) }},
		field{!a.OpenedAt.IsZero(), func() { w.since(a.At, a.OpenedAt) }},
		field{!a.LookAt.IsZero(), func() { w.since(a.At, a.LookAt) }},
		ifTrue(a.Closing),
		field{own, func() { w.text(rest) }},
	)
}

func (w *writer) failure(e makegood.StepError) {
	w.fields(
		w.ifText(e.Message), w.ifText(string(e.Applied)), ifTrue(e.Retryable),
		field{e.RetryAfter != 0, func() { w.int(int(e.RetryAfter)) }},
	)
}

func (w *writer) claim(c makegood.Claim) {
	w.fields(w.ifInt(c.Attempt), w.ifText(c.LockedBy), w.ifTime(c.StartedAt), w.ifTime(c.CompleteBy))
}

// errVersion: the bytes were packed by another version of this code, or are none of ours.
var errVersion = errors.New("another version")

func newReader(data []byte) *reader {
	r := &reader{in: data}
	if v := r.take(1); len(v) == 1 && v[0] != packVersion {
		r.fail(fmt.Errorf("%w: %d, want %d", errVersion, v[0], packVersion))
	}
	return r
}

package dynamostore

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
)

// unpacked is a job as it was read from data, while its details and names may be missing still.
type unpacked struct {
	job makegood.Job
	// namesKey is where the names of the steps are, if they are not in data.
	namesKey string
	// detailKeys are the items that hold the details of the activities in detailed.
	detailKeys []string
	detailed   map[place]bool
	// ownRefs are the activities whose output is under a key of their attempt, which takes the step's name.
	ownRefs []place
}

// unpackCreated gives the time of a job's birth; zero when data cannot be read.
func unpackCreated(data []byte) time.Time {
	r := newReader(data)
	var created time.Time
	r.fields(func() { created = r.time() })
	if r.err != nil {
		return time.Time{}
	}
	return created
}

// unpackData reads what packData wrote.
func unpackData(data []byte) (unpacked, error) {
	r := newReader(data)
	u := unpacked{detailed: map[place]bool{}}
	r.head(&u.job)
	for range r.small(maxCount) {
		if r.err != nil {
			break
		}
		u.detailKeys = append(u.detailKeys, detailPrefix+r.key())
	}
	steps := r.small(makegood.MaxSteps)
	if steps > 0 {
		u.job.Steps = make([]makegood.StepState, steps)
	}
	u.namesKey = r.names(u.job.Steps)
	for i := range u.job.Steps {
		r.step(i, &u)
	}
	if r.err == nil && len(r.in) > 0 {
		r.fail(fmt.Errorf("%d bytes too many", len(r.in)))
	}
	if r.err != nil {
		return unpacked{}, fmt.Errorf("unpack job: %w", r.err)
	}
	if u.namesKey == "" {
		u.refer()
	}
	return u, nil
}

// named gives the steps their names.
func (u *unpacked) named(names []string) error {
	if len(names) != len(u.job.Steps) {
		return fmt.Errorf("unpack job: %d names of %d steps", len(names), len(u.job.Steps))
	}
	for i, name := range names {
		u.job.Steps[i].Name = name
	}
	u.refer()
	return nil
}

// refer writes the keys of outputs, now that the steps have names. Where the details are elsewhere, the end
// of the key comes with them.
func (u *unpacked) refer() {
	for _, p := range u.ownRefs {
		a := activityAt(u.job.Steps, p)
		a.Output.Ref = outputPrefix(u.job.Steps[p.step].Name, a.Attempt) + a.Output.Ref
	}
}

func (r *reader) head(job *makegood.Job) {
	r.fields(func() { job.CreatedAt = r.time() })
	r.epoch = epochOf(job.CreatedAt)
	job.Definition, job.InputHash = r.text(), r.text()
	job.Desired = r.state()
	job.Round = r.int()
	r.fields(
		r.toText(&job.Birth),
		func() { job.Secret = r.bytes() },
		func() { job.Input = r.payload() },
		r.toInt(&job.Transitions),
		r.toTime(&job.Deadline),
		r.toTime(&job.FinishedAt),
		r.toInt(&job.Seq),
		r.toText(&job.Reason),
		func() { job.Requests = r.requests() },
		r.toTime(&job.PausedAt),
		r.toTime(&job.StartAt),
		r.toText(&job.ReplyTo),
		r.toInt(&job.Incarnation),
		func() { job.Untold = r.untold() },
		r.toTime(&job.RemindAt),
		r.toInt(&job.TellTries),
		r.toTime(&job.TellAt),
		r.toInt(&job.Unheard),
		r.toText(&job.RequestedBy),
	)
}

func (r *reader) requests() []string {
	var all []string
	for range r.small(maxCount) {
		if r.err != nil {
			return nil
		}
		all = append(all, r.text())
	}
	return all
}

func (r *reader) toTime(t *time.Time) func() { return func() { *t = r.time() } }
func (r *reader) toInt(n *int) func()        { return func() { *n = r.int() } }
func (r *reader) toText(s *string) func()    { return func() { *s = r.text() } }
func toTrue(b *bool) func()                  { return func() { *b = true } }

func (r *reader) state() makegood.ProcessState {
	states := makegood.ProcessStates()
	i := r.small(uint64(len(states)))
	if i == 0 {
		return makegood.ProcessState(r.text())
	}
	return states[i-1]
}

func (r *reader) untold() []makegood.Announcement {
	var all []makegood.Announcement
	for range r.small(maxCount) {
		if r.err != nil {
			return nil
		}
		a := makegood.Announcement{Seq: r.int(), ProcessState: r.state()}
		r.fields(r.toText(&a.Reason), r.toTime(&a.At), toTrue(&a.Operator), toTrue(&a.Listener))
		all = append(all, a)
	}
	return all
}

func (r *reader) payload() makegood.Payload {
	var p makegood.Payload
	sized := false
	r.fields(func() { p.Inline = r.bytes() }, r.toText(&p.Ref), func() { p.Bytes, sized = r.int(), true })
	if !sized {
		p.Bytes = len(p.Inline)
	}
	return p
}

func (r *reader) names(steps []makegood.StepState) (key string) {
	if where := r.take(1); len(where) == 1 && where[0] == 1 {
		return shapePrefix + r.key()
	}
	for i := range steps {
		steps[i].Name = string(r.take(r.uint()))
	}
	return ""
}

func (r *reader) step(i int, u *unpacked) {
	s := &u.job.Steps[i]
	var flags byte
	if b := r.take(1); len(b) == 1 {
		flags = b[0]
	}
	if flags&stepAttempt != 0 {
		s.Attempt = r.int()
	}
	if flags&stepForward != 0 {
		r.activity(place{i, false}, u)
	}
	if flags&stepUndo != 0 {
		r.activity(place{i, true}, u)
	}
	if flags&stepAttempt == 0 {
		s.Attempt = max(s.Forward.Attempt, s.Undo.Attempt)
	}
}

func (r *reader) activity(p place, u *unpacked) {
	a := activityAt(u.job.Steps, p)
	flags := r.uint()
	if states := activityStates(); flags&stateMask < uint64(len(states)) {
		a.State = states[flags&stateMask]
	} else {
		a.State = makegood.ActivityState(r.text())
	}
	a.Unknown = flags&actUnknown != 0
	if a.Attempt, a.Tries = 1, 1; flags&actPlain == 0 {
		a.Attempt, a.Tries = r.int(), r.int()
	}
	if flags&actTrouble != 0 {
		r.fields(r.toInt(&a.FailureCount), r.toInt(&a.Interruptions), r.toInt(&a.Resent))
	}
	if flags&actRef != 0 {
		a.Output.Bytes = r.int()
		u.ownRefs = append(u.ownRefs, p)
	}
	if flags&actDetailed != 0 {
		u.detailed[p] = true
		return
	}
	r.detail(a)
}

func (r *reader) detail(a *makegood.Activity) {
	r.fields(
		r.toTime(&a.At),
		r.toTime(&a.StartedAt),
		r.toTime(&a.FinishedAt),
		func() { a.Output = r.payload() },
		r.toText(&a.Cause),
		func() { a.Error = r.failure() },
		func() { a.Silent = r.claim() },
		func() { a.OpenedAt = r.since(a.At) },
		func() { a.LookAt = r.since(a.At) },
		toTrue(&a.Closing),
		r.toText(&a.Output.Ref),
	)
}

func (r *reader) failure() *makegood.StepError {
	var e makegood.StepError
	var applied string
	r.fields(
		r.toText(&e.Message), r.toText(&applied), toTrue(&e.Retryable),
		func() { e.RetryAfter = makegood.Duration(r.int()) },
	)
	e.Applied = makegood.Applied(applied)
	return &e
}

func (r *reader) claim() makegood.Claim {
	var c makegood.Claim
	r.fields(r.toInt(&c.Attempt), r.toText(&c.LockedBy), r.toTime(&c.StartedAt), r.toTime(&c.CompleteBy))
	return c
}

package jobformat

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// Stored is a job as its data says it, while its names and details may be missing still.
type Stored struct {
	Job job.Job
	// NamesAt is the hash under which the names of the steps are kept, if they are not in the data.
	NamesAt []byte
	// DetailsAt are the hashes under which the details of the activities in Detailed are kept.
	DetailsAt [][]byte
	Detailed  []Place
	// ownRefs are the activities with their output under a key of their attempt, which takes the step's name.
	ownRefs []Place
}

// Decode reads a job that Encode wrote. store.ErrDamaged; store.ErrNewer, together with the readable part, of a job
// that this release cannot read whole. Newer says whether this release may decide about a job that it has read.
func Decode(data []byte) (Stored, error) {
	created, err := readFront(data)
	if err != nil {
		return Stored{}, fmt.Errorf("decode job: %w", err)
	}
	r := unpacker{record: record{codec: codec{epoch: epochOf(created)}}}
	r.Job.CreatedAt = created
	if r.fields(data, &r.Job); r.err == nil {
		r.err = r.unpack()
	}
	if r.err != nil {
		return Stored{}, fmt.Errorf("decode job: %w", r.err)
	}
	return r.Stored, r.newer
}

// DecodeWhole is Decode of a job without parts that are kept apart.
func DecodeWhole(data []byte) (job.Job, error) {
	s, err := Decode(data)
	if err == nil && (s.NamesAt != nil || len(s.Detailed) > 0) {
		return job.Job{}, damaged("names or details of a job are not with it")
	}
	return s.Job, err
}

// CreatedAt returns the time of a job's birth, from the front of its data; zero when that cannot be read.
func CreatedAt(data []byte) time.Time {
	created, err := readFront(data)
	if err != nil {
		return time.Time{}
	}
	return created
}

// Needs returns the Needs of a job without reading its other fields; 0 when that cannot be read.
func Needs(data []byte) int {
	needs := 0
	var c codec
	c.in = data
	for c.next(); c.num != 0; c.next() {
		for c.num == jobNeeds {
			c.level(jobNeeds, &needs)
		}
	}
	if c.err != nil {
		return 0
	}
	return needs
}

// readFront reads the first two fields of a job, or of details.
func readFront(data []byte) (created time.Time, err error) {
	rest, err := readFormat(data)
	if err != nil || len(rest) == 0 {
		return time.Time{}, err
	}
	var c codec
	if err := c.field.next(rest); err != nil {
		return time.Time{}, err
	}
	c.time(createdNumber, &created, 0)
	return created, c.err
}

// readFormat reads the first field of a message that is stored by itself, and returns the rest. Data that was stored
// before there was this format begins otherwise.
func readFormat(data []byte) (rest []byte, err error) {
	var f field
	switch err := f.next(data); {
	case err != nil || f.num != formatNumber || f.typ != protowire.VarintType || f.n == 0:
		return nil, damaged("%d bytes that do not begin as this format does: they are broken, or of a Makegood of before it", len(data))
	case f.n > format:
		return nil, fmt.Errorf("%w: it is of format %d, this release knows format %d", store.ErrNewer, f.n, format)
	}
	return data[len(f.raw):], nil
}

// unpacker makes a job of what its record has.
type unpacker struct {
	record
	Stored
	// newer is why this release cannot read all of the job.
	newer error
}

// unpack makes the steps from the several fields that describe them.
func (r *unpacker) unpack() error {
	if err := r.label(); err != nil {
		return err
	}
	// Every step has a byte of summary at least, so no number in the bytes makes a job larger than they are.
	if most := min(len(r.summaries.in), limits.MaxSteps); most > 0 {
		r.Job.Steps = make([]job.StepState, 0, most)
	}
	for len(r.summaries.in) > 0 && r.newer == nil {
		if err := r.unpackStep(); err != nil {
			return err
		}
	}
	if r.newer != nil {
		// The bytes after it cannot be distinguished.
		r.Job.Steps, r.Detailed = nil, nil
		return nil
	}
	r.NamesAt, r.DetailsAt = r.namesAt, r.detailsAt
	if len(r.numbers.in) > 0 || len(r.rests.read) > 0 {
		return damaged("%d bytes of numbers and %d activities too many", len(r.numbers.in), len(r.rests.read))
	}
	r.briefly()
	r.unpackKept()
	if err := cmp.Or(r.err, r.brief.err, r.formerThere()); err != nil || r.NamesAt != nil {
		return err
	}
	return r.Name(r.names)
}

// label gives the job its labels.
func (r *unpacker) label() error {
	if len(r.labels)%2 != 0 {
		return damaged("a label without its value")
	}
	for pair := range slices.Chunk(r.labels, 2) {
		if r.Job.Labels == nil {
			r.Job.Labels = make(map[string]string, len(r.labels)/2)
		}
		r.Job.Labels[pair[0]] = pair[1]
	}
	return nil
}

// leave says why this release cannot read the rest of the job.
func (r *unpacker) leave(format string, args ...any) {
	r.newer = fmt.Errorf("%w: %s", store.ErrNewer, fmt.Sprintf(format, args...))
}

// unpackStep reads the next step from summaries, numbers and activities.
func (r *unpacker) unpackStep() error {
	i := len(r.Job.Steps)
	if i == limits.MaxSteps {
		r.leave("it has more than %d steps", limits.MaxSteps)
		return nil
	}
	r.Job.Steps = append(r.Job.Steps, job.StepState{})
	s := &r.Job.Steps[i]
	forward := r.summaries.next()
	may := uint64(sumAll)
	if i == 0 {
		may |= sumChained
	}
	if err := r.unpackActivity(Place{Step: i}, forward, may); err != nil || r.newer != nil {
		return err
	}
	if forward&sumAttempt != 0 {
		s.Attempt = r.numbers.int()
	}
	if forward&sumUndo != 0 {
		if err := r.unpackActivity(Place{Step: i, Undo: true}, r.summaries.next(), sumAll&^(sumUndo|sumAttempt)); err != nil {
			return err
		}
	}
	if forward&sumAttempt == 0 {
		s.Attempt = max(s.Forward.Attempt, s.Undo.Attempt)
	}
	return cmp.Or(r.summaries.err, r.numbers.err)
}

// unpackActivity reads what a summary says. Bits that it may not have are those of a later release.
func (r *unpacker) unpackActivity(p Place, sum, may uint64) error {
	if sum&^may != 0 {
		r.leave("the summary %#x of step %d has unknown bits", sum, p.Step)
		return nil
	}
	a := p.At(r.Job.Steps)
	a.State = stateOf(sum&sumState, activityStates())
	a.Unknown = sum&sumUnknown != 0
	if a.Attempt, a.Tries = usualTries(a.State), usualTries(a.State); sum&sumTries != 0 {
		a.Attempt, a.Tries = r.numbers.int(), r.numbers.int()
	}
	if sum&sumTrouble != 0 {
		a.FailureCount, a.Interruptions, a.Resent = r.numbers.int(), r.numbers.int(), r.numbers.int()
	}
	if sum&sumOwnRef != 0 {
		a.Output.Bytes = r.numbers.int()
		r.ownRefs = append(r.ownRefs, p)
	}
	if sum&sumDetailed != 0 {
		r.Detailed = append(r.Detailed, p)
	}
	if sum&sumRest == 0 {
		return nil
	}
	if len(r.rests.read) == 0 {
		return damaged("no activity of step %d", p.Step)
	}
	rest := r.rests.read[0]
	r.rests.read = r.rests.read[1:]
	return r.readActivity(a, rest)
}

// readActivity reads what putDetails wrote, what decides, and what a later release keeps beside it, into a. Times that
// come before the one that they are counted from are right when it is read again.
func (c *codec) readActivity(a *job.Activity, data []byte) error {
	if passes := c.activity(a, data); passes > 1 && !a.At.IsZero() {
		c.activity(a, data)
	}
	return c.err
}

func (c *codec) activity(a *job.Activity, data []byte) (passes int) {
	m := c.enter(data)
	for ; c.more(&m); c.kept(&m, &a.Kept) {
		c.details(a, &a.Output, &a.Output.Ref)
		c.decides(a)
	}
	return m.passes
}

// unpackKept puts the fields that a later release knows back into the steps.
func (r *unpacker) unpackKept() {
	for _, data := range r.steps {
		index, kept := 0, "" // As proto3 has it, the first step has no index.
		if r.keptOfStep(r.enter(data), &index, &kept); index < 0 || index >= len(r.Job.Steps) {
			r.fail("step %d of %d", index, len(r.Job.Steps))
			return
		}
		r.Job.Steps[index].Kept += kept
	}
}

// formerThere holds that the inputs are there that activities name.
func (r *unpacker) formerThere() error {
	for i, s := range r.Job.Steps {
		for _, a := range []*job.Activity{&s.Forward, &s.Undo} {
			if int(a.Former) > len(r.Job.Former) {
				return damaged("step %d was done with the former input %d of %d", i, a.Former, len(r.Job.Former))
			}
		}
	}
	return nil
}

// Name gives the steps their names, and writes the keys of outputs that hold them. Where the details are elsewhere,
// the end of such a key comes with them.
func (s *Stored) Name(names []string) error {
	if len(names) != len(s.Job.Steps) {
		return damaged("%d names of %d steps", len(names), len(s.Job.Steps))
	}
	for i, name := range names {
		s.Job.Steps[i].Name = name
	}
	for _, p := range s.ownRefs {
		a := p.At(s.Job.Steps)
		a.Output.Ref = outputPrefix(s.Job.Steps[p.Step].Name, a.Attempt) + a.Output.Ref
	}
	return nil
}

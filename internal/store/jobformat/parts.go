package jobformat

import (
	"cmp"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// EncodeNames writes the names of steps as an item of its own keeps them.
func EncodeNames(steps []job.StepState) []byte {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name
	}
	c := codec{writing: true}
	c.namesItem(nil, &names)
	return c.out
}

// DecodeNames reads what EncodeNames wrote. store.ErrDamaged, store.ErrNewer.
func DecodeNames(data []byte) (names []string, err error) {
	_, err = readFormat(data)
	if err == nil {
		var c codec
		c.namesItem(data, &names)
		err = c.err
	}
	if err != nil {
		return nil, fmt.Errorf("decode names of steps: %w", err)
	}
	return names, nil
}

func (c *codec) namesItem(data []byte, names *[]string) {
	version, none := format, ""
	for m := c.enter(data); c.more(&m); c.kept(&m, &none) {
		c.int(formatNumber, &version)
		c.texts(2, names)
	}
}

// Details collects the details of activities for an item of their own.
type Details struct {
	codec
	created time.Time
	places  column
	rests   rests
	before  [][]byte
}

// NewDetails begins the details of a job. before are the hashes of other details, which the job does not name any more.
func NewDetails(j job.Job, before [][]byte) *Details {
	return &Details{codec: writer(j), created: j.CreatedAt, rests: rests{codec: writer(j)}, before: before}
}

// Add adds the details of an activity.
func (d *Details) Add(step string, p Place, a *job.Activity) {
	d.places.add(p.number())
	rest, _ := ownRef(step, a)
	kept, _ := splitKept(a.Kept)
	m := d.rests.open(inDetails)
	d.rests.putDetails(a, rest, kept)
	d.rests.close(m.start)
}

// Len is how many bytes were added.
func (d *Details) Len() int { return len(d.places.in) + len(d.rests.out) }

// Encode returns the item.
func (d *Details) Encode() []byte {
	d.fields(nil)
	return d.out
}

func (d *Details) fields(data []byte) {
	created, none := d.created, ""
	for m := d.enter(data); d.more(&m); d.kept(&m, &none) {
		d.front(&created)
		d.packed(3, &d.places)
		d.rests.field(&d.codec, inDetails)
		d.hashes(5, &d.before)
	}
}

// DecodeDetails returns the details of activities by their place, and the hashes of the details before them. Other
// fields of the activities are in the job's data; see Complete. store.ErrDamaged, store.ErrNewer.
func DecodeDetails(data []byte) (held map[Place]job.Activity, before [][]byte, err error) {
	created, err := readFront(data)
	if err != nil {
		return nil, nil, fmt.Errorf("decode details: %w", err)
	}
	d := Details{codec: codec{epoch: epochOf(created)}, created: created}
	d.fields(data)
	held = map[Place]job.Activity{}
	for _, rest := range d.rests.read {
		n := d.places.next()
		if n >= 2*limits.MaxSteps {
			return nil, nil, damaged("decode details: of step %d", n>>1)
		}
		var a job.Activity
		d.readActivity(&a, rest)
		held[Place{Step: int(n >> 1), Undo: n&1 == 1}] = a
	}
	if len(d.places.in) > 0 {
		d.fail("%d bytes of places too many", len(d.places.in))
	}
	if err := cmp.Or(d.err, d.places.err); err != nil {
		return nil, nil, fmt.Errorf("decode details: %w", err)
	}
	return held, d.before, nil
}

// Complete gives an activity its details. Its job has its names already.
func Complete(a *job.Activity, details job.Activity) {
	a.At, a.StartedAt, a.FinishedAt = details.At, details.StartedAt, details.FinishedAt
	a.Cause, a.Error, a.Silent = details.Cause, details.Error, details.Silent
	a.OpenedAt, a.LookAt, a.Closing = details.OpenedAt, details.LookAt, details.Closing
	a.Queued, a.QueuedOver = details.Queued, details.QueuedOver
	a.By, a.WentTo = details.By, details.WentTo
	a.Repeats, a.RepeatTries, a.RepeatSince = details.Repeats, details.RepeatTries, details.RepeatSince
	a.Redriven, a.Answered, a.Refused = details.Redriven, details.Answered, details.Refused
	a.Settled, a.LastStartedAt, a.FailingSince = details.Settled, details.LastStartedAt, details.FailingSince
	a.Kept = details.Kept + a.Kept
	if a.Output.Ref == "" {
		a.Output = details.Output
	} else {
		a.Output.Ref += details.Output.Ref
	}
}

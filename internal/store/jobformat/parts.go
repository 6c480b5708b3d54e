package jobformat

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"

	"google.golang.org/protobuf/encoding/protowire"
)

// EncodeNames writes the names of steps as an item of its own keeps them.
func EncodeNames(steps []job.StepState) []byte {
	var w writer
	w.uint(namesFormat, format)
	for _, s := range steps {
		w.message(namesNames, []byte(s.Name))
	}
	return w.out
}

// DecodeNames reads what EncodeNames wrote. store.ErrDamaged, store.ErrNewer.
func DecodeNames(data []byte) ([]string, error) {
	rest, err := readFormat(data)
	if err != nil {
		return nil, fmt.Errorf("decode names of steps: %w", err)
	}
	var names []string
	_, err = readFields(rest, func(f *field) bool {
		if f.num == namesNames {
			names = append(names, f.text())
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("decode names of steps: %w", err)
	}
	return names, nil
}

// Details collects the details of activities for an item of their own.
type Details struct {
	created            writer
	epoch              int64
	places, activities []byte
	inner              writer
}

// NewDetails begins the details of a job.
func NewDetails(j job.Job) *Details {
	d := &Details{epoch: epochOf(j.CreatedAt)}
	d.created.uint(detailsFormat, format)
	d.created.time(detailsCreatedAt, j.CreatedAt, 0)
	return d
}

// Add adds the details of an activity.
func (d *Details) Add(step string, p Place, a *job.Activity) {
	d.places = protowire.AppendVarint(d.places, p.number())
	rest, _ := ownRef(step, a)
	kept, _ := splitKept(a.Kept)
	d.inner.out = d.inner.out[:0]
	d.inner.details(a, rest, kept, d.epoch)
	d.activities = protowire.AppendTag(d.activities, detailsActivities, protowire.BytesType)
	d.activities = protowire.AppendBytes(d.activities, d.inner.out)
}

// Len is how many bytes were added.
func (d *Details) Len() int { return len(d.places) + len(d.activities) }

// Encode returns the item.
func (d *Details) Encode() []byte {
	w := d.created
	w.bytes(detailsPlaces, d.places)
	return append(w.out, d.activities...)
}

// DecodeDetails returns the details of activities by their place. Their other fields are in the job's data; see
// Complete. store.ErrDamaged, store.ErrNewer.
func DecodeDetails(data []byte) (map[Place]job.Activity, error) {
	created, err := readFront(data)
	if err != nil {
		return nil, fmt.Errorf("decode details: %w", err)
	}
	var places column
	var activities [][]byte
	_, err = readFields(data, func(f *field) bool {
		switch f.num {
		case detailsPlaces:
			places.in = append(places.in, f.bytes()...)
		case detailsActivities:
			activities = append(activities, f.bytes())
		}
		return true
	})
	all := map[Place]job.Activity{}
	for i := 0; err == nil && i < len(activities); i++ {
		n := places.next()
		if n >= 2*limits.MaxSteps {
			return nil, damaged("decode details: of step %d", n>>1)
		}
		var a job.Activity
		err = readActivity(&a, activities[i], epochOf(created))
		all[Place{Step: int(n >> 1), Undo: n&1 == 1}] = a
	}
	if err == nil {
		err = places.err
	}
	if err == nil && len(places.in) > 0 {
		err = damaged("%d bytes of places too many", len(places.in))
	}
	if err != nil {
		return nil, fmt.Errorf("decode details: %w", err)
	}
	return all, nil
}

// Complete gives an activity its details. Its job has its names already.
func Complete(a *job.Activity, details job.Activity) {
	a.At, a.StartedAt, a.FinishedAt = details.At, details.StartedAt, details.FinishedAt
	a.Cause, a.Error, a.Silent = details.Cause, details.Error, details.Silent
	a.OpenedAt, a.LookAt, a.Closing = details.OpenedAt, details.LookAt, details.Closing
	a.By, a.WentTo = details.By, details.WentTo
	a.Repeats, a.RepeatTries, a.RepeatSince = details.Repeats, details.RepeatTries, details.RepeatSince
	a.Settled, a.LastStartedAt, a.FailingSince = details.Settled, details.LastStartedAt, details.FailingSince
	a.Kept = details.Kept + a.Kept
	if a.Output.Ref == "" {
		a.Output = details.Output
	} else {
		a.Output.Ref += details.Output.Ref
	}
}

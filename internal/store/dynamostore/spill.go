package dynamostore

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
)

const (
	// unit is what one write unit of DynamoDB pays for, in bytes.
	unit = 1024
	// maxDetailBytes bounds what is put into one detail, well below the 400 KB of an item.
	maxDetailBytes = 128 << 10
	// inlineNames is how many bytes of names a job keeps for itself. More of them are kept once for all
	// jobs whose steps have the same names.
	inlineNames = 64

	detailPrefix = "detail#"
	shapePrefix  = "steps#"
	// keyLen is the length of the hash that names a detail or the names of steps.
	keyLen = 9
)

// keyOf names a body by its content, so that writing it twice is writing it once.
func keyOf(prefix string, body []byte) string {
	sum := sha256.Sum256(body)
	return prefix + base64.RawURLEncoding.EncodeToString(sum[:keyLen])
}

// keyBytes gives the hash in a key that keyOf gave.
func keyBytes(key string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(key[len(key)-base64.RawURLEncoding.EncodedLen(keyLen):])
	if err != nil {
		panic(fmt.Sprintf("dynamostore: %q is no key of ours: %v", key, err))
	}
	return raw
}

func (r *reader) key() string { return base64.RawURLEncoding.EncodeToString(r.take(keyLen)) }

// shape is the names of a job's steps, shared by all jobs of a definition.
type shape struct {
	key  string
	body []byte
}

// shapeOf gives the names of the steps to be kept apart; nil when the job may keep them itself.
func shapeOf(steps []makegood.StepState) *shape {
	w := &writer{out: []byte{packVersion}}
	w.uint(uint64(len(steps)))
	for _, s := range steps {
		w.bytes([]byte(s.Name))
	}
	if len(w.out) <= inlineNames {
		return nil
	}
	return &shape{key: keyOf(shapePrefix, w.out), body: w.out}
}

func unpackNames(body []byte) ([]string, error) {
	r := newReader(body)
	var names []string
	for range r.small(makegood.MaxSteps) {
		names = append(names, string(r.take(r.uint())))
	}
	if r.err != nil {
		return nil, fmt.Errorf("unpack names of steps: %w", r.err)
	}
	return names, nil
}

// over reports whether an activity is one whose details may spill: nothing is under way.
func over(a makegood.Activity) bool {
	switch a.State {
	case makegood.NotStarted, makegood.Dispatched, makegood.Backoff:
		return false
	}
	return true
}

// pack packs a job for an item that weighs beside bytes beside its data. stored are details that the
// job refers to already. As long as the item stays within one write unit, or the details of what is
// over would not make it cost another one, nothing spills.
func pack(job makegood.Job, stored []detail, beside int) packed {
	p := packed{names: shapeOf(job.Steps), details: alive(job, stored)}
	p.data = packData(job, p.names, p.details)
	whole := beside + len(p.data)
	if whole <= unit {
		return p
	}
	fresh := details(job, p.details)
	spilled := append(slices.Clone(p.details), fresh...)
	bare := packData(job, p.names, spilled)
	if units(whole) == units(beside+len(bare)) {
		return p
	}
	p.data, p.details = bare, spilled
	return p
}

func units(bytes int) int { return (bytes + unit - 1) / unit }

// alive gives the stored details that still describe something, each with what it describes.
func alive(job makegood.Job, stored []detail) []detail {
	var all []detail
	for _, d := range stored {
		holds := map[place]makegood.Activity{}
		for p, a := range d.holds {
			if p.step < len(job.Steps) && equal(*activityAt(job.Steps, p), a) {
				holds[p] = a
			}
		}
		if len(holds) > 0 {
			all = append(all, detail{key: d.key, holds: holds})
		}
	}
	return all
}

func equal(a, b makegood.Activity) bool { return reflect.DeepEqual(a, b) }

// details puts what is over, and in none of the stored details, into new ones.
func details(job makegood.Job, stored []detail) []detail {
	held := map[place]bool{}
	for _, d := range stored {
		for p := range d.holds {
			held[p] = true
		}
	}
	var all []detail
	next := newDetail(job)
	for i := range job.Steps {
		for _, p := range []place{{i, false}, {i, true}} {
			a := *activityAt(job.Steps, p)
			if held[p] || !over(a) {
				continue
			}
			next.add(job.Steps[i].Name, p, a)
			if len(next.w.out) >= maxDetailBytes {
				all, next = append(all, next.detail()), newDetail(job)
			}
		}
	}
	if len(next.holds) > 0 {
		all = append(all, next.detail())
	}
	return all
}

// detailWriter packs a detail: the epoch, and then place and details of each activity.
type detailWriter struct {
	w     *writer
	holds map[place]makegood.Activity
}

func newDetail(job makegood.Job) *detailWriter {
	w := &writer{out: []byte{packVersion}}
	w.time(time.UnixMilli(epochOf(job.CreatedAt)))
	w.epoch = epochOf(job.CreatedAt)
	return &detailWriter{w: w, holds: map[place]makegood.Activity{}}
}

func (d *detailWriter) add(step string, p place, a makegood.Activity) {
	at := uint64(p.step) << 1
	if p.undo {
		at |= 1
	}
	d.w.uint(at)
	d.w.detail(step, a)
	d.holds[p] = a
}

func (d *detailWriter) detail() detail {
	return detail{key: keyOf(detailPrefix, d.w.out), body: d.w.out, holds: d.holds}
}

// unpackDetail gives the details of activities by their place. Its callers know the rest of them.
func unpackDetail(body []byte) (map[place]makegood.Activity, error) {
	r := newReader(body)
	r.epoch = r.signed()
	all := map[place]makegood.Activity{}
	for r.err == nil && len(r.in) > 0 {
		at := r.small(2*makegood.MaxSteps - 1)
		var a makegood.Activity
		r.detail(&a)
		all[place{at >> 1, at&1 == 1}] = a
	}
	if r.err != nil {
		return nil, fmt.Errorf("unpack details: %w", r.err)
	}
	return all, nil
}

// fill gives the job the details that its data leaves out, from the bodies of their items, and says
// which item holds what. An activity is described by the last that holds it: the others are older.
func (u *unpacked) fill(bodies map[string][]byte) ([]detail, error) {
	last := map[place]int{}
	parts := make([]map[place]makegood.Activity, len(u.detailKeys))
	for i, key := range u.detailKeys {
		part, err := unpackDetail(bodies[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		parts[i] = part
		for p := range part {
			last[p] = i
		}
	}
	all := make([]detail, len(u.detailKeys))
	for i, key := range u.detailKeys {
		all[i] = detail{key: key, holds: map[place]makegood.Activity{}}
	}
	for _, p := range slices.SortedFunc(maps.Keys(u.detailed), comparePlaces) {
		i, found := last[p]
		if !found {
			return nil, fmt.Errorf("unpack job: no details of step %d", p.step)
		}
		a := activityAt(u.job.Steps, p)
		complete(a, parts[i][p])
		all[i].holds[p] = *a
	}
	return all, nil
}

// complete gives an activity its details.
func complete(a *makegood.Activity, d makegood.Activity) {
	a.At, a.StartedAt, a.FinishedAt = d.At, d.StartedAt, d.FinishedAt
	a.Cause, a.Error, a.Silent = d.Cause, d.Error, d.Silent
	a.OpenedAt, a.LookAt, a.Closing = d.OpenedAt, d.LookAt, d.Closing
	if a.Output.Ref == "" {
		a.Output = d.Output
	} else {
		a.Output.Ref += d.Output.Ref
	}
}

func comparePlaces(a, b place) int {
	if c := cmp.Compare(a.step, b.step); c != 0 || a.undo == b.undo {
		return c
	}
	if a.undo {
		return 1
	}
	return -1
}

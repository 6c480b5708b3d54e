package dynamostore

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

const (
	// unit is what one write unit of DynamoDB pays for, in bytes.
	unit = 1024
	// maxItem is how large DynamoDB lets an item be, and maxHot how large a save may make that of a job: Park adds to it.
	maxItem = 400 << 10
	maxHot  = maxItem - 4<<10
	// maxDetails is how many details a job names itself, as every release reads it. Then the next detail names these in
	// its place, and so does each one that finds maxChained from then on.
	maxDetails = 16
	maxChained = 4
	// manyUnderWay is how many activities must be under way before a detail is written for them. They leave it soon, so a
	// detail for a few of them costs more than it spares.
	manyUnderWay = 24
	// maxDetailBytes bounds the size of one detail, well below the 400 KB of an item.
	maxDetailBytes = 128 << 10
	// inlineNames is how many bytes of names a job keeps for itself. Longer names are kept once for all jobs that have the
	// same names of steps.
	inlineNames = 64

	detailPrefix = "detail#"
	shapePrefix  = "steps#"
	// keyLen is the length of the hash that names a detail or the names of steps.
	keyLen = 9
)

// packed is a job as its item holds it, in two parts: data is for every decision, details are for people that look at
// steps that are over. A small job has no details: all is in data.
//
// The attributes beside data are in neither: ID, Workflow, ProcessState, FailureCount, LockedBy, CompleteBy and Rev.
type packed struct {
	data    []byte
	details []detail
	// names are the names of the steps, if data refers to them by their hash.
	names *shape
	// needs is the level of the job, raised to that of its form.
	needs int
	// bytes is the weight of the item.
	bytes int
}

// detail is an item that holds the details of some activities. It is never changed.
type detail struct {
	key  string
	body []byte // nil: it is stored already
	// chained: it names other details before it.
	chained bool
	// holds is what the activities were when they were written, here or in a detail before it: one that has changed
	// since is not described by it any more.
	holds map[jobformat.Place]job.Activity
}

// shape is the names of a job's steps, shared by all jobs of a definition.
type shape struct {
	key  string
	body []byte
}

// keyOf names a body by its content, so that writing it twice is writing it once.
func keyOf(prefix string, body []byte) string {
	sum := sha256.Sum256(body)
	return prefix + hashText(sum[:keyLen])
}

// hashText is how a hash is written in a key.
func hashText(hash []byte) string { return base64.RawURLEncoding.EncodeToString(hash) }

// hashOf returns the hash in a key that keyOf gave.
func hashOf(key string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(key[len(key)-base64.RawURLEncoding.EncodedLen(keyLen):])
	if err != nil {
		panic(fmt.Sprintf("dynamostore: %q is no key of ours: %v", key, err))
	}
	return raw
}

// shapeOf returns the names of the steps to be kept apart; nil when the job may keep them itself.
func shapeOf(steps []job.StepState) *shape {
	body := jobformat.EncodeNames(steps)
	if len(body) <= inlineNames {
		return nil
	}
	return &shape{key: keyOf(shapePrefix, body), body: body}
}

// over reports whether an activity is one with details that may spill: it is not under way. Where the item would be too
// large, the others' do, too (begun).
func over(a job.Activity) bool {
	switch a.State {
	case job.NotStarted, job.Dispatched, job.Backoff:
		return false
	}
	return true
}

// begun reports whether anything is known of an activity.
func begun(a job.Activity) bool { return !equal(a, job.Activity{}) }

// packData packs a job. Activities that a detail holds are left out of data.
func packData(j job.Job, names *shape, details []detail) []byte {
	apart := jobformat.Apart{Held: held(details), Chained: isChained(details)}
	if names != nil {
		apart.Names = hashOf(names.key)
	}
	for _, d := range details {
		apart.Details = append(apart.Details, hashOf(d.key))
	}
	return jobformat.Encode(j, apart)
}

// held are the places of all activities that details hold.
func held(details []detail) map[jobformat.Place]bool {
	all := map[jobformat.Place]bool{}
	for _, d := range details {
		for p := range d.holds {
			all[p] = true
		}
	}
	return all
}

// pack packs a job for an item that weighs beside bytes beside its data. stored are details that the job refers to
// already. No details spill as long as the item stays within one write unit, or the details of steps that are over
// would not make it cost another one. So may the facts about those that are under way, where they are many.
func pack(j job.Job, stored []detail, beside int) packed {
	p := packedWith(j, alive(j, stored), beside)
	if p.bytes <= unit {
		return p
	}
	bare := packedWith(j, details(j, p.details, over), beside)
	switch {
	case bare.bytes > maxHot:
		bare = packedWith(j, details(j, bare.details, begun), beside)
	case bare.bytes > unit && crowd(j, held(p.details)):
		if all := packedWith(j, details(j, p.details, begun), beside); units(all.bytes) < units(bare.bytes) {
			bare = all
		}
	}
	if units(p.bytes) == units(bare.bytes) {
		return p
	}
	return bare
}

// crowd reports whether so many activities are under way, and not in a detail, that the saves until most of them have
// ended pay for one.
func crowd(j job.Job, known map[jobformat.Place]bool) bool {
	n := 0
	for i := range j.Steps {
		for _, p := range []jobformat.Place{{Step: i}, {Step: i, Undo: true}} {
			if a := p.At(j.Steps); !known[p] && a.State != job.NotStarted && !over(*a) {
				n++
			}
		}
	}
	return n > manyUnderWay
}

// packedWith packs a job with the details that it is to name. beside has the level of the job, if it needs one.
func packedWith(j job.Job, details []detail, beside int) packed {
	if isChained(details) {
		if j.Needs == 0 {
			beside += sizeOf(item{attrNeeds: number(job.LevelChained)})
		}
		j.Needs = max(j.Needs, job.LevelChained)
	}
	p := packed{names: shapeOf(j.Steps), details: details, needs: j.Needs}
	p.data = packData(j, p.names, details)
	p.bytes = beside + len(p.data)
	return p
}

func units(bytes int) int { return (bytes + unit - 1) / unit }

// alive returns the stored details that are still of use, each with the activity that it describes.
func alive(j job.Job, stored []detail) []detail {
	var all []detail
	for _, d := range stored {
		holds := map[jobformat.Place]job.Activity{}
		for p, a := range d.holds {
			if p.Step < len(j.Steps) && equal(*p.At(j.Steps), a) {
				holds[p] = a
			}
		}
		if len(holds) > 0 {
			all = append(all, detail{key: d.key, chained: d.chained, holds: holds})
		}
	}
	return all
}

func equal(a, b job.Activity) bool { return reflect.DeepEqual(a, b) }

// details puts activities such as these, as far as they are in none of the stored details, into new ones. It returns
// all that the job is to name: the stored ones and the new ones, or the new ones alone, where the first of them names
// the stored ones.
func details(j job.Job, stored []detail, which func(job.Activity) bool) []detail {
	known := held(stored)
	all, next := slices.Clone(stored), newDetail(j, nil)
	if crowded(stored) {
		all, next = nil, newDetail(j, stored)
	}
	added := false
	for i, s := range j.Steps {
		for _, p := range []jobformat.Place{{Step: i}, {Step: i, Undo: true}} {
			a := p.At(j.Steps)
			if known[p] || !which(*a) {
				continue
			}
			added = true
			next.body.Add(s.Name, p, a)
			next.holds[p] = *a
			if next.body.Len() >= maxDetailBytes {
				all, next = append(all, next.detail()), newDetail(j, nil)
			}
		}
	}
	switch {
	case !added:
		return stored
	case next.body.Len() > 0:
		all = append(all, next.detail())
	}
	return all
}

// crowded reports whether the next detail is to name those of a job in its place.
func crowded(stored []detail) bool {
	if isChained(stored) {
		return len(stored) >= maxChained
	}
	return len(stored) >= maxDetails
}

func isChained(details []detail) bool {
	return slices.ContainsFunc(details, func(d detail) bool { return d.chained })
}

// growing is a detail to which activities are added.
type growing struct {
	body    *jobformat.Details
	chained bool
	holds   map[jobformat.Place]job.Activity
}

// newDetail begins a detail that names those before it, and so holds what they hold.
func newDetail(j job.Job, before []detail) growing {
	g := growing{chained: len(before) > 0, holds: map[jobformat.Place]job.Activity{}}
	var hashes [][]byte
	for _, d := range before {
		hashes = append(hashes, hashOf(d.key))
		maps.Copy(g.holds, d.holds)
	}
	g.body = jobformat.NewDetails(j, hashes)
	return g
}

func (g growing) detail() detail {
	body := g.body.Encode()
	return detail{key: keyOf(detailPrefix, body), body: body, chained: g.chained, holds: g.holds}
}

// fill gives a job the details that its data leaves out, from the bodies of their items, and says which of those that
// the job names holds what. An activity is described by the last that holds it: the others are older.
func fill(stored *jobformat.Stored, bodies map[string][]byte) ([]detail, error) {
	c := chains{bodies: bodies, read: map[string]*linked{}}
	last := map[jobformat.Place]int{}
	all := make([]detail, len(stored.DetailsAt))
	parts := make([]*linked, len(all))
	for i, hash := range stored.DetailsAt {
		part, err := c.at(hash)
		if err != nil {
			return nil, err
		}
		all[i] = detail{key: detailPrefix + hashText(hash), chained: part.chained, holds: map[jobformat.Place]job.Activity{}}
		parts[i] = part
		for p := range part.holds {
			last[p] = i
		}
	}
	for _, p := range stored.Detailed {
		i, found := last[p]
		if !found {
			return nil, fmt.Errorf("%w: no details of step %d", store.ErrDamaged, p.Step)
		}
		a := p.At(stored.Job.Steps)
		jobformat.Complete(a, parts[i].holds[p])
		all[i].holds[p] = *a
	}
	return all, nil
}

// chains reads details together with those before them.
type chains struct {
	bodies map[string][]byte
	read   map[string]*linked // nil: it is being read
}

// linked is what a detail and those before it hold.
type linked struct {
	chained bool
	holds   map[jobformat.Place]job.Activity
}

// at reads the chain that ends with a detail. Each detail is read once, so no bytes make it long.
func (c *chains) at(hash []byte) (*linked, error) {
	key := detailPrefix + hashText(hash)
	if found, begun := c.read[key]; begun {
		if found == nil {
			return nil, fmt.Errorf("%s: %w: it comes before itself", key, store.ErrDamaged)
		}
		return found, nil
	}
	c.read[key] = nil
	own, before, err := jobformat.DecodeDetails(c.bodies[key])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	all := &linked{chained: len(before) > 0, holds: map[jobformat.Place]job.Activity{}}
	for _, hash := range before {
		earlier, err := c.at(hash)
		if err != nil {
			return nil, err
		}
		maps.Copy(all.holds, earlier.holds)
	}
	maps.Copy(all.holds, own)
	c.read[key] = all
	return all, nil
}

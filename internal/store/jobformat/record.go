package jobformat

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/job"
)

// record is a job as its bytes have it. Its steps have parts in several fields: pack makes them, an unpacker puts them
// together.
type record struct {
	codec

	namesAt            []byte
	detailsAt          [][]byte
	chained            bool
	summaries, numbers column
	// brief are changes as numbers; isBrief: there is no more to say of them.
	brief   column
	isBrief bool
	rests   rests
	// names, labels and steps are read before what they are of is there.
	names, labels []string
	steps         [][]byte
}

// rests are what summaries leave out of activities, as they are written, or as they were read.
type rests struct {
	codec
	read [][]byte
}

// fields writes the fields of a job, or reads them from data.
func (r *record) fields(data []byte, j *job.Job) {
	for m := r.enter(data); r.more(&m); r.kept(&m, &j.Kept) {
		r.head(j)
		r.tail(j)
		r.late(j)
	}
}

// front has the first two fields of a message that is stored by itself.
func (c *codec) front(created *time.Time) {
	version := format
	c.int(formatNumber, &version)
	c.time(createdNumber, created, 0)
}

// born has the front of a job. It was read before all that is counted from it.
func (r *record) born(created time.Time) {
	again := created
	if r.front(&again); !again.Equal(created) {
		r.fail("a job that was born at %v and at %v", created, again)
	}
}

func (r *record) stepNames(num protowire.Number, steps []job.StepState) {
	r.texts(num, &r.names)
	for i := 0; r.writing && r.namesAt == nil && i < len(steps); i++ {
		r.putText(num, steps[i].Name)
	}
}

// field has the activities within a message.
func (r *rests) field(c *codec, num protowire.Number) {
	for c.num == num {
		r.read = append(r.read, c.bytes())
	}
	c.out = append(c.out, r.out...)
}

func (c *codec) hashes(num protowire.Number, all *[][]byte) {
	for c.num == num {
		*all = append(*all, c.copied())
	}
	for i := 0; c.writing && i < len(*all); i++ {
		c.putBytes(num, (*all)[i])
	}
}

// keptOfSteps has the fields of steps that a later release knows. This release has only summaries of a step.
func (r *record) keptOfSteps(num protowire.Number, steps []job.StepState) {
	for r.num == num {
		r.steps = append(r.steps, r.bytes())
	}
	for i := 0; r.writing && i < len(steps); i++ {
		if steps[i].Kept != "" {
			index := i
			r.keptOfStep(r.open(num), &index, &steps[i].Kept)
		}
	}
}

func (c *codec) keptOfStep(m frame, index *int, kept *string) {
	for ; c.more(&m); c.kept(&m, kept) {
		c.int(1, index)
	}
}

// labelled has a name and its value, and so on, in the order of the names.
func (r *record) labelled(num protowire.Number, labels *map[string]string) {
	r.texts(num, &r.labels)
	if !r.writing || len(*labels) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(*labels)) {
		r.putText(num, name)
		r.putText(num, (*labels)[name])
	}
}

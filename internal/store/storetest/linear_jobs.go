package storetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// kind is the kind of a call of a store.
type kind string

const (
	creates kind = "create"
	loads   kind = "load"
	saves   kind = "save"
)

// asked is a call on a job.
type asked struct {
	kind kind
	by   string
	// seen is the revision that a save was decided on.
	seen int64
}

// said is the answer to a call on a job: a sentinel or nil, and what a load gave.
type said struct {
	err  error
	seen sight
}

// sight is all that matters here of a job. The zero value is no job.
type sight struct {
	rev int64
	// creator is the client that won Create, and saver the last one that saved.
	creator, saver string
}

// job is as much of a job as matters here: its creator is in Reason.
func (s sight) job() job.Job {
	return job.Job{Rev: s.rev, Reason: s.creator, LockedBy: s.saver}
}

func sightOf(j job.Job, err error) (sight, error) {
	return sight{rev: j.Rev, creator: j.Reason, saver: j.LockedBy}, err
}

func (s sight) step(input, output any) (bool, state) {
	a, want, next := input.(asked), said{}, s
	switch {
	case a.kind == creates:
		next, want.err = sightOf(store.Created(s.job(), job.Job{Reason: a.by}))
	case a.kind == saves:
		saved := job.Job{Rev: a.seen, Reason: s.creator, LockedBy: a.by}
		next, want.err = sightOf(store.Saved(s.job(), store.Change{Job: saved}))
	case s.rev == 0:
		want.err = store.ErrNotFound
	default:
		want.seen = s
	}
	return output == want, next
}

// jobClient creates, loads and saves a job.
type jobClient struct {
	*world
	job job.Job
	// last is the job as this client loaded it last.
	last job.Job
}

func (c *jobClient) next(d *rand.Rand, name string, number int) any {
	switch {
	case number == 0:
		return asked{kind: creates, by: name}
	case number == 1 || d.IntN(2) == 0:
		return asked{kind: loads, by: name}
	}
	// A nonce of its own, by which a store may know its own write again.
	return asked{kind: saves, by: fmt.Sprint(name, ":", number), seen: c.last.Rev}
}

func (c *jobClient) ask(input any) (any, error) {
	var got said
	var err error
	switch a := input.(asked); a.kind {
	case creates:
		j := c.job.Clone()
		j.Reason = a.by
		err = c.store.Create(c.ctx, j)
	case loads:
		var j job.Job
		if j, err = c.store.Load(c.ctx, c.job.ID); err == nil {
			c.last = j
			got.seen, _ = sightOf(j, nil)
		}
	default:
		j := c.last.Clone()
		j.ID, j.LockedBy = c.job.ID, a.by
		err = c.store.Save(c.ctx, store.Change{Job: j, Seen: j.CompleteBy})
	}
	got.err, err = sentinel(err)
	return got, err
}

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// edits is what a world knows of the maps that people edit.
type edits struct {
	// most is the highest concurrency that a map has had.
	most map[mapped]int
	// opened is the number of the edit that a job had when it opened the attempt of a child.
	opened map[string]int
	// taken counts the edits that parts have got: with their birth, and later.
	born, taken int
}

// rollEdits lets people edit the maps of a job at random moments, some of them twice.
func rollEdits(r *rand.Rand, at time.Duration, w *workflowfile.Compiled) (all []request) {
	for _, s := range w.Workflow.Steps {
		if s.Map == nil {
			continue
		}
		for range r.IntN(4) {
			e := job.MapEdit{Step: s.Name}
			if !oneIn(r, 3) {
				e.Concurrency = pick(r, 1, 2, 5, 50, 100, 150, 300)
			}
			if e.Concurrency == 0 || oneIn(r, 2) {
				e.Tolerate = &makegood.Tolerance{Items: pick(r, 0, 1, 3, 20)}
				if oneIn(r, 3) {
					e.Tolerate.Share, e.Tolerate.After = pick(r, 0.1, 0.5), 1+r.IntN(10)
				}
			}
			one := request{at: at + between(r, 0, pick(r, time.Second, 20*time.Second, 3*time.Minute)), verb: makegood.VerbEdit, edit: &e}
			if oneIn(r, 3) {
				one.again = one.at + between(r, 0, pick(r, 20*time.Millisecond, time.Minute))
			}
			all = append(all, one)
		}
	}
	return all
}

// editRules: the number of an edit only grows; a part is born with the edit that its parent had when it opened its
// attempt, or a later one; and no part has other figures than its parent has handed down with that number.
func (c change) editRules() {
	for n, def := range c.w.Steps {
		if def.Map == nil {
			continue
		}
		s := c.after.Steps[n]
		e := c.after.EditOf(s.Name)
		m := mapped{c.after.ID, s.Name}
		c.maps.edits.most[m] = max(c.maps.edits.most[m], def.Map.Concurrency, e.Concurrency)
		if was, _ := c.before.Step(s.Name); s.Attempt > was.Attempt {
			c.maps.edits.opened[domain.ChildID(c.after.ID, c.after.Birth, s.Name, s.Forward.Attempt)] = e.N
		}
		if e.N < c.before.EditOf(s.Name).N {
			c.wrong("MAP-9: edit %d of %s is followed by edit %d", c.before.EditOf(s.Name).N, s.Name, e.N)
		}
	}
	if c.w.Part == nil {
		return
	}
	had, e := c.before.EditOf(""), c.after.EditOf("")
	switch born := c.before.Rev == 0; {
	case born && c.isReal(c.after) && e.N < c.maps.edits.opened[c.after.ID]:
		c.wrong("MAP-10: is born with edit %d, and was to have edit %d", e.N, c.maps.edits.opened[c.after.ID])
	case e.N == had.N:
		return
	case born:
		c.maps.edits.born++
	default:
		c.maps.edits.taken++
	}
	is, _ := domain.ChildOf(c.after.ID)
	parent, _ := c.store.Stored(is.Parent)
	of := parent.EditOf(is.Step)
	if figures := machine.EditFor(c.definition(parent.Definition), &parent, is.Step); of.N == e.N && e.Concurrency != figures.Concurrency && e.Concurrency > of.Concurrency {
		c.wrong("MAP-11: has concurrency %d by edit %d, and its parent has %d", e.Concurrency, e.N, of.Concurrency)
	}
}

// tolerated is the tolerance of a part: as its definition says, or an edit over it.
func tolerated(j job.Job, p makegood.Part) makegood.Part {
	if t := j.EditOf("").Tolerate; t != nil {
		p.Tolerate = *t
	}
	return p
}

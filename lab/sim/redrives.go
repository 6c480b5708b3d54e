package sim

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// rollRedrives lets people ask at random moments that failed items are done again, some of them twice.
func rollRedrives(r *rand.Rand, at time.Duration) (all []request) {
	for range 1 + r.IntN(4) {
		one := request{at: at + between(r, 0, pick(r, 20*time.Second, 2*time.Minute, 8*time.Minute)), verb: makegood.VerbRedrive}
		if oneIn(r, 2) {
			one.again = one.at + between(r, 0, pick(r, 20*time.Millisecond, time.Minute))
		}
		if oneIn(r, 2) {
			one.some = 1 + r.IntN(3)
		}
		all = append(all, one)
	}
	return all
}

// someFailed names some of the failed items of a map of a job, if there are any.
func (w *world) someFailed(id string, some int) (step string, indexes job.Indexes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j, _ := w.store.Stored(id)
	for _, s := range j.Steps {
		if defOf(w.workflowOf(id), s.Name).Map == nil || s.Forward.State != job.Done {
			continue
		}
		var list []int
		for n, o := range w.failedItems(j, s) {
			if n%some == 0 {
				list = append(list, o.index)
			}
		}
		if len(list) > 0 {
			return s.Name, job.IndexesOf(list[:min(len(list), limits.MaxIndexes)])
		}
	}
	return "", ""
}

// firstOf is the place of the first item of a part in the list of its map. w.mu is held.
func (w *world) firstOf(part string) (from int) {
	for {
		is, _ := domain.ChildOf(part)
		parent, _ := w.store.Stored(is.Parent)
		ref, of := domain.MapRefOf(parent.Definition)
		if !of {
			return from
		}
		from += domain.PartSize(ref.Items) * slices.IndexFunc(parent.Steps, func(s job.StepState) bool { return s.Name == is.Step })
		part = is.Parent
	}
}

// failedItems are the items of the last attempt of a step that have failed.
func (w *world) failedItems(j job.Job, s job.StepState) (failed []owedItem) {
	w.parts(j, s.Name, s.Forward.Attempt, func(part job.Job, def makegood.Workflow) {
		for _, item := range part.Steps {
			if f := item.Forward; f.State == job.Skipped && f.Error != nil && part.Settled(f) == nil {
				failed = append(failed, owedItem{part.ID, item.Name, item.Attempt, w.firstOf(part.ID) + domain.FirstItem(item.Name) + w.firstOpen(part.ID, item)})
			}
		}
	})
	return failed
}

// firstOpen is the first item of a batch that is not done, counted from its first; zero of a step that is none.
func (w *world) firstOpen(part string, item job.StepState) (first int) {
	if item.Forward.Answered == 0 {
		return 0
	}
	output := item.Forward.Output.Inline
	if ref := item.Forward.Output.Ref; ref != "" {
		output, _ = w.store.Payload(context.Background(), part, ref) // memory never fails
	}
	var answers []makegood.Answer
	_ = json.Unmarshal(output, &answers) // answeredAll reads them, too.
	return max(0, slices.IndexFunc(answers, func(a makegood.Answer) bool { return a.Error != nil }))
}

// triedAgain: when a step is done that was redriven, each failed item was tried again, or its job or one
// between says why not.
func (c change) triedAgain(m mapped) {
	owed, spared := c.maps.owed[m], c.maps.spared[m]
	delete(c.maps.owed, m)
	delete(c.maps.spared, m)
	for _, o := range spared {
		part, _ := c.store.Stored(o.part)
		resubmitted := func(e job.Entry, _ string) bool { return e.Verb == makegood.VerbResubmit }
		if item, _ := part.Step(o.step); item.Attempt > o.attempt && !c.saysOf(o.part, resubmitted) {
			c.wrong("MAP-9: %s of %s was done again, which the redrive of %s does not name", o.step, o.part, m.step)
		}
		c.maps.left++
	}
	for _, o := range owed {
		part, _ := c.store.Stored(o.part)
		item, _ := part.Step(o.step)
		switch {
		case item.Attempt > o.attempt || part.Settled(item.Forward) != nil:
			c.maps.tried++
		case c.saysOf(o.part, func(e job.Entry, step string) bool { return e.Kind == makegood.EntryRefused && e.Step == step }):
			c.maps.refused++
		default:
			c.wrong("MAP-4: %s is done again, and %s of %s, which had failed by attempt %d, was not", m.step, o.step, o.part, o.attempt)
		}
	}
}

// saysOf reports whether a part, or a job above it, has an entry about the step that leads to the part.
func (c change) saysOf(part string, entry func(e job.Entry, step string) bool) bool {
	for id, step := part, ""; id != ""; {
		j, _ := c.store.Stored(id)
		if id == c.after.ID {
			j = c.after
		}
		pages, _ := c.store.HistoryPages(context.Background(), j.ID) // memory never fails
		entries, _ := j.History.Read(j.Birth, pages)
		for _, e := range entries {
			if entry(e.Entry, step) {
				return true
			}
		}
		is, _ := domain.ChildOf(id)
		id, step = is.Parent, is.Step
	}
	return false
}

// lastRedrive has failed items of all jobs done again, some or all, once all is well. It reports whether any were.
func (w *world) lastRedrive() (any bool) {
	for _, o := range w.load.jobs {
		w.mu.Lock()
		j, there := w.store.Stored(o.id)
		failed := 0
		for _, s := range j.Steps {
			if defOf(w.workflowOf(o.id), s.Name).Map != nil && s.Forward.State == job.Done {
				failed += len(w.failedItems(j, s))
			}
		}
		w.mu.Unlock()
		if !there || failed == 0 || j.ProcessState != makegood.JobProcessed {
			continue
		}
		any = true
		<-w.process("operator", func(l *life) {
			e := job.Requested{Verb: makegood.VerbRedrive, Request: "last", Reason: "sim"}
			if some := w.chance.of("last", o.id).IntN(4); some > 0 {
				e.Step, e.Indexes = w.someFailed(o.id, some)
			}
			w.request(w.scheduler(l, nil), l, o.id, e)
		})
	}
	return any
}

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// With Options.Maps some steps are done once for each item of a list. A map is a tree of children, so what holds for
// children holds here, and these rules see the whole of the tree.

// mapping is what a world knows of its maps.
type mapping struct {
	// under counts the items of a map that are under way, in all its parts.
	under map[mapped]int
	// owed are the items that were to be done again when the items of a step were last redriven, spared those that had
	// failed and were not named.
	owed, spared map[mapped][]owedItem
	// redriven counts the redrives that were granted, tried the items done again for them, refused the redrives of which a
	// job says why they were not made, and most the items of the largest map that ended.
	redriven, tried, refused, most int
	// left counts the failed items that a redrive did not name.
	left  int
	edits edits
}

// mapped names a map: its job and step.
type mapped struct{ job, step string }

// owedItem is an item that had failed by an attempt.
type owedItem struct {
	part, step string
	attempt    int
	// index is its place in the list, of a batch that of its first item that is not done.
	index int
}

// rollMap makes a workflow with a step, or two, that are done for each item of a list. child does some of the items.
func rollMap(r *rand.Rand, c, child *workflowfile.Compiled, items int) *workflowfile.Compiled {
	w := c.Workflow
	w.Name = "mapped"
	w.Steps = slices.Clone(w.Steps)
	first := r.IntN(len(w.Steps))
	for i, s := range w.Steps {
		if i != first && !oneIn(r, 5) {
			continue
		}
		least := pick(r, 3, 4, 6, 10, 20)
		if i == first && oneIn(r, 4) {
			least = pick(r, 40, 99, 101, 110, 125)
		}
		s.Shared = false
		if s.Undo != nil && s.Undo.With != nil { // The undo of an item gets the input of the item.
			undo := *s.Undo
			undo.With, s.Undo = nil, &undo
		}
		s.StartBy = max(s.StartBy, 30*makegood.Second)
		s.With = pick(r, nil, json.RawMessage(`{"item":"${ .item }","n":"${ .input.n }"}`))
		if items == 0 && least < 8 && oneIn(r, 3) {
			undo := s.Undo
			s = makegood.Step{Name: s.Name, Agent: makegood.AgentWorkflow, Action: child.Workflow.Name, Needs: s.Needs, When: s.When, With: json.RawMessage(`"${ .input }"`)}
			if undo == nil || undo.None {
				s.Undo = &makegood.Undo{None: true}
			}
		}
		s.Map = &makegood.Map{
			Over: fmt.Sprintf("${ [range(%d + (.input.n // 0))] }", least), Concurrency: 1 + r.IntN(max(least-1, 1)), Outputs: pick(r, "", makegood.OutputsManifest),
		}
		switch r.IntN(5) {
		case 0, 1:
			s.Map.Tolerate.Items = 1 + r.IntN(least)
		case 2, 3:
			s.Map.Tolerate = makegood.Tolerance{Share: pick(r, 0.1, 0.5, 0.8), After: 1 + r.IntN(least)}
		}
		if s.Agent != makegood.AgentWorkflow && s.Repeat == nil && oneIn(r, 3) {
			s.Map.Batch = pick(r, 2, 3, 10)
		}
		if items > 0 {
			s.When, s.Map.Over = "", fmt.Sprintf("${ [range(%d)] }", items)
			s.Map.Concurrency, s.Map.Tolerate = 1000, makegood.Tolerance{Items: items}
			w.Timeout, w.Expect = 0, 0
		}
		w.Steps[i] = s
		for n := range w.Steps { // The output of a map is a list, or says where they are.
			w.Steps[n] = readsAll(w.Steps[n], s.Name)
		}
	}
	m, err := workflowfile.FromWorkflow(w)
	if err != nil && strings.Contains(err.Error(), "onFailure") {
		w.OnFailure = makegood.OnFailure{} // No step has an undo any more.
		m, err = workflowfile.FromWorkflow(w)
	}
	if err != nil {
		panic(fmt.Sprintf("a workflow that was rolled is refused: %v", err))
	}
	return m
}

// largeMap is a job with a map of many items. People have its failed items done again and again while things go wrong.
func largeMap(w *workflowfile.Compiled, items int) order {
	o := order{id: "j0", workflow: w, input: json.RawMessage(`{"n":0}`)}
	every := faultsLast * time.Duration(max(1, items/1000)) / 16
	for n := range time.Duration(15) {
		o.requests = append(o.requests, request{at: (n + 1) * every, verb: makegood.VerbRedrive})
	}
	return o
}

// readsAll lets a step read the whole output of another, and not a field of it.
func readsAll(s makegood.Step, of string) makegood.Step {
	whole := func(with json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(with), ".steps."+of+".output.a", ".steps."+of+".output"))
	}
	if s.With != nil {
		s.With = whole(s.With)
	}
	if s.Undo != nil && s.Undo.With != nil {
		undo := *s.Undo
		undo.With, s.Undo = whole(undo.With), &undo
	}
	return s
}

// definition is a definition that jobs may have: one that was published, or that of a part of a map. w.mu is held.
func (w *world) definition(reference string) makegood.Workflow {
	if d, known := w.definitions[reference]; known || reference == "" {
		return d
	}
	stored := func(hash string) ([]byte, error) { return w.store.Definition(context.Background(), hash) }
	c, err := workflowfile.LoadBy(reference, stored, workflowfile.Load)
	if err != nil {
		w.violate("", "the definition %s cannot be read: %v", reference, err)
		return makegood.Workflow{}
	}
	w.definitions[reference] = c.Workflow
	return c.Workflow
}

// mapOf is the map that a part does items of, and the step that has it. w.mu is held.
func (w *world) mapOf(part string) (mapped, makegood.Step) {
	for {
		is, _ := domain.ChildOf(part)
		parent, _ := w.store.Stored(is.Parent)
		if _, of := domain.MapRefOf(parent.Definition); !of {
			return mapped{is.Parent, is.Step}, defOf(w.definition(parent.Definition), is.Step)
		}
		part = is.Parent
	}
}

// parts calls visit with the jobs that have the items of an attempt of a step as their steps. w.mu is held.
func (w *world) parts(j job.Job, step string, attempt int, visit func(part job.Job, def makegood.Workflow)) {
	child, there := w.store.Stored(domain.ChildID(j.ID, j.Birth, step, attempt))
	def := w.definition(child.Definition)
	if !there || def.Part == nil {
		return // It is yet to begin, or never does.
	}
	if domain.PartSize(def.Part.Items) == 1 {
		visit(child, def)
		return
	}
	for _, s := range child.Steps {
		for n := 1; n <= s.Attempt; n++ {
			w.parts(child, s.Name, n, visit)
		}
	}
}

// underWay is how many items of a job are under way.
func underWay(j job.Job) (n int) {
	for _, s := range j.Steps {
		for _, a := range directions(s) {
			switch a.State {
			case job.Dispatched, job.Backoff, job.Waiting:
				n++
			}
		}
	}
	return n
}

// mapRules are those of jobs with maps, and of their parts.
func (c change) mapRules() {
	if c.maps == nil {
		return
	}
	c.rootGoesOn()
	c.editRules()
	if p := c.w.Part; p != nil {
		if domain.PartSize(p.Items) == 1 {
			c.concurrency()
		}
		c.tolerance("it", tolerated(c.after, *p), p.Items, machine.FailedItems(c.w, c.after))
		return
	}
	for n, def := range c.w.Steps {
		if def.Map != nil {
			c.mapStep(c.after.Steps[n], def)
		}
	}
}

// rootGoesOn: no job goes on when one above it has ended.
func (c change) rootGoesOn() {
	for is, child := domain.ChildOf(c.after.ID); child; is, child = domain.ChildOf(is.Parent) {
		if above, _ := c.store.Stored(is.Parent); c.goesOn(c.after) && above.ProcessState.Finished() {
			c.wrong("MAP-1: is %s, and %s above it is %s", c.after.ProcessState, above.ID, above.ProcessState)
		}
	}
}

// concurrency: all parts together have at most so many items under way.
func (c change) concurrency() {
	more := underWay(c.after)
	if c.before.Rev > 0 {
		more -= underWay(c.before)
	}
	m, def := c.mapOf(c.after.ID)
	c.maps.under[m] += more
	if def.Map == nil || more <= 0 {
		return
	}
	if n, may := c.maps.under[m], max(1, c.maps.edits.most[m]/max(1, def.Map.Batch)); n > may {
		c.wrong("MAP-2: %d items or batches of %s of %s are under way, and %d may", n, m.step, m.job, may)
	}
}

// answeredAll: a batch that is done has an answer for each item, once, and each is done.
func (c change) answeredAll(s job.StepState, output json.RawMessage) {
	var answers []makegood.Answer
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) == 0 {
		c.wrong("MAP-8: the batch %s is done with the output %s", s.Name, output)
	}
	for i, a := range answers {
		if a.Item != i || a.Error != nil || len(a.Output) == 0 {
			c.wrong("MAP-8: the batch %s is done with the output %s", s.Name, output)
			return
		}
	}
}

// tolerance: a job that is Processed has at most so many failed items.
func (c change) tolerance(what string, p makegood.Part, items, failed int) {
	t := p.Tolerate
	switch {
	case c.after.ProcessState != makegood.JobProcessed || c.before.ProcessState == makegood.JobProcessed:
	case t.Items > 0 && failed > t.Items, t == (makegood.Tolerance{}) && failed > 0:
		c.wrong("MAP-3: is Processed, and %d items of %s have failed, and %d may", failed, what, t.Items)
	case t.Share > 0 && items >= t.After && failed > int(t.Share*float64(items)):
		c.wrong("MAP-3: is Processed, and %d of %d items of %s have failed, and a share of %v may", failed, items, what, t.Share)
	}
}

// mapStep: the items of a step of a user's job.
func (c change) mapStep(s job.StepState, def makegood.Step) {
	was, _ := c.before.Step(s.Name)
	m := mapped{c.after.ID, s.Name}
	f := s.Forward
	same := was.Forward.Attempt == f.Attempt
	switch {
	case same && f.Repeats > was.Forward.Repeats:
		c.maps.redriven++
		owed := c.failedItems(c.after, s)
		named := f.Redriven.List()
		c.maps.owed[m], c.maps.spared[m] = nil, nil
		for _, o := range owed {
			if len(named) == 0 || slices.Contains(named, o.index) {
				c.maps.owed[m] = append(c.maps.owed[m], o)
			} else {
				c.maps.spared[m] = append(c.maps.spared[m], o)
			}
		}
		if len(c.maps.owed[m]) == 0 {
			c.wrong("MAP-4: %s is redriven, and no item of it has failed", s.Name)
		}
	case !same:
		delete(c.maps.owed, m)
		delete(c.maps.spared, m)
	}
	if f.State == job.Done && was.Forward.State == job.Dispatched && same && c.after.Desired == makegood.JobProcessed {
		c.triedAgain(m)
	}
	if c.after.ProcessState == c.before.ProcessState || c.after.Settled(f) != nil {
		return
	}
	switch c.after.ProcessState {
	case makegood.JobProcessed:
		c.itemsStand(s, def)
	case makegood.JobUndone, makegood.JobCancelled:
		c.nothingStands(s)
	}
}

// itemsStand: of a step that is done each item has one effect, but for those that have failed, which are not too many.
func (c change) itemsStand(s job.StepState, def makegood.Step) {
	if s.Forward.State != job.Done {
		return
	}
	items, failed, byHand := 0, 0, false
	for n := 1; n <= s.Forward.Attempt; n++ {
		stand := map[int]string{}
		c.parts(c.after, s.Name, n, func(part job.Job, of makegood.Workflow) {
			byHand = byHand || c.repairs
			if n == s.Forward.Attempt {
				items += of.Part.Items
				failed += machine.FailedItems(of, part)
			}
			if def.Map.Item.Agent == makegood.AgentWorkflow || n < s.Forward.Attempt && !domain.CanUndo(def) {
				return
			}
			for _, a := range c.accounts[part.ID] {
				item, known := itemIn(a.input)
				if !a.stands() || !known {
					continue
				}
				if other, twice := stand[item]; twice {
					c.wrong("MAP-5: is Processed, and item %d of %s was done as %s and as %s: %s", item, s.Name, other, a.key, a.input)
				}
				stand[item] = a.key
				if n < s.Forward.Attempt {
					c.wrong("MAP-5: is Processed by attempt %d of %s, and %s of attempt %d stands", s.Forward.Attempt, s.Name, a.key, n)
				}
			}
		})
		if n == s.Forward.Attempt && def.Map.Item.Agent != makegood.AgentWorkflow && !byHand && len(stand) < items-failed {
			c.wrong("MAP-5: is Processed, %d of %d items of %s have failed, and %d stand", failed, items, s.Name, len(stand))
		}
	}
	c.maps.most = max(c.maps.most, items)
	whole, _ := c.store.Stored(domain.ChildID(c.after.ID, c.after.Birth, s.Name, s.Forward.Attempt))
	c.tolerance(s.Name, tolerated(whole, makegood.Part{Tolerate: def.Map.Tolerate}), items, failed)
}

// nothingStands: of a job that was undone no item stands, but for those whose parts say that they cannot be undone.
func (c change) nothingStands(s job.StepState) {
	for n := 1; n <= s.Attempt; n++ {
		c.parts(c.after, s.Name, n, func(part job.Job, def makegood.Workflow) {
			for _, a := range c.accounts[part.ID] {
				item, _ := part.Step(a.step)
				if a.stands() && !named(item, defOf(def, a.step)) && domain.CanUndo(defOf(def, a.step)) {
					c.wrong("MAP-6: is %s, and %s of %s stands", c.after.ProcessState, a.key, s.Name)
				}
			}
		})
	}
}

// itemIn is the item that a task had as its input, or in it.
func itemIn(input string) (item int, ok bool) {
	if json.Unmarshal([]byte(input), &item) == nil {
		return item, true
	}
	var of struct{ Item *int }
	if json.Unmarshal([]byte(input), &of) != nil || of.Item == nil {
		return 0, false
	}
	return *of.Item, true
}

// oneEffect: a key of a part is of one item and does one thing. w.mu is held.
func (w *world) oneEffect(id string, a *account) {
	if w.maps == nil || w.workflowOf(id).Part == nil {
		return
	}
	for _, other := range w.accounts[id] {
		if other != a && other.key == a.key {
			w.violate(id, "MAP-7: the key %s is used for %+v and for %+v", a.key, other.body, a.body)
		}
	}
}

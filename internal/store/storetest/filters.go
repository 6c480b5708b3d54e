package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// filterRules hold what each field of a filter means, alone and beside others.
func filterRules() []rule {
	return []rule{
		{"a filter finds the jobs that its doc says, alone and beside every other", listFound},
		{"a list shows what filters look at", listShowsMore},
		{"no job comes twice and none is missed while others are added, end and are deleted", listStands},
		{"a cursor of another list is refused", listOfAnother},
		{"a job in Error stands at the step that failed first, with its agent and the kind of its error", listStopped},
		{"the part of a map stands with the agents of its items", listParts},
	}
}

// findable are jobs that differ in all that a filter can say, of two workflows with a definition each.
func (w *world) findable() []job.Job {
	w.definitions()
	var jobs []job.Job
	for i, state := range []makegood.ProcessState{
		makegood.JobPending, makegood.JobProcessing, makegood.JobError, makegood.JobUndoing, makegood.JobProcessed, makegood.JobCancelled, makegood.JobError, makegood.JobProcessing,
		makegood.JobProcessing, makegood.JobProcessing, makegood.JobUndoing, makegood.JobPending, makegood.JobProcessing,
	} {
		id := fmt.Sprintf("find-%02d-%s", i, state)
		if i == 12 {
			id = "find-1~reserve~1~0a1b2c3d" // The id of a child begins with that of its parent.
		}
		j := w.listable(id)
		j.ProcessState = state
		j.CreatedAt = w.at(time.Duration(i) * time.Minute)
		j.CompleteBy, j.Deadline = w.at(time.Duration(10*i)*time.Minute), w.at(time.Duration(20*i+5)*time.Minute)
		if i%2 == 1 {
			j.Workflow, j.Definition = w.id("other"), w.id("definition-other")
		} else {
			j.Definition = w.id("definition")
		}
		if i%3 == 0 {
			j.Tenant = w.id("acme")
		}
		if i%2 == 0 {
			j.Labels = map[string]string{"region": w.id("eu"), "tier": fmt.Sprint(i % 4)}
		}
		w.moved(&j, i)
		w.expects(&j, i)
		w.create(j)
		jobs = append(jobs, w.load(j.ID))
	}
	return jobs
}

// expects has some jobs of findable be expected: operators were told of all but one, which has the key of the telling.
func (w *world) expects(j *job.Job, i int) {
	switch i {
	case 8:
		j.ExpectBy = w.at(30 * time.Minute)
	case 9:
		j.ExpectBy, j.WarnAt, j.CompleteBy = w.at(5*time.Minute), w.at(4*time.Minute), w.at(4*time.Minute)
	case 10:
		j.ExpectBy, j.AnotherRound = w.at(2*time.Minute), true
	case 11:
		j.ExpectBy, j.PausedAt = w.at(2*time.Minute), w.at(time.Second)
	case 12:
		j.ExpectBy, j.CompleteBy = w.at(2*time.Minute), w.at(time.Minute)
	}
}

// moved brings a job of findable to where its state has it.
func (w *world) moved(j *job.Job, i int) {
	j.Steps[0].Forward = job.Activity{State: job.Done, Attempt: 1, Tries: 1, At: w.base, StartedAt: w.base, FinishedAt: w.base}
	switch j.ProcessState {
	case makegood.JobPending, makegood.JobProcessing:
		j.Steps[i%3].Attempt = 1
		j.Steps[i%3].Forward = job.Activity{State: job.Waiting, Attempt: 1, Tries: 1, At: w.base, Cause: "submit"}
		if i == 7 {
			j.PausedAt = w.at(time.Second)
		}
	case makegood.JobError:
		j.Reason = fmt.Sprintf("step charge failed: declined %d", i)
		j.Steps[1].Attempt = 2
		j.Steps[1].Forward = job.Activity{
			State: job.Failed, Attempt: 2, Tries: 2, FailureCount: 2, At: w.base, StartedAt: w.base, FinishedAt: w.at(time.Second),
			Error: &job.StepError{Message: "declined", Kind: []string{"declined", "timeout"}[i%4/2], Applied: makegood.AppliedNo},
		}
	case makegood.JobUndoing:
		j.Desired, j.Reason = makegood.JobUndone, "undone on request"
		j.Steps[0].Attempt = 2
		j.Steps[0].Undo = job.Activity{State: job.Dispatched, Attempt: 2, Tries: 1, At: w.base, Cause: "undo"}
	default:
		j.CompleteBy, j.FinishedAt = time.Time{}, w.at(time.Hour)
		j.Desired = j.ProcessState
		if j.ProcessState == makegood.JobCancelled {
			j.Reason, j.FirstReason = "cancelled on request", "step charge failed: due"
		}
	}
}

// definitions stores those of findable's workflows: the step charge is with another agent in each.
func (w *world) definitions() {
	w.Helper()
	for hash, charges := range map[string]string{w.id("definition"): "payments", w.id("definition-other"): "bank"} {
		definition, err := json.Marshal(makegood.Workflow{Name: "order", Steps: []makegood.Step{
			{Name: "reserve", Agent: "shop", Undo: &makegood.Undo{Agent: "returns"}}, {Name: "charge", Agent: charges}, {Name: "notify", Agent: "mail"},
		}})
		w.want("write a definition", err, nil)
		w.want("put a definition", w.store.PutDefinition(w.ctx, w.id("order"), hash, definition), nil)
	}
}

// fields are filters of one field each, by the name of the field, with the jobs of findable that each finds.
func (w *world) fields() map[string]struct {
	set   func(f *store.Filter)
	finds func(j job.Job) bool
} {
	now := w.at(35 * time.Minute)
	forward := func(j job.Job) bool {
		return !j.Paused() && (j.ProcessState == makegood.JobPending || j.ProcessState == makegood.JobProcessing)
	}
	expected := func(j job.Job, by time.Time) bool {
		return !j.ExpectBy.IsZero() && !j.ExpectBy.After(by) && (forward(j) || j.AnotherRound)
	}
	open := func(j job.Job, step int) bool {
		return j.Steps[step].Forward.State == job.Waiting || j.Steps[step].Undo.State == job.Dispatched || j.Steps[step].Forward.State == job.Failed
	}
	type field = struct {
		set   func(f *store.Filter)
		finds func(j job.Job) bool
	}
	return map[string]field{
		"State":      {func(f *store.Filter) { f.State = makegood.JobError }, func(j job.Job) bool { return j.ProcessState == makegood.JobError }},
		"State done": {func(f *store.Filter) { f.State = makegood.JobCancelled }, func(j job.Job) bool { return j.ProcessState == makegood.JobCancelled }},
		"Workflow":   {func(f *store.Filter) { f.Workflow = w.id("flow") }, func(j job.Job) bool { return j.Workflow == w.id("flow") }},
		"Definition": {func(f *store.Filter) { f.Definition = w.id("definition") }, func(j job.Job) bool { return j.Definition == w.id("definition") }},
		"Paused":     {func(f *store.Filter) { f.Paused = true }, job.Job.Paused},
		"Tenant":     {func(f *store.Filter) { f.Tenant = w.id("acme") }, func(j job.Job) bool { return j.Tenant == w.id("acme") }},
		"Labels":     {func(f *store.Filter) { f.Labels = map[string]string{"region": w.id("eu")} }, func(j job.Job) bool { return j.Labels["region"] != "" }},
		"two Labels": {
			func(f *store.Filter) { f.Labels = map[string]string{"region": w.id("eu"), "tier": "2"} },
			func(j job.Job) bool { return j.Labels["tier"] == "2" },
		},
		"Step":         {func(f *store.Filter) { f.Step = "charge" }, func(j job.Job) bool { return open(j, 1) }},
		"Step of undo": {func(f *store.Filter) { f.Step = "reserve" }, func(j job.Job) bool { return open(j, 0) }},
		"Agent": {func(f *store.Filter) { f.Agent = "payments" }, func(j job.Job) bool {
			return j.Workflow == w.id("flow") && open(j, 1)
		}},
		"Agent of undo": {func(f *store.Filter) { f.Agent = "returns" }, func(j job.Job) bool { return j.Steps[0].Undo.State == job.Dispatched }},
		"ReasonPrefix": {func(f *store.Filter) { f.ReasonPrefix = "step charge failed: d" }, func(j job.Job) bool {
			return j.ProcessState == makegood.JobError || j.ProcessState == makegood.JobCancelled // which has another since
		}},
		"ReasonKind": {func(f *store.Filter) { f.ReasonKind = "timeout" }, func(j job.Job) bool {
			return j.ProcessState == makegood.JobError && j.Steps[1].Forward.Error.Kind == "timeout"
		}},
		"IDPrefix": {func(f *store.Filter) { f.IDPrefix = w.id("find-1") }, func(j job.Job) bool { return strings.HasPrefix(j.ID, w.id("find-1")) }},
		"Roots":    {func(f *store.Filter) { f.Roots = true }, func(j job.Job) bool { return !strings.Contains(j.ID, "~") }},
		"Words": {func(f *store.Filter) { f.Words = "FAILED: d charge" }, func(j job.Job) bool {
			return strings.HasPrefix(j.Reason, "step charge failed: d") || strings.HasPrefix(j.FirstReason, "step charge failed: d")
		}},
		"Since": {func(f *store.Filter) { f.Since = w.at(3 * time.Minute) }, func(j job.Job) bool { return !j.CreatedAt.Before(w.at(3 * time.Minute)) }},
		"Until": {func(f *store.Filter) { f.Until = w.at(3 * time.Minute) }, func(j job.Job) bool { return j.CreatedAt.Before(w.at(3 * time.Minute)) }},
		"Late": {func(f *store.Filter) { f.Late, f.Now = true, now }, func(j job.Job) bool {
			return !j.CompleteBy.IsZero() && !j.CompleteBy.After(now.Add(-limits.LateGrace)) || forward(j) && !j.Deadline.After(now) || expected(j, now)
		}},
		"LateWithin": {func(f *store.Filter) { f.LateWithin, f.Now = time.Minute, w.at(4*time.Minute) }, func(j job.Job) bool {
			return forward(j) && !j.Deadline.After(w.at(5*time.Minute)) || expected(j, w.at(5*time.Minute))
		}},
		"DueWithin": {func(f *store.Filter) { f.DueWithin, f.Now = 25*time.Minute, now }, func(j job.Job) bool {
			return !j.CompleteBy.IsZero() && !j.CompleteBy.After(w.at(time.Hour))
		}},
	}
}

func listFound(w *world) {
	jobs, fields := w.findable(), w.fields()
	names := slices.Sorted(maps.Keys(fields))
	for i, first := range names {
		for _, second := range names[i:] {
			// The workflows are this test's own, so that a store that others use has few jobs to pass.
			var f store.Filter
			fields[first].set(&f)
			fields[second].set(&f)
			if f.Now.IsZero() {
				f.Now = w.at(35 * time.Minute)
			}
			if clash(first, second) {
				continue
			}
			var want []string
			for _, j := range jobs {
				if fields[first].finds(j) && fields[second].finds(j) {
					want = append(want, j.ID)
				}
			}
			w.eventually(fmt.Sprintf("jobs found by %s and %s", first, second), func() (got, wanted any) {
				return w.listedIDs(f), want
			})
		}
	}
}

// clash reports whether two of the filters set one field to two values, or count from two moments.
func clash(first, second string) bool {
	if first == second {
		return false
	}
	for _, of := range [][]string{
		{"State", "State done"}, {"Labels", "two Labels"}, {"Step", "Step of undo"}, {"Agent", "Agent of undo"}, {"Late", "LateWithin", "DueWithin"},
	} {
		if slices.Contains(of, first) && slices.Contains(of, second) {
			return true
		}
	}
	return false
}

func listShowsMore(w *world) {
	w.definitions()
	j := w.listable("a")
	j.Definition, j.Tenant, j.Labels = w.id("definition"), w.id("acme"), map[string]string{"b": "2", "a": "x=1, y"}
	j.Reason, j.PausedAt, j.Deadline = "waits", w.at(time.Second), w.at(time.Hour)
	w.create(j)
	want := []store.Listed{store.ListedOf(w.load(j.ID))}
	want[0].Agents = []string{"shop"}
	w.same("what is loaded", []any{want[0].Tenant, want[0].Labels, want[0].Stands, want[0].Paused},
		[]any{j.Tenant, j.Labels, []store.Standing{{Step: "reserve"}}, true})
	want[0].Job = job.Job{}
	w.eventually("the job in the list", func() (got, wanted any) {
		return w.list(store.Filter{Workflow: j.Workflow}, 10), want
	})
	w.eventually("the job itself in the list", func() (got, wanted any) {
		page, err := w.store.(store.Lister).ListJobs(w.ctx, store.Filter{Workflow: j.Workflow}, "", 10)
		w.want("list", err, nil)
		if len(page.Jobs) == 0 {
			return nil, j.Steps
		}
		return page.Jobs[0].Job.Steps, j.Steps
	})
}

// A page ends, then everything around it changes; the next page goes on where it ended.
func listStands(w *world) {
	for name, set := range map[string]func(f *store.Filter){
		"a workflow": func(*store.Filter) {}, "Error": func(f *store.Filter) { f.State = makegood.JobError },
		"a tenant": func(f *store.Filter) { f.Tenant = w.id("acme") },
		"a label":  func(f *store.Filter) { f.Labels = map[string]string{"region": w.id("eu")} },
		"a time":   func(f *store.Filter) { f.Since, f.Until = w.at(0), w.at(time.Minute) },
	} {
		for limit := range 3 {
			w.listStands(fmt.Sprint(name, "-", limit), set, limit+1)
		}
	}
}

func (w *world) listStands(name string, set func(f *store.Filter), limit int) {
	f := store.Filter{Workflow: w.id("flow-" + name)}
	set(&f)
	make := func(id string) job.Job {
		j := w.listable(name + "-" + id)
		j.Workflow, j.ProcessState, j.Tenant, j.Labels = f.Workflow, makegood.JobError, w.id("acme"), map[string]string{"region": w.id("eu")}
		return w.create(j)
	}
	stays, goes := map[string]bool{}, []job.Job{}
	for i := range 4 {
		stays[make(fmt.Sprint("m", i)).ID] = true
		goes = append(goes, make(fmt.Sprint("n", i)))
	}
	w.eventually(name+": all jobs", func() (got, wanted any) { return len(w.listedIDs(f)), 8 })
	seen := map[string]int{}
	for cursor, page := "", 0; ; page++ {
		read, err := w.store.(store.Lister).ListJobs(w.ctx, f, cursor, limit)
		w.want("list", err, nil)
		for _, l := range read.Jobs {
			seen[l.ID]++
		}
		if cursor = read.Cursor; cursor == "" {
			break
		}
		if page < len(goes) {
			w.ends(goes[page])
			make(fmt.Sprint("l", page))
			make(fmt.Sprint("z", page))
		}
	}
	for id, times := range seen {
		if times > 1 {
			w.Errorf("%s: %s came %d times", name, id, times)
		}
	}
	for id := range stays {
		if seen[id] == 0 {
			w.Errorf("%s: %s was missed", name, id)
		}
	}
}

// ends brings a job to its end, and deletes it where the harness can.
func (w *world) ends(j job.Job) {
	w.Helper()
	seen := j.CompleteBy
	j.ProcessState, j.FinishedAt, j.CompleteBy = makegood.JobCancelled, w.at(time.Hour), time.Time{}
	w.want("end", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
	if w.harness.Delete != nil {
		w.harness.Delete(j.ID)
	}
}

func listOfAnother(w *world) {
	for i := range 3 {
		w.create(w.listable(fmt.Sprint("a", i)))
	}
	f := store.Filter{Workflow: w.id("flow")}
	lister := w.store.(store.Lister)
	var page store.Page
	w.eventually("a first page that is not the last", func() (got, wanted any) {
		var err error
		for page = (store.Page{}); ; {
			page, err = lister.ListJobs(w.ctx, f, page.Cursor, 1)
			w.want("list", err, nil)
			if len(page.Jobs) > 0 || page.Cursor == "" {
				return page.Cursor != "", true
			}
		}
	})
	for name, set := range w.fields() {
		other := f
		set.set(&other)
		other.Workflow = w.id("other")
		if _, err := lister.ListJobs(w.ctx, other, page.Cursor, 1); name != "" {
			w.want("a cursor of another list, beside "+name, err, store.ErrNotFound)
		}
	}
	for _, cursor := range []string{"x", "====", "AAAA", "AAAAAAAAAAA", page.Cursor + "A", page.Cursor[1:]} {
		if _, err := lister.ListJobs(w.ctx, store.Filter{Workflow: w.id("none")}, cursor, 1); err == nil {
			w.Errorf("the cursor %q is taken for one of a list that gave none", cursor)
		}
	}
	_, err := lister.ListJobs(w.ctx, store.Filter{Workflow: w.id("flow"), Now: w.at(time.Hour)}, page.Cursor, 1)
	w.want("the next page, later", err, nil)
}

func listStopped(w *world) {
	w.definitions()
	j := w.listable("a")
	j.Definition, j.ProcessState, j.Desired = w.id("definition"), makegood.JobError, makegood.JobUndone
	for i, finished := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
		j.Steps[i].Attempt = 2
		j.Steps[i].Forward = job.Activity{State: job.Done, Attempt: 1, Tries: 1, At: w.base, StartedAt: w.base, FinishedAt: w.base}
		j.Steps[i].Undo = job.Activity{
			State: job.Failed, Attempt: 2, Tries: 1, FailureCount: 1, At: w.base, StartedAt: w.base, FinishedAt: w.at(finished),
			Error: &job.StepError{Message: "no", Kind: fmt.Sprint("kind_", i)},
		}
	}
	w.create(j)
	w.eventually("where it stands", func() (got, wanted any) {
		var found []any
		for _, l := range w.list(store.Filter{Workflow: j.Workflow, State: makegood.JobError}, 10) {
			found = append(found, l.Stands, l.Kind, l.StoppedAt)
		}
		return found, []any{[]store.Standing{{Step: "charge", Undo: true}}, "kind_1", w.at(time.Second)}
	})
}

// The definition of a part is not stored: its agents are those of the step that has the map.
func listParts(w *world) {
	hash := w.id("definition-mapped")
	definition, err := json.Marshal(makegood.Workflow{Name: "order", Steps: []makegood.Step{
		{Name: "reserve", Agent: makegood.AgentWorkflow, Map: &makegood.Map{Item: &makegood.Step{Name: "reserve", Agent: "shop", Undo: &makegood.Undo{Agent: "returns"}}}},
	}})
	w.want("write a definition", err, nil)
	w.want("put a definition", w.store.PutDefinition(w.ctx, w.id("order"), hash, definition), nil)
	want := map[string]string{}
	for _, part := range []struct {
		id, definition, step, agent string
		undo                        bool
	}{
		{id: "item", definition: hash + "~reserve~30", step: "item_29", agent: "shop"},
		{id: "back", definition: hash + "~reserve~30", step: "item_0", undo: true, agent: "returns"},
		{id: "part", definition: hash + "~reserve~250", step: "part_2", agent: makegood.AgentWorkflow},
		{id: "none", definition: hash + "~charge~30", step: "item_0"},
	} {
		j := w.listable(part.id)
		j.Definition, j.Steps = part.definition, []job.StepState{{Name: part.step, Attempt: 1}}
		a := job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: w.base, Cause: "submit"}
		if part.undo {
			j.ProcessState, j.Desired, j.Steps[0].Undo = makegood.JobUndoing, makegood.JobUndone, a
		} else {
			j.ProcessState, j.Steps[0].Forward = makegood.JobProcessing, a
		}
		w.create(j)
		want[j.ID] = part.agent
	}
	w.eventually("the agents of the parts", func() (got, wanted any) {
		found := map[string]string{}
		for _, l := range w.list(store.Filter{Workflow: w.id("flow")}, 10) {
			found[l.ID] = strings.Join(l.Agents, " ")
		}
		return found, want
	})
	w.eventually("the parts of an agent", func() (got, wanted any) {
		var found []string
		for _, l := range w.list(store.Filter{Workflow: w.id("flow"), Agent: "returns"}, 10) {
			found = append(found, l.ID)
		}
		return found, []string{w.listable("back").ID}
	})
}

package domain

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// A map is done by jobs. The job that stands for n items has a step an item, up to limits.PartItems of them; else a
// step a part, which is such a job again. So a map of 100,000 items is a tree of jobs of at most 100 steps, and nothing
// in it counts further than that. The workflow of each such job follows from the workflow that has the map, the step
// and n: its name is WORKFLOW~STEP, its definition HASH~STEP~N, and neither is stored.

// MapRef names the workflow of a part of a map.
type MapRef struct {
	// Definition is the hash of the definition that has the step with the map.
	Definition, Step string
	Items            int
}

// String writes the reference as the definition of a job has it.
func (r MapRef) String() string {
	return strings.Join([]string{r.Definition, r.Step, fmt.Sprint(r.Items)}, betweenChild)
}

// MapRefOf reads the definition of a job. ok is false of the hash of a definition.
func MapRefOf(definition string) (r MapRef, ok bool) {
	if !strings.Contains(definition, betweenChild) { // It is asked of every job.
		return MapRef{}, false
	}
	parts := strings.Split(definition, betweenChild)
	if len(parts) != 3 {
		return MapRef{}, false
	}
	r = MapRef{Definition: parts[0], Step: parts[1]}
	if _, err := fmt.Sscan(parts[2], &r.Items); err != nil || r.String() != definition || r.Items < 0 || r.Items > makegood.MaxItems {
		return MapRef{}, false
	}
	return r, true
}

// DefinitionOf is the hash of the definition that a job goes by: of a part, that of the job with the map.
func DefinitionOf(definition string) string {
	hash, _, _ := strings.Cut(definition, betweenChild)
	return hash
}

// MapName is the name of the workflow of the parts of a map. WorkflowOf is the workflow that has the map, of any name.
func MapName(workflow, step string) string { return workflow + betweenChild + step }

// WorkflowOf is the workflow that has the map of a part, by the name of the part's own; of another it is that name.
func WorkflowOf(name string) string {
	workflow, _, _ := strings.Cut(name, betweenChild)
	return workflow
}

// MapStep is the step that has the map of a part, by the name of the part's workflow; of another it is empty.
func MapStep(name string) string {
	_, step, _ := strings.Cut(name, betweenChild)
	return step
}

// PartSize is how many items each step of the job of n items has, but for the last.
func PartSize(n int) int {
	size := 1
	for n > size*limits.PartItems {
		size *= limits.PartItems
	}
	return size
}

// ItemStep is the name of the step of an item, or of a part, of a job of a map: by its place there, from 0. The step of
// a batch has the name of its first item.
func ItemStep(i, size int) string {
	if size == 1 {
		return fmt.Sprintf("item_%d", i)
	}
	return partStep + fmt.Sprint(i)
}

// FirstItem is the place of the first item of a step of a job without parts, by the name of the step.
func FirstItem(step string) int {
	n := 0
	_, _ = fmt.Sscanf(step, "item_%d", &n) // Such a name always has one.
	return n
}

// BatchSize is how many items the i-th step of a part has one answer each for; 0: its work is that of one item, or of a
// further part.
func BatchSize(w makegood.Workflow, i int) int {
	if w.Part == nil || w.Part.Batch == 0 {
		return 0
	}
	return min(w.Part.Batch, w.Part.Items-i*w.Part.Batch)
}

// partStep begins the name of the step of a part.
const partStep = "part_"

// MapWorkflow is the workflow of the job that does n items of a step of w, without its defaults. input is the
// expression of the input of the i-th item, or of a batch that begins with it.
func MapWorkflow(w makegood.Workflow, s makegood.Step, n int, input func(i, batch int) []byte) makegood.Workflow {
	size, m := PartSize(n), s.Map
	part := makegood.Workflow{Name: w.Name, OnFailure: w.OnFailure, Part: &makegood.Part{Of: s.Name, Items: n, Tolerate: m.Tolerate}}
	each := size // so many items a step
	if size == 1 && m.Batch > 1 {
		part.Part.Batch, each = m.Batch, m.Batch
	}
	part.Part.Concurrency = StepsAtOnce(*part.Part, m.Concurrency)
	if part.OnFailure.Action == makegood.FailureRestart {
		part.OnFailure = makegood.OnFailure{Action: makegood.FailureUndo} // The rounds are those of the whole job.
	}
	for i := 0; i < n; i += each {
		step := *m.Item
		if size > 1 {
			step = makegood.Step{Agent: makegood.AgentWorkflow, Action: s.Action, Undo: s.Undo, Map: &makegood.Map{
				Concurrency: m.Concurrency, Batch: m.Batch, Tolerate: m.Tolerate, Outputs: m.Outputs, Item: m.Item, Count: min(size, n-i),
			}}
		}
		step.Name, step.Needs = ItemStep(i/size, size), []string{}
		if size == 1 && step.Agent != makegood.AgentWorkflow && CanUndo(step) {
			undo := *step.Undo
			undo.With = nil // that of the step
			step.Undo = &undo
		}
		if size == 1 {
			step.With = input(i, part.Part.Batch)
		}
		part.Steps = append(part.Steps, step)
	}
	if n == 0 { // A job has a step at least.
		part.Steps = []makegood.Step{{Name: "none", Agent: makegood.AgentWait, Needs: []string{}, With: []byte(`{"for":"10ms"}`)}}
	}
	return part
}

// StepsAtOnce is how many steps of a part may be under way where so many items of the map may.
func StepsAtOnce(p makegood.Part, concurrency int) int {
	size := PartSize(p.Items)
	return max(1, min(concurrency, limits.PartItems*size)/max(size, p.Batch))
}

// ItemOf is how the work of a step is done: of a step with a map that is said of an item.
func ItemOf(s makegood.Step) makegood.Step {
	if s.Map != nil && s.Map.Item != nil {
		return *s.Map.Item
	}
	return s
}

// overItems completes a step with a map: the fields of an item move into Map.Item, and the agent of the step becomes
// AgentWorkflow.
func overItems(s makegood.Step) makegood.Step {
	m := *s.Map
	m.Concurrency = or(m.Concurrency, limits.PartItems)
	m.Outputs = or(m.Outputs, makegood.OutputsList)
	s.Map = &m
	if m.Item != nil {
		return s
	}
	item := s
	item.Map, item.Needs, item.Any, item.Only, item.When, item.OnError = nil, []string{}, false, "", "", nil
	if item.Agent == makegood.AgentWorkflow && item.Undo == nil {
		item.Undo = &makegood.Undo{Action: or(item.Action, item.Name)}
	}
	item = stepDefaults(item)
	m.Item = &item
	s = makegood.Step{
		Name: s.Name, Agent: makegood.AgentWorkflow, Action: s.Name, Needs: s.Needs, Any: s.Any, Only: s.Only, When: s.When, OnError: s.OnError, Map: &m,
		Undo: &makegood.Undo{None: true},
	}
	if CanUndo(item) {
		s.Undo = &makegood.Undo{Action: s.Name}
	}
	return s
}

package asl

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// childOf is the workflow of the job that does what states:startExecution.sync does; empty: it cannot be one, and why.
func (w walk) childOf(r resource) (workflow, why string) {
	switch {
	case !r.sync || r.agent != "states" || r.action != "start_execution":
		return "", ""
	case w.polls[w.state] != nil:
		return "", "it is asked again and again, which a job of its own is not"
	}
	name := w.state.body.get(w.state.calledWith()).textOf("StateMachineArn")
	if name == "" || strings.HasPrefix(name, "{%") {
		return "", "which machine it starts is not written out"
	}
	if _, after, found := strings.Cut(name, ":stateMachine:"); found {
		name, _, _ = strings.Cut(after, ":")
	}
	name = strings.ReplaceAll(snake(placeholder(name)), "_", "-")
	if err := limits.WorkflowName.Check(name); err != nil {
		return "", err.Error()
	}
	return name, ""
}

// notOfChildren are the fields that a step which a job of its own does cannot have.
var notOfChildren = []struct{ name, says string }{
	{"Retry", "the workflow of the job says how often its steps are tried, and a job that has ended badly is begun again by a resubmit alone"},
	{"TimeoutSeconds", "say it as the timeout of that workflow"},
	{"TimeoutSecondsPath", "say it as the timeout of that workflow"},
	{"HeartbeatSeconds", "the job ends by itself"},
	{"HeartbeatSecondsPath", "the job ends by itself"},
	{"Credentials", "an agent's own role is what it may do"},
}

// childTask makes a step that a job of its own does.
func (w walk) childTask(here comes, r resource, workflow string) {
	s := w.add(w.state.name, here)
	s.agent, s.action = makegood.AgentWorkflow, workflow
	s.with = w.given(w.valueOf(here.arrivals, w.effective), "Input")
	t := w.tell(w.state)
	t.becomes(fmt.Sprintf("step %s, which a job of workflow %s does", s.name, workflow))
	w.importsToo(workflow)
	t.note(fmt.Sprintf("of the answer only Output and Status can be read, and Output is the output of the last step of %s that was done", workflow))
	if w.saga != nil && w.saga.undoes[w.state] != nil {
		undo := w.saga.undoes[w.state]
		s.undoesChild = true
		w.tell(undo).left(fmt.Sprintf("the undo of step %s is the undo of its job: say it as the undo of steps of workflow %s", s.name, workflow))
	}
	t.note(fmt.Sprintf("a job of %s that fails waits for a person, or is undone: this one waits with it, and a Catch is reached where it ends Undone or Cancelled", workflow))
	if !s.undoesChild {
		t.note("undo: none: what that job did stays where this one is undone; leave it out to have it undone")
	}
	w.leftOfChild()
	w.catching(s, here)
	result := w.childResult(r, w.path(".steps."+s.name+".output"))
	w.leave(comes{w.done(s, w.apply(here.arrivals, func(arrival *value) (*value, error) { return w.after(arrival, result) })), []*step{s}})
}

func (w walk) importsToo(workflow string) {
	w.tell(w.state).note(fmt.Sprintf("import the machine of workflow %s, too, and deploy both files together; without it a submission is refused (docs/children.md)", workflow))
}

// leftOfChild tells which fields a step that a job of its own does cannot have.
func (w walk) leftOfChild() {
	for _, field := range notOfChildren {
		if w.state.body.get(field.name) != nil {
			w.tell(w.state).left(field.name + ": " + field.says)
		}
	}
}

// childResult is what a state sees of the answer: with .sync its output is text, with .sync:2 it is data.
func (w walk) childResult(r resource, output *value) *value {
	if !r.data {
		output = w.jq("%s | tojson", w.operand(output))
	}
	return w.object([]string{"Output", "Status"}, []*value{output, w.text("SUCCEEDED")})
}

// children are the workflows of the jobs that do steps, and that the definition does not have.
func (i *Imported) children() []string {
	var all []string
	seen := map[string]bool{i.Workflow: true}
	for _, of := range i.items {
		seen[of.Workflow] = true
	}
	for _, s := range i.steps {
		if s.agent == makegood.AgentWorkflow && !seen[s.action] {
			seen[s.action] = true
			all = append(all, s.action)
		}
	}
	return all
}

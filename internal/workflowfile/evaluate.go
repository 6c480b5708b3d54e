package workflowfile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

// Data is the data of a job for expressions.
type Data struct {
	JobID string
	// StartedAt is when the job was to start, or was born: .job.startedAt.
	StartedAt time.Time
	// Input is the job's input, .input; none is null.
	Input json.RawMessage
	// Outputs are outputs by step, .steps.NAME.output; those that Reads names are enough, and one that
	// is missing is null.
	Outputs map[string]json.RawMessage
	// Errors are why steps failed that were not done in the end, .steps.NAME.error; one that is missing is null.
	Errors map[string]makegood.StepError
	// Values calls each with every JSON value of a large payload of the job: the elements of a list, or the lines. final is
	// why they cannot be read, or the first error of each; err passes. Nil: there are no large payloads.
	Values func(ctx context.Context, p makegood.Payload, each func(value []byte) error) (final, err error)
	// outputsBytes is how many bytes the outputs of Gather count for.
	outputsBytes int
}

// EvalError says that an expression gives no value, or none that can be used. The same data will give
// the same error.
type EvalError struct {
	Step string
	Undo bool
	// Reason says which expression, where it stands and why, in at most limits.MaxReasonBytes.
	Reason string
}

// Error is the reason.
func (e *EvalError) Error() string { return e.Reason }

// plan is the compiled values and expressions of a step.
type plan struct {
	step    string
	when    *expression
	until   *expression
	forward *request
	undo    *request
	// reads is the data that when, forward and until read.
	reads reads
	// readable are the steps with outputs that this step may read, in the order of the workflow.
	readable []string
}

// request is how the input of a task is made.
type request struct {
	// with is nil for the job's input.
	with  *template
	reads reads
	// over, if set, gives the list of a map, and with the input of an item.
	over *expression
	// http: with is the request of the http agent, and its missing fields are filled in.
	http bool
}

// Gather puts the output of a step that Reads names among the data of another step, or of its undo: as much of
// it as the expressions there read. An *EvalError says that they read more of all outputs together than
// limits.MaxOutputsBytes.
func (c *Compiled) Gather(data *Data, step string, undo bool, from string, output json.RawMessage) error {
	all, _ := c.reads(step, undo)
	if err := all.output(from).beyond(output, ".steps."+from+".output"); err != nil {
		return &EvalError{Step: step, Undo: undo, Reason: limits.Clip(fmt.Sprintf("step %q: %v", step, err))}
	}
	output = all.output(from).cut(output)
	data.outputsBytes += weigh(output)
	if data.outputsBytes > limits.MaxOutputsBytes {
		reason := fmt.Sprintf("step %q: its expressions read more than %d bytes of the outputs of other steps", step, limits.MaxOutputsBytes)
		return &EvalError{Step: step, Undo: undo, Reason: reason}
	}
	if data.Outputs == nil {
		data.Outputs = make(map[string]json.RawMessage)
	}
	data.Outputs[from] = output
	return nil
}

// Reads names the steps with outputs that the step's when and with may read, or its undo's with; in the order of the
// workflow. It may name one too many where an expression uses .steps as a whole.
func (c *Compiled) Reads(step string, undo bool) []string {
	all, p := c.reads(step, undo)
	if p == nil {
		return nil
	}
	return p.names(all, undo)
}

// ReadInput names the steps with tasks, or undos, that may depend on the job's input; in the order of the workflow.
func (c *Compiled) ReadInput(undo bool) (names []string) {
	for _, s := range c.Workflow.Steps {
		if r := c.plans[s.Name].request(undo); r != nil && (r.with == nil || r.reads.input) {
			names = append(names, s.Name)
		}
	}
	return names
}

// reads is the data that all expressions of a step read, or of its undo; the plan is nil if there is none.
func (c *Compiled) reads(step string, undo bool) (reads, *plan) {
	p := c.plans[step]
	if p == nil || p.request(undo) == nil {
		return reads{}, nil
	}
	if undo {
		return p.undo.reads, p
	}
	return p.reads, p
}

// request is how the input of the step is made, or that of its undo; nil if there is none.
func (p *plan) request(undo bool) *request {
	if undo {
		return p.undo
	}
	return p.forward
}

// names lists the steps with outputs that r may read, in the order of the workflow.
func (p *plan) names(r reads, undo bool) []string {
	var names []string
	for _, name := range p.readable {
		if r.all || r.steps[name] != nil {
			names = append(names, name)
		}
	}
	if r.own || undo && (r.all || r.steps[p.step] != nil) {
		names = append(names, p.step)
	}
	return names
}

// When reports whether a step is to be done; without a when it is. An *EvalError means that the expression is at fault;
// any other error is that of ctx, and the result is unknown.
func (c *Compiled) When(ctx context.Context, step string, data Data) (bool, error) {
	p := c.plans[step]
	if p == nil || p.when == nil {
		return true, nil
	}
	root, err := data.root(p.when.reads, p.names(p.when.reads, false))
	if err != nil {
		return false, p.fault(ctx, false, "when", err)
	}
	return p.condition(ctx, "when", p.when, root)
}

// Ready reports what the until of a step that is repeated gives, over its own output as data has it; without one it is
// ready. Its errors are those of When.
func (c *Compiled) Ready(ctx context.Context, step string, data Data) (bool, error) {
	p := c.plans[step]
	if p == nil || p.until == nil {
		return true, nil
	}
	root, err := data.root(p.until.reads, p.names(p.until.reads, false))
	if err != nil {
		return false, p.fault(ctx, false, "repeat.until", err)
	}
	steps := root["steps"].(map[string]any)
	if own, read := steps[step].(map[string]any); read {
		root["output"] = own["output"]
		delete(steps, step)
	}
	return p.condition(ctx, "repeat.until", p.until, root)
}

// condition returns the value of a boolean expression at place.
func (p *plan) condition(ctx context.Context, place string, e *expression, root map[string]any) (bool, error) {
	value, err := e.value(ctx, root)
	if err != nil {
		return false, p.fault(ctx, false, place, err)
	}
	is, ok := value.(bool)
	if !ok {
		err := e.fault(fmt.Errorf("gives %s, want true or false", preview(value)))
		return false, p.fault(ctx, false, place, err)
	}
	return is, nil
}

// Sees reports whether a step, or its undo, reads the output of another that Reads names. A step that needs any of
// several sees only the one that it began by, so that its data stays the same.
func (c *Compiled) Sees(step, beganBy, other string) bool {
	for _, s := range c.Workflow.Steps {
		if s.Name == step && s.Any {
			return other == beganBy || !slices.Contains(s.Needs, other)
		}
	}
	return true
}

// preview writes a value for a message.
func preview(value any) string {
	text, err := jq.Append(nil, value, limits.MaxReasonBytes)
	if err != nil {
		return "a large value"
	}
	return clip(string(text))
}

// Input returns the input of a step's task, or of its undo's: the value of with, or the job's input, compact and at
// most makegood.MaxPayloadBytes long. For the http agent it is a complete request: method, url, headers and body (none
// for GET and HEAD without one). Secrets are left out; TaskSecrets say where they belong. The caller may not change the
// result. An *EvalError means that an expression is at fault; any other error is that of ctx, and the result is
// unknown.
func (c *Compiled) Input(ctx context.Context, step string, undo bool, data Data) (TaskInput, error) {
	p := c.plans[step]
	if p == nil {
		return TaskInput{}, &EvalError{Step: step, Undo: undo, Reason: fmt.Sprintf("the workflow has no step %q", step)}
	}
	r := p.request(undo)
	if r == nil {
		return TaskInput{}, &EvalError{Step: step, Undo: undo, Reason: fmt.Sprintf("step %q has no undo", step)}
	}
	if r.over != nil {
		return p.items(ctx, r, data, jq.BudgetOf(limits.MapEvaluations))
	}
	if r.with == nil {
		return TaskInput{Value: data.input()}, nil
	}
	if r.with.constant != nil && !r.http {
		return TaskInput{Value: r.with.constant}, nil
	}
	root, err := data.root(r.reads, p.names(r.reads, undo))
	if err != nil {
		return TaskInput{}, p.fault(ctx, undo, "with", err)
	}
	f := &filling{value: func(e *expression) (any, error) { return e.value(ctx, root) }}
	var out []byte
	if r.http {
		out, err = r.httpRequest(data, f)
	} else {
		out, err = r.with.append(nil, f)
	}
	if err == nil && len(out) > makegood.MaxPayloadBytes {
		err = fmt.Errorf("%d bytes as JSON, the limit is %d", len(out), makegood.MaxPayloadBytes)
	}
	if err != nil {
		return TaskInput{}, p.fault(ctx, undo, "with", err)
	}
	return TaskInput{out, f.secrets}, nil
}

// TaskInput is the input of a task, and which secrets belong where in it.
type TaskInput struct {
	Value   json.RawMessage
	Secrets []makegood.TaskSecret
}

// fault makes the error of an expression, unless it was the caller's time that ended.
func (p *plan) fault(ctx context.Context, undo bool, place string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("evaluate step %s: %w", p.step, ctx.Err())
	}
	if undo {
		place = "undo." + place
	}
	if _, ok := err.(*placeError); ok {
		err = at(place, err)
	} else {
		err = &placeError{place, err}
	}
	return &EvalError{Step: p.step, Undo: undo, Reason: limits.Clip(fmt.Sprintf("step %q: %v", p.step, err))}
}

func (d Data) input() json.RawMessage {
	if len(d.Input) == 0 {
		return json.RawMessage("null")
	}
	return d.Input
}

// root makes the data of expressions, as far as they read it: the outputs of names, if any. Unread data is left out,
// because decoding it takes time.
func (d Data) root(r reads, names []string) (map[string]any, error) {
	job := map[string]any{"id": d.JobID}
	if r.startedAt {
		job["startedAt"] = d.StartedAt.UTC().Format(time.RFC3339)
	}
	root := map[string]any{"input": nil, "job": job}
	if r.input {
		if err := r.inputBranch().beyond(d.input(), ".input"); err != nil {
			return nil, err
		}
		input, err := jq.Decode(d.input())
		if err != nil {
			return nil, fmt.Errorf("the job's input: %w", err)
		}
		root["input"] = input
	}
	steps := map[string]any{}
	for _, name := range names {
		var value any
		if output := d.Outputs[name]; len(output) > 0 {
			var err error
			if value, err = jq.Decode(r.output(name).cut(output)); err != nil {
				return nil, fmt.Errorf("the output of step %q: %w", name, err)
			}
		}
		step := map[string]any{"output": value}
		if r.errors[name] {
			step["error"] = d.error(name)
		}
		steps[name] = step
	}
	root["steps"] = steps
	return root, nil
}

// error is .steps.NAME.error.
func (d Data) error(name string) any {
	e, failed := d.Errors[name]
	if !failed {
		return nil
	}
	return map[string]any{"message": e.Message, "kind": e.Kind, "retryable": e.Retryable, "applied": string(e.Applied)}
}

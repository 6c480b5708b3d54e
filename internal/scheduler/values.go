package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// values reads and writes the inputs and outputs of one job during one decision, and evaluates
// expressions over them.
type values struct {
	store    store.Payloads
	large    payload.Keeper
	compiled *workflowfile.Compiled
	// birth is the job's nonce.
	birth string
	// fresh are values that are to be written before the save that refers to them; read are others.
	fresh map[string]json.RawMessage
	read  map[string]json.RawMessage
	// readBytes is how much read holds.
	readBytes int
	// inputs are task inputs that were evaluated already; room is for the first of them.
	inputs []evaluated
	room   [1]evaluated
	// turns bounds how many evaluations there are at a time.
	turns turns
}

func (s *Scheduler) newValues(c *workflowfile.Compiled) values {
	return values{store: s.config.Payloads, large: s.config.Large, compiled: c, turns: s.turns}
}

// spill takes an output that is too large for the hot item out of a success, to be written later, and
// turns one that is too large, or too deep, for anything into a failure.
func (v *values) spill(j job.Job, e job.Event) job.Event {
	switch said := e.(type) {
	case job.StepCompleted:
		said.Output = v.spillSaid(j, said.Place, said.Output)
		return said
	case job.Requested:
		if in := said.Input; in != nil && len(in.Inline) > limits.MaxInlineBytes {
			kept := v.keep(v.inputKey(in.Inline), in.Inline)
			said.Input = &kept
		}
		return said
	case job.Settled:
		said.Output = v.spillSaid(j, said.Place, said.Output)
		return said
	case job.StepFailed:
		if b := said.Batch; b != nil && len(b.Output.Inline) > limits.MaxInlineBytes {
			b.Output = v.keep(v.outputKey(said.Step, said.Attempt, b.Output.Inline), b.Output.Inline)
		}
		return said
	}
	success, ok := e.(job.StepSucceeded)
	if !ok || len(success.Output.Inline) <= limits.MaxInlineBytes {
		return e
	}
	if wrong := misfit(success.Output.Inline); wrong != "" {
		return job.StepFailed{Reply: success.Reply, Error: job.StepError{Message: wrong, Applied: makegood.AppliedUnknown}}
	}
	success.Output = v.keep(v.outputKey(success.Step, success.Attempt, success.Output.Inline), success.Output.Inline)
	return success
}

// misfit says why an output cannot be kept; empty: it can.
func misfit(output json.RawMessage) string {
	if n := len(output); n > makegood.MaxPayloadBytes {
		return fmt.Sprintf("output of %d bytes, the limit is %d", n, makegood.MaxPayloadBytes)
	}
	if err := canonical.CheckDepth(output); err != nil {
		return fmt.Sprintf("output %v", err)
	}
	return ""
}

// spillSaid does so with an output that came from outside, and was measured on arrival. It is kept under the latest
// attempt of its step; one that comes before the first, under none.
func (v *values) spillSaid(j job.Job, p job.Place, output job.Payload) job.Payload {
	if len(output.Inline) <= limits.MaxInlineBytes {
		return output
	}
	s, _ := j.Step(p.Step)
	attempt := s.Forward.Attempt
	if p.Undo {
		attempt = s.Undo.Attempt
	}
	return v.keep(v.outputKey(p.Step, attempt, output.Inline), output.Inline)
}

// outputKey names an output by its attempt and by its content. The output of a reply without effect, or of a save that
// was lost, cannot be taken for that of another.
func (v *values) outputKey(step string, attempt int, output json.RawMessage) string {
	return fmt.Sprintf("output#%s#%d#%s", step, attempt, v.partHash(output))
}

// inputKey names a job's input by its content: of two submissions of one id that differ neither can find the
// other's input under its own job.
func (v *values) inputKey(input json.RawMessage) string { return "input#" + v.partHash(input) }

// partHash distinguishes a value of this job from every other value, and from the same value of an earlier job of the
// same id, which expires before this one does.
func (v *values) partHash(value json.RawMessage) string {
	return canonical.Hash(append([]byte(v.birth+"\n"), value...))[:partHashDigits]
}

// partHashDigits is how much of the hash of a value stands in its key.
const partHashDigits = 16

// keep notes a value that is to be written under a key, and returns the reference to it.
func (v *values) keep(key string, value json.RawMessage) job.Payload {
	if v.fresh == nil {
		v.fresh = make(map[string]json.RawMessage)
	}
	v.fresh[key] = value
	return job.Payload{Ref: key, Bytes: len(value)}
}

// write stores the fresh values that the job refers to. A reply that was fenced off leaves none.
func (v *values) write(ctx context.Context, j job.Job) error {
	if len(v.fresh) == 0 {
		return nil
	}
	refs := []string{j.History.HeadKey()}
	for _, p := range j.Values() {
		refs = append(refs, p.Ref)
	}
	for _, ref := range refs {
		value, ok := v.fresh[ref]
		if !ok {
			continue
		}
		if err := v.store.PutPayload(ctx, j.ID, ref, value); err != nil {
			return fmt.Errorf("write %s of job %s: %w", ref, j.ID, err)
		}
	}
	return nil
}

func (v *values) get(ctx context.Context, job string, p job.Payload) (json.RawMessage, error) {
	if p.Ref == "" {
		return p.Inline, nil
	}
	if value, ok := v.fresh[p.Ref]; ok {
		return value, nil
	}
	if value, ok := v.read[p.Ref]; ok {
		return value, nil
	}
	value, err := v.store.Payload(ctx, job, p.Ref)
	if errors.Is(err, store.ErrNotFound) {
		// It was written before the job that refers to it, so no waiting brings it back.
		return nil, &parkError{reason: fmt.Sprintf("%s of the job is gone from the store", p.Ref)}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of job %s: %w", p.Ref, job, err)
	}
	v.keepRead(p.Ref, value)
	return value, nil
}

// keepRead keeps a value that was read for the next reader, as long as there is room for it.
func (v *values) keepRead(ref string, value json.RawMessage) {
	if v.readBytes+len(value) > maxKept {
		return
	}
	v.readBytes += len(value)
	if v.read == nil {
		v.read = make(map[string]json.RawMessage)
	}
	v.read[ref] = value
}

// data gathers what the expressions of a step read: of each output no more than that.
func (v *values) data(ctx context.Context, j job.Job, step string, undo bool) (workflowfile.Data, error) {
	input, err := v.get(ctx, j.ID, j.InputOf(step, undo))
	if err != nil {
		return workflowfile.Data{}, err
	}
	data := workflowfile.Data{JobID: j.ID, StartedAt: startedAt(j), Input: input, Values: valuesIn(v.large, j.ID)}
	of, _ := j.Step(step)
	for _, name := range v.compiled.Reads(step, undo) {
		if !v.compiled.Sees(step, of.Forward.By, name) {
			continue
		}
		s, _ := j.Step(name)
		noteError(&data, s)
		output, err := v.get(ctx, j.ID, s.Forward.Output)
		if err != nil {
			return data, err
		}
		if err := v.compiled.Gather(&data, step, undo, name, output); err != nil {
			return data, err
		}
	}
	return data, nil
}

// startedAt is when a job was to start, or was born. It never changes once the first step has begun, so a task that is
// sent again says the same.
func startedAt(j job.Job) time.Time {
	if j.StartAt.After(j.CreatedAt) {
		return j.StartAt
	}
	return j.CreatedAt
}

// noteError notes why a step failed that has ended, and was not done.
func noteError(data *workflowfile.Data, s job.StepState) {
	e := s.Forward.Error
	if e == nil || s.Forward.State == job.Dispatched || s.Forward.State == job.Backoff || s.Forward.State == job.NotStarted {
		return
	}
	if data.Errors == nil {
		data.Errors = make(map[string]makegood.StepError)
	}
	data.Errors[s.Name] = makegood.StepError{Message: e.Message, Kind: e.Kind, Retryable: e.Retryable, Applied: cmp.Or(e.Applied, makegood.AppliedUnknown)}
}

// learn evaluates the expressions that the core wants to know of. An error of an expression is a fact
// about its step; only values that cannot be read are an error here.
func (v *values) learn(ctx context.Context, facts *machine.Facts, j job.Job, wants []machine.Want) error {
	if facts.Values == nil {
		facts.Values = make(map[machine.Want]machine.Fact)
	}
	for _, w := range wants {
		var fact machine.Fact
		var input workflowfile.TaskInput
		err := v.evaluation(ctx, j, w, func(data workflowfile.Data) (err error) {
			fact, input, err = evaluate(ctx, v.compiled, w, data)
			return err
		})
		if err != nil {
			// An expression that fails is a fact, and so is a limit of the data; the time of the invocation that is up is not.
			if fact, err = fault(err); err != nil {
				return fmt.Errorf("evaluate step %s: %w", w.Step, err)
			}
		}
		facts.Values[w] = fact
		if input.Value != nil {
			v.remember(w, input)
		}
	}
	return nil
}

func (v *values) remember(w machine.Want, input workflowfile.TaskInput) {
	if v.inputs == nil {
		v.inputs = v.room[:0]
	}
	v.inputs = append(v.inputs, evaluated{w, input})
}

// evaluated is the input of a task, and what wanted it. There are few at a time.
type evaluated struct {
	want  machine.Want
	input workflowfile.TaskInput
}

// remembered returns an input that was evaluated already: the last, if there were several.
func (v *values) remembered(w machine.Want) (workflowfile.TaskInput, bool) {
	for _, e := range slices.Backward(v.inputs) {
		if e.want == w {
			return e.input, true
		}
	}
	return workflowfile.TaskInput{}, false
}

func evaluate(ctx context.Context, c *workflowfile.Compiled, w machine.Want, data workflowfile.Data) (machine.Fact, workflowfile.TaskInput, error) {
	var none workflowfile.TaskInput
	if w.Ready {
		ready, err := c.Ready(ctx, w.Step, data)
		return machine.Fact{Run: ready}, none, err
	}
	if !w.Undo {
		run, err := c.When(ctx, w.Step, data)
		if err != nil || !run {
			return machine.Fact{}, none, err
		}
	}
	input, err := c.Input(ctx, w.Step, w.Undo, data)
	if err != nil {
		return machine.Fact{}, none, err
	}
	if agent := machine.AgentOf(c.Workflow, w.Step, w.Undo); domain.WaitsByItself(agent) {
		return waitFact(agent, input.Value), input, nil
	}
	return machine.Fact{Run: true}, input, nil
}

// fault makes a fact of an expression's error, and leaves any other alone.
func fault(err error) (machine.Fact, error) {
	if evaluation, is := errors.AsType[*workflowfile.EvalError](err); is {
		return machine.Fact{Err: evaluation.Reason}, nil
	}
	return machine.Fact{}, err
}

// input returns the input of the task of an attempt that was opened.
func (v *values) input(ctx context.Context, j job.Job, w machine.Want) (workflowfile.TaskInput, error) {
	if input, ok := v.remembered(w); ok {
		return input, nil
	}
	var input workflowfile.TaskInput
	err := v.evaluation(ctx, j, w, func(data workflowfile.Data) (err error) {
		input, err = v.compiled.Input(ctx, w.Step, w.Undo, data)
		return err
	})
	if err != nil {
		// It gave a value when the step was opened, and its data has not changed: our own time has ended, and
		// the event comes again; or the step was opened by a version of this code with other limits.
		return input, fmt.Errorf("input of step %s of job %s: %w", w.Step, j.ID, err)
	}
	return input, nil
}

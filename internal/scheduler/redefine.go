package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Plan returns the effect of a resubmit on a job, without a change. Its verdict is machine.Applied if it would be
// granted.
func (s *Scheduler) Plan(ctx context.Context, id string, r job.Requested) (makegood.Plan, machine.Verdict, error) {
	j, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) {
		return makegood.Plan{}, machine.Verdict{}, errNewerJob
	}
	if err != nil {
		return makegood.Plan{}, machine.Verdict{}, fmt.Errorf("load job %s: %w", id, err)
	}
	compiled, err := s.definition(ctx, j.Definition)
	if err != nil {
		return makegood.Plan{}, machine.Verdict{}, fmt.Errorf("definition %s of job %s: %w", j.Definition, id, err)
	}
	var facts machine.Facts
	plan, v := machine.Plan(compiled.Workflow, j, r, facts)
	if v.Definition == "" {
		return plan, v, nil
	}
	asked := moved{compiled: compiled, loaded: loadedOf(j), values: s.newValues(compiled)}
	asked.values.birth = j.Birth
	r = asked.values.spill(j, r).(job.Requested) // As it would be kept: it may be the input that the job has.
	if err := asked.offer(ctx, s, &facts, offer{v.Definition, r.Input}); err != nil {
		return plan, v, err
	}
	plan, v = machine.Plan(compiled.Workflow, j, r, facts)
	return plan, v, nil
}

// offer is a definition that a request wants a job to have, by its hash or as the current one, with another input; nil:
// with the one that it has.
type offer struct {
	name  string
	input *job.Payload
}

// inputOf is the input that a request gives a job; nil: none.
func inputOf(e job.Event) *job.Payload {
	if asked, is := e.(job.Requested); is {
		return asked.Input
	}
	return nil
}

// offer finds the definition that a job may be moved to, as a fact, and whether the job's input then fits it.
func (m *moved) offer(ctx context.Context, s *Scheduler, facts *machine.Facts, o offer) (err error) {
	if o.name == m.loaded.definition {
		facts.Definition, m.other = definition(m.compiled), m.compiled
	} else {
		facts.Definition, m.other, err = s.offered(ctx, m.loaded, o.name)
	}
	if err != nil || m.other == nil {
		return err
	}
	facts.Definition.Misfit, err = m.misfit(ctx, o.input)
	return err
}

// misfit says where an input does not fit the definition that a job may be moved to; nil: the input that it has. That
// one was held against the job's own definition when it came, so it is read only where the other definition has another
// input rule.
func (m *moved) misfit(ctx context.Context, given *job.Payload) (string, error) {
	says := m.other.Workflow.Input
	if len(says) == 0 || given == nil && bytes.Equal(says, m.compiled.Workflow.Input) {
		return "", nil
	}
	hint := ""
	if given == nil {
		given, hint = &m.loaded.input, "; give another with --input"
	}
	input, err := m.values.get(ctx, m.loaded.id, *given)
	if err != nil {
		return "", err
	}
	err = fits(m.other, m.loaded.id, input)
	if misfits := (*MisfitError)(nil); errors.As(err, &misfits) {
		return misfits.Error() + hint, nil
	}
	return "", err
}

// offered returns the definition of a hash, or the one that is current for the workflow of a job, as a fact; for a part
// of a map, that of the part. That no job can be moved to it is a fact, too; any error is not, and the same may be
// asked again.
func (s *Scheduler) offered(ctx context.Context, j loaded, name string) (*machine.Definition, *workflowfile.Compiled, error) {
	none := func(format string, args ...any) (*machine.Definition, *workflowfile.Compiled, error) {
		return &machine.Definition{Err: fmt.Sprintf(format, args...)}, nil, nil
	}
	hash := name
	if name == job.CurrentDefinition {
		workflow := domain.WorkflowOf(j.workflow)
		current, err := s.config.Definitions.CurrentDefinition(ctx, workflow)
		if errors.Is(err, store.ErrNotFound) {
			return none("there is no current definition of %s", workflow)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("current definition of %s: %w", workflow, err)
		}
		hash = current
	}
	if part, is := domain.MapRefOf(j.definition); is {
		part.Definition = domain.DefinitionOf(hash)
		hash = part.String()
	}
	compiled, err := s.definition(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return none("there is no definition %.80q; its hash is the \"definition\" of a job in get --json, current is the one of new jobs", hash)
	case errors.Is(err, workflowfile.ErrInvalid):
		return none("definition %s: %v", hash, err)
	case err != nil:
		return nil, nil, fmt.Errorf("definition %s: %w", hash, err)
	}
	if err := errors.Join(compiled.CheckQueues(s.config.Agents), compiled.CheckAsked(s.config.Asked)); err != nil {
		return none("definition %s: %v", hash, err)
	}
	return definition(compiled), compiled, nil
}

func definition(c *workflowfile.Compiled) *machine.Definition {
	return &machine.Definition{Hash: c.Hash, Workflow: c.Workflow, Reads: c.ReadInput(false), UndoReads: c.ReadInput(true)}
}

// definitionOf is the definition that a job has as it is decided so far.
func (m *moved) definitionOf(hash string) *workflowfile.Compiled {
	if m.other != nil && hash == m.other.Hash {
		return m.other
	}
	return m.compiled
}

// follow takes up the definition of a job that was moved to another one: the next decisions and messages go by it.
func (m *moved) follow(definition string) {
	if m.definitionOf(definition) == m.compiled {
		return
	}
	// Inputs evaluated so far may be of expressions that it has no more.
	m.values.inputs = nil
	m.compiled = m.definitionOf(definition)
	m.values.compiled = m.compiled
}

// CheckInput returns the input that a job gets by a resubmit, in its canonical form. ErrInvalid.
func CheckInput(given json.RawMessage) (*job.Payload, error) {
	if given == nil {
		return nil, nil
	}
	input, err := canonical.JSON(given)
	if err != nil {
		return nil, fmt.Errorf("%w: input: %w", ErrInvalid, err)
	}
	if len(input) > makegood.MaxPayloadBytes {
		return nil, fmt.Errorf("%w: input has %d bytes, the limit is %d", ErrInvalid, len(input), makegood.MaxPayloadBytes)
	}
	return &job.Payload{Inline: input, Bytes: len(input)}, nil
}

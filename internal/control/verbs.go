package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Submit implements api.Jobs.
func (s *Service) Submit(ctx context.Context, sub makegood.Submission) (makegood.Job, error) {
	if sub.ID == "" {
		sub.ID = protocol.NewJobID(s.parts.Now())
	}
	if sub.Workflow == "" {
		return makegood.Job{}, fmt.Errorf("submit job %s: %w", sub.ID, invalid("workflow is missing"))
	}
	j, created, err := s.parts.Submit(ctx, sub.Workflow, scheduler.Submission{
		ID: sub.ID, Input: sub.Input, StartAt: sub.StartAt, ReplyTo: sub.ReplyTo, Tenant: sub.Tenant, Labels: sub.Labels, Priority: sub.Priority,
		Traceparent: watch.Under(ctx, sub.Traceparent),
	})
	if err != nil {
		return makegood.Job{}, fmt.Errorf("submit job %s: %w", sub.ID, inWords(err))
	}
	v := view.Of(j, nil)
	v.Existed = !created
	return v, nil
}

// Publish makes a workflow file the current definition of its name; existing jobs keep theirs.
func (s *Service) Publish(ctx context.Context, source []byte) (api.Workflow, error) {
	if s.parts.Publish == nil {
		return api.Workflow{}, notHere("workflows are published to a deployed stack; this process reads its files when it starts")
	}
	compiled, err := workflowfile.Parse("source", source)
	if err != nil {
		return api.Workflow{}, fmt.Errorf("publish: %w", &api.InvalidError{Message: err.Error()})
	}
	if err := s.parts.Publish(ctx, compiled); err != nil {
		return api.Workflow{}, fmt.Errorf("publish: %w", inWords(err))
	}
	s.parts.Logger.InfoContext(ctx, "published", "workflow", compiled.Workflow.Name, "definition", compiled.Hash, "by", s.by(ctx))
	return api.Workflow{Name: compiled.Workflow.Name, Definition: compiled.Hash}, nil
}

// Request implements api.Jobs.
func (s *Service) Request(ctx context.Context, id string, r api.Request) (makegood.Job, error) {
	asked, err := s.requested(ctx, id, r)
	if err != nil {
		return makegood.Job{}, fmt.Errorf("%.40s job %s: %w", r.Verb, id, err)
	}
	j, verdict, err := s.parts.Scheduler.Request(ctx, id, asked)
	if err != nil {
		return makegood.Job{}, fmt.Errorf("%s job %s: %w", r.Verb, id, s.failed(ctx, id, err))
	}
	s.parts.Logger.InfoContext(ctx, "request", "job", id, "verb", r.Verb, "verdict", verdict.Kind, "reason", verdict.Reason, "by", asked.By)
	if verdict.Kind == machine.Refused {
		return makegood.Job{}, fmt.Errorf("%s job %s: %w", r.Verb, id, &api.RefusedError{Job: id, Reason: verdict.Reason})
	}
	v := view.Of(j, nil)
	v.Existed = verdict.Kind == machine.Duplicate
	return v, nil
}

// Plan implements api.Jobs.
func (s *Service) Plan(ctx context.Context, id string, r api.Request) (makegood.Plan, error) {
	asked, err := s.requested(ctx, id, r)
	if err == nil && r.Verb != makegood.VerbResubmit {
		err = invalid("there is no plan of %s, only of %s", r.Verb, makegood.VerbResubmit)
	}
	if err != nil {
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, err)
	}
	plan, verdict, err := s.parts.Scheduler.Plan(ctx, id, asked)
	switch {
	case err != nil:
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, s.failed(ctx, id, err))
	case verdict.Kind == machine.Refused:
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, &api.RefusedError{Job: id, Reason: verdict.Reason})
	}
	return plan, nil
}

// maxDefinition is the maximum length of a definition's name, in bytes: a hash, or api.CurrentDefinition.
const maxDefinition = 128

// requested checks a request, and returns its event.
func (s *Service) requested(ctx context.Context, id string, r api.Request) (job.Requested, error) {
	asked := job.Requested{Verb: r.Verb, Reason: r.Reason, StartAt: r.StartAt, Definition: r.Definition, Timeout: r.Timeout, Step: r.Step, By: s.by(ctx)}
	switch {
	case domain.CheckJobID(id) != nil:
		return asked, api.ErrNotFound
	case !slices.Contains(domain.Verbs(), r.Verb):
		return asked, invalid("there is no verb %.40q; there are %v", r.Verb, domain.Verbs())
	case r.Verb == makegood.VerbReschedule && r.StartAt.IsZero():
		return asked, invalid("startAt is missing")
	case r.Verb == makegood.VerbEdit && r.Timeout == 0 && r.Step == "":
		return asked, invalid("timeout is missing, or the step whose map is to be edited")
	case r.Step == "" && (r.Concurrency != 0 || r.Tolerate != nil):
		return asked, invalid("step is missing: the one whose map is to have these figures")
	case r.Verb != makegood.VerbEdit && (r.Concurrency != 0 || r.Tolerate != nil):
		return asked, invalid("concurrency and tolerate are figures of an edit, and not of %s", r.Verb)
	case r.Step != "" && r.Timeout != 0:
		return asked, invalid("a timeout is of the job, and other figures are of the map of a step: edit one of them at a time")
	case len(r.Reason) > limits.MaxReasonBytes:
		return asked, invalid("reason has %d bytes, the limit is %d", len(r.Reason), limits.MaxReasonBytes)
	case r.Step != "" && limits.StepName.Check(r.Step) != nil:
		return asked, invalid("step is %.80q: want the name of a step", r.Step)
	case r.Indexes != "" && r.Step == "":
		return asked, invalid("step is missing: indexes are of the items of one")
	case len(r.Definition) > maxDefinition:
		return asked, invalid("definition has %d bytes: want a hash, or %s", len(r.Definition), api.CurrentDefinition)
	}
	if r.Verb == makegood.VerbEdit && r.Step != "" {
		if err := domain.CheckFigures(r.Concurrency, r.Tolerate); err != nil {
			return asked, invalid("%v", err)
		}
		asked.Step, asked.Edit = "", &job.MapEdit{Step: r.Step, Concurrency: r.Concurrency, Tolerate: r.Tolerate}
	}
	if r.Indexes != "" {
		var err error
		if asked.Indexes, err = job.ReadIndexes(r.Indexes); err != nil {
			return asked, invalid("indexes: %v", err)
		}
	}
	name, err := requestName(r.Name)
	if err != nil {
		return asked, err
	}
	if name != "" {
		// The core knows requests by their names alone; the same name under another verb is another request.
		asked.Request = string(r.Verb) + ":" + name
	}
	asked.Input, err = scheduler.CheckInput(r.Input)
	return asked, inWords(err)
}

// requestName checks the name of a request; empty is allowed.
func requestName(name string) (string, error) {
	if name != "" && makegood.CheckJobID(name) != nil {
		return "", invalid("request: want 1 to %d of A to Z, a to z, 0 to 9, and . _ : -, and not %.140q", limits.MaxRequestBytes, name)
	}
	return name, nil
}

// failed returns the error of a request about a job in the words of package api; for a damaged job it says so,
// whatever error the request met first.
func (s *Service) failed(ctx context.Context, id string, err error) error {
	if err := inWords(err); known(err) {
		return err
	}
	if _, readErr := s.parts.Store.Load(ctx, id); errors.Is(readErr, store.ErrDamaged) {
		err = readErr
	}
	return inWords(err)
}

// Offers returns, for each verb, its effect on the job in its present state, or the reason why it would be refused. It
// changes no state. Errors: api.ErrNotFound, api.ErrDamaged, api.ErrNewer.
func (s *Service) Offers(ctx context.Context, id string) (makegood.Offers, error) {
	if domain.CheckJobID(id) != nil {
		return makegood.Offers{}, fmt.Errorf("verbs of job %s: %w", id, api.ErrNotFound)
	}
	offers, err := s.parts.Scheduler.Offers(ctx, id)
	if err != nil {
		return makegood.Offers{}, fmt.Errorf("verbs of job %s: %w", id, s.failed(ctx, id, err))
	}
	return offers, nil
}

// SentInputs returns the inputs of a job's steps and undos, with marks in the place of secrets: of one step, whole, or
// of all, where step is empty. It changes no state. Errors: api.ErrNotFound, api.ErrDamaged, api.ErrNewer,
// *api.InvalidError.
func (s *Service) SentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error) {
	if step != "" && limits.StepName.Check(step) != nil {
		return makegood.SentInputs{}, fmt.Errorf("inputs of job %s: %w", id, invalid("step is %.80q: want the name of a step", step))
	}
	all, err := s.sentInputs(ctx, id, step)
	if err == nil && step != "" && len(all.Inputs) == 0 {
		err = notHere(fmt.Sprintf("job %s has sent no task for a step %s", id, step))
	}
	if err != nil {
		return makegood.SentInputs{}, fmt.Errorf("inputs of job %s: %w", id, s.failed(ctx, id, err))
	}
	return all, nil
}

func (s *Service) sentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error) {
	j, err := s.load(ctx, id)
	if err != nil {
		return makegood.SentInputs{}, err
	}
	changed, err := view.Redefined(ctx, s.parts.Store, j)
	if err != nil {
		return makegood.SentInputs{}, err
	}
	return s.parts.Scheduler.SentInputs(ctx, id, step, changed)
}

// Wake has the Scheduler look at a job that an audit found: it does the work that is due and repairs the index entry.
// Wake returns the job as stored then, without payloads; a job in order stays as it is.
func (s *Service) Wake(ctx context.Context, id string) (makegood.Job, error) {
	if domain.CheckJobID(id) != nil {
		return makegood.Job{}, fmt.Errorf("wake job %s: %w", id, api.ErrNotFound)
	}
	j, verdict, err := s.parts.Scheduler.Wake(ctx, id)
	if err != nil {
		return makegood.Job{}, fmt.Errorf("wake job %s: %w", id, s.failed(ctx, id, err))
	}
	s.parts.Logger.InfoContext(ctx, "woken", "job", id, "verdict", verdict.Kind, "reason", verdict.Reason, "by", s.by(ctx))
	return view.Of(j, nil), nil
}

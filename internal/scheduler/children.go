package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// unborn is the input of a job that stands where a child was to be, and never begins.
const unborn = `{"makegood":"the attempt of the parent was closed before this job began"}`

// never reports whether the submission is of a child that never begins. Its input fits no workflow.
func (sub Submission) never() bool { return sub.child && string(sub.Input) == unborn }

// checkChildren refuses a job with steps that are done by jobs of workflows which are not there, or whose id leaves no
// room for theirs.
func (s *Scheduler) checkChildren(ctx context.Context, c *workflowfile.Compiled, id string) error {
	steps := c.Children()
	if len(steps) == 0 {
		return nil
	}
	if err := c.CheckRoom(id); err != nil {
		return fmt.Errorf("%w: the id of job %s %w", ErrInvalid, id, err)
	}
	for _, step := range steps {
		switch _, err := s.current(ctx, step.Action); {
		case errors.Is(err, ErrInvalid):
			return fmt.Errorf("%w: %w", ErrInvalid, c.Lacks(step))
		case err != nil:
			return fmt.Errorf("step %s of workflow %s: %w", step.Name, c.Workflow.Name, err)
		}
	}
	return nil
}

// CheckWorkflow says why no job of a workflow can begin: the workflow, or one whose jobs do steps of it, is not there.
func (s *Scheduler) CheckWorkflow(ctx context.Context, workflow string) error {
	hash, err := s.current(ctx, workflow)
	if err != nil {
		return err
	}
	c, err := s.definition(ctx, hash)
	if err != nil {
		return fmt.Errorf("definition of workflow %s: %w", workflow, err)
	}
	return s.checkChildren(ctx, c, "")
}

// isChild reports whether a job of its own does the attempts of a step, or of its undo.
func isChild(w makegood.Workflow, step string, undo bool) bool {
	return machine.AgentOf(w, step, undo) == makegood.AgentWorkflow
}

// childOf is the id of the child of the last attempt of a step.
func childOf(j job.Job, step string) string {
	s, _ := j.Step(step)
	return domain.ChildID(j.ID, j.Birth, step, s.Forward.Attempt)
}

// birth is an attempt that a child does, with the input of the child; an undo has none. definition is that of a child
// that does items of a map; else the child goes by the workflow that the action names.
type birth struct {
	job.Dispatch
	input      json.RawMessage
	definition string
	// edit: the child is there, and takes the edit of its map. Where it is absent, it begins if begins says so.
	edit, begins bool
	// account has what the items have cost before the child is born, which keeps it; nil: it is not counted.
	account *spend.Account
}

// birthOf evaluates the input of a child. Children begin side by side, and the values of their parent are for one
// goroutine.
func birthOf(ctx context.Context, m *moved, d job.Dispatch) (birth, error) {
	if d.Undo || redrives(m.job, d.Step) > 0 {
		return birth{Dispatch: d}, nil
	}
	if s := m.step(d.Step); s.Map != nil {
		return birthOfItems(ctx, m, d, s)
	}
	input, err := m.values.input(ctx, m.job, machine.Want{Step: d.Step})
	return birth{Dispatch: d, input: input.Value}, err
}

// bear begins the children of several jobs side by side: where a child has inline steps, it returns after these.
func (s *Scheduler) bear(ctx context.Context, list []*work) {
	s.crew.Each(len(list), maxClosings, func(i int) { s.beginChildren(ctx, list[i]) })
}

// beginChildren begins the children of a job that are due, side by side.
func (s *Scheduler) beginChildren(ctx context.Context, w *work) {
	if len(w.births) == 0 {
		return // as nearly always
	}
	births := w.births
	w.births = nil
	ended := make([]string, len(births))
	errs := unanswered(len(births))
	s.crew.Each(len(births), maxClosings, func(i int) { ended[i], errs[i] = s.begin(ctx, w.moved, births[i]) })
	var absent []job.Dispatch
	for i, b := range births {
		switch {
		case b.edit && errors.Is(errs[i], store.ErrNotFound):
			if b.begins { // Another process bears it now, and knows no edit.
				absent = append(absent, b.Dispatch)
			}
		case b.edit && errs[i] == nil:
		case ended[i] != "":
			w.follows(refused(b.Dispatch, ended[i]))
		case errs[i] != nil:
			w.fail(fmt.Errorf("begin the job of step %s of job %s: %w", b.Step, w.job, errs[i]))
		default:
			w.isSent(b.Dispatch)
		}
	}
	if len(absent) > 0 {
		w.fail(s.dispatch(ctx, nil, w, absent))
		s.beginChildren(ctx, w)
	}
}

// begin puts the child of an attempt there if it is absent, and works off what that makes due; for an undo it has the
// child undone. never says why that can never be; empty: it is done, or is tried again. A birth that panics is our bug,
// and fails its own parent alone.
func (s *Scheduler) begin(ctx context.Context, m *moved, b birth) (never string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panics: %v", r)
		}
	}()
	switch {
	case b.edit:
		return "", s.passEdit(ctx, m, m.job, b.Step)
	case b.Undo:
		return s.undoChild(ctx, m, b.Step)
	case redrives(m.job, b.Step) > 0:
		return s.redriveChild(ctx, m, b.Step)
	default:
		return s.submitChild(ctx, m, b)
	}
}

func (s *Scheduler) submitChild(ctx context.Context, m *moved, b birth) (never string, err error) {
	j := m.job
	sub := Submission{
		ID: childOf(j, b.Step), Input: b.input, Tenant: j.Tenant, Labels: j.Labels, Priority: j.Priority,
		Traceparent: s.config.Watch.Traceparent(j, b.Dispatch), child: true, edit: editFor(m, j, b.Step),
	}
	if n := domain.Nesting(sub.ID); n > domain.MaxNesting {
		return fmt.Sprintf("%d jobs stand above it, the limit is %d", n, domain.MaxNesting), nil
	}
	action, mismatch, created := childWorkflow(m, b.Step), (*MismatchError)(nil), false
	if hash, err := ContentHash(action, b.input); err == nil && isUnborn(hash, action) {
		return "its input is that of jobs that never begin", nil
	}
	if sub.Definition = b.definition; sub.Definition == "" {
		_, created, err = s.SubmitCurrent(spend.Without(ctx), action, sub)
	} else {
		_, created, err = s.Submit(spend.With(spend.Without(ctx), b.account), sub)
	}
	switch {
	case errors.As(err, &mismatch) && isUnborn(mismatch.Have, action, m.compiled.Workflow.Name):
		return "", nil // The attempt was closed, by a decision that may have been lost: the look after it says so.
	case err != nil && hopeless(err):
		return strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "), nil // A person reads it.
	case err == nil && !created && sub.edit != nil:
		return "", s.passEdit(ctx, m, j, b.Step)
	default:
		return "", err
	}
}

// isUnborn reports whether a content hash is that of a job that never begins, of one of these workflows.
func isUnborn(hash string, workflows ...string) bool {
	return slices.ContainsFunc(workflows, func(name string) bool { return hash == contentHash(name, []byte(unborn)) })
}

// undoChild has the child of a step undone.
func (s *Scheduler) undoChild(ctx context.Context, m *moved, step string) (never string, err error) {
	never, err = s.request(ctx, m.job, step, askOfChild(m, m.job, step, makegood.VerbUndo))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil // The look after it says so.
	}
	return never, err
}

// request asks something of the child of a step. never says why it was refused.
func (s *Scheduler) request(ctx context.Context, j job.Job, step string, asked job.Requested) (never string, err error) {
	_, v, err := s.Request(spend.Without(ctx), childOf(j, step), asked)
	switch {
	case err != nil:
		return "", err
	case v.Kind == machine.Refused:
		return v.Reason, nil
	default:
		return "", nil
	}
}

// askOfChild returns the request that a parent makes of its child because of its own state. The request has no name:
// the state of the child decides whether it is granted.
func askOfChild(m *moved, j job.Job, step string, verb makegood.Verb) job.Requested {
	return job.Requested{Verb: verb, By: limits.Clip(domain.HolderOf(j.ID)), Reason: limits.Clip(doing(j)), Edit: editFor(m, j, step)}
}

// editFor is the edit of a map that the child of a step is to have; nil: none.
func editFor(m *moved, j job.Job, step string) *job.MapEdit {
	e := machine.EditFor(m.compiled.Workflow, &j, step)
	if e.N == 0 {
		return nil
	}
	return &job.MapEdit{N: e.N, Concurrency: e.Concurrency, Tolerate: e.Tolerate}
}

// passEdit has the child of a step take the edit of its map. A child that has ended refuses it: it gets the edit with
// what is asked of it next.
func (s *Scheduler) passEdit(ctx context.Context, m *moved, j job.Job, step string) error {
	asked := askOfChild(m, j, step, makegood.VerbEdit)
	asked.Reason = limits.Clip(fmt.Sprintf("the map was edited in job %s", j.ID))
	_, err := s.request(ctx, j, step, asked)
	return err
}

// doing says what the parent does, and why, which is why it asks.
func doing(j job.Job) string {
	if j.Reason == "" {
		return fmt.Sprintf("job %s is %s", j.ID, j.ProcessState)
	}
	return fmt.Sprintf("job %s is %s: %s", j.ID, j.ProcessState, j.Reason)
}

// askChild answers a question about the attempt of a child. One that is a newer release's, or damaged, is under way: a
// person has it before them, or that release goes on with it.
func (s *Scheduler) askChild(ctx context.Context, m *moved, j job.Job, ask machine.Ask) (job.Found, error) {
	id := childOf(j, ask.Step)
	child, err := s.config.Jobs.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrDamaged):
		return job.Found{Finding: job.FoundHeld}, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return job.Found{}, fmt.Errorf("load job %s: %w", id, err)
	}
	finding, act := seen(child).Answer(ask)
	switch act {
	case machine.NeverBegin:
		return job.Found{Finding: finding}, s.neverBegin(ctx, m, j, ask)
	case machine.CancelChild:
		if child, err = s.cancelChild(ctx, askOfChild(m, j, ask.Step, makegood.VerbCancel), id); err != nil {
			return job.Found{}, err
		}
		if finding == job.FoundHeld && child.ProcessState.Finished() {
			finding = job.FoundEnded
		}
	case machine.TakeEdit:
		if err := s.passEdit(ctx, m, j, ask.Step); err != nil && !errors.Is(err, store.ErrNotFound) {
			return job.Found{}, err
		}
	case machine.NeverRedrive:
		if child, err = s.neverRedrive(ctx, m, j, ask); err != nil {
			return job.Found{}, err
		}
	}
	if finding != job.FoundEnded {
		return job.Found{Finding: finding}, nil
	}
	end, err := s.endOfChild(ctx, m, child, ask)
	return job.Found{Finding: finding, Child: end}, err
}

// seen returns the state of a child for the core; the zero job stands for an absent child.
func seen(child job.Job) machine.ChildSeen {
	return machine.ChildSeen{
		State: child.ProcessState, Never: isUnborn(child.InputHash, child.Workflow),
		Back: child.Desired != makegood.JobProcessed && !child.AnotherRound, Redrives: child.Redrives, Edited: child.EditOf("").N,
	}
}

// endOfChild says how a child has ended. Its output is that of the last of its steps that was done.
func (s *Scheduler) endOfChild(ctx context.Context, m *moved, child job.Job, ask machine.Ask) (*job.ChildEnd, error) {
	end := &job.ChildEnd{State: child.ProcessState, Reason: child.Reason}
	if ask.Undo || child.ProcessState != makegood.JobProcessed {
		return end, nil
	}
	output, err := s.outputOfEnd(ctx, m, child, ask, end)
	if err != nil || output == nil {
		return end, err
	}
	if refs, err := domain.FindPayloads(output); err == nil && len(refs) > 0 {
		end.Unfit = fmt.Sprintf("the output of its job %s refers to a large payload (%v), which only that job can read", child.ID, refs[0])
		return end, nil
	}
	end.Output, err = s.keepOutput(ctx, m, child.ID, ask, output)
	return end, err
}

// outputOfEnd is the output of a child that is done; nil: it has none.
func (s *Scheduler) outputOfEnd(ctx context.Context, m *moved, child job.Job, ask machine.Ask, end *job.ChildEnd) (json.RawMessage, error) {
	if step := m.step(ask.Step); step.Map != nil {
		return s.endOfItems(ctx, step, child, end)
	}
	for i := range slices.Backward(child.Steps) {
		if a := &child.Steps[i].Forward; a.State == job.Done {
			return s.outputOfChild(ctx, child.ID, a.Output)
		}
	}
	return nil, nil
}

func (s *Scheduler) outputOfChild(ctx context.Context, id string, output job.Payload) (json.RawMessage, error) {
	if output.Ref == "" {
		return output.Inline, nil
	}
	value, err := s.config.Payloads.Payload(ctx, id, output.Ref)
	if err != nil {
		return nil, fmt.Errorf("read %s of job %s: %w", output.Ref, id, err)
	}
	return value, nil
}

// keepOutput is the output of a child as its parent keeps it. A large one is written now: the answer that names it may
// outlive the decision that asked.
func (s *Scheduler) keepOutput(ctx context.Context, m *moved, child string, ask machine.Ask, output json.RawMessage) (job.Payload, error) {
	if len(output) <= limits.MaxInlineBytes {
		return job.Payload{Inline: output, Bytes: len(output)}, nil
	}
	is, _ := domain.ChildOf(child)
	key := m.values.outputKey(ask.Step, ask.Attempt, output)
	if err := s.config.Payloads.PutPayload(ctx, is.Parent, key, output); err != nil {
		return job.Payload{}, fmt.Errorf("write %s of job %s: %w", key, is.Parent, err)
	}
	return job.Payload{Ref: key, Bytes: len(output)}, nil
}

// cancelChild has a child cancelled, and returns it as it is then. Like all that moves a child, it has no account of
// its parent: the child's save would keep the usage in it, and saves side by side would keep it twice.
func (s *Scheduler) cancelChild(ctx context.Context, asked job.Requested, id string) (job.Job, error) {
	child, _, err := s.Request(spend.Without(ctx), id, asked)
	if err != nil {
		return job.Job{}, fmt.Errorf("cancel job %s: %w", id, err)
	}
	return child, nil
}

// neverBegin puts a job where the child of an attempt was to be, and cancels it: a later begin of the child finds it
// there. Its start is far ahead until then, so it begins nothing. No rule that keeps jobs from beginning is asked: it
// is of the workflow of its parent where its own is not there.
func (s *Scheduler) neverBegin(ctx context.Context, m *moved, j job.Job, ask machine.Ask) error {
	ctx = spend.Without(ctx)
	sub := Submission{ID: childOf(j, ask.Step), Input: json.RawMessage(unborn), StartAt: s.now().Add(makegood.MaxStartDelay / 2), child: true}
	var child job.Job
	err := ErrInvalid
	if step := m.step(ask.Step); step.Map == nil {
		child, _, err = s.SubmitCurrent(ctx, step.Action, sub)
	}
	if errors.Is(err, ErrInvalid) {
		sub.Definition = j.Definition
		child, _, err = s.Submit(ctx, sub)
	}
	switch mismatch := (*MismatchError)(nil); {
	case errors.As(err, &mismatch):
		return store.ErrConflict // It has begun meanwhile.
	case err != nil:
		return err
	}
	asked := askOfChild(m, j, ask.Step, makegood.VerbCancel)
	asked.Reason = limits.Clip(fmt.Sprintf("it never began: job %s had closed the attempt", j.ID))
	_, err = s.cancelChild(ctx, asked, child.ID)
	return err
}

// tellParent says nothing of a job that never began: its parent is what put it there, and a look that came before the
// event which it was put there for would make one more attempt.
func (s *Scheduler) tellParent(out *outbox, w *work, c job.TellParent) error {
	if seen(w.moved.job).Never {
		return nil
	}
	body, err := wire.EncodeEvent(c.Parent, c.ChildEnded)
	if err != nil {
		return err
	}
	message := queue.Message{Body: body, Group: c.Parent}
	out.put(envelope{work: w, queue: s.config.Events, message: message, sent: (*Scheduler).parentTold})
	return nil
}

func (s *Scheduler) parentTold(_ context.Context, e *envelope, err error) {
	if err != nil {
		e.work.fail(fmt.Errorf("tell job %s that its child has ended: %w", e.message.Group, err))
	}
}

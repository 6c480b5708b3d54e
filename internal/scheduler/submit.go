package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// ErrInvalid: the submission or request can never be granted as it is. Its text says why.
var ErrInvalid = errors.New("invalid")

// MisfitError: the input of a job does not fit the input rule of its workflow. It is an ErrInvalid.
type MisfitError struct {
	Job, Workflow string
	// Misfits are the places, at most limits.MaxMisfits.
	Misfits []makegood.Misfit
}

// Error names all misfits.
func (e *MisfitError) Error() string {
	said := make([]string, len(e.Misfits))
	for i, m := range e.Misfits {
		said[i] = m.String()
	}
	return fmt.Sprintf("the input of job %s does not fit workflow %s: %s", e.Job, e.Workflow, strings.Join(said, "; "))
}

// Is reports whether target is ErrInvalid.
func (e *MisfitError) Is(target error) bool { return target == ErrInvalid }

// fits refuses an input that does not fit the definition of a job: *MisfitError.
func fits(c *workflowfile.Compiled, id string, input []byte) error {
	misfits, err := c.Misfits(input)
	if err != nil {
		return fmt.Errorf("input of job %s: %w", id, err)
	}
	if len(misfits) > 0 {
		return &MisfitError{Job: id, Workflow: c.Workflow.Name, Misfits: misfits}
	}
	return nil
}

// MismatchError: there is a job of this id with other content.
type MismatchError struct {
	Job string
	// Have and Got are the hashes of the content stored and of that submitted.
	Have, Got string
}

// Error names both hashes.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("job %s exists with other content: hash %s is stored, %s was submitted", e.Job, e.Have, e.Got)
}

// SubmitCurrent submits to the definition that is current for a workflow's name. A name that is not
// known is ErrInvalid.
func (s *Scheduler) SubmitCurrent(ctx context.Context, workflow string, sub Submission) (job.Job, bool, error) {
	hash, err := s.current(ctx, workflow)
	if err != nil {
		return job.Job{}, false, err
	}
	sub.Definition = hash
	return s.Submit(ctx, sub)
}

// Submission is a request for a job.
type Submission struct {
	ID         string
	Definition string          // the hash of a definition that is stored
	Input      json.RawMessage // nil is null
	// StartAt is when the job may start; zero, or past: at once. At most makegood.MaxStartDelay ahead.
	StartAt time.Time
	// ReplyTo is the registered name of the receiver that is told of the job's changes; empty: none.
	ReplyTo string
	// Tenant is the tenant of the job, Labels say more about it: see makegood.Submission.
	Tenant string
	Labels map[string]string
	// Priority is that of the job: see makegood.Submission.
	Priority makegood.Priority
	// Traceparent is the span under which the job is submitted: see makegood.Submission. Empty: it has its own trace.
	Traceparent string
	// child: a step of another job has the id made, and not a person. edit is the edit of the map that it is a part of;
	// nil: none.
	child bool
	edit  *job.MapEdit
}

// check refuses a submission that could never succeed, and returns the input in its canonical form.
func (sub Submission) check(replies []string, now time.Time) (input []byte, err error) {
	if err := makegood.CheckJobID(sub.ID); err != nil && !sub.child {
		return nil, fmt.Errorf("%w: the id %w", ErrInvalid, err)
	}
	if ahead := sub.StartAt.Sub(now); ahead > makegood.MaxStartDelay {
		return nil, fmt.Errorf("%w: startAt of job %s is %s ahead, the limit is %s", ErrInvalid, sub.ID, ahead.Round(time.Second), makegood.MaxStartDelay)
	}
	if _, err := domain.Instant(sub.StartAt).MarshalJSON(); err != nil {
		return nil, fmt.Errorf("%w: startAt of job %s: %w", ErrInvalid, sub.ID, err)
	}
	if sub.ReplyTo != "" && !slices.Contains(replies, sub.ReplyTo) {
		return nil, fmt.Errorf("%w: replyTo %q of job %s is not registered; %s", ErrInvalid, sub.ReplyTo, sub.ID, registered(replies))
	}
	if err := sub.checkNames(); err != nil {
		return nil, fmt.Errorf("%w: job %s: %w", ErrInvalid, sub.ID, err)
	}
	if sub.Input == nil {
		return []byte("null"), nil
	}
	input, err = canonical.JSON(sub.Input)
	if err != nil {
		return nil, fmt.Errorf("%w: input of job %s: %w", ErrInvalid, sub.ID, err)
	}
	if len(input) > makegood.MaxPayloadBytes {
		return nil, fmt.Errorf("%w: input of job %s has %d bytes, the limit is %d", ErrInvalid, sub.ID, len(input), makegood.MaxPayloadBytes)
	}
	return input, nil
}

// checkNames refuses a tenant, labels and a priority that no job can have.
func (sub Submission) checkNames() error {
	if sub.Tenant != "" {
		if err := limits.TenantName.Check(sub.Tenant); err != nil {
			return err
		}
	}
	if err := domain.CheckPriority(sub.Priority); err != nil {
		return err
	}
	return limits.CheckLabels(sub.Labels)
}

// Submit stores a job with its first attempts, and sends them. It answers after the job is stored; the Supervisor makes
// up for messages that could not be sent then. created is false if the same id with the same content was there already,
// which is the same job. Errors: ErrInvalid (also *MisfitError), *MismatchError, *NewerError; any other leaves it
// unknown whether the job was stored: submit it again.
func (s *Scheduler) Submit(ctx context.Context, sub Submission) (j job.Job, created bool, err error) {
	stored, err := s.submit(ctx, sub)
	if err != nil {
		return job.Job{}, false, err
	}
	s.workOffSaved(ctx, stored.work)
	return stored.job, stored.created, nil
}

// submitted is a job that is stored, and the outstanding work of its submission.
type submitted struct {
	job     job.Job
	created bool
	work    *work
}

// submit does what Submit does, but for the sending.
func (s *Scheduler) submit(ctx context.Context, sub Submission) (submitted, error) {
	ctx = s.counting(ctx)
	account := spend.On(ctx)
	input, err := sub.check(s.config.Replies, s.now())
	if err != nil {
		return submitted{}, err
	}
	compiled, err := s.definition(ctx, sub.Definition)
	if err != nil {
		return submitted{}, fmt.Errorf("definition %s: %w", sub.Definition, err)
	}
	if !sub.never() {
		if again, err := s.mayBegin(ctx, compiled, sub, input); err != nil || again.work != nil {
			return again, err
		}
	}
	if err := s.keepLarge(ctx, sub.ID, "input", input); errors.Is(err, ErrInvalid) {
		return s.unless(ctx, sub.ID, contentHash(compiled.Workflow.Name, input), err)
	} else if err != nil {
		return submitted{}, err
	}
	m, err := s.birth(ctx, compiled, sub, input)
	if err != nil {
		return submitted{}, err
	}
	j := m.job
	due := account.Due()
	j.Spent = due
	account.Store(due)
	err = s.config.Jobs.Create(ctx, j)
	if err != nil && len(m.inline) > 0 && s.isStored(ctx, j.ID, j.Birth, j.LockedBy) { // Even if it is refused: a store tries again.
		err = nil
	}
	if err != nil {
		m.leave()
	}
	if errors.Is(err, store.ErrExists) {
		return s.same(ctx, j.ID, j.InputHash)
	}
	if err != nil {
		return submitted{}, fmt.Errorf("create job %s: %w", sub.ID, err)
	}
	account.Keep(due)
	j.Rev, j.Spent = 1, account.Stored()
	if s.config.Saved != nil {
		s.config.Saved(j)
	}
	if s.watched() {
		s.config.Watch.Happened(ctx, []job.Happened{{Workflow: compiled.Workflow, After: j, Event: job.Submitted{}, At: s.now()}})
	}
	m.job = j
	work := s.firstWork(m)
	work.account = account
	return submitted{job: j, created: true, work: work}, nil
}

// mayBegin refuses a submission that no job of its definition can be made of. It returns the job that was made of it
// before, where its input alone is refused now.
func (s *Scheduler) mayBegin(ctx context.Context, c *workflowfile.Compiled, sub Submission, input []byte) (submitted, error) {
	if err := c.CheckQueues(s.config.Agents); err != nil {
		return submitted{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := c.CheckAsked(s.config.Asked); err != nil {
		return submitted{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := s.checkChildren(ctx, c, sub.ID); err != nil {
		return submitted{}, err
	}
	if err := fits(c, sub.ID, input); err != nil {
		return s.unless(ctx, sub.ID, contentHash(c.Workflow.Name, input), err)
	}
	return submitted{}, nil
}

// ContentHash identifies the content of a submission: the name of its workflow and the canonical form of its
// input.
func ContentHash(workflow string, input json.RawMessage) (string, error) {
	canonicalInput, err := canonical.JSON(input)
	if err != nil {
		return "", err
	}
	return contentHash(workflow, canonicalInput), nil
}

func contentHash(workflow string, canonicalInput []byte) string {
	return canonical.Hash(append([]byte(workflow+"\n"), canonicalInput...))
}

// born returns what a job is born from, with its input put where it belongs.
func (v *values) born(sub Submission, input []byte) machine.Submission {
	hash := contentHash(v.compiled.Workflow.Name, input)
	birth := machine.Submission{
		ID: sub.ID, Definition: v.compiled.Hash, InputHash: hash, Birth: v.birth,
		StartAt: domain.Instant(sub.StartAt), ReplyTo: sub.ReplyTo, Tenant: sub.Tenant, Labels: maps.Clone(sub.Labels), Priority: domain.StoredPriority(sub.Priority), Trace: telemetry.StoredSpan(telemetry.ReadTraceparent(sub.Traceparent)),
		Input: job.Payload{Inline: input, Bytes: len(input)}, Edit: sub.edit,
	}
	if len(input) > limits.MaxInlineBytes {
		birth.Input = v.keep(v.inputKey(input), input)
	}
	return birth
}

// registered says which names there are.
func registered(replies []string) string {
	if len(replies) == 0 {
		return "none is registered"
	}
	return fmt.Sprintf("registered are %v", replies)
}

// Intent returns a job as it is to be stored in a transaction of the submitter's own, and the payloads
// to be stored with it. It has no attempts yet: a Submitted event makes them once the transaction is
// committed, and the Supervisor if that never comes. replies are the registered names for replyTo.
func Intent(c *workflowfile.Compiled, sub Submission, replies []string, now time.Time) (job.Job, map[string]json.RawMessage, error) {
	now = domain.Instant(now)
	input, err := sub.check(replies, now)
	if err != nil {
		return job.Job{}, nil, err
	}
	if err := fits(c, sub.ID, input); err != nil {
		return job.Job{}, nil, err
	}
	if refs, err := domain.FindPayloads(input); err != nil || len(refs) > 0 {
		// No process would make sure that they are there.
		return job.Job{}, nil, fmt.Errorf("%w: the input of job %s refers to large payloads, which a submission in a transaction cannot", ErrInvalid, sub.ID)
	}
	v := &values{compiled: c}
	v.birth = nonce(randomBytes)
	birth := v.born(sub, input)
	birth.Later = true
	j, _ := machine.Submit(c.Workflow, birth, machine.Facts{}, now)
	return j, v.fresh, nil
}

// birth returns the job as it is to be stored, its input written if it is large.
func (s *Scheduler) birth(ctx context.Context, c *workflowfile.Compiled, sub Submission, input []byte) (*moved, error) {
	m := &moved{compiled: c, values: s.newValues(c)}
	v := &m.values
	v.birth = nonce(s.config.Bytes)
	birth := v.born(sub, input)
	held, err := s.held(ctx, job.Job{}, nil)
	if err != nil {
		return nil, err
	}
	var full []string
	facts := s.facts(new(knowledge), held, new(job.Job))
	facts.Graph = s.graph(c)
	m.lane, m.since, m.now = s.laneOf(ctx, c, full), time.Now(), s.now()
	for {
		facts.Lane, m.lockedBy = m.lane, m.lane.LockedBy
		j, verdict := machine.Submit(c.Workflow, birth, facts, m.now)
		if verdict.Kind == machine.Wanting {
			if err := v.learn(ctx, &facts, j, verdict.Wants); err != nil {
				return nil, err
			}
			facts.Room = j.Steps
			continue
		}
		if more := s.enter(m, j); more != nil {
			full = append(full, more...)
			m.lane = s.laneOf(ctx, c, full)
			continue
		}
		v.enter(&j, verdict.Entries)
		m.job = j
		if err := v.write(ctx, j); err != nil {
			m.leave()
			return nil, err
		}
		return m, nil
	}
}

// unless returns the job that is stored with this very content, and why a new one is refused where there is none: a
// caller that submits again for want of an answer gets the job that it made, even if the workflow's input rule has
// changed since.
func (s *Scheduler) unless(ctx context.Context, id, hash string, refused error) (submitted, error) {
	stored, err := s.same(ctx, id, hash)
	if mismatch := (*MismatchError)(nil); errors.Is(err, store.ErrNotFound) || errors.As(err, &mismatch) {
		return submitted{}, refused
	}
	return stored, err
}

// same returns the job that is stored under an id, if it has the same content, and the unclaimed work of its
// submission.
func (s *Scheduler) same(ctx context.Context, id, hash string) (submitted, error) {
	have, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) {
		return submitted{}, errNewerJob
	}
	if err != nil {
		return submitted{}, fmt.Errorf("load job %s: %w", id, err)
	}
	if have.InputHash != hash {
		return submitted{}, &MismatchError{Job: id, Have: have.InputHash, Got: hash}
	}
	// The first submitter may have died before their tasks were sent, or have stored the job in a
	// transaction of their own and died then.
	again := []job.Event{job.Submitted{}}
	return submitted{job: have, work: &work{job: id, events: again, next: again, account: spend.On(ctx)}}, nil
}

// firstWork holds what the submission of a new job made due.
func (s *Scheduler) firstWork(m *moved) *work {
	w := workOn(m.job.ID)
	w.moved, w.events = m, append(w.events, job.Submitted{})
	if machine.AtGate(m.job) { // It is moved first, and the commands are those of the job as it is then.
		w.next = append(w.next, job.Submitted{})
		return w
	}
	m.commands = pending(m.compiled.Workflow, m.job, w.events, s.now())
	return w
}

// hopeless: a message that can never be understood, or a submission that will be refused however often
// it is made.
func hopeless(err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, wire.ErrPoison) || errors.Is(err, store.ErrDamaged) || errors.As(err, new(*MismatchError))
}

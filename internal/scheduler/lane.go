package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Lane runs inline attempts in this process.
type Lane interface {
	// Agents are those that are linked into this process and may begin attempts now. Until is when it has no more time;
	// zero: there is no such end.
	Agents(ctx context.Context) (agents []string, until time.Time)
	// Secrets reports whether it can give agents their secrets. Without, steps that read one go through the queues.
	Secrets() bool
	// Enter takes a place for one attempt of an agent; leave gives it back. ok is false if no place is free.
	Enter(agent string, undo bool) (leave func(), ok bool)
	// Run does the task of an attempt that the save of lockedBy has opened, in a place that was entered for it, and returns
	// the reply of its agent; nil if the attempt must stay silent. since is a time before that save, by the monotonic
	// clock.
	Run(ctx context.Context, task makegood.Task, lockedBy string, since time.Time) job.Event
	// Drive calls each of drivers, side by side. It may return before they do, and gives them a context of their own then.
	Drive(ctx context.Context, drivers []func(context.Context))
}

const (
	// siblingsWithin is how long the reply of an inline attempt waits for those of others of its job, to share a save.
	siblingsWithin = 50 * time.Millisecond
	// readBackWithin is how long a save with an unknown outcome is read back.
	readBackWithin = 2 * time.Second
)

// errFull: an agent has no place for an inline attempt that was decided on; the decision is made again without it.
var errFull = errors.New("no free place for an inline attempt")

// inlined is an inline attempt that a save has opened, with those behind it in its chain, and the place of the first.
type inlined struct {
	chain []job.Dispatch
	leave func()
}

// leave gives the places back of attempts that are not begun.
func (m *moved) leave() {
	for _, a := range m.inline {
		a.leave()
	}
	m.inline = nil
}

// laneOf returns the right to run inline attempts after a coming save, and names that save. without are agents that
// turned out to be full. A workflow without inline steps has none.
func (s *Scheduler) laneOf(ctx context.Context, c *workflowfile.Compiled, without []string) machine.Lane {
	if s.config.Lane == nil || !slices.ContainsFunc(c.Workflow.Steps, func(s makegood.Step) bool { return s.Inline }) {
		return machine.Lane{}
	}
	var queued []string
	if !s.config.Lane.Secrets() {
		queued = c.ReadSecrets()
	}
	agents, until := s.config.Lane.Agents(ctx)
	if len(without) > 0 {
		agents = slices.DeleteFunc(slices.Clone(agents), func(a string) bool { return slices.Contains(without, a) })
	}
	// Of the Scheduler's own random bytes: the history of the job quotes it.
	return machine.Lane{LockedBy: s.config.Instance + ":" + nonce(s.config.Bytes), Agents: agents, Queued: queued, Until: until}
}

// enter takes places for the inline attempts that a decision has opened. Where agents have none, it keeps none, and
// names those agents.
func (s *Scheduler) enter(m *moved, j job.Job) (full []string) {
	if m.lane.LockedBy == "" {
		return nil
	}
	for _, chain := range machine.Inlined(m.compiled.Workflow, j, m.lane.LockedBy) {
		agent := machine.AgentOf(m.compiled.Workflow, chain[0].Step, chain[0].Undo)
		if leave, ok := s.config.Lane.Enter(agent, chain[0].Undo); ok {
			m.inline = append(m.inline, inlined{chain, leave})
		} else {
			full = append(full, agent)
		}
	}
	if full != nil {
		m.leave()
	}
	return full
}

// isStored reads a job back, after a write with an unknown outcome, and reports whether that write holds: then it alone
// may run the inline attempts that it has opened.
func (s *Scheduler) isStored(ctx context.Context, id, birth, lockedBy string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackWithin)
	defer cancel()
	stored, err := s.config.Jobs.Load(ctx, id)
	return err == nil && stored.Birth == birth && stored.LockedBy == lockedBy
}

// run is the inline attempts of one job that run here: those of one save, and those that their replies open.
type run struct {
	job     string
	account *spend.Account
	replies chan []job.Event
	running int
	// told is closed when people were told of the move that began the first of them.
	told chan struct{}
}

// beginInline begins the inline attempts that the last move of a job has opened.
func (s *Scheduler) beginInline(ctx context.Context, w *work) {
	if w.moved == nil || len(w.moved.inline) == 0 {
		return
	}
	opened := w.moved.inline
	w.moved.inline = nil
	if w.run == nil {
		// Room for each side of each step: no attempt waits for a driver that has died.
		w.run = &run{job: w.job, account: w.account, replies: make(chan []job.Event, 2*len(w.moved.job.Steps)), told: make(chan struct{})}
	}
	for _, a := range opened {
		task, err := s.ownTask(spend.With(ctx, w.account), w.moved, a.chain[0])
		if err != nil {
			a.leave()
			if len(a.chain) > 1 {
				w.follows(chainEnds(w.moved, a.chain[1]))
			}
			w.follows(s.notBegun(w.moved, a.chain[0], err))
			continue
		}
		w.run.running++
		r, c := w.run, s.newChain(ctx, w, a)
		s.crew.Go(func() {
			// Deferred: an agent that ends its goroutine must not leave its job waiting.
			defer func() { r.replies <- c.ended() }()
			c.run(task)
		})
	}
}

// ownTask makes a task that its agent may write into, as into one that came by a queue: the job has the same bytes.
func (s *Scheduler) ownTask(ctx context.Context, m *moved, d job.Dispatch) (makegood.Task, error) {
	task, err := s.task(ctx, m, d)
	task.Input = slices.Clone(task.Input)
	if task.Undo != nil {
		task.Undo.Output = cloneOrNull(task.Undo.Output)
	}
	return task, err
}

// cloneOrNull copies JSON. A message has null in the place of none.
func cloneOrNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return slices.Clone(value)
}

// notBegun is the end of an inline attempt with a task that could not be made. One that can never be made is refused;
// another is a failure that has applied nothing, and may be tried again.
func (s *Scheduler) notBegun(m *moved, d job.Dispatch, err error) job.Event {
	reason := never(err)
	if park := new(parkError); errors.As(err, &park) {
		reason = park.reason
	}
	if reason != "" {
		return refused(d, reason)
	}
	return job.StepFailed{
		Reply: job.Reply{Step: d.Step, Attempt: d.Attempt, Token: machine.Token(m.job, d.Step, d.Attempt), LockedBy: m.lockedBy, StartedAt: m.now},
		Error: job.StepError{Message: "its task could not be made: " + err.Error(), Retryable: true, Applied: makegood.AppliedNo},
	}
}

// drivers returns one for each job of a list whose inline attempts run here. It goes on with its job until none does.
func (s *Scheduler) drivers(list []*work) (drivers []func(context.Context)) {
	for _, w := range list {
		if r := w.run; r != nil {
			drivers = append(drivers, func(ctx context.Context) { s.drive(ctx, r) })
		}
	}
	return drivers
}

// drive moves a job by the replies of its inline attempts. A reply that cannot be saved here goes to the events queue,
// as that of any other agent does.
func (s *Scheduler) drive(ctx context.Context, r *run) {
	told := r.told
	defer func() { <-told }()
	for r.running > 0 {
		replies := r.gather()
		if len(replies) == 0 {
			continue // Nothing may be said: the attempt has ended in silence.
		}
		w := &work{job: r.job, events: replies, next: replies, run: r, account: r.account, stale: !ended(told)}
		s.carryOut(ctx, []*work{w})
		if w.err != nil {
			s.config.Logger.WarnContext(ctx, "replies of inline attempts go to the events queue", "job", r.job, "replies", len(replies), "error", w.err)
			s.sendReplies(ctx, r.job, replies)
		}
		told = s.tellAfter(ctx, told, w)
	}
}

// tellAfter tells people of a job when those of its last move were told. The job does not wait for them.
func (s *Scheduler) tellAfter(ctx context.Context, before chan struct{}, w *work) (told chan struct{}) {
	if !w.tells() && len(w.alerts) == 0 {
		return before
	}
	told = make(chan struct{})
	go func() {
		defer close(told)
		<-before
		s.stillUntold(ctx, w)
		s.tellPeople(ctx, []*work{w})
	}()
	return told
}

// stillUntold leaves the announcements that were not made meanwhile, and are to be made now. Where the job cannot be
// read, the Supervisor comes to them.
func (s *Scheduler) stillUntold(ctx context.Context, w *work) {
	if len(w.notices) == 0 || !w.stale {
		return
	}
	w.notices = nil
	j, err := s.config.Jobs.Load(ctx, w.job)
	if err != nil || j.Birth != w.moved.job.Birth {
		return
	}
	for _, c := range machine.Untold(j, s.now()) {
		w.notices = append(w.notices, c.Announcement)
	}
}

// ended reports whether a channel is closed.
func ended(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// gather waits for a reply, and a little longer for others of the job.
func (r *run) gather() (replies []job.Event) {
	note := func(of []job.Event) {
		r.running--
		replies = append(replies, of...)
	}
	note(<-r.replies)
	if r.running == 0 {
		return replies
	}
	patience := time.NewTimer(siblingsWithin)
	defer patience.Stop()
	for r.running > 0 {
		select {
		case of := <-r.replies:
			note(of)
		case <-patience.C:
			return replies
		}
	}
	return replies
}

// sendReplies sends replies to the events queue. One that cannot be sent is lost, and its attempt falls silent.
func (s *Scheduler) sendReplies(ctx context.Context, id string, replies []job.Event) {
	messages := make([]queue.Message, 0, len(replies))
	for _, e := range replies {
		body, err := wire.EncodeReply(id, e, job.Spent{})
		if err != nil {
			s.config.Logger.ErrorContext(ctx, "a reply of an inline attempt has no form on the wire", "job", id, "error", err)
			continue
		}
		messages = append(messages, queue.Message{Body: body, Group: id})
	}
	if err := errors.Join(s.config.Queue.Send(ctx, s.config.Events, messages...)...); err != nil {
		s.config.Logger.ErrorContext(ctx, "replies of inline attempts are lost, and the attempts end in silence", "job", id, "error", err)
	}
}

// unclear reports whether it is unknown after an error if a write holds.
func unclear(err error) bool {
	return err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrTooLarge) &&
		!errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrNewer)
}

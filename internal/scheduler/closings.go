package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/crew"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
)

// maxClosings is how many claim items of one job are looked at, or closed, at the same time.
const maxClosings = 32

// knowledge is what one move has found out about claims, over all its tries.
type knowledge struct {
	mu    sync.Mutex
	found map[machine.Ask]job.Found
	// unsaved are those that are true of this try only: they are about attempts that it has opened itself.
	unsaved []machine.Ask
	// full are agents without a free place for an inline attempt.
	full []string
}

// note keeps an answer. Most moves ask no question, so there is no map before the first. k.mu is held.
func (k *knowledge) note(ask machine.Ask, found job.Found) {
	if k.found == nil {
		k.found = make(map[machine.Ask]job.Found)
	}
	k.found[ask] = found
}

// forgetLooks keeps the closings, which stay true, and drops the looks and the permits, which may not. A claim of an
// attempt newer than the job knew is kept, too: it is judged over the job as it is loaded after it was seen.
func (k *knowledge) forgetLooks() {
	for ask, found := range k.found {
		if ask.Kind == machine.AskPermit || ask.Kind == machine.AskLook && found.Finding != job.FoundOver || ask.Kind == machine.AskItems {
			delete(k.found, ask)
		}
	}
	for _, ask := range k.unsaved {
		delete(k.found, ask)
	}
	k.unsaved = nil
}

// forgetQueued drops what is known of attempts that waited for a permit: a hint says that one has come.
func (k *knowledge) forgetQueued() {
	for ask, found := range k.found {
		if found.Finding == job.FoundQueued {
			delete(k.found, ask)
		}
	}
}

// assume answers questions about an attempt that an earlier event of the same batch has opened, or let through its
// gate. Its task was not sent, and it must not be closed before it was saved: if this save fails, it would be closed
// for the one that opens it.
func (k *knowledge) assume(ask machine.Ask) {
	found := job.Found{Finding: job.FoundNobody}
	if ask.Kind == machine.AskLook {
		found.Finding = job.FoundOpen
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(ask, found)
	k.unsaved = append(k.unsaved, ask)
}

// findOut answers what the core asks about the claims of a job. It fails with store.ErrConflict where the job must be
// loaded afresh before the answer can be judged.
func (s *Scheduler) findOut(ctx context.Context, m *moved, j job.Job, asks []machine.Ask) error {
	if len(asks) == 0 {
		return nil
	}
	return s.answerAll(ctx, m, j, asks)
}

// answerAll is apart from findOut, which then makes no copy of a job without questions.
func (s *Scheduler) answerAll(ctx context.Context, m *moved, j job.Job, asks []machine.Ask) error {
	if err := s.findGates(ctx, m, j, asks); err != nil {
		return err
	}
	errs := unanswered(len(asks))
	s.crew.Each(len(asks), maxClosings, func(i int) { errs[i] = s.answer(ctx, m, j, asks[i]) })
	return errors.Join(errs...)
}

// errUnanswered stands for a missing answer: a goroutine that ends without one has none.
var errUnanswered = errors.New("no answer")

func unanswered(n int) []error { return slices.Repeat([]error{errUnanswered}, n) }

func (s *Scheduler) answer(ctx context.Context, m *moved, j job.Job, ask machine.Ask) error {
	if ask.Kind == machine.AskPermit {
		return s.askPermit(ctx, m, j, ask)
	}
	if was, _ := (job.Job{Steps: m.loaded.steps}).Step(ask.Step); ask.Attempt > was.Attempt || was.Forward.Queued || was.Undo.Queued {
		m.known.assume(ask)
		return nil
	}
	found, err := s.ask(ctx, m, j, ask, m.now)
	if errors.Is(err, store.ErrConflict) {
		// The claim that was to be overruled is another one now: no finding counts any more.
		m.known.mu.Lock()
		clear(m.known.found)
		m.known.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("%s attempt %d of step %s of job %s: %w", ask.Kind, ask.Attempt, ask.Step, j.ID, err)
	}
	m.known.mu.Lock()
	m.known.note(ask, found)
	m.known.mu.Unlock()
	if found.Finding == job.FoundOver {
		return fmt.Errorf("claim of a newer attempt of step %s of job %s: %w", ask.Step, j.ID, store.ErrConflict)
	}
	return nil
}

// ask asks as of now: for a decision, its moment.
func (s *Scheduler) ask(ctx context.Context, m *moved, j job.Job, ask machine.Ask, now time.Time) (job.Found, error) {
	if ask.Kind == machine.AskItems {
		return s.askItems(ctx, j, ask)
	}
	if isChild(m.compiled.Workflow, ask.Step, ask.Undo) {
		return s.askChild(ctx, m, j, ask)
	}
	slot, until := slotOf(m.compiled.Workflow, j, ask.Step, ask.Undo)
	switch ask.Kind {
	case machine.AskLook:
		return s.config.Closings.Look(ctx, slot, ask.Attempt, until, now)
	case machine.AskClose:
		c := store.Closing{Attempt: ask.Attempt, Until: until, Now: now, LockedBy: ask.LockedBy}
		if ask.Mark {
			c.Ends = machine.ClosingEnds(m.compiled.Workflow, ask.Step, ask.Undo, c.Now)
		}
		found, err := s.config.Closings.Close(ctx, slot, c)
		if found.Finding == job.FoundSilent && ask.LockedBy == "" {
			spend.On(ctx).Add(silent())
		}
		return found, err
	case machine.AskOverrule:
		s.stats.Add(func(t *Stats) { t.Lies++ })
		s.config.Logger.ErrorContext(ctx, "an agent's claim cannot be true, and is overruled",
			"job", j.ID, "step", ask.Step, "attempt", ask.Attempt, "agent", slot.Agent, "lockedBy", ask.LockedBy)
		return job.Found{}, s.config.Closings.Overrule(ctx, slot, ask.Attempt, ask.LockedBy, until)
	default:
		panic(fmt.Sprintf("scheduler: unknown ask %q", ask.Kind))
	}
}

// slotOf names the claim item of a step, and says until when its latest attempt can be claimed.
func slotOf(w makegood.Workflow, j job.Job, step string, undo bool) (slot store.Slot, until time.Time) {
	state, _ := j.Step(step)
	activity := state.Forward
	if undo {
		activity = state.Undo
	}
	agent := machine.AgentOf(w, step, undo)
	return store.Slot{Agent: agent, Job: j.ID, Birth: j.Birth, Step: step}, activity.ClaimUntil()
}

// close closes the attempts of a job that are unwanted. The answers move it, all in one move. A failed closing is an
// error beside that; the event comes again, or the Supervisor does.
func (s *Scheduler) close(ctx context.Context, w *work) {
	unwanted := w.unwanted
	w.unwanted = nil
	ctx = spend.With(ctx, w.account)
	errs := unanswered(len(unwanted))
	answers := make([]job.Event, len(unwanted))
	s.crew.Each(len(unwanted), maxClosings, func(i int) {
		answers[i], errs[i] = s.closeOne(ctx, w.moved, unwanted[i])
	})
	for _, e := range answers {
		if e != nil {
			w.follows(e)
		}
	}
	w.fail(errors.Join(errs...))
}

func (s *Scheduler) closeOne(ctx context.Context, m *moved, c job.CloseAttempt) (job.Event, error) {
	ask := machine.Ask{Kind: machine.AskClose, Step: c.Step, Attempt: c.Attempt, Undo: c.Undo, Mark: c.Mark, Redrives: c.Redrives}
	found, err := s.ask(ctx, m, m.job, ask, s.now())
	if err != nil {
		return nil, fmt.Errorf("close attempt %d of step %s of job %s: %w", c.Attempt, c.Step, m.job.ID, err)
	}
	s.stats.Add(func(t *Stats) { t.Closed++ })
	return job.AttemptClosed{Step: c.Step, Attempt: c.Attempt, Found: found, Asked: c.Asked}, nil
}

// Held returns the claims on those attempts of a job that are out, by step: for people to look at. It leaves out
// attempts without a holder, and all attempts of a newer release's job.
func (s *Scheduler) Held(ctx context.Context, j job.Job) (map[string]job.Claim, error) {
	compiled, err := s.definition(ctx, j.Definition)
	if errors.Is(err, store.ErrNewer) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("definition %s of job %s: %w", j.Definition, j.ID, err)
	}
	return Held(ctx, s.config.Closings, compiled.Workflow, j, s.now())
}

// Looker looks at claim items; see store.Closings.
type Looker interface {
	Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error)
}

// Held is the method of this name for a caller that has a store and no Scheduler.
func Held(ctx context.Context, closings Looker, w makegood.Workflow, j job.Job, now time.Time) (map[string]job.Claim, error) {
	asks := machine.Out(w, j)
	held := map[string]job.Claim{}
	if len(asks) > 0 {
		var err error
		if held, err = (looks{closings, w, j, now}).held(ctx, asks); err != nil {
			return nil, err
		}
	}
	for i := range j.Steps { // By index: a step is large.
		if claim, is := machine.ClaimWithin(w, j, i); is {
			held[j.Steps[i].Name] = claim
		}
	}
	return held, nil
}

// looks are looks at the claims of one job. They are apart from Held, which then makes no copy of a job without open
// attempts.
type looks struct {
	closings Looker
	w        makegood.Workflow
	j        job.Job
	now      time.Time
}

func (l looks) held(ctx context.Context, asks []machine.Ask) (map[string]job.Claim, error) {
	found := make([]job.Found, len(asks))
	errs := unanswered(len(asks))
	new(crew.Crew).Each(len(asks), maxClosings, func(i int) {
		slot, until := slotOf(l.w, l.j, asks[i].Step, asks[i].Undo)
		found[i], errs[i] = l.closings.Look(ctx, slot, asks[i].Attempt, until, l.now)
	})
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("claims of job %s: %w", l.j.ID, err)
	}
	held := make(map[string]job.Claim)
	for i, f := range found {
		if f.Finding == job.FoundHeld {
			held[asks[i].Step] = f.Claim
		}
	}
	return held, nil
}

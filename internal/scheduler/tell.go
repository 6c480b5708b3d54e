package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
)

// tellWithin is how long telling of one job may take: less than a minute, after which it is tried again anyway, and
// little enough that a batch has time for it.
const tellWithin = 5 * time.Second

// grace is how long receivers have, when the time is over, to come back by themselves.
const grace = 200 * time.Millisecond

// The receivers of notices, as the log names them; the registered name of a listener or an asked person comes behind.
const (
	toOperator      = "operator"
	toOperatorAgent = "operator, of agents"
	toListener      = "listener "
	toAsked         = "asked "
	toChanges       = "changes"
)

const (
	// alertEvery is how often an operator is told, at most, that an agent claims no tasks.
	alertEvery = time.Hour
	// alertAgain is the pause after an alert that did not reach them. The next task that is due again tells
	// them then.
	alertAgain = time.Minute
)

// tell makes the announcements of a job in their order, those to the operator and the listener side by side, and notes
// in the job which were made. A failed announcement holds up neither the job nor its events: it stays in the job, which
// stays in the index, and the Supervisor comes to it.
func (s *Scheduler) tell(ctx context.Context, w *work, published publishing) {
	ctx = spend.With(ctx, w.account)
	e := s.tellAll(ctx, w)
	if of := published.of(w); of != nil {
		e = append(e, of)
	}
	if len(e) == 0 {
		return
	}
	// Noting receivers makes no new work; a notice that was not given now is given in its time.
	m, err := s.moveOrPark(ctx, w.job, e, new(knowledge))
	w.fail(err)
	if m != nil && m.job.Changes.Seq > w.moved.job.Changes.Seq {
		s.publishLast(ctx, m.job)
	}
}

// tellAll tells, and returns the events that say which receivers were told.
func (s *Scheduler) tellAll(ctx context.Context, w *work) []job.Event {
	if len(w.notices) == 0 && len(w.asks) == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	var told, heard, unheard int
	var asked []job.Event
	var wg sync.WaitGroup
	wg.Go(func() {
		told, _ = s.announce(within, w, recipient{toOperator, s.config.Notifier}, func(a job.Announcement) bool { return a.Operator })
	})
	wg.Go(func() {
		to := recipient{toListener + w.moved.job.ReplyTo, s.config.Listener}
		heard, unheard = s.announce(within, w, to, func(a job.Announcement) bool { return a.Listener })
	})
	wg.Go(func() { asked = s.askAll(within, w) })
	wg.Wait()
	return append(toldOf(told, heard, unheard), asked...)
}

// toldOf puts into events up to which announcement each receiver was told.
func toldOf(operator, listener, unheard int) (all []job.Event) {
	switch {
	case operator > 0 && operator == listener:
		all = append(all, job.Told{Seq: operator, Operator: true, Listener: true})
	default:
		if operator > 0 {
			all = append(all, job.Told{Seq: operator, Operator: true})
		}
		if listener > 0 {
			all = append(all, job.Told{Seq: listener, Listener: true})
		}
	}
	if unheard > 0 {
		all = append(all, job.NotHeard{Seq: unheard})
	}
	return all
}

// recipient is a receiver of a job's notices, and its name.
type recipient struct {
	name     string
	notifier notify.Notifier
}

// announce makes the notices for one receiver, in their order, until one fails: told is the last that was made, failed
// the one that was not. Receivers get one notice at a time.
func (s *Scheduler) announce(ctx context.Context, w *work, to recipient, theirs func(job.Announcement) bool) (told, failed int) {
	for _, a := range w.notices {
		if !theirs(a) {
			continue
		}
		if to.notifier != nil {
			notice := notify.Notice{Job: w.job, Workflow: w.moved.job.Workflow, ReplyTo: w.moved.job.ReplyTo, Announcement: a}
			if a.Operator {
				notice.Step, notice.ErrorKind, notice.Since = standsAt(w.moved.job, a)
			}
			err := s.receivers.Call(ctx, to.name, grace, func() error { return to.notifier.Announce(ctx, notice) })
			if errors.Is(err, notify.ErrElsewhere) || errors.Is(err, notify.ErrGathered) {
				return told, 0
			}
			if err != nil {
				s.config.Logger.WarnContext(ctx, "announcement is made again later", "job", w.job, "seq", a.Seq, "status", a.ProcessState, "error", err)
				return told, a.Seq
			}
			// Not by comparing notifiers: one may be a map.
			if theirs(job.Announcement{Listener: true}) {
				w.account.Add(oneRequest())
			}
		}
		told = a.Seq
	}
	return told, 0
}

// standsAt says where a job stands that an operator hears of, if it stands as it did when that was announced, and since
// when it has stopped.
func standsAt(j job.Job, a job.Announcement) (step, kind string, since time.Time) {
	if stopped := a.ProcessState == makegood.JobError && a.ExpectBy.IsZero(); stopped != (j.ProcessState == makegood.JobError) {
		return "", "", since
	}
	listed := store.ListedOf(j)
	if len(listed.Stands) > 0 {
		step = listed.Stands[0].Step
	}
	if a.ExpectBy.IsZero() {
		kind, since = listed.Kind, listed.StoppedAt
	}
	return step, kind, since
}

// alert tells an operator that an agent's tasks are not claimed, or that the breaker has paused it: once for many jobs,
// and never at the cost of their events.
func (s *Scheduler) alert(ctx context.Context, a alert) {
	now, of := s.now(), alert{agent: a.agent}
	if a.paused != "" {
		of.paused = "paused"
	}
	last, known := s.alerts.LoadOrStore(of, now.Add(alertEvery))
	if known && (now.Before(last.(time.Time)) || !s.alerts.CompareAndSwap(of, last, now.Add(alertEvery))) {
		return
	}
	within, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	tell := func() error { return s.config.Notifier.AgentAlert(within, a.agent, a.paused) }
	if err := s.receivers.Call(within, toOperatorAgent, grace, tell); err != nil {
		s.config.Logger.WarnContext(ctx, "alert about an agent was not delivered", "agent", a.agent, "error", err)
		s.alerts.Store(of, now.Add(alertAgain))
	}
}

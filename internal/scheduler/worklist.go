package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// sendWithin is how long what a caller's save made due is tried to be sent.
const sendWithin = 10 * time.Second

// work is the work on one job: to move it by events, and to carry out the commands that follow.
type work struct {
	job string
	// events are those that came, and records those that carried them: one each, in the same order. What a caller
	// asks for has none.
	events  []job.Event
	records []events.SQSMessage
	// next are the events to move the job by now: those that came, and later what became of its tasks and closings.
	next []job.Event
	// moved is the job as it was moved last; nil: it was not. verdicts are those on all events so far, in their order.
	moved    *moved
	verdicts []machine.Verdict
	// known is memory for moving the job.
	known knowledge
	// unwanted are the attempts that are to be closed, and sent those with tasks that are out.
	unwanted []job.CloseAttempt
	sent     []job.Dispatch
	// births are the attempts that children do, which are to be begun.
	births []birth
	// notices are the announcements of the job as it was moved last, and alerts are the agents to tell of.
	notices []job.Announcement
	// asks are the people to tell that a step waits for them.
	asks   []job.Ask
	alerts []alert
	// account collects the usage of the job; nil: it is not counted. brought is the usage that replies report.
	account *spend.Account
	brought job.Spent
	// run is the inline attempts of the job that run here; nil: there are none.
	run *run
	// stale says that people were being told of an earlier move of the run while the job was moved.
	stale bool
	// publish says that changes of the job are pending.
	publish *job.Publish
	// err is all that failed: the records must come again.
	err error
	// room has the first of each of these lists: most work has one event, which sends one task.
	room struct {
		events, next [1]job.Event
		records      [1]events.SQSMessage
		sent         [1]job.Dispatch
	}
}

// workOn returns the work on a job, without events.
func workOn(id string) *work {
	w := &work{job: id}
	w.events, w.next, w.records, w.sent = w.room.events[:0], w.room.next[:0], w.room.records[:0], w.room.sent[:0]
	return w
}

// came adds an event, and the record that carried it.
func (w *work) came(in wire.Incoming, record events.SQSMessage) {
	w.events, w.next, w.records = append(w.events, in.Event), append(w.next, in.Event), append(w.records, record)
	w.brought = w.brought.Plus(brought(in))
}

// becomes takes a job as it was moved. Receivers are told of that, and get no earlier notices.
func (w *work) becomes(m *moved) {
	w.moved, w.notices, w.asks, w.publish = m, nil, nil, nil
	w.alerts, m.alerts = append(w.alerts, m.alerts...), nil
	if w.verdicts == nil {
		w.verdicts = slices.Clip(m.verdicts)
		return
	}
	w.verdicts = append(w.verdicts, m.verdicts...)
}

// follows adds an event that reports the outcome of a command.
func (w *work) follows(e job.Event) { w.next = append(w.next, e) }

// isSent notes that the task of an attempt is out.
func (w *work) isSent(d job.Dispatch) {
	w.sent = append(w.sent, d)
}

// fail notes what failed, if anything did.
func (w *work) fail(err error) { w.err = errors.Join(w.err, err) }

// workOff does all work of a list. The jobs are moved, and the tasks of all go out together; the rest is each job's own
// affair. People are told when all tasks are out, beside the inline attempts: no job waits for an agent, nor its reply,
// because a receiver is slow to listen.
func (s *Scheduler) workOff(ctx context.Context, list []*work) {
	s.carryOut(ctx, list)
	drivers := s.drivers(list)
	if len(drivers) == 0 {
		s.tellPeople(ctx, list)
		return
	}
	var telling sync.WaitGroup
	telling.Go(func() {
		defer func() {
			for _, w := range those(list, func(w *work) bool { return w.run != nil }) {
				close(w.run.told)
			}
		}()
		s.tellPeople(ctx, list)
	})
	s.config.Lane.Drive(ctx, drivers)
	telling.Wait()
}

// carryOut moves the jobs of a list, and does what that makes due, but for telling people.
func (s *Scheduler) carryOut(ctx context.Context, list []*work) {
	s.round(ctx, list)
	following := those(list, func(w *work) bool { return len(w.unwanted) > 0 || len(w.next) > 0 })
	s.crew.Each(len(following), maxClosings, func(i int) { s.followUp(ctx, following[i]) })
}

// tells reports whether people are to be told of the job.
func (w *work) tells() bool { return len(w.notices) > 0 || len(w.asks) > 0 || w.publish != nil }

// tellPeople tells people of the jobs of a list, and of agents that claim no tasks.
func (s *Scheduler) tellPeople(ctx context.Context, list []*work) {
	telling := those(list, (*work).tells)
	published := s.publishAll(ctx, list)
	s.crew.Each(len(telling), maxClosings, func(i int) { s.tell(ctx, telling[i], published) })
	for _, w := range list {
		for _, a := range w.alerts {
			s.alert(ctx, a)
		}
	}
}

// those returns the work of a list that meets a condition: most work has no follow-up and no receivers.
func those(list []*work, is func(*work) bool) (some []*work) {
	for _, w := range list {
		if is(w) {
			some = append(some, w)
		}
	}
	return some
}

// round moves jobs, and sends what that makes due.
func (s *Scheduler) round(ctx context.Context, list []*work) {
	out := make(outbox, 0, len(list))
	s.crew.Each(len(list), maxClosings, func(i int) { s.moveNext(ctx, list[i]) })
	for _, w := range list {
		s.derive(ctx, &out, w)
	}
	s.send(ctx, out)
	for _, w := range list {
		s.beginInline(ctx, w)
	}
	s.leaveGates(ctx, list)
	if bearing := those(list, func(w *work) bool { return len(w.births) > 0 }); len(bearing) > 0 {
		s.bear(ctx, bearing)
	}
}

// followUp goes on with one job until it has no more events: unwanted attempts are closed, and the outcomes of that,
// and of refused tasks, move it again. A claim item that does not answer holds up its own job alone.
func (s *Scheduler) followUp(ctx context.Context, w *work) {
	for len(w.unwanted) > 0 || len(w.next) > 0 {
		s.close(ctx, w)
		if len(w.next) > 0 {
			s.round(ctx, []*work{w})
		}
	}
}

// workOffSaved carries out the commands of a save for a caller, which may have hung up since: that must not cost the
// job the time until it is found due. An error is not the caller's: the job is stored, and the Supervisor sees to it.
func (s *Scheduler) workOffSaved(ctx context.Context, w *work) {
	ctx, cancel := pause.Until(ctx, time.Now().Add(sendWithin))
	defer cancel()
	s.workOff(ctx, []*work{w})
	if w.err != nil {
		s.config.Logger.WarnContext(ctx, "the due work waits for the Supervisor", "job", w.job, "error", w.err)
	}
}

// moveNext moves a job by the events that are next. A job that was stored just now has none.
func (s *Scheduler) moveNext(ctx context.Context, w *work) {
	if len(w.next) == 0 {
		return
	}
	next := w.next
	w.next = nil
	ctx = spend.With(ctx, w.account)
	m, err := s.moveOrPark(ctx, w.job, next, &w.known)
	if m != nil {
		w.becomes(m)
	}
	w.fail(err)
}

// moveOrPark moves a job. A job that can never be moved is dealt with and returns nil: neither is tried again.
func (s *Scheduler) moveOrPark(ctx context.Context, id string, by []job.Event, k *knowledge) (*moved, error) {
	m, err := s.move(ctx, id, by, k)
	if err == nil {
		return m, nil
	}
	var park *parkError
	switch {
	case errors.As(err, &park):
		return nil, s.park(ctx, id, park)
	case errors.Is(err, store.ErrNotFound):
		// Deleted after its time, or never ours. State is never made anew from a message.
		s.stats.Add(func(t *Stats) { t.Unknown++ })
		s.config.Logger.InfoContext(ctx, "event of an unknown job", "job", id, "events", len(by))
		return nil, nil
	default:
		return m, err
	}
}

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/wire"
)

// people start the submitters and operators, and who sends poison.
func (w *world) people() {
	n := 0
	someone := func(at time.Duration, do func(s *scheduler.Scheduler, l *life) bool) {
		n++
		name := "person" + strconv.Itoa(n)
		at += time.Duration(n) // No two at one moment.
		w.wg.Go(func() {
			time.Sleep(at)
			w.insist(name, do)
		})
	}
	for _, o := range w.load.jobs {
		for _, at := range append([]time.Duration{o.at}, o.again...) {
			someone(at, func(s *scheduler.Scheduler, l *life) bool { return w.submit(s, l, o, o.input) })
		}
		if o.other > 0 {
			other := json.RawMessage(`{"other":true}`)
			someone(o.other, func(s *scheduler.Scheduler, l *life) bool { return w.submit(s, l, o, other) })
		}
		if o.dangling > 0 {
			someone(o.dangling, func(s *scheduler.Scheduler, _ *life) bool { return w.dangles(s, o) })
		}
		for i, r := range o.requests {
			asks := func(s *scheduler.Scheduler, l *life) bool { return w.request(s, l, o.id, w.asking(o.id, r, i)) }
			if someone(r.at, asks); r.again > 0 {
				someone(r.again, asks)
			}
		}
		w.approvers(o, someone)
	}
	w.repairers(someone)
	w.limiters(someone)
	w.breakers(someone)
	w.schedulers(someone)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.engine != nil {
		return // Nobody else can send to its queues.
	}
	w.strange()
	for _, name := range []string{eventsQueue, tasksPrefix + agents[0]} {
		for i := range 2 {
			if w.faults.strikes(Poison, name+strconv.Itoa(i)) {
				w.after(between(w.chance.of("poison", name, strconv.Itoa(i)), time.Second, time.Minute), func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					_ = w.queues[name].put("poisoner", queue.Message{Body: `{"v":0,"type":"Nonsense"}`})
				})
			}
		}
	}
}

// insist lets a person ask until there is an answer: one whose process died, or was told of an error, asks
// again.
func (w *world) insist(name string, do func(s *scheduler.Scheduler, l *life) bool) {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		answered := false
		w.mu.Lock()
		down := w.engine != nil && w.engine.dead
		w.mu.Unlock()
		if !down {
			<-w.process(name, func(l *life) { answered = do(w.scheduler(l, nil), l) })
		}
		w.mu.Lock()
		over := w.over
		w.mu.Unlock()
		if answered || over {
			return
		}
		time.Sleep(pause)
	}
}

// submit submits a job, and remembers that it was promised.
func (w *world) submit(s *scheduler.Scheduler, l *life, o order, input json.RawMessage) bool {
	ctx := context.Background()
	if !w.writesDoc(l, o) {
		return false
	}
	sub := scheduler.Submission{ID: o.id, Input: input, ReplyTo: o.replyTo}
	if w.limits != nil {
		r := w.chance.of("rank", o.id)
		sub.Tenant, sub.Priority = []string{"", "acme", "zenith"}[r.IntN(3)], append(domain.Priorities(), "")[r.IntN(4)]
	}
	if o.startAt > 0 {
		sub.StartAt = w.start.Add(o.startAt)
	}
	if o.byMessage {
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: o.workflow.Workflow.Name, ID: o.id, Input: input, StartAt: sub.StartAt, ReplyTo: o.replyTo, Tenant: sub.Tenant, Priority: sub.Priority})
		if err != nil {
			panic(err)
		}
		for _, err := range l.Send(ctx, eventsQueue, queue.Message{Body: body, Group: o.id}) {
			if err != nil {
				return false
			}
		}
		w.mu.Lock()
		taken := o.once && w.engine == nil
		if taken {
			w.acked[o.id] = true
		}
		w.mu.Unlock()
		if taken {
			return true
		}
		// The queue of an embedded engine dies with it, and others may be lost: it asks until the job is there.
		_, err = l.Load(ctx, o.id)
		return err == nil
	}
	j, _, err := s.SubmitCurrent(ctx, o.workflow.Workflow.Name, sub)
	var mismatch *scheduler.MismatchError
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.As(err, &mismatch):
		return true
	case err != nil:
		return false
	}
	w.acked[o.id] = true
	if hash, _ := scheduler.ContentHash(o.workflow.Workflow.Name, input); j.InputHash != hash {
		w.violate(o.id, "I2: a submission of job %s was granted, and the job has other content", o.id)
	}
	return true
}

// asking returns the i-th request of a job.
func (w *world) asking(id string, r request, i int) job.Requested {
	e := job.Requested{Verb: r.verb, Request: "r" + strconv.Itoa(i), Reason: "sim", Edit: r.edit}
	if r.startAt > 0 {
		e.StartAt = w.start.Add(r.startAt)
	}
	if r.some > 0 {
		e.Step, e.Indexes = w.someFailed(id, r.some)
	}
	return e
}

// request asks for a verb; a refusal is an answer, and that there is no such job yet as well.
func (w *world) request(s *scheduler.Scheduler, l *life, id string, e job.Requested) bool {
	l.asked(id, e)
	w.mu.Lock()
	w.referee(id).Asks(e.Verb)
	w.mu.Unlock()
	_, _, err := s.Request(context.Background(), id, e)
	return err == nil || l.missing(err)
}

// untilEnd lets the faults end, and then waits for the jobs, with an operator who sees to what waits for
// one.
func (w *world) untilEnd() {
	time.Sleep(w.faults.last)
	w.mu.Lock()
	w.faults.over = true
	w.note("world", "all is well from now on")
	w.mu.Unlock()
	w.unschedule()
	redriven := false
	for n := 0; ; n++ {
		time.Sleep(operatorEvery)
		w.resumeAll()
		var open []string
		for _, j := range w.store.All() {
			if !w.ended(j) {
				open = append(open, fmt.Sprintf("%s is %s (%s)", j.ID, j.ProcessState, j.Reason))
				w.attend(j, n)
			}
		}
		w.mu.Lock()
		w.probed()
		waiting := w.waiting()
		late := time.Since(w.start) > endsWithin
		if late && len(open) > 0 {
			w.violate("", "I1: after %s of virtual time %s", endsWithin, strings.Join(open, ", "))
		}
		if late && len(waiting) > 0 {
			w.violate("", "I14: %d messages are still on the queues after %s of virtual time, the first is %s", len(waiting), endsWithin, waiting[0].body)
		}
		w.mu.Unlock()
		if late || len(open) == 0 && len(waiting) == 0 {
			if w.maps == nil || time.Since(w.start) > max(endsWithin/8, w.faults.last+time.Hour) || redriven || !w.lastRedrive() {
				return
			}
			redriven = true
		}
	}
}

// waiting are the messages that somebody has yet to deal with. w.mu is held.
func (w *world) waiting() []*message {
	var waiting []*message
	for _, name := range slices.Sorted(maps.Keys(w.queues)) {
		for _, m := range w.queues[name].order {
			if !m.gone && name != quarantineQueue {
				waiting = append(waiting, m)
			}
		}
	}
	return waiting
}

// ended reports whether nothing more is to be done about a job.
func (w *world) ended(j job.Job) bool {
	return j.ProcessState.Finished() && j.Told() && !j.Paused()
}

// attend is what an operator does about a job that waits for one.
func (w *world) attend(j job.Job, n int) {
	w.consent(j, n)
	if w.mend(j, n) {
		return
	}
	var verb makegood.Verb
	switch {
	case j.HeldBy != "" && !j.PausedToo:
		return // It goes on when what holds it does.
	case j.Paused():
		verb = makegood.VerbResume
	case j.ProcessState == makegood.JobError:
		verb = makegood.VerbResubmit
	default:
		return
	}
	<-w.process("operator", func(l *life) {
		w.request(w.scheduler(l, nil), l, j.ID, job.Requested{Verb: verb, Request: "op" + strconv.Itoa(n), Reason: "sim"})
	})
	w.consent(j, n) // What failed for want of an answer waits again.
}

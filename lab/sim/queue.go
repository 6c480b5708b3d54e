package sim

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// simQueue is a standard queue of SQS and the event source mapping behind it: at least once, in any order,
// in batches of at most ten, as many at a time as there are environments. All its methods want w.mu held.
type simQueue struct {
	w          *world
	name       string
	visibility time.Duration
	messages   map[string]*message
	order      []*message
	sent       int

	function *function
	// fair is how the queue delivers, where it is a fair one.
	fair    *fairness
	stopped window
	// gather is the window in which the mapping gathers messages, before it hands them over together.
	gather time.Duration
}

type message struct {
	id        string
	body      string
	group     string
	workflow  string // of a submission, or of the schedule that is due
	visibleAt time.Time
	receives  int
	gone      bool
}

// neverTakes reports whether no queue will ever take the task of an attempt. That is so from the first try on, or
// never: it is too large, or not. w.mu is held.
func (w *world) neverTakes(attempt string) bool {
	never, known := w.never[attempt]
	if !known {
		never = w.faults.strikes(TaskRefused, attempt)
		w.never[attempt] = never
	}
	return never
}

// put takes a message in, or loses it, or doubles it.
func (q *simQueue) put(sender string, m queue.Message) error {
	q.sent++
	name := q.name + " " + strconv.Itoa(q.sent) + " " + sender
	if q.w.faults.strikes(PartSent, name) {
		return errThrottled
	}
	if task, err := q.w.reading.task(m.Body); err == nil {
		if attempt := on(task.Job, task.Step, task.Attempt); q.w.neverTakes(attempt) {
			q.w.referee(task.Job).NotTaken(task.Step, task.Undo != nil)
			return queue.Refused("the queue does not take %s", attempt)
		}
		q.w.sent[on(task.Job, task.Step, task.Attempt)]++
	}
	workflow := ""
	if in, err := q.w.reading.event(m.Body); err == nil && in.Submit != nil {
		workflow = in.Submit.Workflow
	} else if err == nil && in.Schedule != nil {
		workflow = q.w.scheduled.workflow
	}
	copies := 1
	switch q.w.faults.first(name, Lost, Doubled) {
	case Lost:
		if !q.w.promised(workflow, m.Group) {
			copies = 0
		}
	case Doubled:
		copies = 2
	}
	for n := range copies {
		r := q.w.chance.of("delivery", name, strconv.Itoa(n))
		delay := m.Delay + between(r, time.Millisecond, 25*time.Millisecond)
		if q.w.faults.strikes(Delayed, name+" "+strconv.Itoa(n)) {
			delay += between(r, time.Second, pick(r, 5*time.Second, time.Minute, 10*time.Minute))
		}
		if q.gather > 0 {
			delay += (time.Since(q.w.start) + delay).Truncate(q.gather) + q.gather - time.Since(q.w.start) - delay
		}
		one := &message{id: q.name + "-" + strconv.Itoa(q.sent) + "-" + strconv.Itoa(n), body: m.Body, group: m.Group, workflow: workflow, visibleAt: time.Now().Add(delay)}
		q.order = append(q.order, one)
		q.messages[one.id] = one
		q.wake(delay)
	}
	return nil
}

// promised reports whether a message is a submission that nobody makes again: a queue does not lose what it has taken.
func (w *world) promised(workflow, job string) bool {
	return workflow != "" && slices.ContainsFunc(w.load.jobs, func(o order) bool { return o.once && o.id == job })
}

func (q *simQueue) depth() (d queue.Depth) {
	for _, m := range q.order {
		switch {
		case m.gone:
		case !m.visibleAt.After(time.Now()):
			d.Waiting++
		case m.receives > 0:
			d.InFlight++
		}
	}
	return d
}

func (q *simQueue) giveBack(receipt string, after time.Duration) {
	if m := q.messages[receipt]; m != nil && !m.gone {
		m.visibleAt = time.Now().Add(after)
		q.wake(after)
	}
}

// wake looks for messages after a while.
func (q *simQueue) wake(after time.Duration) {
	if q.function == nil {
		return
	}
	q.w.after(after+100*time.Nanosecond, func() {
		q.w.mu.Lock()
		defer q.w.mu.Unlock()
		q.deliver()
	})
}

// deliver hands what is visible to the function, in batches, as far as it has environments free.
func (q *simQueue) deliver() {
	if q.stopped.holds(time.Now()) {
		q.wake(time.Until(q.stopped.to))
		return
	}
	for !q.function.busy() { // The next environment that is free looks again.
		visible := q.visible()
		if len(visible) == 0 {
			return
		}
		e := q.function.free()
		batch := events.SQSEvent{}
		for _, m := range visible {
			m.receives++
			m.visibleAt = time.Now().Add(q.visibility)
			q.wake(q.visibility)
			batch.Records = append(batch.Records, events.SQSMessage{
				MessageId: m.id, ReceiptHandle: m.id, Body: m.body, EventSourceARN: "arn:sim:" + q.name,
				Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives), "MessageGroupId": m.group},
			})
		}
		go e.invoke(q, batch)
	}
}

// visible returns the messages of the next batch. Of submissions to one workflow there is one in a batch: they are
// stored at one moment, and nothing would tell which of them asks first.
func (q *simQueue) visible() []*message {
	var visible []*message
	submitted := map[string]bool{}
	live, now := q.order[:0], time.Now()
	for _, m := range q.order {
		if !m.gone {
			live = append(live, m)
		}
	}
	q.order = live
	if q.fair != nil {
		live = q.fair.order(live, now)
	}
	for _, m := range live {
		if m.visibleAt.After(now) || len(visible) == limits.MaxBatch || submitted[m.workflow] {
			continue
		}
		visible = append(visible, m)
		if m.workflow != "" {
			submitted[m.workflow] = true
		}
	}
	return visible
}

// remove deletes a message that was dealt with; sometimes that gets lost.
func (q *simQueue) remove(l *life, id string) {
	m := q.messages[id]
	if m == nil || m.gone {
		return
	}
	if q.name == eventsQueue {
		q.w.dealt(l, m)
	}
	if q.w.faults.strikes(PartFailed, id+" "+strconv.Itoa(m.receives)) {
		return
	}
	m.gone = true
	delete(q.messages, id)
}

// function is a Lambda function on a queue: at most so many environments, each of one batch at a time.
type function struct {
	w       *world
	name    string
	queue   *simQueue
	most    int
	timeout time.Duration
	make    func(*life) queue.Handler
	started int
	running int
	idle    []*environment
}

// environment is a process that stays warm from batch to batch.
type environment struct {
	*life
	function *function
	handle   queue.Handler
}

// busy reports whether no environment is free. w.mu is held.
func (f *function) busy() bool {
	return f.running >= f.most || f.w.engine != nil && f.w.engine.dead
}

// free returns an environment, a warm one if there is. w.mu is held.
func (f *function) free() *environment {
	f.running++
	if n := len(f.idle); n > 0 {
		e := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return e
	}
	f.started++
	l := f.w.life(f.name + strconv.Itoa(f.started))
	return &environment{life: l, function: f, handle: f.make(l)}
}

// invoke handles a batch. A process that dies leaves its messages to their visibility.
func (e *environment) invoke(q *simQueue, batch events.SQSEvent) {
	// Two that begin at one moment do not run out of time at one.
	last := e.function.timeout + between(e.w.chance.of("timeout", e.name), 0, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), last)
	over := false
	killer := time.AfterFunc(last, func() {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		if !over && !e.w.over && e.engine == nil {
			e.dead = true
			e.w.note(e.name, "ran out of time")
		}
	})
	began := time.Now()
	response, returned := e.run(ctx, batch)
	cancel()
	killer.Stop()
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	over = true
	if e.engine != nil && e.engine.dead {
		return
	}
	if q.fair != nil {
		for _, record := range batch.Records {
			q.fair.worked(record.Attributes["MessageGroupId"], began, time.Now())
		}
	}
	e.function.running--
	if !e.dead && returned {
		e.w.healed(e.life)
		failed := map[string]bool{}
		for _, f := range response.BatchItemFailures {
			failed[f.ItemIdentifier] = true
		}
		for _, record := range batch.Records {
			if !failed[record.MessageId] {
				q.remove(e.life, record.MessageId)
			}
		}
		e.function.idle = append(e.function.idle, e)
	}
	if !e.w.over {
		q.deliver()
	}
}

// run calls the handler on a goroutine of its own, so that the end of that is not the end of this one.
func (e *environment) run(ctx context.Context, batch events.SQSEvent) (response events.SQSEventResponse, returned bool) {
	e.given(batch)
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err := e.handle(ctx, batch)
		response, returned = got, err == nil
	}()
	<-done
	return response, returned
}

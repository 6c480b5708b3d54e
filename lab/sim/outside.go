package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/wire"
)

// In some runs remotes answer that somebody else will complete a step: it waits, and is completed from outside, by
// message or by asking a Scheduler, under the completion token or by the step's address, once, twice, early, late, by
// several with other answers, or never.

// handsOver reports whether a remote hands a step to those outside.
func (w *world) handsOver(task makegood.Task) bool {
	return w.waits && task.Undo == nil && oneIn(w.chance.of("hands over", task.Job, task.Step, strconv.Itoa(task.Round)), 3)
}

// handOver tells those outside, who do what is asked when they like, and returns the answer that the step waits.
func (a remote) handOver(task makegood.Task) error {
	name := on(task.Job, task.Step, task.Attempt)
	r := a.w.chance.of("outside", a.calling("outside", name))
	a.w.mu.Lock()
	a.w.handed[name] = true
	a.w.mu.Unlock()
	for n := range r.IntN(3) {
		by, again := fmt.Sprintf("%s-%d", name, n), oneIn(r, 3)
		later := between(r, 0, pick(r, 50*time.Millisecond, 20*time.Second, 6*time.Minute))
		a.w.after(later, func() { a.w.completes(a.life, task, by, again) })
	}
	return agent.Wait(time.Now().Add(between(r, time.Second, pick(r, time.Minute, 10*time.Minute))))
}

// completes is what somebody outside does: what was asked for, and then they say so.
func (w *world) completes(l *life, task makegood.Task, by string, again bool) {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over || w.apply(l, task) != nil {
		return
	}
	output := json.RawMessage(fmt.Sprintf(`{"a":%d,"outside":%q}`, task.Attempt, by))
	_, place, err := job.ReadCompletionToken(task.Completion)
	if err != nil {
		panic(fmt.Sprintf("the completion token of %s: %v", by, err))
	}
	e := job.StepCompleted{Place: place, Output: job.Payload{Inline: output, Bytes: len(output)}, Request: by}
	w.mu.Lock()
	w.words[by] = true
	byMessage := w.engine == nil && oneIn(w.chance.of("by message", by), 2)
	w.mu.Unlock()
	if r := w.chance.of("by address", by); !byMessage && oneIn(r, 2) {
		// They are known, and name the step. What they say before it waits is kept for then, if they like.
		e.Token, e.Early = "", oneIn(r, 2)
	}
	says := 1
	if again {
		says = 2
	}
	for n := range says {
		if byMessage {
			w.sendsWord(task.Job, by+strconv.Itoa(n), e)
			continue
		}
		w.wg.Go(func() {
			time.Sleep(time.Duration(n) * time.Second)
			w.insist("outside "+by+strconv.Itoa(n), func(s *scheduler.Scheduler, l *life) bool {
				l.asked(task.Job, e)
				_, _, err := s.Complete(context.Background(), task.Job, e)
				return err == nil || l.missing(err)
			})
		})
	}
}

func (w *world) sendsWord(id, by string, e job.StepCompleted) {
	body, err := wire.EncodeEvent(id, e)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.queues[eventsQueue].put("outside "+by, queue.Message{Body: body, Group: id})
}

// fromOutside: what is said to be done from outside was said by somebody who was handed it.
func (c change) fromOutside(step, by string) {
	if !c.words[by] {
		c.wrong("I4: %s is done by %s, who never said so", step, by)
	}
}

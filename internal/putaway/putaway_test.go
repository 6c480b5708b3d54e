package putaway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
)

// world is the queues of a deployment in memory, and jobs.
type world struct {
	t      *testing.T
	queues *faulty
	office putaway.Office
	jobs   map[string]makegood.Job
}

// faulty are queues of which one operation fails when it is due to: not at all, or done with its answer lost.
type faulty struct {
	*localqueue.Queues
	fail   string
	groups []string      // of what was sent
	slow   time.Duration // how long it takes to receive
	back   int           // how many were given back at once
}

var errDown = errors.New("the network is down")

func (f *faulty) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	for _, m := range messages {
		f.groups = append(f.groups, m.Group)
	}
	switch f.fail {
	case "send":
		return []error{errDown}
	case "refuse":
		return []error{&queue.RefusedError{Reason: "too large"}}
	case "send, and its answer is lost":
		f.Queues.Send(ctx, name, messages...)
		return []error{errDown}
	}
	return f.Queues.Send(ctx, name, messages...)
}

func (f *faulty) Delete(ctx context.Context, name string, receipts ...string) error {
	if f.fail == "delete" {
		return errDown
	}
	return f.Queues.Delete(ctx, name, receipts...)
}

func (f *faulty) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	if f.fail == "receive "+name {
		return nil, errDown
	}
	records, err := f.Queues.Receive(ctx, name, limit)
	time.Sleep(f.slow)
	return records, err
}

func (f *faulty) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	if f.fail == "return" {
		return errDown
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if after == 0 {
		f.back += len(receipts)
	}
	return f.Queues.Return(ctx, name, after, receipts...)
}

// newWorld has the queues of a deployment, without those that are gone.
func newWorld(t *testing.T, gone ...string) *world {
	var all []localqueue.Queue
	for _, name := range append(putaway.DeadLetters([]string{"payments"}), putaway.Quarantine, "events", "submissions", "tasks-payments") {
		if slices.Contains(gone, name) {
			continue
		}
		all = append(all, localqueue.Queue{Name: name})
	}
	queues, err := localqueue.New(localqueue.Options{Queues: all})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, queues: &faulty{Queues: queues}, jobs: map[string]makegood.Job{}}
	w.office = putaway.Office{Queues: w.queues, Job: func(_ context.Context, id string) (makegood.Job, error) {
		if j, ok := w.jobs[id]; ok {
			return j, nil
		}
		return makegood.Job{}, putaway.ErrNoJob
	}}
	return w
}

func (w *world) put(name, body string) {
	w.t.Helper()
	for _, err := range w.queues.Queues.Send(w.t.Context(), name, queue.Message{Body: body}) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// quarantine puts a message into quarantine as a function does that got it from a queue.
func (w *world) quarantine(from, body, reason string) {
	w.t.Helper()
	record := events.SQSMessage{MessageId: "m", Body: body, EventSourceARN: "arn:aws:sqs:local:000000000000:" + from}
	if err := sqsbatch.Quarantine(w.t.Context(), w.queues.Queues, putaway.Quarantine, record, reason); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(queues []string, want putaway.Wanted, limit int) *putaway.Bundle {
	w.t.Helper()
	b, err := w.office.Open(w.t.Context(), queues, want, limit)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// bodies are those of the messages that can be received from a queue now.
func (w *world) bodies(name string) (bodies []string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	for {
		records, err := w.queues.Receive(ctx, name, 10)
		if err != nil {
			return bodies
		}
		for _, r := range records {
			bodies = append(bodies, r.Body)
		}
	}
}

func (w *world) waiting(name string) int {
	w.t.Helper()
	d, err := w.queues.Depth(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return d.Waiting
}

var due = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// charging is a job whose step charge is out, with an attempt.
func charging(attempt int) makegood.Job {
	return makegood.Job{
		ID: "j", Round: 1, ProcessState: makegood.JobProcessing, CompleteBy: &due,
		Steps: []makegood.JobStep{
			{Name: "charge", Activity: makegood.Activity{State: makegood.StepDispatched, Attempt: attempt}},
			{Name: "ship", Activity: makegood.Activity{State: makegood.StepDispatched, Attempt: 7}},
		},
	}
}

// undoing is the job whose step is tried back, after it was forward.
func undoing(forward, back int) makegood.Job {
	j := charging(forward)
	j.Steps[0].State, j.Steps[0].Undo = makegood.StepDone, &makegood.Activity{State: makegood.StepDispatched, Attempt: back}
	return j
}

func done() makegood.Job {
	j := charging(2)
	j.Steps[0].State = makegood.StepDone
	return j
}

func keyless() makegood.Job {
	j := charging(2)
	j.CompleteBy = nil
	return j
}

func task(attempt int, change ...func(*makegood.Task)) string {
	t := makegood.Task{
		Job: "j", Workflow: "w", Step: "charge", Round: 1, Attempt: attempt, Agent: "payments", Action: "charge", Input: json.RawMessage(`{}`),
		Key: "j/charge/1", SentAt: due, StartBy: due, Timeout: makegood.Second, ReplyTo: "events", Birth: "b", Token: "1.t", ClaimUntil: due,
	}
	for _, c := range change {
		c(&t)
	}
	body, err := wire.EncodeTask(t)
	if err != nil {
		panic(err)
	}
	return body
}

func reply() string {
	body, err := wire.EncodeEvent("j", job.StepSucceeded{Reply: job.Reply{Step: "charge", Attempt: 2, Token: "1.t", LockedBy: "a:1"}})
	if err != nil {
		panic(err)
	}
	return body
}

func submission() string {
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "order", ID: "o-1", Input: json.RawMessage(`{}`)})
	if err != nil {
		panic(err)
	}
	return body
}

// What becomes of a message, whatever it is: what it was sent for, once, or nothing, and why.
func TestAMessageIsReplayedForWhatItWasSentForOrStays(t *testing.T) {
	undo := func(task *makegood.Task) {
		task.Undo = &makegood.UndoTask{ForwardKey: "j/charge/1", Outcome: makegood.OutcomeDone}
	}
	asked, err := wire.EncodeEvent("j", job.DeadlinePassed{Key: due})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, box, from, body string
		job                   makegood.Job
		result                putaway.Result
		why                   string
		unseen                bool
		sent                  string // to events or submissions
	}{
		{name: "a reply that is understood now", box: putaway.Quarantine, from: "events", body: reply(), result: putaway.Sent, why: "to events", sent: reply()},
		{name: "a reply that nobody has looked at", box: putaway.Quarantine, from: "events", body: reply(), unseen: true, result: putaway.Sent, why: "to events", sent: reply()},
		{name: "a reply that no function came to an end over", box: "events-dead", body: reply(), result: putaway.Sent, why: "to events", sent: reply()},
		{name: "a submission", box: putaway.Quarantine, from: "submissions", body: submission(), result: putaway.Sent, why: "to submissions", sent: submission()},
		{name: "a submission that nobody has looked at", box: putaway.Quarantine, from: "submissions", body: submission(), unseen: true, result: putaway.Refused, why: "--submissions"},
		{name: "a submission in dead letters that nobody has looked at", box: "submissions-dead", body: submission(), unseen: true, result: putaway.Sent, why: "to submissions", sent: submission()},
		{name: "a submission in dead letters", box: "submissions-dead", body: submission(), result: putaway.Sent, why: "to submissions", sent: submission()},
		{name: "a task whose attempt is out", box: "tasks-payments-dead", body: task(2), job: charging(2), result: putaway.Asked, why: "attempt 2 of step charge is out", sent: asked},
		{name: "a task in quarantine", box: putaway.Quarantine, from: "tasks-payments", body: task(2), job: charging(2), result: putaway.Asked, why: "2026-11-22T10:00:00Z", sent: asked},
		{name: "a task whose job went on", box: "tasks-payments-dead", body: task(2), job: charging(3), result: putaway.Over, why: "attempt 2 of step charge is over, and job j is Processing"},
		{name: "an undo that is out", box: "tasks-payments-dead", body: task(2, undo), job: undoing(3, 2), result: putaway.Asked, why: "attempt 2 of step charge is out", sent: asked},
		{name: "an undo whose job went on", box: "tasks-payments-dead", body: task(2, undo), job: undoing(2, 3), result: putaway.Over, why: "is over"},
		{name: "a step whose undo is out", box: "tasks-payments-dead", body: task(2), job: undoing(1, 2), result: putaway.Over, why: "is over"},
		{name: "a task of a round before", box: "tasks-payments-dead", body: task(2, func(t *makegood.Task) { t.Round = 2 }), job: charging(2), result: putaway.Over, why: "is over"},
		{name: "a task of a step that is done", box: "tasks-payments-dead", body: task(2), job: done(), result: putaway.Over, why: "is over"},
		{name: "a task of a step that the job has not", box: "tasks-payments-dead", body: task(2, func(t *makegood.Task) { t.Step = "pack" }), job: charging(2), result: putaway.Over, why: "of step pack is over"},
		{name: "a task of a later step", box: "tasks-payments-dead", body: task(7, func(t *makegood.Task) { t.Step = "ship" }), job: charging(2), result: putaway.Asked, why: "attempt 7 of step ship is out", sent: asked},
		{name: "a task of a job out of the index", box: "tasks-payments-dead", body: task(2), job: keyless(), result: putaway.Over, why: "is over"},
		{name: "an undo that is not out", box: "tasks-payments-dead", body: task(2, undo), job: charging(2), result: putaway.Over, why: "is over"},
		{name: "a task whose job is gone", box: "tasks-payments-dead", body: task(2), result: putaway.Over, why: "there is no job j any more"},
		{name: "a task that is none", box: "tasks-payments-dead", body: `{"v":1,"type":"Task"}`, result: putaway.Refused, why: "no task that can be read"},
		{name: "no JSON", box: putaway.Quarantine, from: "events", body: "boo", result: putaway.Refused, why: "it would not be understood"},
		{name: "not UTF-8 any more", box: putaway.Quarantine, from: "events", body: `{"v":1,"type":"\u0000`, result: putaway.Refused, why: "it would not be understood"},
		{name: "an event of no job", box: putaway.Quarantine, from: "events", body: `{"v":1,"type":"StepSucceeded"}`, result: putaway.Refused, why: "an event must name its job"},
		{name: "what only a newer release understands", box: putaway.Quarantine, from: "events", body: `{"v":2,"type":"Task"}`, result: putaway.Refused, why: "only a newer release"},
		{name: "a reply on the submissions queue", box: putaway.Quarantine, from: "submissions", body: reply(), result: putaway.Refused, why: "is no submission"},
		{name: "a tick", box: "sweeps-dead", body: `{}`, result: putaway.Refused, why: "a tick of the schedule"},
		{name: "from a queue of nobody", box: putaway.Quarantine, from: "elsewhere", body: reply(), result: putaway.Refused, why: "no queue of this deployment"},
		{name: "one that was cut", box: putaway.Quarantine, from: "events", body: strings.Repeat("x", limits.MaxMessageBytes), result: putaway.Refused, why: "only its beginning was kept"},
		{name: "what somebody put there", box: putaway.Quarantine, body: "hello", result: putaway.Refused, why: "no queue of this deployment"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.office.Vouched = !c.unseen
				if c.job.ID != "" {
					w.jobs["j"] = c.job
				}
				if c.from != "" {
					w.quarantine(c.from, c.body, "because")
				} else {
					w.put(c.box, c.body)
				}
				b := w.open([]string{c.box}, putaway.Wanted{}, 10)
				if len(b.Messages) != 1 {
					t.Fatalf("got %d messages, want one", len(b.Messages))
				}
				foreseen, err := b.Foresee(t.Context(), b.Messages[0])
				if err != nil || w.waiting("events")+w.waiting("submissions") > 0 {
					t.Fatalf("a look: %v, and something was sent", err)
				}
				got, err := b.Replay(t.Context(), b.Messages[0])
				if err != nil || got != foreseen || got.Result != c.result || !strings.Contains(got.Why, c.why) {
					t.Errorf("got %+v, %v, and %+v before; want %s: %s", got, err, foreseen, c.result, c.why)
				}
				if err := b.Close(t.Context()); err != nil {
					t.Error(err)
				}
				var want []string
				if c.sent != "" {
					want = []string{c.sent}
				}
				if sent := append(w.bodies("events"), w.bodies("submissions")...); !slices.Equal(sent, want) {
					t.Errorf("sent: got %q, want %q", sent, want)
				}
				left := map[bool]int{false: 0, true: 1}[c.result == putaway.Refused]
				if n := w.waiting(c.box); n != left {
					t.Errorf("%d are left, want %d", n, left)
				}
				if c.result == putaway.Asked && !slices.Equal(w.queues.groups, []string{"j"}) {
					t.Errorf("asked in the order of %q, want that of the job", w.queues.groups)
				}
				if n := w.waiting("tasks-payments"); n != 0 {
					t.Errorf("%d tasks were put back, want none ever", n)
				}
			})
		})
	}
}

// To look takes everything out and gives it back: nothing is moved, and the next look sees the same.
func TestToLookMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const all = 137
		for i := range all {
			w.quarantine("submissions", fmt.Sprintf(`{"v":1,"type":"Submit","id":"o-%d"}`, i), fmt.Sprintf("reason %d", i%3))
		}
		for range 3 {
			b := w.open([]string{putaway.Quarantine}, putaway.Wanted{}, putaway.Max)
			if len(b.Messages) != all || b.More || w.waiting(putaway.Quarantine) != 0 {
				t.Errorf("got %d messages (more: %v), and %d that can be had by others, want all %d", len(b.Messages), b.More, w.waiting(putaway.Quarantine), all)
			}
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if n := w.waiting(putaway.Quarantine); n != all {
				t.Errorf("%d are left, want %d", n, all)
			}
		}
		some := w.open([]string{putaway.Quarantine}, putaway.Wanted{Reason: "reason 1", Source: "submissions"}, 20)
		if len(some.Messages) != 20 || !some.More {
			t.Errorf("got %d (more: %v), want 20 of those with that reason, and more", len(some.Messages), some.More)
		}
		if l := some.Messages[0]; l.Reason != "reason 1" || l.Type != "Submit" || !strings.HasPrefix(l.Job, "o-") {
			t.Errorf("got %+v", l)
		}
		check(t, some.Close(t.Context()))
		one := w.open([]string{putaway.Quarantine}, putaway.Wanted{Job: "o-7"}, 20)
		if len(one.Messages) != 1 {
			t.Errorf("got %d messages of job o-7, want one", len(one.Messages))
		}
		check(t, one.Close(t.Context()))
	})
}

// A message goes in the order of its job. One that its queue refuses for ever stays, and the replay says why.
func TestAReplayGoesInTheOrderOfItsJobOrIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("events-dead", reply())
		b := w.open([]string{"events-dead"}, putaway.Wanted{}, 10)
		w.queues.fail = "refuse"
		got, err := b.Replay(t.Context(), b.Messages[0])
		if err != nil || got.Result != putaway.Refused || got.Why != "the queue refuses it: too large" {
			t.Errorf("got %+v, %v, want it refused", got, err)
		}
		w.queues.fail = ""
		if got, err := b.Replay(t.Context(), b.Messages[0]); err != nil || got.Result != putaway.Sent {
			t.Errorf("got %+v, %v, want it sent", got, err)
		}
		check(t, b.Close(t.Context()))
		if !slices.Equal(w.queues.groups, []string{"j", "j"}) {
			t.Errorf("sent in the order of %q, want that of job j, twice", w.queues.groups)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Without the queue that it is for a message cannot be replayed, and stays.
func TestAMessageWhoseQueueIsGoneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "events")
		w.put("events-dead", reply())
		b := w.open([]string{"events-dead"}, putaway.Wanted{}, 10)
		got, err := b.Replay(t.Context(), b.Messages[0])
		if err != nil || got.Result != putaway.Refused || got.Why != "there is no queue events any more" {
			t.Errorf("got %+v, %v, want it refused", got, err)
		}
		check(t, b.Close(t.Context()))
		if n := w.waiting("events-dead"); n != 1 {
			t.Errorf("%d are left, want the one", n)
		}
	})
}

// Whatever fails on the way, or the process dies: the message is there still or what it led to was sent, and the same again
// does the rest.
func TestNoMessageIsLostWhenAReplayIsCutOff(t *testing.T) {
	for _, fault := range []string{"send", "send, and its answer is lost", "delete"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("events-dead", reply())
				b := w.open([]string{"events-dead"}, putaway.Wanted{}, 10)
				w.queues.fail = fault
				if got, err := b.Replay(t.Context(), b.Messages[0]); !errors.Is(err, errDown) {
					t.Fatalf("got %+v, %v, want that it is down", got, err)
				}
				// The process dies here: nothing is given back.
				w.queues.fail = ""
				if n := w.waiting("events-dead"); n != 0 {
					t.Fatalf("%d can be had at once, want it hidden", n)
				}
				time.Sleep(putaway.Hold + time.Second)
				b = w.open([]string{"events-dead"}, putaway.Wanted{}, 10)
				if len(b.Messages) != 1 {
					t.Fatalf("got %d messages, want it back by itself", len(b.Messages))
				}
				if _, err := b.Replay(t.Context(), b.Messages[0]); err != nil {
					t.Fatal(err)
				}
				check(t, b.Close(t.Context()))
				if n := w.waiting("events-dead"); n != 0 {
					t.Errorf("%d are left, want none", n)
				}
				sent := w.bodies("events")
				if len(sent) == 0 || slices.ContainsFunc(sent, func(body string) bool { return body != reply() }) {
					t.Errorf("sent: got %q, want the reply, once or twice", sent)
				}
			})
		})
	}
}

// What is dropped is gone, and nothing else.
func TestDroppingDeletesOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("tasks-payments-dead", task(1))
		w.put("tasks-payments-dead", task(2))
		b := w.open(putaway.DeadLetters([]string{"payments", "gone"}), putaway.Wanted{}, 10)
		if len(b.Messages) != 2 {
			t.Fatalf("got %d messages, want two, though one of the queues is not there", len(b.Messages))
		}
		dropped := b.Messages[0]
		check(t, b.Drop(t.Context(), dropped))
		check(t, b.Close(t.Context()))
		if w.queues.back != 1 {
			t.Errorf("%d were given back, want the other alone", w.queues.back)
		}
		left := w.bodies("tasks-payments-dead")
		if len(left) != 1 || left[0] == dropped.Body {
			t.Errorf("left: got %q, want the other", left)
		}
	})
}

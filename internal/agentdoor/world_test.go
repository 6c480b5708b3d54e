package agentdoor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload/mempayload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var errDown = errors.New("no connection")

// world is a door with a queue, claims in memory, a Scheduler and large payloads. It may fail wherever it is asked.
type world struct {
	*agentdoor.Door
	t      *testing.T
	config agentdoor.Config
	queues *localqueue.Queues
	claims *memstore.Store
	large  *mempayload.Store
	log    *strings.Builder

	mu sync.Mutex
	// out are the tasks that are out, by token. said is what was replied.
	out     map[string]makegood.Task
	said    []string
	verdict machine.Verdict
	// replyErr, taskErr, claimErrs, lookErr, heartbeatErr, receiveErr, deleteErr and returnErr are what the parts answer.
	replyErr, taskErr, lookErr, heartbeatErr, receiveErr, deleteErr, returnErr error
	claimErrs                                                                  []error
	// looking, if set, is called before it is said whether a task is out.
	looking func()
	// claiming, if set, is called before a claim is written; returned are the waits with which records were given back.
	claiming func(ctx context.Context)
	returned []time.Duration
	// clock is how far the wall clock is off.
	clock time.Duration
}

// within opens the door to the crane, which shows nothing, and the clerk, who has a token.
func within(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, claims: memstore.New(), large: &mempayload.Store{}, log: &strings.Builder{}, out: map[string]makegood.Task{}}
		var err error
		w.queues, err = localqueue.New(localqueue.Options{Queues: []localqueue.Queue{{Name: "tasks-crane", Visibility: time.Hour}, {Name: "tasks-clerk"}}})
		check(t, err)
		nonce := 0
		w.config = agentdoor.Config{
			Agents: []string{"crane", "clerk"}, Tokens: map[string]string{"clerk": "s3cret"}, Tasks: func(agent string) string { return "tasks-" + agent },
			Receiver: w, Store: w, Scheduler: w, Large: w.large, Now: func() time.Time { return time.Now().Add(w.clock) },
			Nonce: func() string {
				w.mu.Lock()
				defer w.mu.Unlock()
				nonce++
				return fmt.Sprint("n", nonce)
			},
			Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		}
		w.Door = agentdoor.New(w.config)
		defer w.large.Close()
		test(w)
	})
}

// use opens another door in the place of the first.
func (w *world) use(change func(*agentdoor.Config)) {
	change(&w.config)
	w.Door = agentdoor.New(w.config)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) wants(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (w *world) is(what string, err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// task makes the task of a step of job j that is done by the crane, and may take a minute.
func (w *world) task(step string, change ...func(*makegood.Task)) makegood.Task {
	now := domain.Instant(time.Now())
	task := makegood.Task{
		Job: "j", Workflow: "w", Step: step, Round: 1, Attempt: 3, Agent: "crane", Action: "lift", Input: json.RawMessage(`{}`),
		Key: "j/" + step + "/1", SentAt: now, StartBy: now.Add(time.Hour), Timeout: makegood.Minute, ReplyTo: "events", Birth: "b",
		Token: "1." + step, ClaimUntil: now.Add(24 * time.Hour),
	}
	for _, c := range change {
		c(&task)
	}
	return task
}

func shared(task *makegood.Task) {
	task.Shared, task.CompleteBy = true, task.SentAt.Add(2*time.Minute)
}

// send puts tasks into their queue.
func (w *world) send(tasks ...makegood.Task) {
	w.t.Helper()
	for _, task := range tasks {
		w.mu.Lock()
		w.out[task.Token] = task
		w.mu.Unlock()
		body, err := wire.EncodeTask(task)
		check(w.t, err)
		w.sendBody(body)
	}
}

func (w *world) sendBody(body string) {
	w.t.Helper()
	for _, err := range w.queues.Send(w.t.Context(), "tasks-crane", queue.Message{Body: body}) {
		check(w.t, err)
	}
}

// ask is what most tests ask for: what is there, at once.
func ask(request string) agentdoor.Ask {
	return agentdoor.Ask{Instance: "c-1", Max: 10, Request: request}
}

// take takes tasks of the crane, and returns their steps.
func (w *world) take(a agentdoor.Ask) []string {
	w.t.Helper()
	tasks, err := w.Take(w.t.Context(), "crane", a)
	check(w.t, err)
	return w.steps(tasks)
}

func (w *world) steps(tasks []agentdoor.Task) []string {
	w.t.Helper()
	steps := []string{}
	for _, t := range tasks {
		task, err := wire.DecodeTask(t.Body)
		check(w.t, err)
		steps = append(steps, task.Step)
	}
	return steps
}

// takes takes the one task of a step.
func (w *world) takes(step string, change ...func(*makegood.Task)) agentdoor.Task {
	w.t.Helper()
	w.send(w.task(step, change...))
	tasks, err := w.Take(w.t.Context(), "crane", ask(""))
	check(w.t, err)
	if got := w.steps(tasks); !slices.Equal(got, []string{step}) {
		w.t.Fatalf("got %v, want the task of %s", got, step)
	}
	return tasks[0]
}

// slot is that of a step of the crane's.
func slot(step string) store.Slot {
	return store.Slot{Agent: "crane", Job: "j", Birth: "b", Step: step}
}

// by is what the crane says of an attempt of a step, as its holder.
func by(step, lockedBy string) job.Reply {
	return job.Reply{Step: step, Attempt: 3, Token: "1." + step, LockedBy: lockedBy}
}

// depth is how many tasks wait in the queue of the crane, and how many were received and not deleted.
func (w *world) depth() queue.Depth {
	w.t.Helper()
	d, err := w.queues.Depth(w.t.Context(), "tasks-crane")
	check(w.t, err)
	return d
}

// The parts of the door.

func (w *world) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	if w.receiveErr != nil {
		return nil, w.receiveErr
	}
	return w.queues.Receive(ctx, name, limit)
}

func (w *world) Delete(ctx context.Context, name string, receipts ...string) error {
	return errors.Join(w.deleteErr, w.queues.Delete(ctx, name, receipts...))
}

func (w *world) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	w.mu.Lock()
	w.returned = append(w.returned, after)
	w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(w.returnErr, w.queues.Return(ctx, name, after, receipts...))
}

func (w *world) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	if w.claiming != nil {
		w.claiming(ctx)
	}
	w.mu.Lock()
	var err error
	if len(w.claimErrs) > 0 {
		err, w.claimErrs = w.claimErrs[0], w.claimErrs[1:]
	}
	w.mu.Unlock()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return w.claims.Claim(ctx, slot, claim, until)
}

func (w *world) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	if w.heartbeatErr != nil {
		return time.Time{}, w.heartbeatErr
	}
	return w.claims.Heartbeat(ctx, slot, claim, until)
}

func (w *world) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	found, err := w.claims.Look(ctx, slot, attempt, until, now)
	return found, errors.Join(w.lookErr, err)
}

func (w *world) Reply(_ context.Context, id string, reply job.Event) (machine.Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := reply.(interface{ Said() job.Reply }).Said()
	w.said = append(w.said, fmt.Sprintf("%s: %T of %s#%d, %s", id, reply, said.Step, said.Attempt, said.Token))
	return w.verdict, w.replyErr
}

func (w *world) TaskOut(_ context.Context, id string, r job.Reply) (makegood.Task, bool, error) {
	if w.looking != nil {
		w.looking()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	task, is := w.out[r.Token]
	return task, is && task.Job == id && task.Step == r.Step && task.Attempt == r.Attempt, w.taskErr
}

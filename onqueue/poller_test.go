package onqueue

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const tasks, replies = "tasks-studio", "events"

// visibility is how long a message stays hidden that was received.
const visibility = 2 * time.Minute

// world is an agent that runs outside, with its queue and its claims.
type world struct {
	t       *testing.T
	queues  *localqueue.Queues
	claims  *memstore.Store
	broken  *broken
	log     strings.Builder
	options Options
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, claims: memstore.New(), options: Options{Concurrency: 3, Grace: 30 * time.Second}}
	var err error
	w.queues, err = localqueue.New(localqueue.Options{Queues: []localqueue.Queue{
		{Name: tasks, Visibility: visibility}, {Name: replies, Visibility: visibility}, {Name: "quarantine", Visibility: visibility},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.broken = &broken{Receiver: w.queues}
	w.options.Logger = slog.New(slog.NewTextHandler(&w.log, nil))
	return w
}

// broken is a queue that fails as long as it is told to.
type broken struct {
	queue.Receiver
	mu     sync.Mutex
	err    error
	failed int
}

func (b *broken) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// failures is how many requests have failed.
func (b *broken) failures() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

func (b *broken) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	b.mu.Lock()
	err := b.err
	if err != nil {
		b.failed++
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return b.Receiver.Receive(ctx, name, limit)
}

type handler func(ctx context.Context, task makegood.Task) (json.RawMessage, error)

func (handler) Name() string { return "studio" }

func (h handler) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	return h(ctx, task)
}

// starts runs the agent until stop is called, which returns what run did.
func (w *world) starts(h handler) (p *poller, stop func() error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	p = newPoller(w.broken, tasks, w.options)
	runner := agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{h}, Claims: w.claims, Queue: w.queues, Tasks: tasks, Quarantine: "quarantine",
		Begun: p.begun, Instance: "studio@host", Logger: w.options.Logger,
	})
	p.handler = runner.HandleSQS
	done := make(chan error)
	go func() { done <- p.run(ctx) }()
	return p, func() error {
		cancel()
		return <-done
	}
}

func (w *world) task(step string, attempt int) makegood.Task {
	now := domain.Instant(time.Now())
	return makegood.Task{
		Job: "j", Workflow: "w", Step: step, Round: 1, Attempt: attempt, Agent: "studio", Action: step, Input: json.RawMessage(`{}`),
		Key: "j/" + step + "/1", SentAt: now, StartBy: now.Add(10 * time.Minute), Timeout: 24 * makegood.Hour, Heartbeat: makegood.Minute,
		ReplyTo: replies, Birth: "b", Token: "1.t", ClaimUntil: now.Add(limits.MaxClaimDelay),
	}
}

func (w *world) sends(all ...makegood.Task) {
	w.t.Helper()
	for _, task := range all {
		body, err := wire.EncodeTask(task)
		if err != nil {
			w.t.Fatal(err)
		}
		if errs := w.queues.Send(w.t.Context(), tasks, queue.Message{Body: body}); errors.Join(errs...) != nil {
			w.t.Fatal(errs)
		}
	}
}

// replied takes the replies that were sent.
func (w *world) replied() (all []job.Event) {
	w.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Millisecond)
		records, _ := w.queues.Receive(ctx, replies, 10)
		cancel()
		if len(records) == 0 {
			return all
		}
		for _, r := range records {
			_, event, err := wire.DecodeEvent(r.Body)
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, event)
		}
	}
}

// depth is what is on the tasks queue, hidden or not.
func (w *world) depth() queue.Depth {
	w.t.Helper()
	d, err := w.queues.Depth(w.t.Context(), tasks)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// An attempt takes a day. Its message is gone from the moment of the claim, so no visibility timeout brings it back.
func TestAnAttemptTakesADayAndItsMessageIsGoneOnceItIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		runs := 0
		_, stop := w.starts(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			runs++
			defer agent.KeepAlive(ctx)()
			time.Sleep(20 * time.Hour)
			return json.RawMessage(`"done"`), ctx.Err()
		})
		w.sends(w.task("render", 1))
		time.Sleep(time.Minute)
		if got := w.depth(); got != (queue.Depth{}) {
			t.Errorf("a minute after it was sent the queue holds %+v, want nothing", got)
		}
		time.Sleep(21 * time.Hour)
		got := w.replied()
		if len(got) != 1 || runs != 1 {
			t.Fatalf("got %d replies %+v of %d runs, want one of one", len(got), got, runs)
		}
		if done, ok := got[0].(job.StepSucceeded); !ok || string(done.Output.Inline) != `"done"` {
			t.Errorf("got %+v, want its success", got[0])
		}
		if err := stop(); err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	})
}

// A message that comes twice runs once: the second finds the attempt claimed, and is deleted.
func TestAMessageThatComesTwiceRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		runs := 0
		_, stop := w.starts(func(context.Context, makegood.Task) (json.RawMessage, error) {
			mu.Lock()
			runs++
			mu.Unlock()
			time.Sleep(time.Second)
			return nil, nil
		})
		w.sends(w.task("render", 1), w.task("render", 1))
		time.Sleep(5 * time.Second)
		w.sends(w.task("render", 1))
		time.Sleep(5 * time.Minute)
		if got := w.replied(); len(got) != 1 || runs != 1 || w.depth() != (queue.Depth{}) {
			t.Errorf("%d runs, replies %+v, and the queue holds %+v; want one of each, and nothing", runs, got, w.depth())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// No more runs at once than there are slots, and a long one holds up no other.
func TestALongAttemptHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		now, most := 0, 0
		_, stop := w.starts(func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer agent.KeepAlive(ctx)()
			if task.Step == "long" {
				time.Sleep(time.Hour)
			} else {
				time.Sleep(time.Minute)
			}
			mu.Lock()
			now--
			mu.Unlock()
			return nil, nil
		})
		w.sends(w.task("long", 1))
		for i := range 20 {
			w.sends(w.task("short"+string(rune('a'+i)), 1))
		}
		time.Sleep(11 * time.Minute)
		if got := len(w.replied()); got != 20 || most != 3 {
			t.Errorf("after 11 minutes %d replied, and %d ran at once, want 20 and 3", got, most)
		}
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// SIGTERM: what runs goes on, what comes is handed back at once, and somebody else can take it.
func TestAStopFinishesWhatRunsAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, stop := w.starts(func(context.Context, makegood.Task) (json.RawMessage, error) {
			time.Sleep(25 * time.Second)
			return nil, nil
		})
		w.sends(w.task("render", 1))
		time.Sleep(time.Second)
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			w.sends(w.task("late", 1))
			if got := p.health(time.Now()).Status; got != "stopping" {
				t.Errorf("health says %q, want stopping", got)
			}
		})
		if err := stop(); err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
		if took := time.Since(began); took != 24*time.Second {
			t.Errorf("it took %v, want the 24s that were left", took)
		}
		if got := w.replied(); len(got) != 1 {
			t.Errorf("got %d replies, want that of what ran", len(got))
		}
		if got := w.depth(); got.Waiting != 1 || got.InFlight != 0 {
			t.Errorf("the queue holds %+v, want the late one, visible", got)
		}
	})
}

// What runs longer than the grace time is told to stop, and says nothing; its claim ends by silence.
func TestWhatOutlivesTheGraceTimeIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var cause error
		_, stop := w.starts(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			defer agent.KeepAlive(ctx)()
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, cause
		})
		w.sends(w.task("render", 1))
		time.Sleep(10 * time.Minute)
		began := time.Now()
		if err := stop(); !errors.Is(err, agent.ErrCutOff) {
			t.Errorf("stopped with %v, want %v", err, agent.ErrCutOff)
		}
		if took := time.Since(began); took != 30*time.Second || !errors.Is(cause, agentrun.ErrStopped) {
			t.Errorf("it took %v, and the work ended because of %v", took, cause)
		}
		slot := store.Slot{Agent: "studio", Job: "j", Birth: "b", Step: "render"}
		claim := w.claims.InSlot(slot)
		if silent := time.Until(claim.CompleteBy); silent > time.Minute || claim.Closed != "" {
			t.Errorf("its claim lasts %v more, closed %q", silent, claim.Closed)
		}
		if got := w.replied(); len(got) != 0 {
			t.Errorf("got replies %+v, want none", got)
		}
	})
}

// SQS is away for an hour. It is asked again at most every half minute, health says so, and nothing is lost.
func TestAQueueThatIsAwayIsAskedAgainSeldomAndHealthSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, stop := w.starts(func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, nil })
		time.Sleep(time.Minute)
		if got := p.health(time.Now()).Status; got != healthy {
			t.Errorf("health says %q, want ok", got)
		}
		w.broken.set(errors.New("SQS is away"))
		time.Sleep(time.Hour)
		failed := w.broken.failures()
		if got := p.health(time.Now()).Status; got != "the queue cannot be reached" || failed > 130 || failed < 110 {
			t.Errorf("health says %q after %d requests in an hour", got, failed)
		}
		w.sends(w.task("render", 1))
		w.broken.set(nil)
		time.Sleep(time.Minute)
		if got := w.replied(); len(got) != 1 || p.health(time.Now()).Status != healthy {
			t.Errorf("afterwards: replies %+v, health %q", got, p.health(time.Now()).Status)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// While every slot is taken for hours nobody polls, and that is no illness.
func TestWhoIsBusyIsHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.options.Concurrency = 1
		p, stop := w.starts(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			defer agent.KeepAlive(ctx)()
			time.Sleep(5 * time.Hour)
			return nil, nil
		})
		w.sends(w.task("render", 1))
		time.Sleep(4 * time.Hour)
		if got := p.health(time.Now()); got.Status != healthy || got.Working != 1 {
			t.Errorf("health says %+v, want ok, and one that works", got)
		}
		time.Sleep(2 * time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Nobody claims a shared task: its message stays hidden as long as it may run, and is deleted then.
func TestTheMessageOfASharedTaskStaysHiddenWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var runs atomic.Int32
		_, stop := w.starts(func(context.Context, makegood.Task) (json.RawMessage, error) {
			runs.Add(1)
			time.Sleep(50 * time.Minute)
			return nil, nil
		})
		task := w.task("render", 1)
		task.Heartbeat, task.Timeout, task.Shared, task.CompleteBy = 0, makegood.Hour, true, task.SentAt.Add(70*time.Minute)
		w.sends(task)
		time.Sleep(49 * time.Minute)
		if got := w.depth(); got.InFlight != 1 || runs.Load() != 1 {
			t.Errorf("after 49 minutes the queue holds %+v after %d runs, want it hidden, and one", got, runs.Load())
		}
		time.Sleep(2 * time.Hour)
		if got := w.replied(); len(got) != 1 || runs.Load() != 1 || w.depth() != (queue.Depth{}) {
			t.Errorf("%d runs, replies %+v, and the queue holds %+v", runs.Load(), got, w.depth())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthIsServed(t *testing.T) {
	w := newWorld(t)
	p := newPoller(w.queues, tasks, w.options)
	p.polled.Store(time.Now().UnixNano())
	runner := agentrun.New(agentrun.Config{Claims: w.claims, Queue: w.queues})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := serveHealth(listener, "studio", p, runner, w.options.Logger)
	defer stop()
	for _, want := range []struct {
		status int
		says   string
	}{{http.StatusOK, healthy}, {http.StatusServiceUnavailable, "stopping"}} {
		answer, err := http.Get("http://" + listener.Addr().String() + "/health")
		if err != nil {
			t.Fatal(err)
		}
		var h health
		err = json.NewDecoder(answer.Body).Decode(&h)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != want.status || h.Status != want.says || h.Agent != "studio" || h.Concurrency != 3 {
			t.Errorf("got %d, %+v, %v, want %d and %q", answer.StatusCode, h, err, want.status, want.says)
		}
		p.stopping.Store(true)
	}
	http.DefaultClient.CloseIdleConnections()
}

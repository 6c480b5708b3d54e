package onhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// doing is an agent of one function.
type doing func(ctx context.Context) (json.RawMessage, error)

func (doing) Name() string { return "crane" }

func (d doing) Handle(ctx context.Context, _ makegood.Task) (json.RawMessage, error) { return d(ctx) }

// engineOf is an engine of which a function is all, and the options of an agent of it.
func engineOf(t *testing.T, answers http.HandlerFunc) working {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	return working{Options{URL: server.URL, Logger: quiet()}, doing(nil)}
}

func doorOf(t *testing.T, answers http.HandlerFunc) *door {
	t.Helper()
	o, err := engineOf(t, answers).complete()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDoor(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func taskOf(agentName string) makegood.Task {
	now := domain.Instant(time.Now())
	return makegood.Task{
		Job: "j", Workflow: "w", Step: "lift", Round: 1, Attempt: 1, Agent: agentName, Action: "lift", Input: json.RawMessage(`{}`),
		Key: "j/lift/1", SentAt: now, StartBy: now.Add(time.Hour), Timeout: makegood.Minute, ReplyTo: "events", Birth: "b", Token: "1.t",
		ClaimUntil: now.Add(time.Hour),
	}
}

// gives writes tasks that have so many milliseconds left.
func gives(t *testing.T, w io.Writer, leftMs int, tasks ...makegood.Task) {
	t.Helper()
	given := agentdoor.TasksGiven{Tasks: []agentdoor.TaskGiven{}}
	for _, task := range tasks {
		body, err := wire.EncodeTask(task)
		if err != nil {
			t.Error(err)
		}
		given.Tasks = append(given.Tasks, agentdoor.TaskGiven{Task: json.RawMessage(body), LockedBy: "outside:x", LeftMs: leftMs})
	}
	if err := json.NewEncoder(w).Encode(given); err != nil {
		t.Error(err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // A run with right options ends at once.
	good := working{Options{URL: "http://127.0.0.1:1", Logger: quiet()}, doing(nil)}
	for want, change := range map[string]func(*working){
		"is not the URL of an engine":      func(o *working) { o.URL = "http://" },
		`"http://h?x" is not the URL`:      func(o *working) { o.URL = "http://h?x" },
		`"http://h#x" is not the URL`:      func(o *working) { o.URL = "http://h#x" },
		"concurrency 1001 is out of range": func(o *working) { o.Concurrency = 1001 },
		"concurrency -1 is out of range":   func(o *working) { o.Concurrency = -1 },
		"grace 720h0m1s is out of range":   func(o *working) { o.Grace = limits.MaxGrace + time.Second },
		"grace -1ns is out of range":       func(o *working) { o.Grace = -1 },
		`instance "a b": want`:             func(o *working) { o.Instance = "a b" },
		"the agent at 0 is nil":            func(o *working) { o.Agent = nil },
	} {
		o := good
		change(&o)
		if err := Run(ended, o.Agent, o.Options); !errors.Is(err, agent.ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %v that says %q", err, agent.ErrOptions, want)
		}
	}
}

// What runs longer than the grace time is told to stop, and says nothing; its claim ends by silence.
func TestWhatOutlivesTheGraceTimeIsCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan struct{}, 1)
	given <- struct{}{}
	o := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server hear that the client is gone
		if !strings.HasSuffix(r.URL.Path, "/tasks") {
			t.Errorf("got %s, want not a word", r.URL.Path)
		}
		select {
		case <-given:
			gives(t, w, 3_600_000, taskOf("crane"))
		default:
			<-r.Context().Done()
		}
	})
	var cause error
	o.Agent = doing(func(ctx context.Context) (json.RawMessage, error) {
		cancel()
		<-ctx.Done()
		cause = context.Cause(ctx)
		return nil, cause
	})
	o.Grace = time.Millisecond
	if err := Run(ctx, o.Agent, o.Options); !errors.Is(err, agent.ErrCutOff) {
		t.Errorf("stopped with %v, want %v", err, agent.ErrCutOff)
	}
	if !errors.Is(cause, agentrun.ErrStopped) {
		t.Errorf("the agent was told to stop with %v, want %v", cause, agentrun.ErrStopped)
	}
}

// A task of another agent, or one that cannot be read, is left to end in silence; its neighbour is done.
func TestATaskThatCannotBeReadIsLeft(t *testing.T) {
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		bad := taskOf("crane")
		bad.Attempt = 0
		gives(t, w, 1000, bad, taskOf("barge"), taskOf("crane"))
	})
	taken, err := d.take(t.Context(), "r", 3, 0)
	if err != nil || len(taken) != 1 || taken[0].Task.Agent != "crane" {
		t.Errorf("got %d tasks, %v, want the one that can be read", len(taken), err)
	}
}

// The time that a task has left counts from before it was asked for: from there the engine's own waiting is known, and the
// way of the answer is not.
func TestTimeIsCountedFromBeforeItWasAskedFor(t *testing.T) {
	var answered time.Time
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		answered = time.Now()
		gives(t, w, 60_000, taskOf("crane"))
	})
	before := time.Now()
	taken, err := d.take(t.Context(), "r", 1, 0)
	if err != nil || len(taken) != 1 {
		t.Fatalf("got %d tasks, %v", len(taken), err)
	}
	if by := taken[0].Expires.Add(-time.Minute); by.Before(before) || by.After(answered) {
		t.Errorf("it counts from %v, want from between %v and %v", by, before, answered)
	}
}

func TestMoreTasksThanWereAskedForAreRefused(t *testing.T) {
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) { gives(t, w, 1000, taskOf("crane"), taskOf("crane")) })
	if taken, err := d.take(t.Context(), "r", 1, 0); err == nil {
		t.Errorf("got %d tasks, want an error", len(taken))
	}
}

// What a reply is answered decides whether it is said again: only what is wrong with the reply itself is for good.
func TestWhatAReplyIsAnswered(t *testing.T) {
	for status, refused := range map[int]bool{
		http.StatusBadRequest: true, http.StatusRequestEntityTooLarge: true,
		http.StatusUnauthorized: false, http.StatusNotFound: false, http.StatusServiceUnavailable: false, http.StatusFound: false,
	} {
		d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		err := d.reply(t.Context(), `{}`)
		if got := errors.As(err, new(*queue.RefusedError)); err == nil || got != refused {
			t.Errorf("status %d: got %v, want an error, refused for good: %v", status, err, refused)
		}
	}
}

// A word that a later engine may have is not taken for one that is known.
func TestAHeartbeatOfUnknownStandingIsAnError(t *testing.T) {
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status": "perhaps", "leftMs": 1000}`)
	})
	if left, err := d.heartbeat(t.Context(), taskOf("crane"), "outside:x", nil); err == nil || left != 0 {
		t.Errorf("got %v, %v, want an error", left, err)
	}
}

// A heartbeat says of which attempt it is, and by what it is held: an engine takes it for nobody else's.
func TestAHeartbeatNamesItsAttempt(t *testing.T) {
	var got agentdoor.Heartbeat
	d := doorOf(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"status": "held", "leftMs": 1000}`)
	})
	left, err := d.heartbeat(t.Context(), taskOf("crane"), "outside:x", json.RawMessage(`"half"`))
	if err != nil || left != time.Second {
		t.Errorf("got %v, %v, want a second", left, err)
	}
	want := agentdoor.Heartbeat{Job: "j", Step: "lift", Attempt: 1, Token: "1.t", LockedBy: "outside:x", Progress: json.RawMessage(`"half"`)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it said %+v, want %+v", got, want)
	}
}

// A transfer that fails is tried again after waits that double, up to two seconds, eight times in all.
func TestATransferThatFailsWaitsLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := newDoor(working{Options{URL: "http://engine", Logger: slog.New(slog.DiscardHandler)}, doing(nil)})
		if err != nil {
			t.Fatal(err)
		}
		began, tries := time.Now(), 0
		err = payloads{door: d}.again(t.Context(), func() (bool, error) {
			tries++
			return true, io.ErrUnexpectedEOF
		})
		if took := time.Since(began); !errors.Is(err, io.ErrUnexpectedEOF) || tries != maxTransfers || took < 6*time.Second || took > 9*time.Second {
			t.Errorf("got %v after %d tries and %v, want %v after %d tries and about 7 s", err, tries, took, io.ErrUnexpectedEOF, maxTransfers)
		}
	})
}

var _ agent.Handler = doing(nil)

package deployed

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// good is an environment that has everything.
func good() map[string]string {
	return map[string]string{
		varRegion: "eu-central-1", varFunction: "f", VarTable: "jobs", VarIndex: "CompleteBy",
		VarQueuePrefix: "stack-", VarAgent: makegood.HTTPAgent, VarDoor: "submit",
	}
}

func read(t *testing.T, function string, environment map[string]string) error {
	t.Helper()
	getenv := func(name string) string { return environment[name] }
	var err error
	switch function {
	case "scheduler":
		_, err = readScheduler(getenv)
	case "agent":
		_, err = readAgent(getenv, nil)
	case "door":
		_, err = readDoor(getenv)
	case "supervisor":
		_, err = readSupervisor(getenv)
	}
	return err
}

func TestAGoodEnvironmentIsRead(t *testing.T) {
	for _, function := range []string{"scheduler", "agent", "door", "supervisor"} {
		if err := read(t, function, good()); err != nil {
			t.Errorf("%s: got %v, want no error", function, err)
		}
		withBreakers := good()
		withBreakers[VarBreakers] = "payments" // Its agents are not known.
		if err := read(t, function, withBreakers); err != nil {
			t.Errorf("%s without a list of agents: got %v, want no error", function, err)
		}
		withMap := good()
		withMap[VarBreakers] = "*"
		withMap[VarQueuePrefix] = ""
		withMap[VarQueues] = "events=https://sqs/1/e, quarantine=https://sqs/1/q,tasks-http=https://sqs/1/t"
		if err := read(t, function, withMap); err != nil {
			t.Errorf("%s with a map of queues: got %v, want no error", function, err)
		}
	}
}

func TestEveryMistakeInTheEnvironmentIsNamedInOneLine(t *testing.T) {
	for _, c := range []struct {
		function string
		change   map[string]string
		want     []string
	}{
		{
			"scheduler",
			map[string]string{varRegion: "", varFunction: "", VarTable: "", VarIndex: "", VarQueuePrefix: ""},
			[]string{varRegion, varFunction, VarTable, VarIndex, VarQueues, VarQueuePrefix},
		},
		{
			"agent",
			map[string]string{VarTable: "", VarAgent: "", VarShards: "many", VarLogLevel: "LOUD"},
			[]string{VarTable + " is missing", VarAgent + " is missing", VarShards + ` is "many"`, VarLogLevel + ` is "LOUD"`},
		},
		{"agent", map[string]string{VarAgent: "paymnets"}, []string{VarAgent + ` is "paymnets", want one of http`}},
		{"scheduler", map[string]string{VarQueues: "events=https://sqs/1/e"}, []string{VarQueues, "not both", "has no quarantine"}},
		{
			"scheduler",
			map[string]string{VarQueuePrefix: "", VarQueues: "events=a,quarantine=b", VarReplies: "shop=replies-shop,bad"},
			[]string{VarQueues + " has no replies-shop", VarReplies + ` has "bad"`},
		},
		{"agent", map[string]string{VarQueuePrefix: "", VarQueues: "events=a,events=c"}, []string{"each name once", "has no quarantine", "has no tasks-http"}},
		{"door", map[string]string{VarDoor: ""}, []string{VarDoor + " is missing (the door that this function is)"}},
		{"door", map[string]string{VarDoor: "back"}, []string{VarDoor + ` is "back", want one of submit, read, operate`}},
		{"supervisor", map[string]string{VarShards: "0"}, []string{VarShards + ` is "0", want a whole number of 1`}},
		{
			"scheduler",
			map[string]string{VarAgents: "http,payments, mail", VarBreakers: "mail,paymnets"},
			[]string{VarBreakers + ` has a breaker of agent "paymnets": want one of ["payments" "mail"], or * for all`},
		},
		{
			"scheduler",
			map[string]string{VarQueuePrefix: "", VarQueues: "events=a,quarantine=b,tasks-http=c,tasks-mail=d", VarBreakers: "http"},
			[]string{VarBreakers + ` has a breaker of agent "http": want one of ["mail"], or * for all`},
		},
		{"scheduler", map[string]string{VarWebhook: "https://hooks.example/secret"}, []string{VarWebhook + " is an address, want the ARN"}},
	} {
		environment := good()
		maps.Copy(environment, c.change)
		err := read(t, c.function, environment)
		if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s with %v: got %v, want an error of one line, without secrets", c.function, c.change, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %v: got %v, want it to say %q", c.function, c.change, err, want)
			}
		}
	}
}

// discarding is a stack that nobody reads, without clients.
func discarding() *stack {
	log := slog.New(slog.DiscardHandler)
	return &stack{
		log: log, meter: newMeter(io.Discard, log, "test"), queues: sqsqueue.New(sqsqueue.Config{URLs: map[string]string{}}),
	}
}

// The invocation would be killed at 30 s: the sweep has ended by then, and that is no error.
func TestASweepEndsBeforeItsInvocationAndThatIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := discarding()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		sup, count := &sweeps{}, new(atomic.Int64)
		sup.sweep = func(ctx context.Context) (supervisor.Result, error) {
			<-ctx.Done()
			return supervisor.Result{}, ctx.Err()
		}
		err := s.sweep(ctx, sup, count)
		if took := time.Since(begun); took != 28*time.Second || err != nil || count.Load() != 1 {
			t.Errorf("ended after %v with %v, %d sweeps counted, want 28s, no error, and that it counts", took, err, count.Load())
		}
		broken := errors.New("broken")
		sup.sweep = func(context.Context) (supervisor.Result, error) { return supervisor.Result{}, broken }
		if err := s.sweep(ctx, sup, count); !errors.Is(err, broken) || count.Load() != 1 {
			t.Errorf("a sweep that broke: got %v, %d sweeps counted, want %v, and that it does not count", err, count.Load(), broken)
		}
		sup.sweep = func(context.Context) (supervisor.Result, error) { return supervisor.Result{Braked: true}, nil }
		if err := s.sweep(ctx, sup, count); err != nil {
			t.Error(err)
		}
		if sup.audits != 0 {
			t.Errorf("after sweeps that were cut off, broke, or held back: got %d audits, want none", sup.audits)
		}
		sup.sweep = func(context.Context) (supervisor.Result, error) { return supervisor.Result{}, nil }
		if err := s.sweep(ctx, sup, count); err != nil {
			t.Errorf("a sweep whose audit failed: got %v, want no error", err)
		}
		if sup.audits != 1 || count.Load() != 3 {
			t.Errorf("after a sweep: got %d audits, %d sweeps counted, want 1 and 3", sup.audits, count.Load())
		}
	})
}

// Whoever holds the leases keeps all sweeps from sweeping: that is no sweep, and the alarm on those that are missing says so.
func TestASweepThatLeavesShardsToOthersDoesNotCount(t *testing.T) {
	s, count := discarding(), new(atomic.Int64)
	sup := &sweeps{sweep: func(context.Context) (supervisor.Result, error) { return supervisor.Result{Leased: 1}, nil }}
	if err := s.sweep(t.Context(), sup, count); err != nil || count.Load() != 0 {
		t.Errorf("got %v, %d sweeps counted, want no error, and that it does not count", err, count.Load())
	}
}

// sweeps is a Supervisor that sweeps so, and whose audits fail.
type sweeps struct {
	sweep  func(context.Context) (supervisor.Result, error)
	audits int
}

func (s *sweeps) Sweep(ctx context.Context) (supervisor.Result, error) { return s.sweep(ctx) }

func (s *sweeps) Audit(context.Context) (supervisor.AuditResult, error) {
	s.audits++
	return supervisor.AuditResult{Audited: 7, Stray: 2}, errors.New("the queue is away")
}

// A handler is told to stop early, also by an invocation so short that 2 s would be all of it.
func TestAHandlerEndsBeforeItsInvocation(t *testing.T) {
	for all, want := range map[time.Duration]time.Duration{30 * time.Second: 28 * time.Second, 4 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := discarding()
			handler := s.handler(func(ctx context.Context, _ events.SQSEvent) (events.SQSEventResponse, error) {
				<-ctx.Done()
				return sqsbatch.Response(nil), nil
			}, EventsQueue)
			ctx, cancel := context.WithTimeout(t.Context(), all)
			defer cancel()
			begun := time.Now()
			response, err := handler(ctx, events.SQSEvent{})
			if took := time.Since(begun); took != want || err != nil || response.BatchItemFailures == nil {
				t.Errorf("of %v: ended after %v with %v, %v, want %v, no error, a list that is not nil", all, took, response, err, want)
			}
		})
	}
}

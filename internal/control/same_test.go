package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// everything is what can be asked, in the process and of a client.
type everything interface {
	api.Jobs
	api.Schedules
	api.Holds
	api.Agents
	api.Payloads
	Outline(ctx context.Context, id string) (makegood.Job, error)
	Details(ctx context.Context, filter api.Filter, cursor string, limit int) (api.Page, error)
	Errors(ctx context.Context, cursor string) (api.Groups, error)
	Totals(ctx context.Context) (map[makegood.ProcessState]int, error)
	Wake(ctx context.Context, id string) (makegood.Job, error)
	Publish(ctx context.Context, source []byte) (api.Workflow, error)
	Quarantine(ctx context.Context, cursor string) (api.QuarantinePage, error)
	QuarantinedMessage(ctx context.Context, id string) (api.Quarantined, error)
	ReplayQuarantined(ctx context.Context, id string) (api.Replayed, error)
	DropQuarantined(ctx context.Context, id string) error
}

// spoilt is a store with a job that is damaged, and one that a newer release wrote.
type spoilt struct{ store.Store }

func (s spoilt) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := s.Store.Load(ctx, id)
	switch {
	case strings.HasPrefix(id, "damaged"):
		return job.Job{}, fmt.Errorf("job %s: %w", id, store.ErrDamaged)
	case strings.HasPrefix(id, "newer") && err == nil:
		return j, store.ErrNewer
	}
	return j, err
}

const note = `
name: note
steps:
  - {name: write, agent: post, retry: {attempts: 1}}
  - {name: sign, agent: approval, with: {choices: ["yes", "no"], question: "Sign it?"}}
`

// open returns a way to the jobs of an engine of its own.
func open(t *testing.T, overHTTP bool) everything {
	t.Helper()
	post := agent.New("post", agent.Do("write", func(_ context.Context, to string) (string, error) {
		switch to {
		case "":
			return "", agent.Final(errors.New("no such door"))
		case "abroad":
			return "", errors.New("the ship has left")
		}
		return "Dear " + to, nil
	}))
	quiet := slog.New(slog.DiscardHandler)
	engine, err := embedded.Open(t.Context(), embedded.Config{
		Agents: []agent.Handler{post}, Logger: quiet, WrapStore: func(s store.Store) store.Store { return spoilt{s} },
	})
	must(t, err)
	for _, file := range []string{note, notices} {
		compiled, err := workflowfile.Parse("workflow.yaml", []byte(file))
		must(t, err)
		must(t, engine.Define(t.Context(), compiled))
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: engine.Jobs("local", quiet), Logger: quiet}))
	t.Cleanup(func() {
		server.Close()
		stop()
		must(t, errors.Join(<-ran, engine.Close()))
	})
	remote, err := client.New(server.URL, client.WithPatience(0))
	must(t, err)
	if overHTTP {
		return remote
	}
	return engine.Jobs("local", quiet)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call is something asked. Its name begins with that of the method; what follows says of what.
type call struct {
	name string
	ask  func(ctx context.Context, j everything) (any, error)
}

// of makes the same call for five ids: a stored job, a missing one, a damaged one, a job of a newer release, and a text
// that cannot be an id.
func of(method string, ask func(ctx context.Context, j everything, id string) (any, error)) (all []call) {
	for _, id := range []string{"good", "none", "damaged", "newer", "no id"} {
		all = append(all, call{method + " " + id, func(ctx context.Context, j everything) (any, error) { return ask(ctx, j, id) }})
	}
	return all
}

func calls() (all []call) {
	one := func(name string, ask func(ctx context.Context, j everything) (any, error)) {
		all = append(all, call{name, ask})
	}
	add := func(method string, ask func(ctx context.Context, j everything, id string) (any, error)) {
		all = append(all, of(method, ask)...)
	}
	sign := api.StepRef{Step: "sign"}
	for _, s := range []makegood.Submission{
		{Workflow: "note", ID: "good", Input: json.RawMessage(`"Ada"`)},
		{Workflow: "note", ID: "newer", Input: json.RawMessage(`"Eve"`)},
		{Workflow: "note", ID: "settled", Input: json.RawMessage(`""`)},
		{Workflow: "note", ID: "failed", Input: json.RawMessage(`"Bob"`)},
		{Workflow: "note", ID: "good", Input: json.RawMessage(`"Ada"`)},
		{Workflow: "note", ID: "good", Input: json.RawMessage(`"Eve"`)},
		{Workflow: "poem", ID: "p"},
		{ID: "p"},
		{Workflow: "note", ID: "no id"},
		{Workflow: "note", ID: "r", ReplyTo: "shop"},
		{Workflow: "note", ID: "l", Labels: map[string]string{"NO LABEL": "x"}},
		{Workflow: "note", ID: "late", StartAt: time.Now().Add(400 * 24 * time.Hour)},
	} {
		one("Submit "+s.Workflow+" "+s.ID, func(ctx context.Context, j everything) (any, error) {
			job, err := j.Submit(ctx, s)
			return job.ID + fmt.Sprint(job.Existed), err
		})
	}
	for _, id := range []string{"good", "failed"} {
		one("Watch until it waits: "+id, func(ctx context.Context, j everything) (any, error) {
			for job, err := range j.Watch(ctx, id) {
				if err != nil || job.Steps[1].State == makegood.StepWaiting {
					return job, err
				}
			}
			return nil, errors.New("it ended")
		})
	}
	one("Wait until it stopped", func(ctx context.Context, j everything) (any, error) { return j.Wait(ctx, "settled") })
	add("Get", func(ctx context.Context, j everything, id string) (any, error) { return j.Get(ctx, id) })
	add("Look", func(ctx context.Context, j everything, id string) (any, error) { return j.Look(ctx, id) })
	add("Outline", func(ctx context.Context, j everything, id string) (any, error) { return j.Outline(ctx, id) })
	add("Offers", func(ctx context.Context, j everything, id string) (any, error) { return j.Offers(ctx, id) })
	add("SentInputs", func(ctx context.Context, j everything, id string) (any, error) { return j.SentInputs(ctx, id, "") })
	add("SentInputs of a step", func(ctx context.Context, j everything, id string) (any, error) { return j.SentInputs(ctx, id, "write") })
	add("SentInputs of no step", func(ctx context.Context, j everything, id string) (any, error) { return j.SentInputs(ctx, id, "none") })
	one("List", func(ctx context.Context, j everything) (any, error) {
		var listed []api.Listed
		for l, err := range j.List(ctx, api.Filter{IDPrefix: "good"}) {
			if err != nil {
				return nil, err
			}
			listed = append(listed, l)
		}
		return listed, nil
	})
	for name, f := range map[string]api.Filter{"good": {IDPrefix: "good"}, "no state": {State: "foo"}, "both": {State: makegood.JobError, Paused: true}} {
		one("Page "+name, func(ctx context.Context, j everything) (any, error) { return j.Page(ctx, f, "") })
		one("Details "+name, func(ctx context.Context, j everything) (any, error) { return j.Details(ctx, f, "", 10) })
		one("Count "+name, func(ctx context.Context, j everything) (any, error) {
			return j.Count(ctx, f, []api.Facet{api.ByState}, "")
		})
	}
	one("Page of a cursor that is none", func(ctx context.Context, j everything) (any, error) { return j.Page(ctx, api.Filter{}, "garbage") })
	one("Count by what is no facet", func(ctx context.Context, j everything) (any, error) {
		return j.Count(ctx, api.Filter{}, []api.Facet{"moon"}, "")
	})
	one("Errors", func(ctx context.Context, j everything) (any, error) { return j.Errors(ctx, "") })
	one("Totals", func(ctx context.Context, j everything) (any, error) { _, err := j.Totals(ctx); return nil, err })
	one("Workflows", func(ctx context.Context, j everything) (any, error) { return j.Workflows(ctx) })
	one("Definition", func(ctx context.Context, j everything) (any, error) {
		job, err := j.Look(ctx, "good")
		if err != nil {
			return nil, err
		}
		return j.Definition(ctx, job.Definition)
	})
	one("Definition of no hash", func(ctx context.Context, j everything) (any, error) { return j.Definition(ctx, "moon") })
	one("Publish", func(ctx context.Context, j everything) (any, error) { return j.Publish(ctx, []byte(note)) })
	for _, r := range []api.Request{
		{Verb: makegood.VerbPause, Name: "monday", Reason: "slow"},
		{Verb: makegood.VerbPause, Name: "monday"},
		{Verb: makegood.VerbResume},
		{Verb: makegood.VerbReschedule},
		{Verb: makegood.VerbReschedule, StartAt: time.Now().Add(time.Hour)},
		{Verb: makegood.VerbResubmit},
		{Verb: makegood.VerbPause, Name: "two words"},
		{Verb: makegood.VerbPause, Reason: strings.Repeat("x", 1025)},
		{Verb: makegood.VerbEdit, Timeout: makegood.Hour},
		{Verb: makegood.VerbEdit, Step: "write", Concurrency: 4},
		{Verb: makegood.VerbEdit, Step: "write", Tolerate: &makegood.Tolerance{Items: -1}},
		{Verb: makegood.VerbEdit, Step: "write", Concurrency: 10001},
		{Verb: makegood.VerbEdit, Step: "write", Concurrency: 4, Timeout: makegood.Hour},
		{Verb: makegood.VerbEdit, Step: "write"},
		{Verb: makegood.VerbEdit, Concurrency: 4},
		{Verb: makegood.VerbResubmit, Definition: strings.Repeat("x", 200)},
		{Verb: makegood.VerbForward},
		{Verb: makegood.VerbRedo},
	} {
		add(fmt.Sprintf("Request %s %s %.10s %.10s", r.Verb, r.Name, r.Reason, r.Definition), func(ctx context.Context, j everything, id string) (any, error) {
			job, err := j.Request(ctx, id, r)
			return []any{job, job.Existed}, err
		})
	}
	add("Plan", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Plan(ctx, id, api.Request{Verb: makegood.VerbResubmit})
	})
	add("Heartbeat", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Heartbeat(ctx, id, sign, time.Time{})
	})
	add("Complete", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Complete(ctx, id, sign, json.RawMessage(`"perhaps"`))
	})
	add("Complete a step that is not there", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Complete(ctx, id, api.StepRef{Step: "moon"}, nil)
	})
	add("Complete a round that is none", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Complete(ctx, id, api.StepRef{Step: "sign", Round: -1}, nil)
	})
	add("Complete for good", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Complete(ctx, id, sign, json.RawMessage(`"yes"`))
	})
	one("Fail", func(ctx context.Context, j everything) (any, error) {
		return j.Fail(ctx, "failed", sign, makegood.StepError{Message: "no pen", Kind: "pen"})
	})
	one("Wait until it has failed", func(ctx context.Context, j everything) (any, error) {
		_, err := j.Wait(ctx, "failed")
		return nil, err
	})
	add("Fail without words", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Fail(ctx, id, sign, makegood.StepError{})
	})
	add("Settle", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Settle(ctx, id, sign, api.SettleOptions{Reason: "by hand"})
	})
	add("Settle as two things", func(ctx context.Context, j everything, id string) (any, error) {
		return j.Settle(ctx, id, sign, api.SettleOptions{Skipped: true, Name: "two words"})
	})
	one("Settle what failed", func(ctx context.Context, j everything) (any, error) {
		return j.Settle(ctx, "settled", api.StepRef{Step: "write"}, api.SettleOptions{Output: json.RawMessage(`"by hand"`)})
	})
	for token, name := range map[string]string{"moon": "no token", "c1.AAAA": "a token of nothing"} {
		one("Completion "+name, func(ctx context.Context, j everything) (any, error) { return j.Completion(token).Complete(ctx, nil) })
		one("Completion fails "+name, func(ctx context.Context, j everything) (any, error) {
			return j.Completion(token).Fail(ctx, makegood.StepError{Message: "x"})
		})
		one("Completion waits "+name, func(ctx context.Context, j everything) (any, error) {
			return j.Completion(token).Heartbeat(ctx, time.Time{})
		})
	}
	add("Wake", func(ctx context.Context, j everything, id string) (any, error) { return j.Wake(ctx, id) })
	return append(all, otherCalls()...)
}

// otherCalls are those about what is no job.
func otherCalls() (all []call) {
	one := func(name string, ask func(ctx context.Context, j everything) (any, error)) {
		all = append(all, call{name, ask})
	}
	for _, s := range []makegood.Schedule{
		{Name: "nightly", Workflow: "note", Cron: "@daily"},
		{Name: "nightly", Workflow: "note", Cron: "@daily"},
		{Name: "nightly", Workflow: "note", Cron: "@weekly"},
		{Name: "nightly", Workflow: "poem", Cron: "@daily"},
		{Name: "no name", Workflow: "note", Cron: "@daily"},
		{Name: "never", Workflow: "note"},
	} {
		one("CreateSchedule", func(ctx context.Context, j everything) (any, error) {
			got, err := j.CreateSchedule(ctx, s)
			return []any{got, got.Existed}, err
		})
	}
	one("ChangeSchedule", func(ctx context.Context, j everything) (any, error) {
		return j.ChangeSchedule(ctx, makegood.Schedule{Name: "nightly", Workflow: "note", Cron: "@weekly"}, 99)
	})
	one("ChangeSchedule that is not there", func(ctx context.Context, j everything) (any, error) {
		return j.ChangeSchedule(ctx, makegood.Schedule{Name: "none", Workflow: "note", Cron: "@weekly"}, 0)
	})
	for _, name := range []string{"nightly", "none", "no name"} {
		one("GetSchedule", func(ctx context.Context, j everything) (any, error) { return j.GetSchedule(ctx, name) })
		one("PauseSchedule", func(ctx context.Context, j everything) (any, error) { return j.PauseSchedule(ctx, name) })
		one("ResumeSchedule", func(ctx context.Context, j everything) (any, error) { return j.ResumeSchedule(ctx, name) })
		one("NextFires", func(ctx context.Context, j everything) (any, error) {
			fires, err := j.NextFires(ctx, name, 2)
			return len(fires), err
		})
		one("RunSchedule", func(ctx context.Context, j everything) (any, error) {
			id, err := j.RunSchedule(ctx, name)
			if err == nil {
				_, err = j.Wait(ctx, id) // A hold would count it while it is at work.
			}
			return nil, err
		})
		one("RemoveSchedule of another revision", func(ctx context.Context, j everything) (any, error) {
			return nil, j.RemoveSchedule(ctx, name, 99)
		})
	}
	one("RemoveSchedule", func(ctx context.Context, j everything) (any, error) { return nil, j.RemoveSchedule(ctx, "nightly", 0) })
	one("ListSchedules", func(ctx context.Context, j everything) (any, error) { return j.ListSchedules(ctx) })
	for _, name := range []string{"post", "moon", "no name"} {
		one("ResumeAll what is not paused: "+name, func(ctx context.Context, j everything) (any, error) {
			return j.ResumeAll(ctx, makegood.HoldAgent, name)
		})
		one("ProbeAgent what is not paused: "+name, func(ctx context.Context, j everything) (any, error) {
			return j.ProbeAgent(ctx, name)
		})
		one("PauseAll "+name, func(ctx context.Context, j everything) (any, error) {
			return j.PauseAll(ctx, makegood.HoldAgent, name, "slow")
		})
		for _, l := range []makegood.Limit{{}, {Concurrency: 101}, {Rate: "1/h"}, {Burst: 2}, {Rate: "30/m", Burst: 3}, {Concurrency: 3}} {
			one(fmt.Sprint("LimitAgent ", name, l), func(ctx context.Context, j everything) (any, error) {
				return j.LimitAgent(ctx, name, l, "narrow")
			})
		}
		one("ListHolds "+name, func(ctx context.Context, j everything) (any, error) { return j.ListHolds(ctx) })
		one("ListAgents "+name, func(ctx context.Context, j everything) (any, error) {
			agents, err := j.ListAgents(ctx)
			return len(agents), err
		})
		one("LimitAgent away "+name, func(ctx context.Context, j everything) (any, error) {
			return j.LimitAgent(ctx, name, makegood.Limit{}, "")
		})
		one("ResumeAll "+name, func(ctx context.Context, j everything) (any, error) {
			_, err := j.ResumeAll(ctx, makegood.HoldAgent, name)
			return nil, err
		})
	}
	for _, id := range []string{"paid", "no id"} {
		one("WritePayload", func(ctx context.Context, j everything) (any, error) {
			return j.WritePayload(ctx, id, "text/plain", strings.NewReader("a bill"))
		})
	}
	one("WritePayload of no type", func(ctx context.Context, j everything) (any, error) {
		return j.WritePayload(ctx, "paid", "no type", strings.NewReader("a bill"))
	})
	bill := makegood.Payload{SHA256: "e4f1d3f7d64a1fb0d2b6a4f3ea0e6bbd5cbd7c2e0d1a5d8c9c1c9f0a1b2c3d4e", Bytes: 6}
	one("OpenPayload that is not there", func(ctx context.Context, j everything) (any, error) { return reading(j.OpenPayload(ctx, "paid", bill)) })
	one("OpenPayloadRange", func(ctx context.Context, j everything) (any, error) {
		p, err := j.WritePayload(ctx, "paid", "", strings.NewReader("a bill"))
		if err != nil {
			return nil, err
		}
		return reading(j.OpenPayloadRange(ctx, "paid", p, 2, 3))
	})
	one("Quarantine", func(ctx context.Context, j everything) (any, error) { return j.Quarantine(ctx, "") })
	one("Quarantine of a cursor that is none", func(ctx context.Context, j everything) (any, error) { return j.Quarantine(ctx, "moon") })
	one("QuarantinedMessage", func(ctx context.Context, j everything) (any, error) { return j.QuarantinedMessage(ctx, "7") })
	one("ReplayQuarantined", func(ctx context.Context, j everything) (any, error) { return j.ReplayQuarantined(ctx, "7") })
	one("DropQuarantined", func(ctx context.Context, j everything) (any, error) { return nil, j.DropQuarantined(ctx, "7") })
	return all
}

func reading(r io.ReadCloser, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

// Every call gives the same value, or an error of the same kind in the same words, in the process and over HTTP: of
// a job that is there, that is not, that is damaged, and that a newer release wrote.
func TestEveryCallIsTheSameInTheProcessAndOverHTTP(t *testing.T) {
	here, there := open(t, false), open(t, true)
	asked := map[string]bool{}
	for _, c := range calls() {
		method, _, _ := strings.Cut(c.name, " ")
		asked[method] = true
		if is, was := outcome(t, c, here), outcome(t, c, there); is != was {
			t.Errorf("%s: in the process\n%s\nover HTTP\n%s", c.name, is, was)
		}
	}
	for m := range reflect.TypeFor[everything]().Methods() {
		if m.IsExported() && !asked[m.Name] {
			t.Errorf("%s is not asked", m.Name)
		}
	}
}

// varies is what is another thing at each look: times, and the names of those who hold something.
var varies = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"|"embedded-[^"]*"`)

// outcome is what a call came to: its value, or the kind and the words of its error.
func outcome(t *testing.T, c call, j everything) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	value, err := c.ask(ctx, j)
	if err == nil {
		text, jsonErr := json.Marshal(value)
		must(t, jsonErr)
		return varies.ReplaceAllString(string(text), "*")
	}
	p, _, known := protocol.ProblemOf(err)
	if !known {
		t.Errorf("%s: got %T %v, want an error of package api", c.name, err, err)
	}
	text := string(p.Code)
	if p.Code == protocol.CodeInvalid || p.Code == protocol.CodeRefused {
		text += ": " + p.Error
	}
	return text
}

var _ everything = (*control.Service)(nil)

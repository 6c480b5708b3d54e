package httpapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// brokenHolds is what keeps holds in a store that fails.
func brokenHolds(err error) *holds.Keeper {
	return holds.New(holds.Config{Store: holdless{err}, Gates: gateless{}, Queue: queueless{}, Events: "events"})
}

// holdless keeps no hold: every call of it fails.
type holdless struct{ err error }

func (h holdless) Holds(context.Context, bool) (store.Held, error) { return store.Held{}, h.err }

func (h holdless) PutHolds(context.Context, store.Held) error { return h.err }

func (h holdless) HeldJobs(context.Context, string, int) ([]string, error) { return nil, h.err }

func (h holdless) CountHeld(context.Context, string, int) (int, error) { return 0, h.err }

// gateless has no gate, and is never asked for one.
type gateless struct{ holds.Gates }

// queueless is never sent anything.
type queueless struct{}

func (queueless) Send(context.Context, string, ...queue.Message) []error { panic("send") }

func (queueless) Depth(context.Context, string) (queue.Depth, error) { panic("depth") }

// holdConversations are those about what is paused as a whole. Nothing is paused that others need: it is what they end with.
func holdConversations() (all []conversation) {
	large := `{"reason":"` + strings.Repeat("x", 64<<10) + `"}`
	all = append(all, conversation{"GET", "/api/holds", "/api/holds", "", "", 200})
	of := func(word string) func(name, body, header string, status int) conversation {
		return func(name, body, header string, status int) conversation {
			return conversation{"POST", "/api/holds/agent/{id}/" + word, "/api/holds/agent/" + name + "/" + word, body, header, status}
		}
	}
	limit, probe := of("limit"), of("probe")
	all = append(all,
		limit("pilot", `{"concurrency":0}`, "", 409),
		limit("pilot", `{"concurrency":20,"reason":"it takes 20"}`, "", 200),
		limit("pilot", `{"concurrency":1,"key":"${ .input.account }"}`, "", 200),
		limit("pilot", `{"concurrency":1,"key":"account"}`, "", 400),
		limit("pilot", `{"concurrency":0}`, "", 200),
		limit("pilot", `{"concurrency":101}`, "", 400),
		limit("pilot", `{"reason":"it says no number"}`, "", 400),
		limit("no_Such!", `{"concurrency":1}`, "", 400),
		limit("pilot", `{}`, "Content-Type: text/plain", 415),
		limit("pilot", `{}`, "Sec-Fetch-Site: cross-site", 403),
		limit("pilot", large, "", 413),
		probe("tripped", `{}`, "", 200),
		probe("pilot", `{}`, "", 409),
		probe("no_Such!", `{}`, "", 400),
		probe("pilot", `{}`, "Content-Type: text/plain", 415),
		probe("pilot", `{}`, "Sec-Fetch-Site: cross-site", 403),
		probe("pilot", large, "", 413),
	)
	for kind, name := range map[string]string{"agent": "pilot", "workflow": "voyage"} {
		base := "/api/holds/" + kind + "/{id}/"
		at := func(name, word string) string { return "/api/holds/" + kind + "/" + name + "/" + word }
		all = append(all,
			conversation{"POST", base + "resume", at(name, "resume"), `{}`, "Content-Type: text/plain", 415},
			conversation{"POST", base + "pause", at(name, "pause"), `{"reason":"it is down"}`, "", 200},
			conversation{"POST", base + "pause", at("no_Such!", "pause"), `{}`, "", 400},
			conversation{"POST", base + "resume", at("no_Such!", "resume"), `{}`, "", 400},
			conversation{"POST", base + "resume", at(name, "resume"), `{}`, "", 200},
			conversation{"POST", base + "resume", at("nobody", "resume"), `{}`, "", 409},
		)
		for _, word := range []string{"pause", "resume"} {
			all = append(all,
				conversation{"POST", base + word, at(name, word), `{"why":1}`, "", 400},
				conversation{"POST", base + word, at(name, word), `{}`, "Content-Type: text/plain", 415},
				conversation{"POST", base + word, at(name, word), `{}`, "Sec-Fetch-Site: cross-site", 403},
				conversation{"POST", base + word, at(name, word), large, "", 413},
			)
		}
	}
	return all
}

// The client pauses an agent, sees what stands still and why, and resumes it.
func TestAnAgentIsPausedOverHTTP(t *testing.T) {
	w, before := newWorld(t), time.Now().Add(-time.Second)
	h, err := w.client.PauseAll(t.Context(), makegood.HoldAgent, "actor", "the shop is down")
	check(t, err)
	if h.By == "" || h.Reason != "the shop is down" || h.ReleasedAt != nil || h.Since.Before(before) || h.Since.After(time.Now()) {
		t.Errorf("got %+v, want who paused it, when and why", h)
	}
	w.submit("order", "o-1", `{}`)
	j := w.until("o-1", func(j makegood.Job) bool { return j.Paused })
	if j.HeldBy != "agent actor" || !strings.Contains(j.HeldReason, "the shop is down") || j.PausedAt == nil {
		t.Errorf("got %+v, want what holds it, since when and why", j)
	}
	var refused *api.RefusedError
	if _, err := w.client.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbResume}); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "makegood resume --whole-agent actor") {
		t.Errorf("resume of a job that is held: got %v, want to be told what to do", err)
	}
	list, err := w.client.ListHolds(t.Context())
	check(t, err)
	if len(list) != 1 || list[0].Jobs != 1 {
		t.Errorf("got %+v, want one hold of one job", list)
	}
	_, err = w.client.ResumeAll(t.Context(), makegood.HoldAgent, "actor")
	check(t, err)
	w.until("o-1", in(makegood.JobProcessed))
	if _, err := w.client.ResumeAll(t.Context(), makegood.HoldWorkflow, "order"); !errors.As(err, &refused) {
		t.Errorf("resume of what is not paused: got %v, want it refused", err)
	}
	var invalid *api.InvalidError
	if _, err := w.client.PauseAll(t.Context(), makegood.HoldAgent, "actress", ""); !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "there are") {
		t.Errorf("an agent that there is not: got %v, want those that there are", err)
	}
}

// The client limits an agent, sets another limit in its place, sees it, and takes it away.
func TestAnAgentIsLimitedOverHTTP(t *testing.T) {
	w := newWorld(t)
	h, err := w.client.LimitAgent(t.Context(), "actor", makegood.Limit{Concurrency: 1}, "one stage")
	check(t, err)
	if h.Kind != makegood.HoldLimit || h.Name != "actor" || h.Limit != 1 || h.By == "" || h.Reason != "one stage" {
		t.Errorf("got %+v, want the limit, who set it and why", h)
	}
	h, err = w.client.LimitAgent(t.Context(), "actor", makegood.Limit{Concurrency: 2}, "two stages")
	check(t, err)
	all, err := w.client.ListHolds(t.Context())
	check(t, err)
	if h.Limit != 2 || len(all) != 1 || all[0].Limit != 2 || all[0].Reason != "two stages" || all[0].NextAt != nil {
		t.Errorf("got %+v and %+v, want the second limit in the place of the first", h, all)
	}
	agents, err := w.client.ListAgents(t.Context())
	check(t, err)
	for _, a := range agents {
		if limited := a.Limit != nil; limited != (a.Name == "actor") || a.Hold != nil {
			t.Errorf("agent %s: got the limit %v and the pause %v, want a limit of the actor alone", a.Name, a.Limit, a.Hold)
		}
	}
	gone, err := w.client.LimitAgent(t.Context(), "actor", makegood.Limit{}, "")
	if err != nil || gone.Kind != makegood.HoldLimit || gone.Limit != 0 {
		t.Errorf("got %+v, %v, want the limit taken away", gone, err)
	}
	var refused *api.RefusedError
	if _, err := w.client.LimitAgent(t.Context(), "actor", makegood.Limit{}, ""); !errors.As(err, &refused) || refused.Reason != "agent actor has no limit" {
		t.Errorf("taken away again: got %v, want it refused", err)
	}
	var invalid *api.InvalidError
	if _, err := w.client.LimitAgent(t.Context(), "actor", makegood.Limit{Concurrency: 101}, ""); !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "1 to 100") {
		t.Errorf("a limit of 101: got %v, want the highest", err)
	}
}

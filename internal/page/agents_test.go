package page_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/makegood-dev/makegood"
)

// An agent is paused with a reason, that stands there with what it holds, and it is resumed.
func TestAnAgentIsPausedAndResumedOnThePage(t *testing.T) {
	w := newWorld(t)
	w.submit("bad", `{"fail":"charge"}`, true)
	w.get("agents").wants(t, `id="agent-shop"`, "works", "trip", "1 job waits for a person", "No agent and no workflow is paused")
	w.get("holds/agent/shop/pause").wants(t, "Pause agent shop?", "No job is counted as failed", `name="reason"`)
	paused := w.post("holds/agent/shop/pause", url.Values{"reason": {"the bank is down"}})
	paused.wants(t, "1 agent paused", "the bank is down", "Resume")
	w.submit("held", `{}`, false)
	held, err := w.ListHolds(t.Context())
	if err != nil || len(held) != 1 || held[0].Reason != "the bank is down" {
		t.Errorf("got %+v, %v, want one hold and why", held, err)
	}
	w.post("holds/agent/shop/resume", url.Values{}).wants(t, "going on", "told to go on")
	if again := w.post("holds/workflow/trip/resume", url.Values{}); again.status != http.StatusConflict {
		t.Errorf("resumed what is not paused: got %d, want 409", again.status)
	}
	w.post("holds/workflow/trip/pause", url.Values{"reason": {"a bad release"}}).wants(t, "workflow trip", "a bad release")
	for _, path := range []string{"holds/agent/No_Such!/pause", "holds/agent/" + makegood.AgentWait + "/pause", "holds/nothing/trip/pause"} {
		if got := w.get(path); got.status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", path, got.status)
		}
	}
}

// An agent that the breaker has paused can be probed now, one that a person has paused cannot.
func TestAnAgentIsProbedFromThePage(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.submit(fmt.Sprint("j", i), `{"down":true}`, false)
	}
	w.eventually("agents", "Probe now")
	w.post("holds/agent/shop/probe", url.Values{}).wants(t, "its last 10 attempts failed", "Probe now")
	w.post("holds/agent/shop/pause", url.Values{}).lacks(t, "Probe now")
	if got := w.post("holds/agent/shop/probe", url.Values{}); got.status != http.StatusConflict {
		t.Errorf("probed what the breaker has not paused: got %d, want 409", got.status)
	}
}

// An agent gets a limit with a reason; the page says how many of its attempts are under way and wait, of a job that it
// waits before the gate, and takes the limit away.
func TestAnAgentIsLimitedOnThePage(t *testing.T) {
	w := newWorld(t)
	w.get("agents").wants(t, "no agent has a limit", "holds/agent/shop/limit")
	w.get("holds/agent/shop/limit").wants(t, "Limit agent shop?", `name="concurrency"`, `max="100"`, `name="reason"`)
	w.post("holds/agent/shop/limit", url.Values{"concurrency": {"1"}, "reason": {"one till"}}).wants(t, "limit 1: 0 under way, 0 wait", "one till", "Take away")
	w.get("holds/agent/shop/limit").wants(t, `value="1"`)
	w.submit("first", `{"hold":true}`, false)
	w.eventually("agents", "limit 1: 1 under way, 0 wait")
	w.submit("second", `{"hold":true}`, false)
	w.eventually("agents", "limit 1: 1 under way, 1 wait")
	w.get("holds/agent/shop/limit").wants(t, "Under way", `jobs/first">first</a>`, "reserve")
	before := w.eventually("jobs/second", "Step reserve stands before the gate of shop, attempt 1: limit 1: 1 under way, 1 wait, by ")
	before.wants(t, "at the gate", "one till")
	list := w.get("")
	list.wants(t, "before the gate of its agent")
	list.lacks(t, "is paused")
	w.post("holds/agent/shop/limit", url.Values{"concurrency": {"0"}}).wants(t, "no agent has a limit")
	w.eventually("jobs/second", "is at work")
	close(w.hold)
	if again := w.post("holds/agent/shop/limit", url.Values{"concurrency": {"0"}}); again.status != http.StatusConflict {
		t.Errorf("no limit taken away: got %d, want 409", again.status)
	}
	for path, concurrency := range map[string]string{"shop": "many", "No_Such!": "1", makegood.AgentWait: "1"} {
		if got := w.post("holds/agent/"+path+"/limit", url.Values{"concurrency": {concurrency}}); got.status != http.StatusBadRequest {
			t.Errorf("%s, %s: got %d, want 400", path, concurrency, got.status)
		}
	}
	if got := w.get("holds/agent/" + makegood.AgentWait + "/limit"); got.status != http.StatusBadRequest {
		t.Errorf("the form of a limit that cannot be: got %d, want 400", got.status)
	}
}

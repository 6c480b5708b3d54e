package page_test

import (
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

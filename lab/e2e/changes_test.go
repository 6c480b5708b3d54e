package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// hearer is a webhook that takes every change once, and in order, and fails now and then: before it has taken a run, or after.
type hearer struct {
	t *testing.T

	mu     sync.Mutex
	random *rand.Rand
	taken  map[string][]makegood.Change
	runs   int
	again  int
	ended  map[string]bool
}

func (h *hearer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var run makegood.Changes
	if err := json.NewDecoder(r.Body).Decode(&run); err != nil {
		return // Whoever posted it died over it.
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fate := h.random.IntN(20)
	if fate == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h.runs++
	for _, c := range run.Changes {
		taken := h.taken[run.Job]
		switch {
		case c.Lost > 0:
			h.t.Errorf("%d changes of job %s are lost", c.Lost, run.Job)
		case c.Number <= len(taken):
			if h.again++; taken[c.Number-1] != c {
				h.t.Errorf("change %d of job %s was %+v, and is %+v", c.Number, run.Job, taken[c.Number-1], c)
			}
			continue
		case c.Number > len(taken)+1:
			h.t.Errorf("change %d of job %s comes after %d", c.Number, run.Job, len(taken))
		}
		h.taken[run.Job] = append(taken, c)
		h.ended[run.Job] = c.Step == "" && makegood.ProcessState(c.To).Finished()
	}
	if fate == 1 {
		w.WriteHeader(http.StatusBadGateway)
	}
}

// all reports whether the end of so many jobs was heard.
func (h *hearer) all(jobs int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, ended := range h.ended {
		if ended {
			n++
		}
	}
	return n == jobs
}

// The engine is killed over and over while jobs run, and the webhook fails now and then. Whoever takes each number once has every
// change of every job at the end, in order, with no gap and none that was not made.
func TestKilledAtRandomAWebhookHasEveryChange(t *testing.T) {
	const jobs, kills = 60, 12
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	// The hearer draws for itself: it is asked while this test draws, too.
	h := &hearer{t: t, random: rand.New(rand.NewPCG(seed.Of(t), 1)), taken: map[string][]makegood.Change{}, ended: map[string]bool{}}
	hook := httptest.NewServer(h)
	t.Cleanup(hook.Close)
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	addr := freeAddr(t)
	server := s.dev(addr, "--changes", hook.URL)
	c, err := client.New(server.url, client.WithPatience(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		if i%(jobs/kills) == jobs/kills-1 {
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // So that kills strike anywhere.
			server.kill()
			server = s.dev(addr, "--changes", hook.URL)
		}
		id := fmt.Sprintf("c-%04d", i)
		if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(fmt.Sprintf(`{"id":%q,"customer":"c","total":10}`, id))}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(5 * time.Minute); !h.all(jobs); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("five minutes after the last kill the end of some jobs was not heard: %v", h.ended)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, taken := range h.taken {
		job, err := c.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if problem := differs(taken, job); problem != "" {
			t.Errorf("job %s: %s; its changes: %+v", id, problem, taken)
		}
	}
	t.Logf("%d jobs, %d kills: %d runs, in which %d changes came again", jobs, kills, h.runs, h.again)
	if h.again == 0 {
		t.Error("no change came twice: the kills have shown nothing")
	}
}

// differs plays changes, and says what they make of a job that it is not; empty: nothing.
func differs(changes []makegood.Change, is makegood.Job) string {
	states := map[string]string{}
	for _, c := range changes {
		of := fmt.Sprint(c.Step, c.Undo)
		if was := states[of]; c.From != was && !(was == "" && c.From == string(makegood.StepNotStarted)) {
			return fmt.Sprintf("change %d goes from %q, and it was %q", c.Number, c.From, was)
		}
		states[of] = c.To
	}
	if got := states[fmt.Sprint("", false)]; got != string(is.ProcessState) {
		return fmt.Sprintf("it is %s, and its changes say %q", is.ProcessState, got)
	}
	for _, step := range is.Steps {
		if got := states[fmt.Sprint(step.Name, false)]; got != string(step.State) {
			return fmt.Sprintf("step %s is %s, and its changes say %q", step.Name, step.State, got)
		}
	}
	return ""
}

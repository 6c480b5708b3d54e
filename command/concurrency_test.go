package command

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// linkedDesk is an agent that is linked into the command.
func linkedDesk() agent.Handler {
	return agent.New("desk", agent.Do("book", func(context.Context, string) (string, error) { return "", nil }))
}

func TestHowManyAttemptsRunAtOnceIsSaidOfEachAgentAndOfAll(t *testing.T) {
	desk := linkedDesk()
	got, err := parseConcurrency([]string{"desk=3", "200", "http=7"}, []agent.Handler{desk}, nil)
	want := embedded.Concurrency{All: 200, Agents: map[string]int{"desk": 3, "http": 7}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := parseConcurrency(nil, nil, nil); err != nil || got.All != 0 || len(got.Agents) != 0 {
		t.Errorf("got %+v, %v of nothing", got, err)
	}
}

func TestAConcurrencyThatCannotBeIsRefused(t *testing.T) {
	desk := linkedDesk()
	for given, says := range map[string]string{
		"":               "want NAME=N",
		"desk":           "want NAME=N",
		"desk=":          "want NAME=N",
		"=3":             "want NAME=N",
		"desk=many":      "want NAME=N",
		"0":              "0 attempts at once, want 1 to 10000",
		"desk=10001":     "10001 attempts at once, want 1 to 10000",
		"desk=3\ndesk=4": "--concurrency desk=4: given twice",
		"3\n4":           "given twice",
		"dock=3":         "no such agent runs here; there are http, desk",
		"far=3":          "runs in processes outside",
	} {
		_, err := parseConcurrency(strings.Split(given, "\n"), []agent.Handler{desk}, []embedded.Outside{{Name: "far"}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("--concurrency %q: got %v, want %q", given, err, says)
		}
	}
	serve := newServe(pace{lookEvery, certificateLook}, nil, []agent.Handler{desk})
	serve.SetArgs([]string{"--data", t.TempDir(), "--concurrency", "dock=3"})
	if err := serve.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "no such agent runs here") {
		t.Errorf("serve: got %v, want it refused, too", err)
	}
}

// Eight jobs ask one service at once, and it sees three requests at a time. No request is answered before three have
// come, and then a fourth would have time to come.
func TestDevKeepsToItsConcurrency(t *testing.T) {
	var now, most atomic.Int64
	three := make(chan struct{})
	full := sync.OnceFunc(func() { close(three) })
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		if n >= 3 {
			full()
		}
		select {
		case <-three:
		case <-time.After(2 * time.Minute):
		}
		time.Sleep(50 * time.Millisecond)
	}))
	t.Cleanup(service.Close)
	s := startDevWith(t, "name: x\nsteps: [{name: a, agent: http, with: {url: "+service.URL+"}}]\n", "--concurrency", "http=3")
	c, err := client.New(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "x", ID: fmt.Sprint("x-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		if job, err := c.Wait(t.Context(), fmt.Sprint("x-", i)); err != nil || job.ProcessState != makegood.JobProcessed {
			t.Fatalf("got %+v, %v", job, err)
		}
	}
	if most.Load() != 3 {
		t.Errorf("the service saw %d requests at once, want 3", most.Load())
	}
}

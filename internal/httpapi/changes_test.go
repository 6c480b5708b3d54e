package httpapi_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/httpapi"
)

// following opens the stream of changes, and returns what reads its next event: its lines, joined.
func following(t *testing.T, server *httptest.Server, query, last string) func() string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/changes?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", last)
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func() string {
		var event []string
		for lines.Scan() && lines.Text() != "" {
			event = append(event, lines.Text())
		}
		return strings.Join(event, "|")
	}
}

func show(h *changes.Hub, job, workflow string, numbers ...int) {
	run := makegood.Changes{Job: job, Workflow: workflow}
	for _, n := range numbers {
		run.Changes = append(run.Changes, makegood.Change{Number: n, To: "Pending"})
	}
	h.Show(run)
}

// Whoever follows gets what they asked for, and when they come back what they have missed, or how much.
func TestChangesAreFollowed(t *testing.T) {
	hub := changes.NewHub()
	server := httptest.NewServer(httpapi.New(httpapi.Config{Changes: hub}))
	t.Cleanup(server.Close)
	next := following(t, server, "job=a", "")
	if got := next(); got != ": here is what changes" {
		t.Fatalf("begins with %q", got)
	}
	show(hub, "b", "order", 1)
	show(hub, "a", "order", 1, 2)
	first, second := next(), next()
	if !strings.Contains(first, `"job":"a","workflow":"order","number":1`) || !strings.Contains(second, `"number":2`) || !strings.Contains(first, "event: change|") {
		t.Errorf("got %q and %q", first, second)
	}
	id := strings.TrimPrefix(strings.Split(first, "|")[0], "id: ")
	again := following(t, server, "", id)
	again()
	if got := again(); got != second {
		t.Errorf("after %s: got %q, want %q", id, got, second)
	}
	other := following(t, server, "", "elsewhere:7")
	if got := other(); got != `event: missed|data: {"missed":-1}` {
		t.Errorf("of another process: got %q", got)
	}
}

func TestWhereChangesAreNotKeptTheStreamSaysSo(t *testing.T) {
	server := httptest.NewServer(httpapi.New(httpapi.Config{}))
	t.Cleanup(server.Close)
	answer, err := server.Client().Get(server.URL + "/api/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("got %s, want 404", answer.Status)
	}
}

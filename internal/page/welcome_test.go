package page_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/page"
)

// Whoever has no jobs is led to what to do first; their workflow is drawn, and the commands are about it.
func TestWithoutJobsThePageSaysHowToBegin(t *testing.T) {
	w := newWorld(t)
	w.get("").wants(t, `href="./welcome"`)
	got := w.get("welcome")
	got.wants(t, "serves 2 workflows: <b>trip</b>, <b>voyage</b>", "makegood submit trip --id first", "makegood new trips", "The workflow trip: ", ">reserve<", "as if it had not been")
	if answer := w.post("welcome", url.Values{"run": {"one"}}); answer.status != 405 {
		t.Errorf("got %d of a tour that nobody offers, want 405", answer.status)
	}
}

// touring is the world with a tour.
func touring(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	c, err := client.New(w.url)
	if err != nil {
		t.Fatal(err)
	}
	trip := func(id string) makegood.Submission {
		return makegood.Submission{Workflow: "trip", ID: id, Input: json.RawMessage(`{}`)}
	}
	p := page.New(page.Config{Jobs: c, Where: "here", Tour: &page.Tour{
		Workflow: "trip", About: "a trip.", First: trip("t-1"), Many: []makegood.Submission{trip("t-2"), trip("t-3")},
		Commands: []page.Command{{Why: "Go.", Line: "makegood go 'x'"}},
	}})
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		p.Close()
		server.Close()
	})
	w.url = server.URL + "/"
	return w
}

// A tour runs what it offers, and the same again is the same jobs.
func TestATourRunsWhatItOffers(t *testing.T) {
	w := touring(t)
	w.get("welcome").wants(t, "<b>trip</b>: a trip.", "Run one trip", "Run 2, with faults", "makegood go &#39;x&#39;")
	for range 2 {
		w.post("welcome", url.Values{"run": {"one"}})
		if answer := w.post("welcome", url.Values{"run": {"many"}}); answer.at.Path != "/" {
			t.Errorf("got to %s, want the list of jobs", answer.at.Path)
		}
	}
	jobs := 0
	for _, err := range w.List(t.Context(), api.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		jobs++
	}
	if jobs != 3 {
		t.Errorf("got %d jobs, want 3", jobs)
	}
	w.get("").wants(t, "t-1", "t-2", "t-3")
}

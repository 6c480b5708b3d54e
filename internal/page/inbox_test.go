package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/bulk"
)

var (
	links  = regexp.MustCompile(`href="\./([^"]*)"`)
	fields = regexp.MustCompile(`<input[^>]* name="([^"]*)" value="([^"]*)"( checked)?`)
)

// link returns the address that a page leads to whose path begins so.
func (a answered) link(t *testing.T, prefix string) string {
	t.Helper()
	for _, found := range links.FindAllStringSubmatch(a.text, -1) {
		if at := html.UnescapeString(found[1]); strings.HasPrefix(at, prefix) {
			return at
		}
	}
	t.Fatalf("got no link to %q in the page, which is:\n%s", prefix, a.text)
	return ""
}

// form returns the hidden fields of the form of a page, and those that are chosen.
func (a answered) form() url.Values {
	form := url.Values{}
	for _, f := range fields.FindAllStringSubmatch(a.text, -1) {
		if strings.Contains(f[0], `type="hidden"`) || f[3] != "" {
			form.Add(html.UnescapeString(f[1]), html.UnescapeString(f[2]))
		}
	}
	return form
}

// through reads the page of a repair until it is through.
func (w *world) through(at *url.URL) answered {
	w.t.Helper()
	path := strings.TrimPrefix(at.Path, "/makegood/")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		page := w.get(path)
		if strings.Contains(page.text, "through in") {
			return page
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the repair does not end:\n%s", page.text)
		}
	}
}

// What waits for a person is shown by its reason, a dry run says what would come of it, and what was seen is done, in bulk.
func TestWhatWaitsIsGroupedTriedAndRepaired(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		w.submit(fmt.Sprintf("t-%02d", i), `{"fail":"charge"}`, true)
	}
	w.submit("other", `{"fail":"reserve"}`, true)
	inbox := w.get("errors")
	inbox.wants(t, "<b>13 jobs</b> in 2 groups", "trip · charge", "trip · reserve", `<div class="big">12</div>`, "the card was declined", "Refused for good", "No message is in quarantine")
	for _, path := range []string{"", "agents", "workflows", "jobs/t-01"} {
		w.eventually(path, `<span class="badge error" title="13 jobs wait for a person">13</span>`)
	}
	w.get("errors?q=step:reserve").wants(t, "<b>13 jobs</b> in 1 group")
	w.get("errors?q=nothing").wants(t, "No waiting job fits")

	inbox = w.get("errors?q=step:charge")
	try := inbox.link(t, "repair?ask=resubmit")
	dry := w.get(try)
	dry.wants(t, "Resubmit 12 jobs?", "No job has changed", "each was asked", "t-11", `name="rate"`)
	w.submit("late", `{"fail":"charge"}`, true)
	form := dry.form()
	form.Set("reason", "the bank is back")
	form.Set("rate", "1000")
	begun := w.post("repairs", form)
	if begun.status != http.StatusOK || !strings.Contains(begun.at.Path, "/repairs/repair-") {
		t.Fatalf("got %d at %s, want the page of the repair", begun.status, begun.at)
	}
	done := w.through(begun.at)
	done.wants(t, "<b>12</b> of 12", "12 granted", "the bank is back")
	for _, id := range []string{"t-00", "t-11"} {
		job, err := w.Get(t.Context(), id)
		if err != nil || len(job.History) == 0 || !strings.Contains(fmt.Sprintf("%+v", job.History), "the bank is back") {
			t.Errorf("job %s: got %+v, %v, want the request and why in its history", id, job.History, err)
		}
	}
	if job, err := w.Get(t.Context(), "late"); err != nil || strings.Contains(fmt.Sprintf("%+v", job.History), "the bank is back") {
		t.Errorf("a job that came after the dry run: got %+v, %v, want it left alone", job.History, err)
	}
	// The same form twice is one repair.
	if again := w.post("repairs", form); again.at.Path != begun.at.Path {
		t.Errorf("got %s, want %s", again.at, begun.at)
	}
	w.get("errors").wants(t, "Repairs", "through in")
}

// A step is settled by hand in many jobs at once, with the reason that a person gives; what is skipped needs one.
func TestManyAreSettledByHand(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.submit(fmt.Sprintf("t-%d", i), `{"fail":"charge"}`, true)
	}
	dry := w.get(w.get("errors").link(t, "repair?ask=settle"))
	dry.wants(t, "Settle as done 3 jobs?", "it is done", "skip it")
	form := dry.form()
	form.Set("ask", "settle skipped")
	if none := w.post("repairs", form); none.status != http.StatusBadRequest {
		t.Errorf("got %d without a reason, want 400", none.status)
	}
	form.Set("reason", "paid in cash")
	w.through(w.post("repairs", form).at).wants(t, "3 granted", "Settle as skipped")
	if job, err := w.Wait(t.Context(), "t-1"); err != nil || job.ProcessState != makegood.JobProcessed {
		t.Errorf("got %+v, %v, want it Processed", job, err)
	}
}

// A dry run names those who would refuse, and why; what it cannot be asked is said.
func TestADryRunNamesRefusals(t *testing.T) {
	w := newWorld(t)
	w.submit("good", `{}`, true)
	w.submit("bad", `{"fail":"charge"}`, true)
	w.get("repair?ask=resubmit&workflow=trip").wants(t, "Resubmit 2 jobs?", "refused", "good", "bad")
	for _, path := range []string{
		"repair?ask=resubmit", "repair?ask=reschedule&workflow=trip", "repair?ask=resubmit&state=Nothing", "repair?ask=settle+done&workflow=trip",
		"repair?ask=cancel&workflow=trip&current=true",
	} {
		if got := w.get(path); got.status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", path, got.status)
		}
	}
	if got := w.get("repairs/nothing"); got.status != http.StatusNotFound {
		t.Errorf("a repair that there is not: got %d, want 404", got.status)
	}
}

// While the agent of a group is paused it says so, and that what is resubmitted would stand still.
func TestAGroupWhoseAgentIsPausedSaysSo(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"fail":"charge"}`, true)
	if _, err := w.PauseAll(t.Context(), makegood.HoldAgent, "shop", "it is down"); err != nil {
		t.Fatal(err)
	}
	w.get("errors").wants(t, "Better not now", "it is down")
}

// The engine and its page die in the middle of a repair. The next on the folder goes on with it, and no job is granted it twice.
func TestARepairGoesOnWithTheNextEngineOnTheFolder(t *testing.T) {
	dir := t.TempDir()
	options := engine.Options{
		Dir: dir, Workflows: fstest.MapFS{"trip.yaml": {Data: []byte(tripFile)}}, Agents: []agent.Handler{shop(nil)}, Logger: slog.New(slog.DiscardHandler),
	}
	first, stop := running(t, options)
	var ids []string
	for i := range 6 {
		id := fmt.Sprintf("t-%d", i)
		ids = append(ids, id)
		if _, err := first.Submit(t.Context(), makegood.Submission{Workflow: "trip", ID: id, Input: json.RawMessage(`{"fail":"charge"}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	// What a page that was killed leaves: an order, and nothing of what came of it.
	orders, err := bulk.Open(dead{}, filepath.Join(dir, bulk.Folder), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := bulk.Order{Name: "repair-x", Says: "trip · charge", Verb: makegood.VerbResubmit, Reason: "mended", PerSecond: 1000, BeganAt: time.Now(), Jobs: ids}
	if _, err := orders.Begin(o); err != nil {
		t.Fatal(err)
	}
	if err := orders.Close(); err != nil {
		t.Fatal(err)
	}
	second, stop := running(t, options)
	defer stop()
	server := httptest.NewServer(http.StripPrefix("/makegood", second.Handler()))
	defer server.Close()
	w := &world{Engine: second, t: t, url: server.URL + "/makegood/"}
	at, err := url.Parse(w.url + "repairs/repair-x")
	if err != nil {
		t.Fatal(err)
	}
	w.through(at).wants(t, "<b>6</b> of 6", "mended")
	for _, id := range ids {
		job, err := second.Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		granted := 0
		for _, e := range job.History {
			if e.Kind == "request" {
				granted++
			}
		}
		if granted != 1 {
			t.Errorf("job %s was granted it %d times, want once", id, granted)
		}
	}
}

// dead is an API that nobody serves any more.
type dead struct{ bulk.Jobs }

func (dead) Request(context.Context, string, api.Request) (makegood.Job, error) {
	return makegood.Job{}, &api.UnreachableError{URL: "http://localhost", Err: errors.New("it was killed")}
}

// running opens an engine that runs until it is stopped.
func running(t *testing.T, o engine.Options) (eng *engine.Engine, stop func()) {
	t.Helper()
	eng, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	return eng, func() {
		cancel()
		if err := errors.Join(<-ran, eng.Close()); err != nil {
			t.Error(err)
		}
	}
}

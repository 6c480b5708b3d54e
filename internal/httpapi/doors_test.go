package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// A door does what belongs to it, and refuses what belongs to another by its name. Each route belongs to one.
func TestADoorRefusesWhatBelongsToAnother(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "there", `{}`)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	belongs := map[string]httpapi.Door{
		"POST /api/jobs": httpapi.Submit, "POST /api/jobs/there/cancel": httpapi.Operate, "POST /api/workflows": httpapi.Operate,
		"GET /api/jobs": httpapi.Read, "GET /api/jobs/there": httpapi.Read, "GET /api/workflows": httpapi.Read,
		"GET /api/audit": httpapi.Read, "POST /api/jobs/there/wake": httpapi.Operate, "GET /api/openapi.json": httpapi.Read, "GET /healthz": httpapi.Read,
	}
	for _, verb := range []string{"complete", "fail", "heartbeat"} {
		belongs["POST /api/jobs/there/steps/charge/"+verb] = httpapi.Operate
		belongs["POST /api/completions/"+verb] = httpapi.Complete
	}
	belongs["POST /api/jobs/there/steps/charge/settle"], belongs["POST /api/jobs/there/plan"] = httpapi.Operate, httpapi.Operate
	belongs["GET /api/jobs/there/verbs"] = httpapi.Read
	belongs["GET /api/jobs/there/inputs"] = httpapi.Read
	belongs["POST /api/jobs/there/payloads"], belongs["PUT /api/jobs/there/payloads"] = httpapi.Submit, httpapi.Submit
	belongs["GET /api/jobs/there/payloads/0?bytes=1"] = httpapi.Read
	belongs["GET /api/definitions/0"] = httpapi.Read
	for _, verb := range domain.Verbs() {
		belongs["POST /api/jobs/there/"+string(verb)] = httpapi.Operate
	}
	for _, door := range httpapi.Doors() {
		url := listen(t, httpapi.Config{Jobs: control.New(w.engine.Parts()), Logger: quiet, Door: door})
		for route, to := range belongs {
			method, path, _ := strings.Cut(route, " ")
			r := ask(t, method, url+path, map[string]string{"POST": `{}`}[method])
			want := "belongs to the door " + string(to) + ", and this is the door " + string(door)
			if refused := r.status == http.StatusForbidden; refused != (to != door) || refused && !strings.Contains(r.problem(t).Error, want) {
				t.Errorf("%s at the door %s: got %d %s, want it refused only if it belongs to another", route, door, r.status, r.body)
			}
		}
	}
}

// asked keeps who asked.
type asked struct {
	broken
	by []string
}

func (a *asked) Request(_ context.Context, _ string, r job.Requested) (job.Job, machine.Verdict, error) {
	a.by = append(a.by, r.By)
	return job.Job{}, machine.Verdict{Kind: machine.Applied}, nil
}

// Who asks is what the server knows of a request, and nothing in the request can say otherwise.
func TestARequestCarriesWhoMakesIt(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	backend := &asked{}
	parts := broken{}.parts()
	parts.Scheduler = backend
	known := listen(t, httpapi.Config{Jobs: control.New(parts), Logger: quiet, Caller: func(*http.Request) string { return "arn:aws:iam::1:user/ada" }})
	unknown := listen(t, httpapi.Config{Jobs: control.New(parts), Logger: quiet})
	for _, url := range []string{known, unknown} {
		if r := ask(t, "POST", url+"/api/jobs/j/cancel", `{"reason":"x"}`, "X-By: eve"); r.status != http.StatusOK {
			t.Fatalf("got %d %s", r.status, r.body)
		}
		if r := ask(t, "POST", url+"/api/jobs/j/cancel", `{"by":"eve"}`); r.status != http.StatusBadRequest {
			t.Errorf("a request that says who makes it: got %d %s, want it refused", r.status, r.body)
		}
	}
	if len(backend.by) != 2 || backend.by[0] != "arn:aws:iam::1:user/ada" || backend.by[1] != httpapi.Local {
		t.Errorf("got the callers %q, want that of the server, and %s where it knows none", backend.by, httpapi.Local)
	}
}

// The job keeps who asked last, and shows it.
func TestAJobShowsWhoAskedLast(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "j", `{"reserve":"hold"}`)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	url := listen(t, httpapi.Config{Jobs: bare(w.engine), Logger: quiet, Caller: func(*http.Request) string { return "ada" }})
	before, err := w.client.Get(t.Context(), "j")
	check(t, err)
	ask(t, "POST", url+"/api/jobs/j/pause", `{}`)
	after, err := w.client.Get(t.Context(), "j")
	check(t, err)
	if before.RequestedBy != nil || after.RequestedBy == nil || *after.RequestedBy != "ada" {
		t.Errorf("got %v before and %v after, want nobody and ada", before.RequestedBy, after.RequestedBy)
	}
}

// A list of paused jobs asks for them, and for nothing else.
func TestPausedJobsAreAListOfTheirOwn(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	parts := broken{errSecret}.parts()
	parts.Store = lister{broken{errSecret}, func(f store.Filter, cursor string, limit int) (store.Page, error) {
		if f.Workflow != "order" || !f.Paused || cursor != "c" || limit != 7 {
			t.Errorf("asked for %+v %q %d", f, cursor, limit)
		}
		return store.Page{Jobs: []store.Listed{{ID: "p"}}, Cursor: "d"}, nil
	}}
	url := listen(t, httpapi.Config{Jobs: control.New(parts), Logger: quiet})
	r := ask(t, "GET", url+"/api/jobs?paused=true&workflow=order&cursor=c&limit=7", "")
	if r.status != http.StatusOK || !strings.Contains(string(r.body), `"id":"p"`) || !strings.Contains(string(r.body), `"cursor":"d"`) {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// lister is a backend of which only the list works.
type lister struct {
	broken
	list func(f store.Filter, cursor string, limit int) (store.Page, error)
}

func (l lister) ListJobs(_ context.Context, f store.Filter, cursor string, limit int) (store.Page, error) {
	return l.list(f, cursor, limit)
}

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// newerJobs is the store of an engine, to which a newer release wrote all jobs.
type newerJobs struct{ control.Store }

func (n newerJobs) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := n.Store.Load(ctx, id)
	return j, errors.Join(err, store.ErrNewer)
}

// newerScheduler must not decide about them.
type newerScheduler struct{ control.Scheduler }

// newer answers what is asked of them.
func newer(e *embedded.Engine) control.Config {
	parts := e.Parts()
	parts.Store, parts.Scheduler = newerJobs{parts.Store}, newerScheduler{parts.Scheduler}
	return parts
}

func (newerScheduler) Request(context.Context, string, job.Requested) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, &scheduler.NewerError{What: "this job"}
}

// A job of a newer release can be looked at, and is not decided about: who asks for something is told why, and when to
// ask again.
func TestAJobOfANewerReleaseIsShownAndNotDecidedAbout(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "j", `{}`)
	w.until("j", in(makegood.JobProcessed))
	url := listen(t, httpapi.Config{Jobs: control.New(newer(w.engine)), Host: "127.0.0.1", Logger: slog.New(slog.DiscardHandler)})
	if got := ask(t, http.MethodGet, url+"/api/jobs/j", ""); got.status != http.StatusOK {
		t.Errorf("get: got %d %s, want the job", got.status, got.body)
	}
	got := ask(t, http.MethodPost, url+"/api/jobs/j/undo", `{}`)
	p := got.problem(t)
	want := "this job was written by a newer release of Makegood, and this one must not decide about it; ask again when the deployment is done"
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "60" || p.Error != want || p.Job != "j" {
		t.Errorf("undo: got %d, Retry-After %s, %+v, want 503, 60, %s", got.status, got.header.Get("Retry-After"), p, want)
	}
}

// Definition is one that asks for more than this release knows.
func (newerJobs) Definition(context.Context, string) ([]byte, error) {
	return []byte(`{"name":"order","needs":99,"steps":[]}`), nil
}

// newerOutside is a door of agents to whose jobs a newer release wrote.
type newerOutside struct{ httpapi.Outside }

func (newerOutside) Allow(string, string) error { return nil }

func (newerOutside) Reply(context.Context, string) (machine.Verdict, error) {
	return machine.Verdict{}, store.ErrNewer
}

func (newerOutside) Heartbeat(context.Context, string, job.Reply, json.RawMessage) (agentdoor.Standing, error) {
	return agentdoor.Standing{}, store.ErrNewer
}

// Whatever a newer release must decide about or show is there again when the deployment is done: whoever asks is told to come back
// after a minute, which is more than clients wait by themselves.
func TestWhatANewerReleaseMustDecideIsAskedForAgainInAMinute(t *testing.T) {
	w := newWorld(t)
	parts := newer(w.engine)
	parts.Timetable = brokenSchedules(store.ErrNewer)
	url := listen(t, httpapi.Config{Jobs: control.New(parts), Outside: newerOutside{}, Host: "127.0.0.1", Logger: slog.New(slog.DiscardHandler)})
	for what, c := range map[string]struct{ method, path, body string }{
		"a reply":      {http.MethodPost, "/api/agents/crane/replies", `{}`},
		"a heartbeat":  {http.MethodPost, "/api/agents/crane/heartbeats", `{"job":"j","step":"s","attempt":1,"token":"1.t","lockedBy":"outside:x"}`},
		"a definition": {http.MethodGet, "/api/definitions/" + strings.Repeat("0", 32), ""},
		"a schedule":   {http.MethodPost, "/api/schedules/nightly/pause", `{}`},
	} {
		got := ask(t, c.method, url+c.path, c.body)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "60" || !strings.Contains(got.problem(t).Error, "newer release") {
			t.Errorf("%s: got %d, Retry-After %q, %s, want 503 and 60", what, got.status, got.header.Get("Retry-After"), got.body)
		}
	}
}

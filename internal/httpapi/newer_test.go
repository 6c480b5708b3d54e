package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// newerJobs is an engine to which a newer release wrote all jobs.
type newerJobs struct{ *embedded.Engine }

func (n newerJobs) Job(ctx context.Context, id string) (job.Job, error) {
	j, err := n.Engine.Job(ctx, id)
	return j, errors.Join(err, store.ErrNewer)
}

func (newerJobs) Request(context.Context, string, job.Requested) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, &scheduler.NewerError{What: "this job"}
}

// A job of a newer release can be looked at, and is not decided about: who asks for something is told why, and when to
// ask again.
func TestAJobOfANewerReleaseIsShownAndNotDecidedAbout(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "j", `{}`)
	w.until("j", in(makegood.Processed))
	url := listen(t, httpapi.Config{Backend: newerJobs{w.engine}, Host: "127.0.0.1", Logger: slog.New(slog.DiscardHandler)})
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

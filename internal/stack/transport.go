package stack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// inProcess gives an HTTP client whose requests are handled here. An answer that says no more than that
// the store failed becomes the error that it failed with.
func inProcess(handler http.Handler, explain func(error) *Error) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		failure := &failure{}
		r = r.Clone(context.WithValue(r.Context(), failureKey{}, failure))
		if r.Body == nil {
			r.Body = http.NoBody
		}
		defer r.Body.Close()
		w := &answer{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(w, r)
		if failure.err != nil && w.status >= http.StatusInternalServerError {
			return nil, explain(failure.err)
		}
		return &http.Response{
			StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header,
			Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
		}, nil
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip handles a request.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is a response being written.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is that of the response.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader takes the status.
func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// failure is what went wrong last in the handling of a request.
type failure struct{ err error }

type failureKey struct{}

// remembering is an Operator that remembers in a request's context what is not the caller's fault: over
// HTTP nobody is told more than that.
type remembering struct{ *deployed.Operator }

// SubmitCurrent submits a job.
func (b *remembering) SubmitCurrent(ctx context.Context, workflow string, s scheduler.Submission) (makegood.Job, bool, error) {
	job, created, err := b.Operator.SubmitCurrent(ctx, workflow, s)
	return job, created, remember(ctx, err)
}

// Request does what is asked of a job.
func (b *remembering) Request(ctx context.Context, id string, r makegood.Requested) (makegood.Job, machine.Verdict, error) {
	job, verdict, err := b.Operator.Request(ctx, id, r)
	return job, verdict, remember(ctx, err)
}

// Job reads a job.
func (b *remembering) Job(ctx context.Context, id string) (makegood.Job, error) {
	job, err := b.Operator.Job(ctx, id)
	return job, remember(ctx, err)
}

// Payload reads a payload.
func (b *remembering) Payload(ctx context.Context, job, key string) ([]byte, error) {
	value, err := b.Operator.Payload(ctx, job, key)
	return value, remember(ctx, err)
}

// ListJobs lists jobs.
func (b *remembering) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) ([]store.Listed, string, error) {
	jobs, next, err := b.Operator.ListJobs(ctx, filter, cursor, limit)
	return jobs, next, remember(ctx, err)
}

func remember(ctx context.Context, err error) error {
	var mismatch *scheduler.MismatchError
	callers := errors.Is(err, scheduler.ErrInvalid) || errors.As(err, &mismatch) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged)
	if f, ok := ctx.Value(failureKey{}).(*failure); ok && err != nil && !callers {
		f.err = err
	}
	return err
}

package deployed

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
)

// door lets some callers do some things to a stack's jobs. IAM decides about access before the function is started; the
// door passes on the caller's identity.
type door struct {
	name httpapi.Door
	api  http.Handler
	log  *slog.Logger
	// done is called when a request has been answered.
	done func(context.Context)
	// clock counts the time of the function.
	clock *spend.Clock
}

// callerKey is under which the context of a request has its caller.
type callerKey struct{}

// Door makes the handler of a function URL from the environment, and of workflow files, which a first submission
// publishes: the HTTP API, as far as it belongs to the door that the environment names. Requests are stored before they
// are answered. The error names every mistake in the environment.
func Door(ctx context.Context, getenv func(string) string, files fs.FS) (func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error), error) {
	c, err := readDoor(getenv)
	if err != nil {
		return nil, err
	}
	known, err := newDefinitions(files)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, c.parts)
	if err != nil {
		return nil, err
	}
	o := newOperator(s, c, known)
	s.meter.count(func() []total { return schedulerTotals(o.scheduler.Stats()) })
	d := &door{name: c.door, log: s.log, clock: s.clock, done: func(ctx context.Context) { s.meter.write(ctx); s.sendSpans(ctx) }}
	d.api = httpapi.New(httpapi.Config{
		Doors: s.doors(), Jobs: control.New(o.parts(s.log)), Door: c.door, Logger: s.log,
		Caller: func(r *http.Request) string { by, _ := r.Context().Value(callerKey{}).(string); return by },
	})
	return d.answer, nil
}

// answer answers a signed request. One without an identity came another way than through a URL with IAM, and is
// refused, except at the door complete: there the token is the authorization.
func (d *door) answer(ctx context.Context, e events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	defer d.done(ctx)
	defer d.clock.Invoked()()
	// A request is about one job mostly; of several, the first that is saved pays for the door.
	account := spend.NewAccount(d.clock.Begin(), job.Spent{Invocations: job.SpentParts})
	defer account.End()
	ctx = spend.With(ctx, account)
	by := callerOf(e)
	if by == "" && d.name != httpapi.Complete {
		d.log.WarnContext(ctx, "a request without an identity", "door", d.name, "path", e.RawPath)
		return problem(http.StatusForbidden, "the request has no identity: this door is a function URL, and its AuthType must be AWS_IAM"), nil
	}
	within, cancel := shorten(context.WithValue(ctx, callerKey{}, by))
	defer cancel()
	r, err := requestOf(within, e)
	if err != nil {
		return problem(http.StatusBadRequest, err.Error()), nil
	}
	w := &written{header: http.Header{}, status: http.StatusOK}
	d.api.ServeHTTP(w, r)
	answer := w.response()
	d.log.InfoContext(ctx, "answered", "door", d.name, "by", by, "method", r.Method, "path", d.loggedPath(r),
		"status", answer.StatusCode, "location", loggedLocation(w.header.Get("Location")))
	return answer, nil
}

// loggedPath is the path of a request for a log, without a link's token, which would let a reader answer.
func (d *door) loggedPath(r *http.Request) string {
	if d.name == httpapi.Complete {
		return httpapi.WithoutToken(r.URL.Path)
	}
	return r.URL.Path
}

// loggedLocation is the target of an answer for a log, without the query, which would let a reader open a payload.
func loggedLocation(location string) string {
	place, _, _ := strings.Cut(location, "?")
	return place
}

// problem is an answer of the door itself.
func problem(status int, text string) events.LambdaFunctionURLResponse {
	body, err := json.Marshal(httpapi.Problem{Error: text})
	if err != nil {
		panic(err) // A struct of strings is always JSON.
	}
	return events.LambdaFunctionURLResponse{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

// Package client talks to the HTTP API of Makegood, as `makegood dev` serves it: submit jobs, look at them, wait for
// their end, and ask for cancel, undo, resubmit, pause, resume and reschedule.
//
//	c, err := client.New("http://127.0.0.1:4777")
//	job, err := c.Submit(ctx, makegood.Submission{Workflow: "order", ID: "o-1", Input: order})
//	job, err = c.Wait(ctx, job.ID)
//
// Every call may be repeated without harm, and the client repeats it while the API cannot be reached or asks for
// patience: a submission has its id before it is first sent, a request has a name of its own. The client knows no rule
// about jobs and keeps no state beside its connections.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/sealed"
	"github.com/makegood-dev/makegood/internal/telemetry"
)

const (
	// defaultPatience is how long a call is tried again, unless its context ends earlier.
	defaultPatience = 15 * time.Second
	// tryTimeout is how long one try may take.
	tryTimeout = 30 * time.Second
	// listPage is the number of jobs in one page of List.
	listPage = 200
)

// Client talks to one API. Its methods may be called by many goroutines at once. It shares the interfaces of package
// api with an engine; its other methods are its own.
type Client struct {
	api.Jobs
	api.Schedules
	api.Holds
	api.Agents
	api.Payloads
	remote *remote
}

// remote is an API at an address: its connections, and the patience with it.
type remote struct {
	mark //lint:ignore U1000 it closes api.Reader
	base *url.URL
	http *http.Client
	// away makes the requests for payloads that go to a store and not to the API: it carries no credentials.
	away     *http.Client
	patience time.Duration
	token    string
}

//lint:ignore U1000 embedded without its name
type mark = sealed.By

var _ api.Jobs = (*remote)(nil)

// Option changes a Client that New makes.
type Option func(*Client)

// WithHTTPClient makes the Client use h, and h's timeout, if it has one.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.remote.http = h } }

// WithPatience sets how long a call is tried again while the API cannot be reached; 0: not at all. Default: 15
// seconds.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.remote.patience = d } }

// WithToken makes the Client send a token with each request to the API, as `makegood serve` requires. The token goes
// to the API alone.
func WithToken(token string) Option { return func(c *Client) { c.remote.token = token } }

// New makes a client of the API at baseURL, such as http://127.0.0.1:4777. It opens no connection; it fails only where
// baseURL is no URL.
func New(baseURL string, options ...Option) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(baseURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of an API: want one such as http://127.0.0.1:4777", baseURL)
	}
	r := &remote{base: base, http: newHTTP(), away: newAway(), patience: defaultPatience}
	c := &Client{Jobs: r, Schedules: r, Holds: r, Agents: r, Payloads: r, remote: r}
	for _, o := range options {
		o(c)
	}
	if r.token != "" {
		showing := *r.http
		showing.Transport = bearer{token: r.token, next: r.http.Transport}
		r.http = &showing
	}
	return c, nil
}

// bearer adds a token to each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip makes one request.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	if b.next == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	return b.next.RoundTrip(r)
}

// newHTTP follows no redirect: the API has none, so a redirect comes from another server.
func newHTTP() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return &http.Client{
		Transport: t, Timeout: tryTimeout,
		CheckRedirect: followNobody,
	}
}

// Submit implements api.Jobs. After a try with a lost answer Existed may refer to this submission itself. After an
// *UnreachableError it is unknown whether the job is stored: submit it again, with the same id.
func (c *remote) Submit(ctx context.Context, s makegood.Submission) (job makegood.Job, err error) {
	if s.ID == "" {
		// Before the first try, so that all tries are one job.
		s.ID = protocol.NewJobID(time.Now())
	}
	s.Traceparent = telemetry.Under(ctx, s.Traceparent)
	status, err := c.call(ctx, http.MethodPost, "/api/jobs", nil, s, &job)
	if err != nil {
		return job, fmt.Errorf("submit job %s: %w", s.ID, err)
	}
	job.Existed = status != http.StatusCreated
	return job, nil
}

// Get reads a job with its input and outputs. Errors: ErrNotFound, *UnreachableError.
func (c *remote) Get(ctx context.Context, id string) (makegood.Job, error) {
	return c.get(ctx, id, nil)
}

// Look reads a job without its input and outputs. Errors: ErrNotFound, *UnreachableError.
func (c *remote) Look(ctx context.Context, id string) (makegood.Job, error) {
	return c.get(ctx, id, url.Values{"payloads": {"false"}})
}

// Outline reads a job with its history, and with its small inputs and outputs: at most 4 KB each, and 64 KB together.
// In the place of the others is their size. Errors: ErrNotFound, *UnreachableError.
func (c *Client) Outline(ctx context.Context, id string) (makegood.Job, error) {
	return c.remote.get(ctx, id, url.Values{"payloads": {"small"}})
}

func (c *remote) get(ctx context.Context, id string, query url.Values) (makegood.Job, error) {
	return read[makegood.Job](ctx, c, "get job "+id, pathOf(id), query)
}

func pathOf(id string) string { return "/api/jobs/" + url.PathEscape(id) }

// Page returns a page of a list: at most 200 jobs.
func (c *remote) Page(ctx context.Context, filter api.Filter, cursor string) (api.Page, error) {
	return c.page(ctx, protocol.FilterValues(filter), cursor, listPage)
}

func (c *remote) page(ctx context.Context, query url.Values, cursor string, limit int) (api.Page, error) {
	query.Set("limit", strconv.Itoa(limit))
	return read[api.Page](ctx, c, "list jobs", "/api/jobs", with(query, "cursor", cursor))
}

// Details returns a page of a list, as Page does, with the whole job in each entry (Listed.Job). limit is the maximum
// number of jobs, 1 to 50.
func (c *Client) Details(ctx context.Context, filter api.Filter, cursor string, limit int) (api.Page, error) {
	return c.remote.page(ctx, with(protocol.FilterValues(filter), "detail", "true"), cursor, limit)
}

// List returns jobs, newest first, and reads pages as its caller needs them. An error ends it.
func (c *remote) List(ctx context.Context, filter api.Filter) iter.Seq2[api.Listed, error] {
	return protocol.Pages(func(cursor string) (api.Page, error) { return c.Page(ctx, filter, cursor) })
}

// Workflows lists the workflows that jobs can be submitted to.
func (c *remote) Workflows(ctx context.Context) ([]api.Workflow, error) {
	list, err := read[struct{ Workflows []api.Workflow }](ctx, c, "list workflows", "/api/workflows", nil)
	return list.Workflows, err
}

// Definition reads a definition by its hash, as found in a job or a Workflow. Errors: ErrNoDefinition,
// *UnreachableError.
func (c *remote) Definition(ctx context.Context, hash string) (api.Definition, error) {
	if hash == "." || hash == ".." {
		return api.Definition{}, fmt.Errorf("read definition %q: %w", hash, api.ErrNoDefinition) // no path holds it
	}
	return read[api.Definition](ctx, c, fmt.Sprintf("read definition %.40q", hash), "/api/definitions/"+url.PathEscape(hash), nil)
}

// Publish makes a workflow file the current definition of its name on a deployed stack; existing jobs keep theirs.
// Errors: *InvalidError, *UnreachableError. Publishing the same file again has no effect.
func (c *Client) Publish(ctx context.Context, source []byte) (api.Workflow, error) {
	return post[api.Workflow](ctx, c.remote, "publish", "/api/workflows", map[string]string{"source": string(source)})
}

// Request implements api.Jobs.
func (c *remote) Request(ctx context.Context, id string, r api.Request) (makegood.Job, error) {
	return c.ask(ctx, id, r.Verb, askingOf(r))
}

// asking is the body of a request for a verb.
type asking struct {
	Reason     string          `json:"reason,omitempty"`
	Request    string          `json:"request,omitempty"`
	StartAt    time.Time       `json:"startAt,omitzero"`
	Definition string          `json:"definition,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Timeout    string          `json:"timeout,omitempty"`
	Indexes    string          `json:"indexes,omitempty"`

	Step        string              `json:"step,omitempty"`
	Concurrency int                 `json:"concurrency,omitempty"`
	Tolerate    *makegood.Tolerance `json:"tolerate,omitempty"`
}

func askingOf(r api.Request) asking {
	a := asking{
		Reason: r.Reason, Request: r.Name, StartAt: r.StartAt, Definition: r.Definition, Input: r.Input,
		Step: r.Step, Indexes: r.Indexes, Concurrency: r.Concurrency, Tolerate: r.Tolerate,
	}
	if r.Timeout != 0 {
		a.Timeout = domain.TimeoutText(r.Timeout)
	}
	return a
}

// Plan implements api.Jobs.
func (c *remote) Plan(ctx context.Context, id string, r api.Request) (makegood.Plan, error) {
	if r.Verb != makegood.VerbResubmit {
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, &api.InvalidError{Message: fmt.Sprintf("there is no plan of %.40s, only of %s", r.Verb, makegood.VerbResubmit)})
	}
	return post[makegood.Plan](ctx, c, "plan job "+id, pathOf(id)+"/plan", askingOf(r))
}

// Offers returns, for each verb, its effect on the job in its present state, or the reason why it would be refused. It
// changes no state. Errors: ErrNotFound, *UnreachableError.
func (c *remote) Offers(ctx context.Context, id string) (makegood.Offers, error) {
	return read[makegood.Offers](ctx, c, "verbs of job "+id, pathOf(id)+"/verbs", nil)
}

// SentInputs returns the inputs of the latest attempts of a job's steps and undos, with marks in the place of secrets.
// step names one step, which comes with its whole input; empty: all steps, inputs above 4 KiB without their values. It
// changes no state. Errors: ErrNotFound, *InvalidError, *UnreachableError.
func (c *remote) SentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error) {
	return read[makegood.SentInputs](ctx, c, "inputs of job "+id, pathOf(id)+"/inputs", with(url.Values{}, "step", step))
}

func (c *remote) ask(ctx context.Context, id string, verb makegood.Verb, body asking) (makegood.Job, error) {
	// Before the first try, so that all tries are one request.
	body.Request = cmp.Or(body.Request, newRequest())
	answer, err := post[requested](ctx, c, fmt.Sprintf("%s job %s", verb, id), pathOf(id)+"/"+string(verb), body)
	return answer.job(), err
}

// requested is the answer to a request for a verb. Not every answer has Existed.
type requested struct {
	makegood.Job
	Existed bool `json:"existed"`
}

func (r requested) job() makegood.Job {
	r.Job.Existed = r.Existed
	return r.Job
}

// Wait waits until a job is finished or in Error, and returns it with its payloads; without them, where they exceed
// the limit of one answer of the API. When ctx ends, it returns ctx's error; other errors: ErrNotFound,
// *UnreachableError.
func (c *remote) Wait(ctx context.Context, id string) (makegood.Job, error) {
	job, err := protocol.WaitFor(ctx, c, id)
	if invalid, is := errors.AsType[*api.InvalidError](err); is && invalid.Status == http.StatusRequestEntityTooLarge {
		return c.Look(ctx, id)
	}
	return job, err
}

// Watch returns a job without payloads after each change, first in its present state, and ends after returning it
// finished or in Error. An error ends it. Changes in close succession may appear as one.
func (c *remote) Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error] {
	return protocol.Polled(ctx, id, c.Look)
}

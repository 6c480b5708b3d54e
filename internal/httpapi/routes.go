package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/telemetry"
)

// Asking is the body of a request for a verb. The same Request twice is one request.
type Asking struct {
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
}

// Requested is a job after a request for a verb.
type Requested struct {
	makegood.Job
	// Existed: the state was so already, or this very request was granted before; the request changed no job.
	Existed bool `json:"existed"`
}

// Rescheduling is the body of a request for another start. One that has passed is at once.
type Rescheduling struct {
	StartAt time.Time `json:"startAt"`
	Reason  string    `json:"reason,omitempty"`
	Request string    `json:"request,omitempty"`
}

// Resubmission is the body of a request to go on, perhaps by another definition or with another input.
type Resubmission struct {
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Definition is the hash of one, or "current".
	Definition string          `json:"definition,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
}

// Redriving is the body of a request to do failed items again, perhaps by another definition.
type Redriving struct {
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Definition is the hash of one, or "current".
	Definition string `json:"definition,omitempty"`
	// Step is the step with a map whose failed items are done again; empty: those of all steps. Indexes names the items by
	// their places from 0, such as 3,17-20; empty: all that have failed.
	Step    string `json:"step,omitempty"`
	Indexes string `json:"indexes,omitempty"`
}

// Edition is the body of a request for another timeout, or for other figures of the map of a step.
type Edition struct {
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Timeout is a duration, or "none".
	Timeout     string              `json:"timeout,omitempty"`
	Step        string              `json:"step,omitempty"`
	Concurrency int                 `json:"concurrency,omitempty"`
	Tolerate    *makegood.Tolerance `json:"tolerate,omitempty"`
}

// Publication is the body that publishes a workflow file.
type Publication struct {
	Source string `json:"source"`
}

// WorkflowList is the workflows that can be submitted to.
type WorkflowList struct {
	Workflows []api.Workflow `json:"workflows"`
}

// Health says that the API answers and the store reads.
type Health struct {
	Status string `json:"status"`
}

// route is an operation of the API: how it is served, and how it is described.
type route struct {
	method, path, name, summary string
	door                        Door
	parameters                  []parameter
	// body is a zero value of the type of the request's body; nil: it has none.
	body any
	// limit is how large a body may be that carries more than words, in bytes. Zero: maxOverhead.
	limit int64
	// optional: its body need not be there, though it may carry more than words.
	optional bool
	// answers are zero values of the types of the answers, by status.
	answers map[int]any
	handle  handling
	// stream serves answers that are not JSON, and as large as a payload, in place of handle.
	stream func(a *handlers, w http.ResponseWriter, r *http.Request)
}

// mayBeEmpty reports whether a request has an empty body, where the route allows one. It need not be declared as JSON
// then: no body is read, and the browser's own headers keep out a page of another origin.
func (r route) mayBeEmpty(req *http.Request) bool {
	return (r.limit == 0 || r.optional) && req.ContentLength == 0 && req.Header.Get("Content-Type") == ""
}

// parameter is a parameter in the query, or with header in the header.
type parameter struct {
	name, says string
	values     []string
	number     bool
	header     bool
	// many: it may be there several times.
	many bool
}

// handling answers a request.
type handling = func(a *handlers, r *http.Request) (answer, error)

// of returns a handler that answers with the value of the name in the path, {id} or {hash}.
func of[T any](name string, value func(*control.Service, context.Context, string) (T, error)) handling {
	return func(a *handlers, r *http.Request) (answer, error) {
		return orError(value(a.Jobs, r.Context(), r.PathValue(name)))
	}
}

// allOf returns a handler that answers with a list, in an object.
func allOf[T, L any](list func(*control.Service, context.Context) (T, error), in func(T) L) handling {
	return bare(func(a *handlers, r *http.Request) (answer, error) {
		all, err := list(a.Jobs, r.Context())
		return orError(in(all), err)
	})
}

// paged returns a handler that answers with the page that comes after the parameter cursor, its only one.
func paged[T any](page func(*control.Service, context.Context, string) (T, error)) handling {
	return func(a *handlers, r *http.Request) (answer, error) {
		values, err := query(r, "cursor")
		if err != nil {
			return answer{}, err
		}
		return orError(page(a.Jobs, r.Context(), values.Get("cursor")))
	}
}

// bare returns a handler of requests that have no parameters; it refuses any.
func bare(do handling) handling {
	return func(a *handlers, r *http.Request) (answer, error) {
		if _, err := query(r); err != nil {
			return answer{}, err
		}
		return do(a, r)
	}
}

// taking returns a handler that reads the body of its request, as decode does.
func taking[B any](do func(*handlers, *http.Request, B) (answer, error)) handling {
	return func(a *handlers, r *http.Request) (answer, error) {
		var body B
		if err := decode(r, &body); err != nil {
			return answer{}, err
		}
		return do(a, r, body)
	}
}

// empty returns a handler of requests with an empty object as their body.
func empty[B any](do handling) handling {
	return taking(func(a *handlers, r *http.Request, _ B) (answer, error) { return do(a, r) })
}

// everywhere are the answers that any route may give.
func everywhere(answers map[int]any) map[int]any {
	for _, status := range []int{http.StatusMisdirectedRequest, http.StatusServiceUnavailable} {
		answers[status] = Problem{}
	}
	return answers
}

// refusing adds answers with a Problem, one for each status, and those of everywhere.
func refusing(answers map[int]any, statuses ...int) map[int]any {
	for _, status := range statuses {
		answers[status] = Problem{}
	}
	return everywhere(answers)
}

// withBody adds the answers that any route with a body may give, and further ones with a Problem.
func withBody(answers map[int]any, statuses ...int) map[int]any {
	return refusing(answers, append(statuses, http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)...)
}

// posted adds the answers of a route that takes a body, and whose request may be in conflict with the stored job.
func posted(answers map[int]any) map[int]any { return withBody(answers, http.StatusConflict) }

// askedOf are the answers of a request about one thing that is stored, with body as the answer to a granted one.
func askedOf(body any, statuses ...int) map[int]any {
	return withBody(map[int]any{http.StatusOK: body}, append(statuses, http.StatusNotFound, http.StatusInternalServerError)...)
}

// routes is the API.
func routes() []route {
	job, none := makegood.Job{}, Problem{}
	all := []route{
		{
			method: "POST", path: "/api/jobs", name: "submit", door: Submit, handle: taking((*handlers).submit), body: makegood.Submission{}, limit: maxBody,
			summary: "Submit a job. It is stored before this is answered. The same id with the same workflow and input is the same job (200); with other content it is refused (409, with both hashes). An id is made for a job that has none. The answer has no payloads.",
			answers: posted(map[int]any{http.StatusCreated: job, http.StatusOK: job}),
		},
		{
			method: "GET", path: "/api/jobs", name: "list", door: Read, handle: (*handlers).list,
			summary: "List jobs, without payloads, newest first. A page may be short, or empty, before the end; the cursor is empty at the end.",
			parameters: append(filterParameters(),
				parameter{name: "limit", says: fmt.Sprintf("how many jobs a page has, 1 to %d; default %d", MaxLimit, DefaultLimit), number: true},
				parameter{name: "cursor", says: "the cursor of the page before, of the same list"},
				parameter{name: "detail", says: fmt.Sprintf("true: each with the job itself, without payloads and history; of an engine with the holders of its attempts and their progress, of a stack without. Then a page has at most %d", MaxDetails), values: []string{"true"}},
			),
			answers: everywhere(map[int]any{http.StatusOK: api.Page{}, http.StatusBadRequest: none}),
		},
		{
			method: "GET", path: "/api/jobs/{id}", name: "get", door: Read, handle: (*handlers).get,
			summary: "Read a job, with its input and outputs.",
			parameters: []parameter{{
				name:   "payloads",
				says:   fmt.Sprintf("false leaves input, outputs and history out; small leaves out payloads of more than %d bytes, and those beyond %d bytes together", limits.MaxOutlineBytes, limits.MaxOutline),
				values: []string{"true", "false", "small"},
			}},
			answers: everywhere(map[int]any{http.StatusOK: job, http.StatusBadRequest: none, http.StatusNotFound: none, http.StatusInternalServerError: none}),
		},
		{
			method: "GET", path: "/api/workflows", name: "workflows", door: Read, handle: allOf((*control.Service).Workflows, func(all []api.Workflow) WorkflowList { return WorkflowList{all} }),
			summary: "The workflows that jobs can be submitted to.",
			answers: everywhere(map[int]any{http.StatusOK: WorkflowList{}}),
		},
		{
			method: "POST", path: "/api/workflows", name: "publish", door: Operate, handle: taking((*handlers).publish), body: Publication{}, limit: maxPublication,
			summary: "Make a workflow file the current definition of its name; jobs that are there keep theirs. On a deployed stack only: 404 elsewhere.",
			answers: withBody(map[int]any{http.StatusOK: api.Workflow{}}, http.StatusNotFound),
		},
		{
			method: "GET", path: "/api/openapi.json", name: "openapi", door: Read, handle: (*handlers).openapi,
			summary: "This document.",
			answers: everywhere(map[int]any{http.StatusOK: json.RawMessage{}}),
		},
		{
			method: "GET", path: healthPath, name: "health", door: Read, handle: (*handlers).health,
			summary: "Whether the process lives; where there is no /readyz beside it, whether the store can be read.",
			answers: everywhere(map[int]any{http.StatusOK: Health{}}),
		},
	}
	return slices.Concat(all, payloadRoutes(), countRoutes(), auditRoutes(), scheduleRoutes(), holdRoutes(), quarantineRoutes(), standingRoutes(),
		agentRoutes(), agentPayloadRoutes(), completionRoutes(), detailRoutes(), verbRoutes())
}

// verbRoutes are the routes of the verbs in the table.
func verbRoutes() (all []route) {
	for _, verb := range domain.Verbs() {
		asks := route{
			method: "POST", path: "/api/jobs/{id}/" + string(verb), name: string(verb), door: Operate, body: Asking{},
			summary: verbSummary(verb),
			answers: askedOf(Requested{}, http.StatusConflict),
			handle: taking(func(a *handlers, r *http.Request, asking Asking) (answer, error) {
				return a.ask(r, api.Request{Verb: verb, Reason: asking.Reason, Name: asking.Request})
			}),
		}
		switch verb {
		case makegood.VerbResubmit:
			asks.body, asks.limit, asks.optional, asks.handle = Resubmission{}, maxBody, true, (*handlers).resubmit
			asks.summary += " definition: the hash of a definition that is known here, or current; steps done or under way must be there unchanged. input: its input from then on; refused while an attempt is out or waits."
		case makegood.VerbRedrive:
			asks.body, asks.handle = Redriving{}, taking((*handlers).redrive)
			asks.summary += " definition: the hash of a definition that is known here, or current; the agent, action, retry and timeout of the items may differ in it. step and indexes (3,17-20): only these items, refused where one of them has not failed; at most 1000."
		case makegood.VerbEdit:
			asks.body, asks.handle = Edition{}, taking((*handlers).edit)
			asks.summary += fmt.Sprintf(" timeout: how long it may go forward, from %s to %s, or none. Or step: one with a map under way, and concurrency, from 1 to %d, or tolerate, how many of its items may fail: they hold for the items that begin or fail from now on, and of a job that is being undone, too.", limits.MinTimeout, limits.MaxJobTimeout, limits.MaxConcurrency)
		}
		if verb == makegood.VerbReschedule {
			asks.body, asks.handle = Rescheduling{}, taking((*handlers).reschedule)
			asks.summary += " startAt is its new start, and its timeout counts from there; one that has passed is at once."
		}
		all = append(all, asks)
	}
	return all
}

// detailRoutes are the routes of what would become of a job, of its inputs, and of its definition.
func detailRoutes() []route {
	return []route{
		{
			method: "POST", path: "/api/jobs/{id}/plan", name: "plan", door: Operate, body: Resubmission{}, limit: maxBody, optional: true, handle: (*handlers).plan,
			summary: "Say what a resubmit with this definition and input would do: what becomes of each step, and how the definitions differ. The job stays unchanged. Refused where the resubmit would be (409, with the same reason).",
			answers: askedOf(makegood.Plan{}, http.StatusConflict),
		},
		{
			method: "GET", path: "/api/jobs/{id}/verbs", name: "verbs", door: Read, handle: bare(of("id", (*control.Service).Offers)),
			summary: "Say of each verb, and of each action on a step, how it would change the job as it stands, or why it would be refused, in the same words. The job stays unchanged, and the answer is no promise: the job may have moved on by the time of the request. Where an attempt is out that is not known to be claimed, settling its step is offered, and refused if an agent has claimed it by then. A side of a step without any action is left out, unless it is under way or has failed.",
			answers: everywhere(map[int]any{http.StatusOK: makegood.Offers{}, http.StatusBadRequest: Problem{}, http.StatusNotFound: Problem{}, http.StatusInternalServerError: Problem{}}),
		},
		{
			method: "GET", path: "/api/jobs/{id}/inputs", name: "inputs", door: Read, handle: (*handlers).sent,
			parameters: []parameter{{name: "step", says: "one step, with its input whole"}},
			summary: fmt.Sprintf("The inputs of the steps of a job and of their undos: those of their latest attempts, of up to %d bytes each (more where step names one), evaluated from the definition and from what the job keeps, with marks in the place of secrets. asSent says that the values that it reads have not changed since; otherwise it is the input that an attempt would get now, and changed says why.",
				limits.MaxSentInputBytes),
			answers: everywhere(map[int]any{http.StatusOK: makegood.SentInputs{}, http.StatusBadRequest: Problem{}, http.StatusNotFound: Problem{}, http.StatusInternalServerError: Problem{}}),
		},
		{
			method: "GET", path: "/api/definitions/{hash}", name: "definition", door: Read, handle: bare(of("hash", (*control.Service).Definition)),
			summary: "Read a definition by its hash, current or not: its name, the whole workflow, and a workflow file that says the same (without the comments and schedules of the file that it was made of).",
			answers: everywhere(map[int]any{http.StatusOK: api.Definition{}, http.StatusNotFound: Problem{}}),
		},
	}
}

// verbSummary says in which states a verb is granted, as the table of verbs has it.
func verbSummary(verb makegood.Verb) string {
	var granted []string
	for _, s := range domain.ProcessStates() {
		if rule := machine.RuleFor(verb, s); rule.Effect != machine.Refuses {
			granted = append(granted, fmt.Sprintf("%s (%s)", s, rule.Effect))
		}
	}
	return fmt.Sprintf("Ask for %s. Granted in %s; refused in any other state (409, with the reason). The answer has no payloads.", verb, strings.Join(granted, ", "))
}

// submit stores a job.
func (a *handlers) submit(r *http.Request, s makegood.Submission) (answer, error) {
	if s.Input == nil && s.Workflow != "" {
		return answer{}, bad("input is missing; null is an input")
	}
	if err := checkSize("input", s.Input); err != nil {
		return answer{}, err
	}
	s.Traceparent = cmp.Or(s.Traceparent, r.Header.Get(telemetry.TraceparentHeader))
	j, err := a.Jobs.Submit(r.Context(), s)
	if err != nil {
		return answer{}, err
	}
	status := http.StatusCreated
	if j.Existed {
		status = http.StatusOK
	}
	return answer{status: status, body: j, location: "/api/jobs/" + url.PathEscape(j.ID)}, nil
}

// checkSize refuses a value that is too large as it was sent.
func checkSize(what string, value json.RawMessage) error {
	if len(value) > makegood.MaxPayloadBytes {
		return newProblem(http.StatusRequestEntityTooLarge, "%s has %d bytes, the limit is %d", what, len(value), makegood.MaxPayloadBytes)
	}
	return nil
}

// get reads a job.
func (a *handlers) get(r *http.Request) (answer, error) {
	values, err := query(r, "payloads")
	if err != nil {
		return answer{}, err
	}
	read := a.Jobs.Get
	switch payloads := values.Get("payloads"); {
	case payloads == "false":
		read = a.Jobs.Look
	case payloads == "small":
		read = a.Jobs.Outline
	case payloads != "true" && values.Has("payloads"):
		return answer{}, bad("payloads is %.40q: want true, false or small", payloads)
	}
	return orError(read(r.Context(), r.PathValue("id")))
}

// reschedule asks for another start.
func (a *handlers) reschedule(r *http.Request, asking Rescheduling) (answer, error) {
	return a.ask(r, api.Request{Verb: makegood.VerbReschedule, Reason: asking.Reason, Name: asking.Request, StartAt: asking.StartAt})
}

// redrive asks for failed items to be done again.
func (a *handlers) redrive(r *http.Request, asking Redriving) (answer, error) {
	return a.ask(r, api.Request{
		Verb: makegood.VerbRedrive, Reason: asking.Reason, Name: asking.Request, Definition: asking.Definition, Step: asking.Step, Indexes: asking.Indexes,
	})
}

// resubmission reads the body of a resubmit.
func resubmission(r *http.Request) (api.Request, error) {
	var asking Resubmission
	if err := decode(r, &asking); err != nil {
		return api.Request{}, err
	}
	return api.Request{
		Verb: makegood.VerbResubmit, Reason: asking.Reason, Name: asking.Request, Definition: asking.Definition, Input: asking.Input,
	}, checkSize("input", asking.Input)
}

// resubmit asks for a job to go on.
func (a *handlers) resubmit(r *http.Request) (answer, error) {
	asked, err := resubmission(r)
	if err != nil {
		return answer{}, err
	}
	return a.ask(r, asked)
}

// plan answers with the plan of a resubmit.
func (a *handlers) plan(r *http.Request) (answer, error) {
	asked, err := resubmission(r)
	if err != nil {
		return answer{}, err
	}
	return orError(a.Jobs.Plan(r.Context(), r.PathValue("id"), asked))
}

// edit asks for another timeout, or for other figures of a map.
func (a *handlers) edit(r *http.Request, asking Edition) (answer, error) {
	q := api.Request{
		Verb: makegood.VerbEdit, Reason: asking.Reason, Name: asking.Request, Step: asking.Step, Concurrency: asking.Concurrency, Tolerate: asking.Tolerate,
	}
	if asking.Timeout != "" {
		var err error
		if q.Timeout, err = domain.ParseTimeout(asking.Timeout); err != nil {
			return answer{}, bad("timeout: %v", err)
		}
	}
	return a.ask(r, q)
}

// ask asks for a verb, and answers with the job after it.
func (a *handlers) ask(r *http.Request, asked api.Request) (answer, error) {
	return requested(a.Jobs.Request(r.Context(), r.PathValue("id"), asked))
}

// requested answers with a job after a request for it.
func requested(j makegood.Job, err error) (answer, error) {
	return orError(Requested{Job: j, Existed: j.Existed}, err)
}

// orError answers with a body, if there is no error.
func orError[T any](body T, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return ok(body)
}

// publish makes a workflow file the current definition of its name.
func (a *handlers) publish(r *http.Request, p Publication) (answer, error) {
	return orError(a.Jobs.Publish(r.Context(), []byte(p.Source)))
}

func (a *handlers) openapi(*http.Request) (answer, error) { return ok(a.document) }

// sent answers with the evaluated inputs of a job's steps.
func (a *handlers) sent(r *http.Request) (answer, error) {
	given, err := query(r, "step")
	if err != nil {
		return answer{}, err
	}
	return orError(a.Jobs.SentInputs(r.Context(), r.PathValue("id"), given.Get("step")))
}

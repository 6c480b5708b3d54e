package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/view"
)

// Submission is the body of a submission.
type Submission struct {
	Workflow string          `json:"workflow"`
	ID       string          `json:"id,omitempty"`
	Input    json.RawMessage `json:"input"`
	StartAt  time.Time       `json:"startAt,omitzero"`
	ReplyTo  string          `json:"replyTo,omitempty"`
	// Tenant is whom the job is for, Labels say more about it.
	Tenant string            `json:"tenant,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Traceparent is the span under which the job is submitted; the header of that name, where it is left out.
	Traceparent string `json:"traceparent,omitempty"`
}

// Asking is the body of a request for a verb. The same Request twice is one request.
type Asking struct {
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
}

// Requested is a job after a request for a verb.
type Requested struct {
	makegood.Job
	// Existed: it was so already, or this very request was granted before, and nothing has changed.
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

// Edition is the body of a request for another timeout.
type Edition struct {
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Timeout is a duration, or "none".
	Timeout string `json:"timeout"`
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
	handle  func(a *handlers, r *http.Request) (answer, error)
	// stream serves what is no JSON, and as large as a payload, in place of handle.
	stream func(a *handlers, w http.ResponseWriter, r *http.Request)
}

// mayBeEmpty reports whether a request says nothing, where there need be nothing to say. It need not be declared as JSON
// then: nothing is read of it, and a page of another origin is kept out by what its browser says of it.
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

// everywhere are the answers that any route may give.
func everywhere(answers map[int]any) map[int]any {
	for _, status := range []int{http.StatusMisdirectedRequest, http.StatusServiceUnavailable} {
		answers[status] = Problem{}
	}
	return answers
}

// posted adds the answers that any route with a body may give.
func posted(answers map[int]any) map[int]any {
	for _, status := range []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusConflict,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	} {
		answers[status] = Problem{}
	}
	return everywhere(answers)
}

// routes is the API.
func routes() []route {
	job, none := makegood.Job{}, Problem{}
	all := []route{
		{
			method: "POST", path: "/api/jobs", name: "submit", door: Submit, handle: (*handlers).submit, body: Submission{}, limit: maxBody,
			summary: "Submit a job. It is stored before this is answered. The same id with the same workflow and input is the same job (200); with other content it is refused (409, with both hashes). An id is made for a job that has none. The answer has no payloads.",
			answers: posted(map[int]any{http.StatusCreated: job, http.StatusOK: job}),
		},
		{
			method: "GET", path: "/api/jobs", name: "list", door: Read, handle: (*handlers).list,
			summary: "List jobs, without payloads, newest first. A page may be short, or empty, before the end; the cursor is empty at the end.",
			parameters: append(filterParameters(),
				parameter{name: "limit", says: fmt.Sprintf("how many jobs a page has, 1 to %d; default %d", MaxLimit, DefaultLimit), number: true},
				parameter{name: "cursor", says: "the cursor of the page before, of the same list"},
				parameter{name: "detail", says: fmt.Sprintf("true: each with the job itself, without payloads and history; of an engine with who holds its attempts and how far they say that they are, of a stack without. Then a page has at most %d", MaxDetails), values: []string{"true"}},
			),
			answers: everywhere(map[int]any{http.StatusOK: api.Page{}, http.StatusBadRequest: none}),
		},
		{
			method: "GET", path: "/api/jobs/{id}", name: "get", door: Read, handle: (*handlers).get,
			summary: "Read a job, with its input and outputs.",
			parameters: []parameter{{
				name:   "payloads",
				says:   fmt.Sprintf("false leaves input, outputs and history out; small leaves out what has more than %d bytes, and what is more than %d bytes together", limits.MaxOutlineBytes, limits.MaxOutline),
				values: []string{"true", "false", "small"},
			}},
			answers: everywhere(map[int]any{http.StatusOK: job, http.StatusBadRequest: none, http.StatusNotFound: none, http.StatusInternalServerError: none}),
		},
		{
			method: "GET", path: "/api/workflows", name: "workflows", door: Read, handle: (*handlers).workflows,
			summary: "The workflows that jobs can be submitted to.",
			answers: everywhere(map[int]any{http.StatusOK: WorkflowList{}}),
		},
		{
			method: "POST", path: "/api/workflows", name: "publish", door: Operate, handle: (*handlers).publish, body: Publication{}, limit: maxPublication,
			summary: "Make a workflow file the current definition of its name; jobs that are there keep theirs. On a deployed stack only: 404 elsewhere.",
			answers: everywhere(map[int]any{
				http.StatusOK: api.Workflow{}, http.StatusBadRequest: none, http.StatusForbidden: none, http.StatusNotFound: none,
				http.StatusRequestEntityTooLarge: none, http.StatusUnsupportedMediaType: none,
			}),
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
	all = append(all, payloadRoutes()...)
	all = append(all, countRoutes()...)
	all = append(all, auditRoutes()...)
	all = append(all, scheduleRoutes()...)
	all = append(all, holdRoutes()...)
	all = append(all, quarantineRoutes()...)
	all = append(all, standingRoute())
	all = append(all, agentRoutes()...)
	all = append(all, agentPayloadRoutes()...)
	all = append(all, completionRoutes()...)
	all = append(all, planRoute(), offersRoute(), sentRoute(), definitionRoute())
	return append(all, verbRoutes()...)
}

// verbRoutes are those of the verbs that the table has.
func verbRoutes() (all []route) {
	job, none := Requested{}, Problem{}
	for _, verb := range domain.Verbs() {
		asks := route{
			method: "POST", path: "/api/jobs/{id}/" + string(verb), name: string(verb), door: Operate, body: Asking{},
			summary: verbSummary(verb),
			answers: posted(map[int]any{http.StatusOK: job, http.StatusNotFound: none, http.StatusInternalServerError: none}),
			handle:  func(a *handlers, r *http.Request) (answer, error) { return a.askFor(r, verb) },
		}
		switch verb {
		case makegood.VerbResubmit:
			asks.body, asks.limit, asks.optional, asks.handle = Resubmission{}, maxBody, true, (*handlers).resubmit
			asks.summary += " definition: the hash of a definition that is known here, or current; what is done or under way must be there unchanged. input: its input from then on; refused while an attempt is out or waits."
		case makegood.VerbEdit:
			asks.body, asks.handle = Edition{}, (*handlers).edit
			asks.summary += fmt.Sprintf(" timeout: how long it may go forward, from %s to %s, or none.", limits.MinTimeout, limits.MaxJobTimeout)
		}
		if verb == makegood.VerbReschedule {
			asks.body, asks.handle = Rescheduling{}, (*handlers).reschedule
			asks.summary += " startAt is its new start, and its timeout counts from there; one that has passed is at once."
		}
		all = append(all, asks)
	}
	return all
}

// planRoute is that of what a resubmit would do.
func planRoute() route {
	return route{
		method: "POST", path: "/api/jobs/{id}/plan", name: "plan", door: Operate, body: Resubmission{}, limit: maxBody, optional: true, handle: (*handlers).plan,
		summary: "Say what a resubmit with this definition and input would do: what becomes of each step, and in what the definitions differ. Nothing is changed. Refused where the resubmit would be (409, with the same reason).",
		answers: posted(map[int]any{http.StatusOK: makegood.Plan{}, http.StatusNotFound: Problem{}, http.StatusInternalServerError: Problem{}}),
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
func (a *handlers) submit(r *http.Request) (answer, error) {
	var s Submission
	if err := decode(r, &s); err != nil {
		return answer{}, err
	}
	switch {
	case s.Workflow == "":
		return answer{}, bad("workflow is missing")
	case s.Input == nil:
		return answer{}, bad("input is missing; null is an input")
	case len(s.Input) > makegood.MaxPayloadBytes:
		return answer{}, newProblem(http.StatusRequestEntityTooLarge, "input has %d bytes, the limit is %d", len(s.Input), makegood.MaxPayloadBytes)
	}
	if s.ID == "" {
		s.ID = protocol.NewJobID(a.Now())
	}
	j, created, err := a.Backend.SubmitCurrent(r.Context(), s.Workflow, scheduler.Submission{
		ID: s.ID, Input: s.Input, StartAt: s.StartAt, ReplyTo: s.ReplyTo, Tenant: s.Tenant, Labels: s.Labels,
		Traceparent: cmp.Or(s.Traceparent, r.Header.Get(telemetry.TraceparentHeader)),
	})
	if err != nil {
		return answer{}, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return answer{status: status, body: view.Of(j, nil), location: "/api/jobs/" + url.PathEscape(j.ID)}, nil
}

// get reads a job.
func (a *handlers) get(r *http.Request) (answer, error) {
	values, err := query(r, "payloads")
	if err != nil {
		return answer{}, err
	}
	payloads := values.Get("payloads")
	if values.Has("payloads") && !slices.Contains([]string{"true", "false", "small"}, payloads) {
		return answer{}, bad("payloads is %.40q: want true, false or small", payloads)
	}
	id, err := jobID(r)
	if err != nil {
		return answer{}, err
	}
	j, err := a.Backend.Job(r.Context(), id)
	if err != nil && !errors.Is(err, store.ErrNewer) {
		return answer{}, err
	}
	held, err := a.Backend.Held(r.Context(), j)
	if err != nil {
		return answer{}, err
	}
	if payloads == "false" {
		return ok(view.Of(j, held))
	}
	show := view.WithPayloads
	if payloads == "small" {
		show = view.Outlined
	}
	full, err := show(r.Context(), j, held, a.Backend)
	if err != nil {
		return answer{}, err
	}
	return ok(full)
}

// namePattern is what an id or the name of a request may be.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// jobID returns the id in the path. One that no job can have is that of no job, and reaches no store.
func jobID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !namePattern.MatchString(id) {
		return "", notFound(fmt.Sprintf("%.140q", id))
	}
	return id, nil
}

// askFor asks for a verb.
func (a *handlers) askFor(r *http.Request, verb makegood.Verb) (answer, error) {
	var asking Asking
	if err := decode(r, &asking); err != nil {
		return answer{}, err
	}
	return a.ask(r, asking, job.Requested{Verb: verb})
}

// reschedule asks for another start.
func (a *handlers) reschedule(r *http.Request) (answer, error) {
	var asking Rescheduling
	if err := decode(r, &asking); err != nil {
		return answer{}, err
	}
	if asking.StartAt.IsZero() {
		return answer{}, bad("startAt is missing")
	}
	return a.ask(r, Asking{Reason: asking.Reason, Request: asking.Request}, job.Requested{Verb: makegood.VerbReschedule, StartAt: asking.StartAt})
}

// ask asks for what an event says.
func (a *handlers) ask(r *http.Request, asking Asking, event job.Requested) (answer, error) {
	verb := event.Verb
	id, err := jobID(r)
	switch {
	case err != nil:
		return answer{}, err
	case len(asking.Reason) > limits.MaxReasonBytes:
		return answer{}, bad("reason has %d bytes, the limit is %d", len(asking.Reason), limits.MaxReasonBytes)
	case asking.Request != "" && !namePattern.MatchString(asking.Request):
		return answer{}, bad("request: want %s", namePattern)
	}
	event.Reason, event.By = asking.Reason, a.Caller(r)
	if asking.Request != "" {
		// The core knows requests by their names alone; the same name under another verb is another one.
		event.Request = string(verb) + ":" + asking.Request
	}
	j, verdict, err := a.Backend.Request(r.Context(), id, event)
	if err != nil {
		return answer{}, a.orDamaged(r, id, err)
	}
	a.Logger.InfoContext(r.Context(), "request", "job", id, "verb", verb, "verdict", verdict.Kind, "reason", verdict.Reason, "by", event.By)
	if verdict.Kind == machine.Refused {
		return answer{}, refusal(verb, id, verdict)
	}
	return ok(Requested{Job: view.Of(j, nil), Existed: verdict.Kind == machine.Duplicate})
}

// workflows lists what can be submitted to.
func (a *handlers) workflows(r *http.Request) (answer, error) {
	if _, err := query(r); err != nil {
		return answer{}, err
	}
	known, err := a.Backend.Workflows(r.Context())
	if err != nil {
		return answer{}, err
	}
	list := WorkflowList{Workflows: []api.Workflow{}}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		list.Workflows = append(list.Workflows, api.Workflow{Name: name, Definition: known[name]})
	}
	return ok(list)
}

func (a *handlers) openapi(*http.Request) (answer, error) { return ok(a.document) }

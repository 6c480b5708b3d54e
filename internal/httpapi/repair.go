package httpapi

import (
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// maxDefinition is how long the name of a definition may be, in bytes: a hash, or "current".
const maxDefinition = 128

// resubmission reads what a resubmit asks for.
func resubmission(r *http.Request) (Resubmission, job.Requested, error) {
	var asking Resubmission
	if err := decode(r, &asking); err != nil {
		return asking, job.Requested{}, err
	}
	event := job.Requested{Verb: makegood.VerbResubmit, Definition: asking.Definition}
	if len(asking.Definition) > maxDefinition {
		return asking, event, bad("definition has %d bytes: want a hash, or %s", len(asking.Definition), job.CurrentDefinition)
	}
	if len(asking.Input) > makegood.MaxPayloadBytes {
		return asking, event, newProblem(http.StatusRequestEntityTooLarge, "input has %d bytes, the limit is %d", len(asking.Input), makegood.MaxPayloadBytes)
	}
	input, err := scheduler.CheckInput(asking.Input)
	if err != nil {
		return asking, event, err
	}
	event.Input = input
	return asking, event, nil
}

// resubmit asks for a job to go on.
func (a *handlers) resubmit(r *http.Request) (answer, error) {
	asking, event, err := resubmission(r)
	if err != nil {
		return answer{}, err
	}
	return a.ask(r, Asking{Reason: asking.Reason, Request: asking.Request}, event)
}

// plan says what a resubmit would do.
func (a *handlers) plan(r *http.Request) (answer, error) {
	asking, event, err := resubmission(r)
	if err != nil {
		return answer{}, err
	}
	id, err := jobID(r)
	if err != nil {
		return answer{}, err
	}
	if err := checkRequest(asking.Request); err != nil {
		return answer{}, err
	}
	if asking.Request != "" {
		event.Request = string(event.Verb) + ":" + asking.Request
	}
	plan, verdict, err := a.Backend.Plan(r.Context(), id, event)
	switch {
	case err != nil:
		return answer{}, a.orDamaged(r, id, err)
	case verdict.Kind == machine.Refused:
		return answer{}, refusal(event.Verb, id, verdict)
	}
	return ok(plan)
}

// offersRoute is that of what may be asked of a job.
func offersRoute() route {
	return route{
		method: "GET", path: "/api/jobs/{id}/verbs", name: "verbs", door: Read, handle: (*handlers).offers,
		summary: "Say of each verb, and of what may be asked of the steps, what it would do to the job as it stands, or why it would be refused: in the words in which it would be. Nothing is changed, and nothing is promised: the job may have moved on by the time that somebody asks. Where an attempt is out that nobody is known to have claimed, settling its step is offered, and refused if somebody has claimed it by then. A side of a step of which nothing may be asked is left out, unless it is under way or has failed.",
		answers: everywhere(map[int]any{http.StatusOK: makegood.Offers{}, http.StatusBadRequest: Problem{}, http.StatusNotFound: Problem{}, http.StatusInternalServerError: Problem{}}),
	}
}

// offers says what may be asked of a job.
func (a *handlers) offers(r *http.Request) (answer, error) {
	if _, err := query(r); err != nil {
		return answer{}, err
	}
	id, err := jobID(r)
	if err != nil {
		return answer{}, err
	}
	offers, err := a.Backend.Offers(r.Context(), id)
	if err != nil {
		return answer{}, a.orDamaged(r, id, err)
	}
	return ok(offers)
}

// edit asks for another timeout.
func (a *handlers) edit(r *http.Request) (answer, error) {
	var asking Edition
	if err := decode(r, &asking); err != nil {
		return answer{}, err
	}
	if asking.Timeout == "" {
		return answer{}, bad("timeout is missing")
	}
	timeout, err := domain.ParseTimeout(asking.Timeout)
	if err != nil {
		return answer{}, bad("timeout: %v", err)
	}
	return a.ask(r, Asking{Reason: asking.Reason, Request: asking.Request}, job.Requested{Verb: makegood.VerbEdit, Timeout: timeout})
}

// refusal is the answer to a request that is not granted.
func refusal(verb makegood.Verb, id string, v machine.Verdict) error {
	p := newProblem(http.StatusConflict, "%s of job %s is refused: %s", verb, id, v.Reason)
	p.body.Job, p.body.Reason = id, v.Reason
	return p
}

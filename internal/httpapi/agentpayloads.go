package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/store"
)

// agentPayloadsPattern is where an agent outside writes payloads, and agentPayloadPattern where it reads one.
const (
	agentPayloadsPattern = "/api/agents/{agent}/payloads"
	agentPayloadPattern  = agentPayloadsPattern + "/{sha256}"
)

// agentPayloadRoutes are the routes by which outside agents write and read payloads too large for a message.
func agentPayloadRoutes() []route {
	refused := func(answers map[int]any, statuses ...int) map[int]any {
		return refusing(answers, append(statuses, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusInternalServerError)...)
	}
	holder := parameter{
		name: agentdoor.HolderHeader, header: true,
		says: "the attempt for which it is, as JSON in ASCII, like the body of a heartbeat: job, step, attempt, token, and lockedBy, unless the step says exclusive: false",
	}
	const over = "final: another attempt would be refused as well. 409: the attempt has ended, or is another's."
	return []route{
		{
			method: "PUT", path: agentPayloadsPattern, name: "writeAgentPayload", door: Agents, stream: (*handlers).writeAgentPayload, body: payloadBytes{}, limit: makegood.MaxLargePayloadBytes,
			summary:    fmt.Sprintf("Write a payload for the job of an attempt, under the agent's name: at most %d bytes of the type in Content-Type. It is stored when this is answered, with its reference. A body that breaks off, or ends after the attempt, is not stored. "+over, makegood.MaxLargePayloadBytes),
			parameters: []parameter{holder},
			answers:    refused(map[int]any{http.StatusCreated: makegood.Payload{}}, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests),
		},
		{
			method: "GET", path: agentPayloadPattern, name: "readAgentPayload", door: Agents, stream: (*handlers).readAgentPayload,
			summary:    "Read a payload of the job of an attempt, of any writer, or with the header Range: bytes=FIRST-LAST a part. " + over,
			parameters: append(referenceParameters(), holder),
			answers:    refused(map[int]any{http.StatusOK: payloadBytes{}, http.StatusPartialContent: payloadBytes{}}, http.StatusRequestedRangeNotSatisfiable),
		},
	}
}

// attemptOf returns the attempt for which a request is made, of the agent as which it may speak.
func (a *handlers) attemptOf(r *http.Request) (agentdoor.Attempt, error) {
	name, err := a.agentOf(r)
	if err != nil {
		return agentdoor.Attempt{}, err
	}
	var h agentdoor.Holder
	if n := len(r.Header.Values(agentdoor.HolderHeader)); n > 1 {
		return agentdoor.Attempt{}, bad("the header %s is there %d times, want one attempt", agentdoor.HolderHeader, n)
	}
	said, err := canonical.JSON([]byte(r.Header.Get(agentdoor.HolderHeader)))
	if err == nil {
		err = decodeObject(said, reflect.ValueOf(&h).Elem(), "")
	}
	if err == nil {
		err = checkHolder(h)
	}
	if err != nil {
		return agentdoor.Attempt{}, bad("the header %s: %v", agentdoor.HolderHeader, err)
	}
	// The handlers below expect the job in the path.
	r.SetPathValue("id", h.Job)
	return agentdoor.Attempt{Agent: name, Job: h.Job, Reply: job.Reply{Step: h.Step, Attempt: h.Attempt, Token: h.Token, LockedBy: h.LockedBy}}, nil
}

// checkHolder reports the missing parts of a Holder.
func checkHolder(h agentdoor.Holder) error {
	switch {
	case domain.CheckJobID(h.Job) != nil:
		return bad("job %v", domain.CheckJobID(h.Job))
	case h.Step == "" || h.Attempt < 1 || h.Token == "":
		return bad("it must name job, step, attempt and token, and lockedBy, unless the step says exclusive: false")
	}
	return nil
}

// writeAgentPayload stores the body for the job of an attempt, and answers with the reference.
func (a *handlers) writeAgentPayload(w http.ResponseWriter, r *http.Request) {
	var p makegood.Payload
	attempt, err := a.attemptOf(r)
	if err == nil {
		p, err = a.storeAgentPayload(r, attempt)
	}
	if err != nil {
		a.refuseBody(w, a.agentPayloadProblem(r, err))
		return
	}
	write(w, http.StatusCreated, p)
}

func (a *handlers) storeAgentPayload(r *http.Request, attempt agentdoor.Attempt) (makegood.Payload, error) {
	mediaType, err := announcedType(r)
	if err != nil {
		return makegood.Payload{}, err
	}
	return a.Outside.WritePayload(r.Context(), attempt, mediaType, sent{r.Body})
}

// readAgentPayload answers with the bytes of a payload of the job of an attempt.
func (a *handlers) readAgentPayload(w http.ResponseWriter, r *http.Request) {
	var p makegood.Payload
	attempt, err := a.attemptOf(r)
	if err == nil {
		p, err = referenceOf(r)
	}
	if err != nil {
		a.refuse(w, a.agentPayloadProblem(r, err))
		return
	}
	a.sendPayload(w, r, sending{
		job: attempt.Job, payload: p, problem: a.agentPayloadProblem,
		open: func(offset, n int64) (io.ReadCloser, error) {
			return a.Outside.OpenPayload(r.Context(), attempt, p, offset, n)
		},
	})
}

// agentPayloadProblem is payloadProblem, plus whether another attempt would be refused too: agents in any language need
// that.
func (a *handlers) agentPayloadProblem(r *http.Request, err error) (p *problem) {
	switch {
	case errors.Is(err, agentdoor.ErrOver):
		return newProblem(http.StatusConflict, "%v: it reads and writes no payload", agentdoor.ErrOver)
	case errors.Is(err, store.ErrNewer):
		return newerProblem()
	case errors.Is(err, agentdoor.ErrUploads):
		return tooManyUploads("agent " + r.PathValue("agent"))
	case errors.Is(err, errBrokeOff):
		return a.payloadProblem(r, err)
	case errors.Is(err, payload.ErrNone):
		p = noPayloads()
	default:
		p = a.payloadProblem(r, err)
	}
	asksWrong := p.status == http.StatusBadRequest || p.status == http.StatusRequestedRangeNotSatisfiable
	p.body.Final = asksWrong || payload.Hopeless(err)
	return p
}

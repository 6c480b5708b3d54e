package httpapi

import (
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// HoldAsking is the body that pauses an agent or a workflow.
type HoldAsking struct {
	Reason string `json:"reason,omitempty"`
}

// LimitAsking is the body that sets the limit of an agent. Concurrency or a rate must be there; a concurrency of 0
// without a rate takes the limit away.
type LimitAsking struct {
	Concurrency *int   `json:"concurrency,omitempty"`
	Rate        string `json:"rate,omitempty"`
	Burst       int    `json:"burst,omitempty"`
	Key         string `json:"key,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// ReleaseAsking is the body that resumes an agent or a workflow, or probes an agent: an empty object.
type ReleaseAsking struct{}

// HoldList is the list of all pauses of whole agents and workflows, and of the limits of agents.
type HoldList struct {
	Holds []makegood.Hold `json:"holds"`
}

// holdRoutes are the routes of paused agents and workflows, and of agents with a limit.
func holdRoutes() []route {
	all := []route{{
		method: "GET", path: "/api/holds", name: "holds", door: Read, handle: bare((*handlers).listHolds),
		summary: "The agents and workflows that are paused as a whole, since when, who paused each and why, how many jobs stand still for it, and how far a release is; and the limits of agents, with how many attempts are under way and how many wait.",
		answers: everywhere(map[int]any{http.StatusOK: HoldList{}}),
	}, {
		method: "POST", path: "/api/holds/agent/{id}/limit", name: "limitAgent", door: Operate, body: LimitAsking{}, limit: maxOverhead,
		summary: fmt.Sprintf("Limit how many attempts of an agent are under way at once, 1 to %d, or are admitted in a second or a minute (rate, as 100/s or 300/m; burst: so many of them at one moment, 1 to %[1]d), or both: further ones wait before its gate. With a key, an expression over the job's input as ${ .input.account }, there is a gate for each of its values, and the limit is that of each. It is stored before this is answered, and known everywhere %[2]s later; attempts opened before then are not counted. concurrency 0 without a rate takes the limit away, and is refused (409) where there is none.", limits.MaxPermits, limits.HoldsFresh),
		answers: withBody(map[int]any{http.StatusOK: makegood.Hold{}}, http.StatusInternalServerError, http.StatusConflict),
		handle: taking(func(a *handlers, r *http.Request, asking LimitAsking) (answer, error) {
			l := makegood.Limit{Rate: asking.Rate, Burst: asking.Burst, Key: asking.Key}
			if asking.Concurrency != nil {
				l.Concurrency = *asking.Concurrency
			} else if asking.Rate == "" {
				return answer{}, &api.InvalidError{Message: "want concurrency, a number, or a rate; concurrency 0 takes the limit away"}
			}
			return orError(a.Jobs.LimitAgent(r.Context(), r.PathValue("id"), l, asking.Reason))
		}),
	}, {
		method: "POST", path: "/api/holds/agent/{id}/probe", name: "probeAgent", door: Operate, body: ReleaseAsking{},
		summary: fmt.Sprintf("Bring the next probe of an agent that the breaker has paused forward to now, or to %s after the pause began: a job that stands still is let through, and its success resumes the agent. With no such job it is resumed. One that the breaker has not paused is refused (409).", limits.FirstProbe),
		answers: withBody(map[int]any{http.StatusOK: makegood.Hold{}}, http.StatusInternalServerError, http.StatusConflict),
		handle: taking(func(a *handlers, r *http.Request, _ ReleaseAsking) (answer, error) {
			return orError(a.Jobs.ProbeAgent(r.Context(), r.PathValue("id")))
		}),
	}}
	for _, kind := range domain.HoldKinds() {
		all = append(
			all,
			route{
				method: "POST", path: fmt.Sprintf("/api/holds/%s/{id}/pause", kind), name: "pause" + titled(kind), door: Operate, body: HoldAsking{},
				summary: fmt.Sprintf("Pause %s as a whole: no new task is sent, the jobs that come to it stand still, and submissions are taken. It is stored before this is answered, and known everywhere %s later. One that is paused already stays so, for the reason that it is.", aKind(kind), limits.HoldsFresh),
				answers: withBody(map[int]any{http.StatusOK: makegood.Hold{}}, http.StatusInternalServerError),
				handle: taking(func(a *handlers, r *http.Request, asking HoldAsking) (answer, error) {
					return orError(a.Jobs.PauseAll(r.Context(), kind, r.PathValue("id"), asking.Reason))
				}),
			},
			route{
				method: "POST", path: fmt.Sprintf("/api/holds/%s/{id}/resume", kind), name: "resume" + titled(kind), door: Operate, body: ReleaseAsking{},
				summary: fmt.Sprintf("Resume %s: new work flows at once, and the jobs that stood still go on little by little. One that is not paused is refused (409).", aKind(kind)),
				answers: withBody(map[int]any{http.StatusOK: makegood.Hold{}}, http.StatusInternalServerError, http.StatusConflict),
				handle: taking(func(a *handlers, r *http.Request, _ ReleaseAsking) (answer, error) {
					return orError(a.Jobs.ResumeAll(r.Context(), kind, r.PathValue("id")))
				}),
			},
		)
	}
	return all
}

func titled(kind makegood.HoldKind) string {
	if kind == makegood.HoldAgent {
		return "Agent"
	}
	return "Workflow"
}

func aKind(kind makegood.HoldKind) string {
	if kind == makegood.HoldAgent {
		return "an agent"
	}
	return "a workflow"
}

func (a *handlers) listHolds(r *http.Request) (answer, error) {
	all, err := a.Jobs.ListHolds(r.Context())
	return orError(HoldList{Holds: all}, err)
}

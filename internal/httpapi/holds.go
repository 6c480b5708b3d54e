package httpapi

import (
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// HoldAsking is the body that pauses an agent or a workflow.
type HoldAsking struct {
	Reason string `json:"reason,omitempty"`
}

// ReleaseAsking is the body that resumes an agent or a workflow: an empty object.
type ReleaseAsking struct{}

// HoldList is the list of all pauses of whole agents and workflows.
type HoldList struct {
	Holds []makegood.Hold `json:"holds"`
}

// holdRoutes are the routes of paused agents and workflows.
func holdRoutes() []route {
	all := []route{{
		method: "GET", path: "/api/holds", name: "holds", door: Read, handle: bare((*handlers).listHolds),
		summary: "The agents and workflows that are paused as a whole, since when, who paused each and why, how many jobs stand still for it, and how far a release is.",
		answers: everywhere(map[int]any{http.StatusOK: HoldList{}}),
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

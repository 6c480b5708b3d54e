package httpapi

import (
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// sentRoute is the route of the evaluated inputs of a job's steps.
func sentRoute() route {
	return route{
		method: "GET", path: "/api/jobs/{id}/inputs", name: "inputs", door: Read, handle: (*handlers).sent,
		parameters: []parameter{{name: "step", says: "one step, with its input whole"}},
		summary: fmt.Sprintf("The inputs of the steps of a job and of their undos: those of their latest attempts, of up to %d bytes each (more where step names one), evaluated from the definition and from what the job keeps, with marks in the place of secrets. asSent says that the values that it reads have not changed since; otherwise it is the input that an attempt would get now, and changed says why.",
			limits.MaxSentInputBytes),
		answers: everywhere(map[int]any{http.StatusOK: makegood.SentInputs{}, http.StatusBadRequest: Problem{}, http.StatusNotFound: Problem{}, http.StatusInternalServerError: Problem{}}),
	}
}

// sent answers with the evaluated inputs of a job's steps.
func (a *handlers) sent(r *http.Request) (answer, error) {
	given, err := query(r, "step")
	if err != nil {
		return answer{}, err
	}
	return orError(a.Jobs.SentInputs(r.Context(), r.PathValue("id"), given.Get("step")))
}

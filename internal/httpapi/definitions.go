package httpapi

import (
	"net/http"

	"github.com/makegood-dev/makegood/api"
)

// definitionRoute is the route of a definition by its hash.
func definitionRoute() route {
	return route{
		method: "GET", path: "/api/definitions/{hash}", name: "definition", door: Read, handle: bare((*handlers).definition),
		summary: "Read a definition by its hash, current or not: its name, the whole workflow, and a workflow file that says the same (without the comments and schedules of the file that it was made of).",
		answers: everywhere(map[int]any{http.StatusOK: api.Definition{}, http.StatusNotFound: Problem{}}),
	}
}

// definition reads a definition. It is kept for ever and never changes.
func (a *handlers) definition(r *http.Request) (answer, error) {
	return orError(a.Jobs.Definition(r.Context(), r.PathValue("hash")))
}

package httpapi

import (
	"errors"
	"net/http"
	"regexp"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// hashPattern is what the hash of a definition is.
var hashPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

// definitionRoute is that of what a hash stands for.
func definitionRoute() route {
	return route{
		method: "GET", path: "/api/definitions/{hash}", name: "definition", door: Read, handle: (*handlers).definition,
		summary: "Read a definition by its hash, current or not: its name, the whole workflow, and a workflow file that says the same (without the comments and schedules of the file that it was made of).",
		answers: everywhere(map[int]any{http.StatusOK: api.Definition{}, http.StatusNotFound: Problem{}}),
	}
}

// definition reads a definition. It is kept for ever and never changes.
func (a *handlers) definition(r *http.Request) (answer, error) {
	if _, err := query(r); err != nil {
		return answer{}, err
	}
	hash := r.PathValue("hash")
	none := newProblem(http.StatusNotFound, "there is no definition %.40q", hash)
	none.body.Definition = hash
	if !hashPattern.MatchString(hash) {
		return answer{}, none
	}
	text, err := a.Backend.Definition(r.Context(), hash)
	if errors.Is(err, store.ErrNotFound) {
		return answer{}, none
	}
	if err != nil {
		return answer{}, err
	}
	shown, err := view.Definition(text)
	if errors.Is(err, workflowfile.ErrNewer) {
		return answer{}, &problem{
			status: http.StatusServiceUnavailable, retryAfter: retryAfterDeployment,
			body: Problem{Error: "a newer release wrote the definition " + hash + "; this one cannot show it"},
		}
	}
	if err != nil {
		return answer{}, err
	}
	return ok(shown)
}

package httpapi

import (
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Waking is the body that wakes a job: an empty object.
type Waking struct{}

// auditRoutes are the routes of the audit of all jobs.
func auditRoutes() []route {
	job, none := makegood.Job{}, Problem{}
	return []route{
		{
			method: "GET", path: "/api/audit", name: "audit", door: Read, handle: (*handlers).audit,
			summary:    "Look at a page of all jobs, and return those with a wrong index entry, or none. It reads all that is stored, page by page. The cursor is empty at the end.",
			parameters: []parameter{{name: "cursor", says: "the cursor of the page before"}},
			answers:    everywhere(map[int]any{http.StatusOK: api.AuditPage{}, http.StatusBadRequest: none}),
		},
		{
			method: "POST", path: "/api/jobs/{id}/wake", name: "wake", door: Operate, handle: taking((*handlers).wake), body: Waking{},
			summary: "Put a job back that an audit found: its due work is done, and it is in the index again. A job in order is left alone. The answer has no payloads.",
			answers: askedOf(job),
		},
	}
}

// audit looks at a page of all jobs.
func (a *handlers) audit(r *http.Request) (answer, error) {
	values, err := query(r, "cursor")
	if err != nil {
		return answer{}, err
	}
	return orError(a.Jobs.AuditPage(r.Context(), values.Get("cursor")))
}

// wake wakes a job that an audit found.
func (a *handlers) wake(r *http.Request, _ Waking) (answer, error) {
	return orError(a.Jobs.Wake(r.Context(), r.PathValue("id")))
}

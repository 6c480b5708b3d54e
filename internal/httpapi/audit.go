package httpapi

import (
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
)

// Waking is the body that wakes a job: an empty object.
type Waking struct{}

// auditRoutes are the routes of the audit of all jobs.
func auditRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/audit", name: "audit", door: Read, handle: paged((*control.Service).AuditPage),
			summary:    "Look at a page of all jobs, and return those with a wrong index entry, or none. It reads all that is stored, page by page. The cursor is empty at the end.",
			parameters: []parameter{{name: "cursor", says: "the cursor of the page before"}},
			answers:    everywhere(map[int]any{http.StatusOK: api.AuditPage{}, http.StatusBadRequest: Problem{}}),
		},
		{
			method: "POST", path: "/api/jobs/{id}/wake", name: "wake", door: Operate, handle: empty[Waking](of("id", (*control.Service).Wake)), body: Waking{},
			summary: "Put a job back that an audit found: its due work is done, and it is in the index again. A job in order is left alone. The answer has no payloads.",
			answers: askedOf(makegood.Job{}),
		},
	}
}

package httpapi

import (
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
)

// QuarantineAsking is the body of a request about a message in quarantine: an empty object.
type QuarantineAsking struct{}

// Dropped says that a message is gone.
type Dropped struct{}

// quarantineRoutes are the routes of quarantined messages.
func quarantineRoutes() []route {
	none := Problem{}
	return []route{
		{
			method: "GET", path: "/api/quarantine", name: "quarantine", door: Read, handle: (*handlers).quarantined,
			summary: "List the messages that could not be understood, each with the reason and its body, the oldest first. A page may be short before the end; the cursor is empty at the end. A deployed stack has them in a queue: 404 there.",
			parameters: []parameter{
				{name: "limit", says: fmt.Sprintf("how many messages a page has, 1 to %d; default %d", MaxLimit, DefaultLimit), number: true},
				{name: "cursor", says: "the cursor of the page before"},
			},
			answers: everywhere(map[int]any{http.StatusOK: api.QuarantinePage{}, http.StatusBadRequest: none, http.StatusNotFound: none}),
		},
		{
			method: "GET", path: "/api/quarantine/{id}", name: "getQuarantined", door: Read, handle: of("id", (*control.Service).QuarantinedMessage),
			summary: "Read a message in quarantine, and the result that a replay would have.",
			answers: everywhere(map[int]any{http.StatusOK: api.Quarantined{}, http.StatusNotFound: none, http.StatusInternalServerError: none}),
		},
		{
			method: "POST", path: "/api/quarantine/{id}/replay", name: "replayQuarantined", door: Operate, handle: empty[QuarantineAsking](of("id", (*control.Service).ReplayQuarantined)), body: QuarantineAsking{},
			summary: "Let a message do its work: an event that is understood now is handled; a task is never put back, its Scheduler looks at the job. The message is deleted after its effect is stored. One that is refused stays; why says the reason.",
			answers: askedOf(api.Replayed{}),
		},
		{
			method: "POST", path: "/api/quarantine/{id}/drop", name: "dropQuarantined", door: Operate, handle: taking((*handlers).dropQuarantined), body: QuarantineAsking{},
			summary: "Delete a message in quarantine.",
			answers: askedOf(Dropped{}),
		},
	}
}

func (a *handlers) quarantined(r *http.Request) (answer, error) {
	values, err := query(r, "limit", "cursor")
	if err != nil {
		return answer{}, err
	}
	limit, err := limitOf(values, "limit", MaxLimit)
	if err != nil {
		return answer{}, err
	}
	return orError(a.Jobs.QuarantineOf(r.Context(), values.Get("cursor"), limit))
}

func (a *handlers) dropQuarantined(r *http.Request, _ QuarantineAsking) (answer, error) {
	return orError(Dropped{}, a.Jobs.DropQuarantined(r.Context(), r.PathValue("id")))
}

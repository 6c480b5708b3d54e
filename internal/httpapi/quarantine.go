package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/store"
)

// Quarantine is what an engine has put away. Its errors are api.ErrNoMessage and *api.InvalidError; any other leaves the
// outcome unknown, and what was asked may be asked again.
type Quarantine interface {
	Page(ctx context.Context, cursor string, limit int) (api.QuarantinePage, error)
	Get(ctx context.Context, id string) (api.Quarantined, error)
	// Replay answers after what the message led to is stored, and Drop after it is gone for good.
	Replay(ctx context.Context, id string) (api.Replayed, error)
	Drop(ctx context.Context, id string) error
}

// QuarantineAsking is the body of a request about a message in quarantine that says no more.
type QuarantineAsking struct{}

// Dropped says that a message is gone.
type Dropped struct{}

// quarantineRoutes are those of what is in quarantine.
func quarantineRoutes() []route {
	none := Problem{}
	asked := func(body any) map[int]any {
		return everywhere(map[int]any{
			http.StatusOK: body, http.StatusBadRequest: none, http.StatusForbidden: none, http.StatusNotFound: none,
			http.StatusRequestEntityTooLarge: none, http.StatusUnsupportedMediaType: none, http.StatusInternalServerError: none,
		})
	}
	return []route{
		{
			method: "GET", path: "/api/quarantine", name: "quarantine", door: Read, handle: inQuarantine((*handlers).quarantined),
			summary: "List the messages that nobody understood, each with the reason and its body, the oldest first. A page may be short before the end; the cursor is empty at the end. A deployed stack has them in a queue: 404 there.",
			parameters: []parameter{
				{name: "limit", says: fmt.Sprintf("how many messages a page has, 1 to %d; default %d", MaxLimit, DefaultLimit), number: true},
				{name: "cursor", says: "the cursor of the page before"},
			},
			answers: everywhere(map[int]any{http.StatusOK: api.QuarantinePage{}, http.StatusBadRequest: none, http.StatusNotFound: none}),
		},
		{
			method: "GET", path: "/api/quarantine/{id}", name: "getQuarantined", door: Read, handle: inQuarantine((*handlers).getQuarantined),
			summary: "Read a message in quarantine, and what a replay would make of it.",
			answers: everywhere(map[int]any{http.StatusOK: api.Quarantined{}, http.StatusNotFound: none, http.StatusInternalServerError: none}),
		},
		{
			method: "POST", path: "/api/quarantine/{id}/replay", name: "replayQuarantined", door: Operate, handle: inQuarantine((*handlers).replayQuarantined), body: QuarantineAsking{},
			summary: "Let a message do what it was sent for: an event that is understood now is dealt with; a task is never put back, its Scheduler looks at the job. It is deleted after what it led to is stored. One that is refused stays; why says the reason.",
			answers: asked(api.Replayed{}),
		},
		{
			method: "POST", path: "/api/quarantine/{id}/drop", name: "dropQuarantined", door: Operate, handle: inQuarantine((*handlers).dropQuarantined), body: QuarantineAsking{},
			summary: "Delete a message in quarantine.",
			answers: asked(Dropped{}),
		},
	}
}

// inQuarantine handles a request where quarantine is kept here, and says where it is else.
func inQuarantine(handle func(*handlers, *http.Request) (answer, error)) func(*handlers, *http.Request) (answer, error) {
	return func(a *handlers, r *http.Request) (answer, error) {
		if a.Quarantine == nil {
			return answer{}, newProblem(http.StatusNotFound, "the quarantine of a stack is a queue, and no door opens it: `makegood quarantine list --stack NAME` does, with your own AWS credentials")
		}
		found, err := handle(a, r)
		id := r.PathValue("id")
		switch {
		case errors.Is(err, api.ErrNoMessage):
			return answer{}, aboutMessage(id, newProblem(http.StatusNotFound, "there is no message %.80q in quarantine", id))
		case errors.Is(err, store.ErrDamaged) && id != "":
			a.Logger.WarnContext(r.Context(), "a message in quarantine is about what is damaged", "message", id, "error", err)
			return answer{}, aboutMessage(id, newProblem(http.StatusInternalServerError, "the job of message %s is stored, but cannot be read; the log says why", id))
		}
		return found, err
	}
}

func aboutMessage(id string, p *problem) *problem {
	p.body.Message = id
	return p
}

func (a *handlers) quarantined(r *http.Request) (answer, error) {
	values, err := query(r, "limit", "cursor")
	if err != nil {
		return answer{}, err
	}
	limit, err := strconv.Atoi(cmp.Or(values.Get("limit"), strconv.Itoa(DefaultLimit)))
	if err != nil || limit < 1 || limit > MaxLimit {
		return answer{}, bad("limit is %.40q: want 1 to %d", values.Get("limit"), MaxLimit)
	}
	page, err := a.Quarantine.Page(r.Context(), values.Get("cursor"), limit)
	if err != nil {
		return answer{}, err
	}
	return ok(page)
}

func (a *handlers) getQuarantined(r *http.Request) (answer, error) {
	q, err := a.Quarantine.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	return ok(q)
}

func (a *handlers) replayQuarantined(r *http.Request) (answer, error) {
	if err := decode(r, &QuarantineAsking{}); err != nil {
		return answer{}, err
	}
	id := r.PathValue("id")
	replayed, err := a.Quarantine.Replay(r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	a.Logger.InfoContext(r.Context(), "replayed", "message", id, "result", replayed.Result, "by", a.Caller(r))
	return ok(replayed)
}

func (a *handlers) dropQuarantined(r *http.Request) (answer, error) {
	if err := decode(r, &QuarantineAsking{}); err != nil {
		return answer{}, err
	}
	id := r.PathValue("id")
	if err := a.Quarantine.Drop(r.Context(), id); err != nil {
		return answer{}, err
	}
	a.Logger.InfoContext(r.Context(), "dropped from quarantine", "message", id, "by", a.Caller(r))
	return ok(Dropped{})
}

package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/queue"
)

// brokenQuarantine is one whose store fails.
type brokenQuarantine struct{ err error }

func (b brokenQuarantine) Page(context.Context, string, int) (api.QuarantinePage, error) {
	return api.QuarantinePage{}, b.err
}

func (b brokenQuarantine) Get(context.Context, string) (api.Quarantined, error) {
	return api.Quarantined{}, b.err
}

func (b brokenQuarantine) Replay(context.Context, string) (api.Replayed, error) {
	return api.Replayed{}, b.err
}

func (b brokenQuarantine) Drop(context.Context, string) error { return b.err }

// quarantine puts messages into quarantine, whose ids are 1, 2 and so on.
func (w *world) quarantine(bodies ...string) {
	w.t.Helper()
	for _, body := range bodies {
		check(w.t, errors.Join(w.queues.Send(w.t.Context(), "quarantine", queue.Message{Body: body})...))
	}
}

// quarantineConversations are those about what is in quarantine, where there are the messages 1 and 2.
func quarantineConversations() []conversation {
	large := `{"why":"` + strings.Repeat("x", 64<<10) + `"}`
	all := []conversation{
		{"GET", "/api/quarantine", "/api/quarantine", "", "", 200},
		{"GET", "/api/quarantine", "/api/quarantine?limit=1&cursor=1", "", "", 200},
		{"GET", "/api/quarantine", "/api/quarantine?limit=201", "", "", 400},
		{"GET", "/api/quarantine", "/api/quarantine?cursor=of-no-page", "", "", 400},
		{"GET", "/api/quarantine/{id}", "/api/quarantine/1", "", "", 200},
		{"GET", "/api/quarantine/{id}", "/api/quarantine/9", "", "", 404},
		{"GET", "/api/quarantine/{id}", "/api/quarantine/01", "", "", 404},
	}
	for verb, id := range map[string]string{"replay": "1", "drop": "2"} {
		route, path := "/api/quarantine/{id}/"+verb, "/api/quarantine/"+id+"/"+verb
		all = append(all,
			conversation{"POST", route, "/api/quarantine/9/" + verb, `{}`, "", 404},
			conversation{"POST", route, path, `{"why":1}`, "", 400},
			conversation{"POST", route, path, `{}`, "Content-Type: text/plain", 415},
			conversation{"POST", route, path, `{}`, "Sec-Fetch-Site: cross-site", 403},
			conversation{"POST", route, path, large, "", 413},
			conversation{"POST", route, path, `{}`, "", 200},
		)
	}
	return all
}

// A stack keeps its quarantine in a queue: its doors say which command opens that.
func TestAStackSaysWhereItsQuarantineIs(t *testing.T) {
	w := newWorld(t)
	for door, path := range map[httpapi.Door]string{httpapi.Read: "/api/quarantine", httpapi.Operate: "/api/quarantine/1/drop"} {
		url := listen(t, httpapi.Config{Jobs: bare(w.engine), Door: door, Logger: slog.New(slog.DiscardHandler)})
		method, body := http.MethodGet, ""
		if door == httpapi.Operate {
			method, body = http.MethodPost, `{}`
		}
		if r := ask(t, method, url+path, body, ""); r.status != http.StatusNotFound || !strings.Contains(string(r.body), "makegood quarantine list --stack NAME") {
			t.Errorf("%s: got %d %s, want the command that works", path, r.status, r.body)
		}
	}
}

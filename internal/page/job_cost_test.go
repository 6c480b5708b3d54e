package page_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/page"
)

// The page of a job says what it has cost, and of what that consists, where it is known; of an engine in a process it is not.
func TestThePageOfAJobSaysWhatItHasCost(t *testing.T) {
	for cost, spent := range map[string]*makegood.Spent{
		"<dt>Cost</dt><dd>$ 0.000024 <small class=\"faint\">13 writes, 5 reads, 28.5 requests, 10 invocations, 0.125 GB s at prices of us-east-1</small></dd>": {
			WriteUnits: 13, ReadUnits: 5, Requests: 28.5, Invocations: 10, GBSeconds: 0.125,
		},
		"": nil,
	} {
		mux := http.NewServeMux()
		answer := func(pattern string, value any) {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
				if err := json.NewEncoder(w).Encode(value); err != nil {
					t.Error(err)
				}
			})
		}
		answer("GET /api/jobs/j-1", makegood.Job{ID: "j-1", Workflow: "order", ProcessState: makegood.JobProcessed, Desired: makegood.JobProcessed, Spent: spent})
		answer("GET /api/jobs/j-1/verbs", makegood.Offers{})
		answer("GET /api/workflows", map[string]any{"workflows": []api.Workflow{}})
		api := httptest.NewServer(mux)
		defer api.Close()
		c, err := client.New(api.URL)
		if err != nil {
			t.Fatal(err)
		}
		p := page.New(page.Config{Jobs: c})
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/jobs/j-1", nil))
		if got := w.Body.String(); w.Code != http.StatusOK || cost != "" && !strings.Contains(got, cost) || cost == "" && strings.Contains(got, "<dt>Cost") {
			t.Errorf("%d, want %q in\n%s", w.Code, cost, got)
		}
	}
}

package httpapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// FuzzAPI asks every endpoint with any id, query and body: whatever comes is answered with JSON, and a
// refusal says why. The engine does not run, so its jobs stay as the requests leave them.
func FuzzAPI(f *testing.F) {
	endpoints := []string{"POST /api/jobs", "GET /api/jobs", "GET /api/jobs/ID", "GET /api/workflows", "GET /api/audit", "POST /api/jobs/ID/wake", "GET /api/openapi.json", "GET /healthz"}
	for _, verb := range []string{"complete", "fail", "heartbeat"} {
		endpoints = append(endpoints, "POST /api/jobs/ID/steps/reserve/"+verb, "POST /api/completions/"+verb)
	}
	endpoints = append(endpoints, "POST /api/jobs/ID/steps/reserve/settle", "POST /api/jobs/ID/plan", "GET /api/jobs/ID/verbs", "GET /api/jobs/ID/inputs", "POST /api/jobs/ID/payloads", "GET /api/jobs/ID/payloads/0")
	for _, verb := range domain.Verbs() {
		endpoints = append(endpoints, "POST /api/jobs/ID/"+string(verb))
	}
	for i := range endpoints {
		f.Add(uint8(i), "order-1", "limit=2", `{"workflow":"order","id":"order-1","input":{}}`)
	}
	handler := apiOverAnIdleEngine(f)
	f.Fuzz(func(t *testing.T, endpoint uint8, id, query, body string) {
		method, path, _ := strings.Cut(endpoints[int(endpoint)%len(endpoints)], " ")
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/", strings.NewReader(body))
		r.URL = &url.URL{Scheme: "http", Host: "127.0.0.1", Path: strings.ReplaceAll(path, "ID", id), RawQuery: query}
		if method == "POST" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 300 && w.Code < 400 {
			return // a path that is not in its shortest form is sent to the one that is
		}
		var answer any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: got %d and %q, want JSON: %v", method, r.URL, w.Code, w.Body, err)
		}
		var problem httpapi.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &problem); w.Code >= 400 && (err != nil || problem.Error == "" || w.Code >= 500) {
			t.Fatalf("%s %s with %q: got %d and %s, want a refusal with its reason", method, r.URL, body, w.Code, w.Body)
		}
	})
}

func apiOverAnIdleEngine(f *testing.F) http.Handler {
	f.Helper()
	quiet := slog.New(slog.DiscardHandler)
	engine, err := embedded.Open(f.Context(), embedded.Config{Agents: []agent.Handler{&actor{open: make(chan struct{})}}, Logger: quiet})
	check(f, err)
	f.Cleanup(func() { check(f, engine.Close()) })
	for _, yaml := range []string{order, stop} {
		compiled, err := workflowfile.Parse("test.yaml", []byte(yaml))
		check(f, err)
		check(f, engine.Define(f.Context(), compiled))
	}
	return httpapi.New(httpapi.Config{Jobs: control.New(engine.Parts()), Host: "127.0.0.1", Logger: quiet})
}

package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/httpapi"
)

// Readiness says that it is not so, and not why; it looks once a second, whoever asks, and health says all the while that the process
// lives.
func TestReadinessLooksOnceASecondAndKeepsTheReason(t *testing.T) {
	now, looks := time.Now(), 0
	is := errors.New("no space left on /var/lib/makegood")
	api := httpapi.New(httpapi.Config{
		Ready: func(context.Context) error { looks++; return is }, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
	})
	get := func(path string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for range 3 {
		if status, body := get("/readyz"); status != http.StatusServiceUnavailable || body != `{"status":"not ready"}` {
			t.Errorf("got %d %s", status, body)
		}
	}
	if status, body := get("/healthz"); status != http.StatusOK || body != `{"status":"ok"}` {
		t.Errorf("health: got %d %s", status, body)
	}
	if looks != 1 {
		t.Errorf("it looked %d times in a second", looks)
	}
	is, now = nil, now.Add(time.Second)
	if status, body := get("/readyz"); status != http.StatusOK || body != `{"status":"ready"}` || looks != 2 {
		t.Errorf("a second later: got %d %s after %d looks", status, body, looks)
	}
}

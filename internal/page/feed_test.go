package page

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A browser that goes before its view was read gives its place among the streams back at once, and not when the API answers.
func TestAStreamWhoseBrowserGoesIsNotReadOn(t *testing.T) {
	ctx, gone := context.WithCancel(t.Context())
	var why error
	jobs := within(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gone()
		<-r.Context().Done()
		why = r.Context().Err()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	p := New(Config{Jobs: jobs})
	t.Cleanup(p.Close)
	p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/live?view=/jobs/a", nil))
	if !errors.Is(why, context.Canceled) || len(p.streams) != 0 {
		t.Errorf("the view was read until %v, and %d streams are open", why, len(p.streams))
	}
}

package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

func notice(state makegood.ProcessState) notify.Notice {
	return notify.Notice{Job: "order-1", Workflow: "order", Announcement: makegood.Announcement{
		Seq: 2, ProcessState: state, Reason: "no stock", At: time.Unix(0, 0).UTC(),
	}}
}

func TestOnlyAlertsArePosted(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	w := webhook.New(webhook.Config{URL: server.URL})
	for _, state := range makegood.ProcessStates() {
		if err := w.Announce(t.Context(), notice(state)); err != nil {
			t.Errorf("%s: got %v, want success", state, err)
		}
	}
	if err := w.AgentSilent(t.Context(), "payments"); err != nil {
		t.Errorf("agent: got %v, want success", err)
	}
	want := []string{
		`POST application/json {"v":1,"type":"Announcement","job":"order-1","workflow":"order","seq":2,"processState":"Error","reason":"no stock","at":"1970-01-01T00:00:00Z"}`,
		`POST application/json {"v":1,"type":"AgentSilent","agent":"payments"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The address may hold a token, as those of chat services do.
func TestAnythingButSuccessIsAnErrorThatDoesNotShowTheAddress(t *testing.T) {
	blocked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/secret/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/secret/301":
			http.Redirect(w, r, "/secret/200", http.StatusMovedPermanently)
		case "/secret/slow":
			<-blocked
		}
	}))
	defer server.Close()
	defer close(blocked)
	for address, want := range map[string]string{
		server.URL + "/secret/500":      "500",
		server.URL + "/secret/301":      "301",
		server.URL + "/secret/slow":     "deadline exceeded",
		"http://127.0.0.1:1/secret":     "refused",
		"http://127.0.0.1:wrong/secret": "invalid port",
	} {
		w := webhook.New(webhook.Config{URL: address, Timeout: 200 * time.Millisecond})
		err := w.Announce(t.Context(), notice(makegood.Error))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q and without the address", address, err, want)
		}
	}
}

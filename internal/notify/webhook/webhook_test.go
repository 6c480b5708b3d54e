package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

func notice(state makegood.ProcessState) notify.Notice {
	return notify.Notice{Job: "order-1", Workflow: "order", Announcement: job.Announcement{
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
	w := webhook.Webhook{URL: server.URL}
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

// The path, the query and the user of an address may be a token, as those of chat services are.
func TestAnErrorNamesSchemeAndHostOfTheAddressAndNothingElse(t *testing.T) {
	blocked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/secret/301":
			http.Redirect(w, r, "/secret/200", http.StatusMovedPermanently)
		case r.URL.Path == "/secret/nowhere":
			w.Header().Set("Location", "http://[secret")
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/secret/slow":
			<-blocked
		default:
			http.Error(w, r.URL.String(), http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	defer close(blocked)
	host := strings.TrimPrefix(server.URL, "http://")
	for address, want := range map[string][]string{
		server.URL + "/secret/500?key=secret":  {"webhook: " + server.URL + ": ", "500"},
		"http://secret:secret@" + host + "/":   {"webhook: " + server.URL + ": ", "500"},
		server.URL + "/secret/301":             {"webhook: " + server.URL + ": ", "301"},
		server.URL + "/secret/nowhere":         {"webhook: " + server.URL + ": ", "302"},
		server.URL + "/secret/slow":            {"webhook: " + server.URL + ": ", "deadline exceeded"},
		"http://127.0.0.1:1/secret":            {"webhook: http://127.0.0.1:1: ", "refused"},
		"http://127.0.0.1:secret/":             {"cannot be read"},
		"http://user:secret/secret@127.0.0.1/": {"cannot be read"},
		"http://127.0.0.1/%secret":             {"cannot be read"},
		"ftp://secret@127.0.0.1/secret":        {"cannot be read"},
		"secret":                               {"cannot be read"},
		"https:///secret":                      {"cannot be read"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := webhook.Webhook{URL: address}.Announce(ctx, notice(makegood.Error))
		cancel()
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without what may be a secret", address, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want an error with %q", address, err, part)
			}
		}
		if unread := want[0] == "cannot be read"; unread == webhook.IsAddress(address) {
			t.Errorf("%s: it is an address: %t, want %t", address, unread, !unread)
		}
	}
}

// A user in the address is what the service knows its caller by.
func TestTheUserOfAnAddressIsSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "word" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	address := "http://me:word@" + strings.TrimPrefix(server.URL, "http://")
	if err := webhook.Post(t.Context(), address, "{}"); err != nil {
		t.Errorf("got %v, want success", err)
	}
}

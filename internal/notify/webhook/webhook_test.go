package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

func alert() notify.Alert {
	return notify.Alert{
		Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: "order", Step: "charge", ErrorKind: "declined"}, Count: 2,
		Jobs: []notify.AlertedJob{{ID: "o-1", Reason: "no <!channel> & no stock"}, {ID: "o-2"}}, Since: time.Unix(0, 0).UTC(),
		Where: notify.Where{Name: "stack shop", Flags: "--stack shop", Page: "https://jobs.example"},
	}
}

// Slack takes text, shows &lt; as <, and calls everybody for <!channel>: what a reason quotes is no mention. Programs read alert.
func TestAnAlertIsPostedAsSlackTakesIt(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	if err := (webhook.Webhook{URL: server.URL}).Alert(t.Context(), alert()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "POST application/json ") {
		t.Fatalf("got %q, want one POST of JSON", got)
	}
	var m map[string]json.RawMessage
	var text string
	if err := errors.Join(json.Unmarshal([]byte(strings.TrimPrefix(got[0], "POST application/json ")), &m), json.Unmarshal(m["text"], &text)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "2 jobs of order stopped at charge (declined), and will not go on") || !strings.Contains(text, "no &lt;!channel&gt; &amp; no stock") {
		t.Errorf("got %s, want what happened, and the reason without a mention", text)
	}
	want := `{"kind":"stopped","workflow":"order","step":"charge","reasonKind":"declined","count":2,"jobs":["o-1","o-2"],"since":"1970-01-01T00:00:00Z",` +
		`"page":"https://jobs.example/?reason-kind=declined\u0026state=Error\u0026step=charge\u0026workflow=order","runbook":"` + notify.DefaultRunbook + `#stopped"}`
	if string(m["alert"]) != want {
		t.Errorf("got  %s\nwant %s", m["alert"], want)
	}
}

// The path, the query and the user of an address may be a token, as those of chat services are.
func TestAnErrorNamesSchemeAndHostOfTheAddressAndNothingElse(t *testing.T) {
	blocked := make(chan struct{})
	var late context.CancelCauseFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/secret/301":
			http.Redirect(w, r, "/secret/200", http.StatusMovedPermanently)
		case r.URL.Path == "/secret/nowhere":
			w.Header().Set("Location", "http://[secret")
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/secret/slow":
			late(context.DeadlineExceeded)
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
		var ctx context.Context
		ctx, late = context.WithCancelCause(t.Context())
		err := webhook.Webhook{URL: address}.Alert(ctx, alert())
		late(nil)
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

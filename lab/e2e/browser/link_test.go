//go:build browser

package browser_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// asked is who is asked by a step that waits: it keeps the links that it was sent.
func asked(t *testing.T) (address string, links <-chan string) {
	t.Helper()
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var question struct{ Link string }
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Errorf("a question: %v", err)
		}
		got <- question.Link
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

// link is the path of the link that somebody was sent.
func link(t *testing.T, links <-chan string) string {
	t.Helper()
	select {
	case l := <-links:
		u, err := url.Parse(l)
		if err != nil {
			t.Fatal(err)
		}
		return u.Path
	case <-time.After(patience):
		t.Fatal("nobody was asked")
		return ""
	}
}

// Who was sent a link opens it, sees what is asked, and answers with the keyboard alone; no script runs. Whoever has it open
// beside them is told what stands, and opening it changes nothing.
func TestALinkIsAnsweredWithTheKeyboardAndWithoutScript(t *testing.T) {
	clerk, links := asked(t)
	w := newWorld(t, "--reply", "clerk="+clerk)
	w.submit("approving", "a-1", `{}`)
	path := link(t, links)
	first := newWindow(t, w.url)
	first.open(path)
	first.sees("Ship a-1?", "It waits until")
	first.readable()
	second := newWindow(t, w.url)
	second.withoutScript()
	second.open(path)
	second.find("button", "reject")
	first.press("\tanna\tout of stock\t\t")
	if at := value[string](first, "document.activeElement.textContent"); at != "reject" {
		t.Errorf("the keys of tabulation lead to %q, want reject", at)
	}
	first.press("\r")
	first.sees("Your answer is stored", "answered with reject")
	first.readable()
	second.excuse("409")
	second.fill("textbox", "Your name", "bert")
	second.click("button", "approve")
	second.sees("Your answer was not taken", "answered with reject")
	w.reaches("a-1", makegood.JobProcessed)
	if j, err := w.client.Get(t.Context(), "a-1"); err != nil || j.Steps[0].CompletedWhy == nil || *j.Steps[0].CompletedWhy != "out of stock" {
		t.Errorf("got %+v, %v, want why it was rejected", j.Steps, err)
	}
}

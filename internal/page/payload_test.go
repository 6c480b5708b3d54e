package page_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
)

// fetch gets an address, and follows nobody.
func fetch(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	stays := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := stays.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// isAFile checks that an answer is one that no browser shows as a page of this origin.
func isAFile(t *testing.T, answer *http.Response) {
	t.Helper()
	h := answer.Header
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; ") || h.Get("Content-Type") != "application/octet-stream" ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v, want a file", answer.StatusCode, h)
	}
}

// What an input refers to is a click away, as a file, where the page is beside its API.
func TestAPayloadIsDownloadedFromThePage(t *testing.T) {
	w := newWorld(t)
	p, err := w.WritePayload(t.Context(), "t-1", "text/html", strings.NewReader("<script>alert(1)</script>"))
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]any{"report": p})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Submit(t.Context(), makegood.Submission{Workflow: "trip", ID: "t-1", Input: input}); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"jobs/t-1", "jobs/t-1/payload"} {
		_, text := fetch(t, w.url+view)
		link := regexp.MustCompile(`href="([^"]*jobs/t-1/payloads/[^"]*)" download>Download</a> <small[^>]*>sha256:[0-9a-f]{12}, 25 bytes, text/html<`).FindStringSubmatch(text)
		if link == nil {
			t.Fatalf("%s: no link in %s", view, text)
		}
		answer, body := fetch(t, w.url+strings.TrimLeft(strings.ReplaceAll(link[1], "&amp;", "&"), "./"))
		if isAFile(t, answer); body != "<script>alert(1)</script>" {
			t.Errorf("%s: got %q", view, body)
		}
	}
}

// The page of a stack reads past the stack's API, so the browser is led nowhere: what it gets is a file of this machine, whole or
// broken off, and no way in stands in it.
func TestAPayloadOfAStackIsDownloadedFromThePage(t *testing.T) {
	bucket := payloadtest.NewBucket(t)
	quiet := slog.New(slog.DiscardHandler)
	api := httptest.NewServer(httpapi.New(httpapi.Config{Doors: bucket, Logger: quiet}))
	t.Cleanup(api.Close)
	c, err := client.New(api.URL, client.WithPatience(0))
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.WritePayload(t.Context(), "t-1", "", strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	shown := page.New(page.Config{Jobs: c, Logger: quiet, Host: "127.0.0.1"})
	t.Cleanup(shown.Close)
	server := httptest.NewServer(shown)
	t.Cleanup(server.Close)
	at := server.URL + "/jobs/t-1/payloads/" + p.SHA256
	answer, body := fetch(t, at+"?bytes=4")
	if isAFile(t, answer); body != "text" || answer.Header.Get("Location") != "" {
		t.Errorf("got %q %v", body, answer.Header)
	}
	for path, want := range map[string]int{"?bytes=x": 404, "": 404, "?bytes=4&by=nobody": 404} {
		if answer, _ := fetch(t, at+path); answer.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, answer.StatusCode, want)
		}
	}
	// Altered: the file breaks off, and is none.
	bucket.Change("t-1", p, []byte("tex!"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"?bytes=4", nil)
	if err != nil {
		t.Fatal(err)
	}
	broken, err := http.DefaultClient.Do(r)
	if err == nil {
		_, err = io.ReadAll(broken.Body)
		_ = broken.Body.Close()
	}
	if err == nil {
		t.Error("what was altered was taken for the file")
	}
}

package page_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestThePageAndTheAPIAreBesideEachOtherUnderAPrefix(t *testing.T) {
	w := newWorld(t)
	w.get("").wants(t, "<h1>Jobs</h1>", `href="./page.css?`)
	w.get("api/workflows").wants(t, `"name":"trip"`)
	w.get("healthz").wants(t, `"status":"ok"`)
	style := w.get("page.css")
	if style.status != http.StatusOK || !strings.HasPrefix(style.header.Get("Content-Type"), "text/css") {
		t.Errorf("got %d and %v for the style sheet", style.status, style.header)
	}
}

func TestEveryAnswerCarriesThePolicyAndNothingInline(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	for _, path := range []string{"", "?state=Processed", "workflows", "workflows/trip", "workflows/trip/submit", "nothing", "page.css", "page.js"} {
		got := w.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		} {
			if have := got.header.Get(name); have != want {
				t.Errorf("%q: got %s: %q, want %q", path, name, have, want)
			}
		}
		if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, inline := range []string{"style=", "<style", "<script>", "onclick", "data:", "http://", "https://"} {
			if strings.Contains(got.text, inline) {
				t.Errorf("%q: the page has %q in it", path, inline)
			}
		}
	}
}

func TestRequestsOfOtherHostsAndOriginsAreRefusedByAPage(t *testing.T) {
	w := newWorld(t)
	stranger := w.do(http.MethodGet, "", nil, http.Header{"Host": {"evil.example"}})
	if stranger.status != http.StatusMisdirectedRequest {
		t.Errorf("another host: got %d, want 421", stranger.status)
	}
	stranger.wants(t, "Not let in", "evil.example")
	forged := w.do(http.MethodPost, "jobs/t-1/cancel", url.Values{}, http.Header{"Sec-Fetch-Site": {"cross-site"}})
	if forged.status != http.StatusForbidden {
		t.Errorf("a form of another origin: got %d, want 403", forged.status)
	}
	forged.wants(t, "a page of another origin may not ask for this")
}

func TestErrorsArePages(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"nothing/here":       {http.StatusNotFound, "There is no such page"},
		"?state=Unheard":     {http.StatusBadRequest, "there is no state &#34;Unheard&#34;"},
		"?late-within=x":     {http.StatusBadRequest, "late-within"},
		"?cursor=of-no-page": {http.StatusBadRequest, "of no page of this list"},
	} {
		got := w.get(path)
		if got.status != want.status {
			t.Errorf("%q: got %d, want %d", path, got.status, want.status)
		}
		got.wants(t, want.text, `href="`+strings.Repeat("../", strings.Count(path, "/")))
	}
}

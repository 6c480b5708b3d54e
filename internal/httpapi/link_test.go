package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/limits"
)

// page is the page of a link as a browser reads it: no browser is needed to see what it may do, and what it sends.
type page struct {
	status int
	header http.Header
	text   string
	// fields are those of its form, by name; buttons are NAME=VALUE.
	fields  url.Values
	buttons []string
	method  string
	// foreign are addresses that it names; scripts counts them.
	foreign []string
	scripts int
	style   string
}

// readPage reads a page. Whatever is no HTML that is closed in its order is an error.
func readPage(t testing.TB, r *http.Response) page {
	t.Helper()
	defer r.Body.Close()
	p := page{status: r.StatusCode, header: r.Header, fields: url.Values{}}
	d := xml.NewDecoder(r.Body)
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var inside []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		check(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			inside = append(inside, e.Name.Local)
			p.element(e)
		case xml.EndElement:
			inside = inside[:len(inside)-1]
		case xml.CharData:
			if slices.Contains(inside, "style") {
				p.style += string(e)
			} else {
				p.text += string(e)
			}
		}
	}
}

func (p *page) element(e xml.StartElement) {
	is := map[string]string{}
	for _, a := range e.Attr {
		is[a.Name.Local] = a.Value
		if slices.Contains([]string{"src", "href", "action", "formaction", "srcset", "data"}, a.Name.Local) || strings.HasPrefix(a.Name.Local, "on") {
			p.foreign = append(p.foreign, a.Value)
		}
	}
	switch e.Name.Local {
	case "script":
		p.scripts++
	case "form":
		p.method = is["method"]
	case "input", "textarea":
		p.fields.Set(is["name"], is["value"])
	case "button":
		p.buttons = append(p.buttons, is["name"]+"="+is["value"])
	}
}

func (w *world) open(path string) page {
	w.t.Helper()
	r, err := http.Get(w.url + path)
	check(w.t, err)
	return readPage(w.t, r)
}

// press sends the form of a page as a browser does that says nothing of where it comes from.
func (w *world) press(path string, p page, button string, more ...string) page {
	w.t.Helper()
	form := url.Values{}
	for name := range p.fields {
		form.Set(name, p.fields.Get(name))
	}
	for _, field := range append(more, button) {
		name, value, _ := strings.Cut(field, "=")
		form.Set(name, value)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
	check(w.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "null") // What browsers send from a page that lets nobody know its address.
	answer, err := http.DefaultClient.Do(r)
	check(w.t, err)
	return readPage(w.t, answer)
}

// A link shows the question and its answers, and opening it changes nothing, however often. Pressing a button answers;
// pressed twice it is one answer; another button is told what stands.
func TestALinkShowsOnGetAndAnswersOnPost(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "contract-7", `{}`)
	w.until("contract-7", waits)
	path := httpapi.LinkPath(w.token("contract-7", "sign", false))
	var shown page
	for range 3 {
		shown = w.open(path)
	}
	if shown.status != http.StatusOK || shown.method != "post" || !slices.Equal(shown.buttons, []string{"answer=yes", "answer=no"}) {
		t.Fatalf("got %d, %s, %q, want a form with both answers", shown.status, shown.method, shown.buttons)
	}
	for _, want := range []string{"Step sign of job contract-7", "Sign contract-7?", "It waits until "} {
		if !strings.Contains(shown.text, want) {
			t.Errorf("got %s, want %q", shown.text, want)
		}
	}
	if j, err := w.client.Get(t.Context(), "contract-7"); err != nil || j.Steps[0].State != makegood.StepWaiting {
		t.Errorf("got %s, %v, want it to wait: it was only looked at", j.Steps[0].State, err)
	}
	if p := w.press(path, shown, "answer=yes", "name= "); p.status != http.StatusBadRequest || !strings.Contains(p.text, "your name is missing") || len(p.buttons) != 2 {
		t.Errorf("an answer of nobody: got %d %s, want it refused, and the form again", p.status, p.text)
	}
	var asks []string
	for l, err := range w.client.List(t.Context(), api.Filter{State: api.JobWaiting}) {
		check(t, err)
		asks = append(asks, l.ID)
	}
	if !slices.Equal(asks, []string{"contract-7"}) {
		t.Errorf("got %q, want the one job that waits for an answer", asks)
	}
	if p := w.press(path, shown, "answer=perhaps", "name=anna", "why=fine"); p.status != http.StatusConflict || !strings.Contains(p.text, `one of these answers, a text: "yes", "no"`) || len(p.buttons) != 2 {
		t.Errorf("an answer that is none: got %d %s, want it refused, and the form again", p.status, p.text)
	}
	for range 2 {
		if p := w.press(path, shown, "answer=yes", "name=anna", "why=fine"); p.status != http.StatusOK || !strings.Contains(p.text, "Your answer is stored") || !strings.Contains(p.text, "It was answered with yes on ") || p.buttons != nil {
			t.Errorf("got %d %s %q, want the answer taken, and no form", p.status, p.text, p.buttons)
		}
	}
	p := w.press(path, shown, "answer=no", "name=anna", "why=fine")
	if p.status != http.StatusConflict || !strings.Contains(p.text, "was not taken") || !strings.Contains(p.text, "It was answered with yes on ") {
		t.Errorf("another answer: got %d %s, want what stands", p.status, p.text)
	}
	if p = w.open(path); p.status != http.StatusOK || p.buttons != nil || !strings.Contains(p.text, "It was answered with yes on ") {
		t.Errorf("opened later: got %d %s, want what stands", p.status, p.text)
	}
	j := w.until("contract-7", in(makegood.JobProcessed))
	if s := j.Steps[0]; s.CompletedBy == nil || *s.CompletedBy != "anna (completion token)" || s.CompletedWhy == nil || *s.CompletedWhy != "fine" {
		t.Errorf("completed by %v, why %v, want who said so, and why", s.CompletedBy, s.CompletedWhy)
	}
}

// A step that is no approval takes any output, or a failure. What is wrong with it is said, and what was written stays.
func TestALinkTakesAnOutputOrAFailure(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		w.submit("send", id, `{"send":"wait"}`)
		w.until(id, waits)
	}
	path := httpapi.LinkPath(w.token("a", "send", false))
	shown := w.open(path)
	if !slices.Equal(shown.buttons, []string{"do=complete", "do=fail"}) || !shown.fields.Has("output") || !shown.fields.Has("reason") {
		t.Fatalf("got %q and %v, want a field for an output, and one for a reason", shown.buttons, shown.fields)
	}
	if p := w.press(path, shown, "do=complete", `output={"a":`); p.status != http.StatusBadRequest || !strings.Contains(p.text, "output is not JSON as it must be") || !strings.Contains(p.text, `{"a":`) {
		t.Errorf("got %d %s, want what is wrong, and what was written", p.status, p.text)
	}
	if p := w.press(path, shown, "do=fail"); p.status != http.StatusBadRequest || !strings.Contains(p.text, "say why it failed") {
		t.Errorf("got %d %s, want a reason asked for", p.status, p.text)
	}
	if p := w.press(path, shown, "do=dance"); p.status != http.StatusBadRequest {
		t.Errorf("got %d %s, want it refused", p.status, p.text)
	}
	if p := w.press(path, shown, "do=complete", `output= {"a": [1, 2]} `); p.status != http.StatusOK || !strings.Contains(p.text, "It was completed on ") {
		t.Errorf("got %d %s, want it taken", p.status, p.text)
	}
	j, err := w.client.Get(t.Context(), "a")
	if err != nil || string(j.Steps[0].Output) != `{"a":[1,2]}` {
		t.Errorf("got %s, %v, want the output", j.Steps[0].Output, err)
	}
	path = httpapi.LinkPath(w.token("b", "send", false))
	if p := w.press(path, w.open(path), "do=fail", "reason=closed <today>"); p.status != http.StatusOK {
		t.Errorf("got %d %s, want it taken", p.status, p.text)
	}
	if j, err = w.client.Get(t.Context(), "b"); err != nil || j.Steps[0].State != makegood.StepBackoff || j.Steps[0].Error.Message != "closed <today>" {
		t.Errorf("got %+v, %v, want it tried again", j.Steps[0], err)
	}
}

// A page has no script, names no address, may load nothing but its own style, and tells nobody its own; what people wrote
// is text in it.
func TestThePageOfALinkGivesItsTokenToNobody(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "x", `{}`)
	w.until("x", waits)
	token := w.token("x", "sign", false)
	p := w.open(httpapi.LinkPath(token))
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Type": "text/html; charset=utf-8", "X-Robots-Tag": "noindex, nofollow, noarchive",
	} {
		if got := p.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	sum := sha256.Sum256([]byte(p.style))
	policy := p.header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("got the policy %s, want %s", policy, want)
		}
	}
	if p.scripts != 0 || p.foreign != nil || strings.Contains(p.text, token) {
		t.Errorf("got %d scripts, %q, want none, and the token nowhere: %s", p.scripts, p.foreign, p.text)
	}
	w.submit("send", "wild", `{"send":"wait"}`)
	w.until("wild", waits)
	path := httpapi.LinkPath(w.token("wild", "send", false))
	wild := `</textarea><script src="https://evil.example">`
	if p := w.press(path, w.open(path), "do=complete", "output="+wild); p.scripts != 0 || p.foreign != nil || !strings.Contains(p.text, wild) {
		t.Errorf("got %d scripts, %q, %s, want text", p.scripts, p.foreign, p.text)
	}
	if log := w.log.String(); strings.Contains(log, token) {
		t.Errorf("the log has the token: %s", log)
	}
}

// What leads to no step is one page, made up or of a job that is gone. Other methods are refused, and a form that is none.
func TestALinkThatLeadsToNoStep(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "there", `{}`)
	token := w.token("there", "sign", false)
	other := map[bool]string{true: "Q", false: "A"}[strings.HasSuffix(token, "A")]
	var texts []string
	for _, made := range []string{"nobody", token[:len(token)-1] + other, "c1.x.y", strings.Repeat("x", limits.MaxCompletionTokenBytes+1)} {
		p := w.open(httpapi.LinkPath(made))
		if p.status != http.StatusNotFound || !strings.Contains(p.text, "This link leads to no step") || p.buttons != nil {
			t.Errorf("%.40s: got %d %s, want 404", made, p.status, p.text)
		}
		texts = append(texts, p.text, w.press(httpapi.LinkPath(made), p, "answer=yes", "name=anna").text)
	}
	if slices.ContainsFunc(texts, func(text string) bool { return text != texts[0] }) {
		t.Errorf("got %q, want one page for all", texts)
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		if r := ask(t, method, w.url+httpapi.LinkPath(token), ""); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: got %d, Allow %s", method, r.status, r.header.Get("Allow"))
		}
	}
	if r := ask(t, http.MethodPost, w.url+httpapi.LinkPath(token), `{"answer":"yes"}`); r.status != http.StatusUnsupportedMediaType {
		t.Errorf("JSON: got %d, want 415", r.status)
	}
	large := ask(t, http.MethodPost, w.url+httpapi.LinkPath(token), "output="+strings.Repeat("x", 4*makegood.MaxPayloadBytes), "Content-Type: application/x-www-form-urlencoded")
	if large.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too large: got %d, want 413", large.status)
	}
	if r := ask(t, http.MethodGet, w.url+httpapi.LinkPath("c3"+strings.TrimPrefix(token, "c1")), ""); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "60" {
		t.Errorf("a token of a later scheme: got %d, Retry-After %s, want 503, 60", r.status, r.header.Get("Retry-After"))
	}
	quiet := slog.New(slog.DiscardHandler)
	for _, door := range []httpapi.Door{httpapi.Read, httpapi.Operate, httpapi.Submit, httpapi.Agents} {
		url := listen(t, httpapi.Config{Jobs: bare(w.engine), Logger: quiet, Door: door})
		if r := ask(t, http.MethodGet, url+httpapi.LinkPath(token), ""); r.status != http.StatusNotFound {
			t.Errorf("at the door %s: got %d, want no such page", door, r.status)
		}
	}
	url := listen(t, httpapi.Config{Jobs: bare(w.engine), Logger: quiet, Door: httpapi.Complete})
	if r := ask(t, http.MethodGet, url+httpapi.LinkPath(token), ""); r.status != http.StatusOK {
		t.Errorf("at the door complete: got %d, want the page", r.status)
	}
	if r := ask(t, http.MethodGet, url+"/api/jobs/there", ""); r.status != http.StatusForbidden {
		t.Errorf("a job at the door complete: got %d, want it refused", r.status)
	}
	failing := listen(t, httpapi.Config{Jobs: control.New(broken{errSecret}.parts()), Logger: quiet})
	if r := ask(t, http.MethodGet, failing+httpapi.LinkPath(token), ""); r.status != http.StatusServiceUnavailable || strings.Contains(string(r.body), "secret") || !strings.Contains(string(r.body), "try again") {
		t.Errorf("a broken store: got %d %s", r.status, r.body)
	}
}

// Who answers too late, or in an earlier round, is told why, and sees nothing of the round that is.
func TestALateLinkSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "late", `{}`)
	w.until("late", waits)
	path := httpapi.LinkPath(w.token("late", "sign", false))
	shown := w.open(path)
	_, err := w.client.Request(t.Context(), "late", api.Request{Verb: makegood.VerbCancel})
	check(t, err)
	w.until("late", in(makegood.JobCancelled))
	if p := w.press(path, shown, "answer=yes", "name=anna", "why=fine"); p.status != http.StatusConflict || !strings.Contains(p.text, "was not taken: the job is Cancelled") {
		t.Errorf("got %d %s, want why", p.status, p.text)
	}
	w.submit("sign", "again", `{}`)
	w.until("again", waits)
	path = httpapi.LinkPath(w.token("again", "sign", false))
	_, err = w.client.Request(t.Context(), "again", api.Request{Verb: makegood.VerbUndo})
	check(t, err)
	w.until("again", in(makegood.JobUndone))
	_, err = w.client.Request(t.Context(), "again", api.Request{Verb: makegood.VerbResubmit})
	check(t, err)
	w.until("again", waits)
	if p := w.open(path); p.status != http.StatusOK || p.buttons != nil || !strings.Contains(p.text, "it is of round 1, the job is in round 2") || strings.Contains(p.text, "Sign again?") {
		t.Errorf("got %d %s, want that it is of another round", p.status, p.text)
	}
}

// FuzzLinks opens any link, and sends any form to it: the answer is a page, and never a mistake of ours.
func FuzzLinks(f *testing.F) {
	handler := apiOverAnIdleEngine(f)
	f.Add("c1.x.y", "answer=yes&request=r")
	f.Add("c2.x", "do=complete&output=%7B")
	f.Add("..%2f", "do=fail&reason=%zz")
	f.Fuzz(func(t *testing.T, token, form string) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/", strings.NewReader(form))
			r.URL = &url.URL{Scheme: "http", Host: "127.0.0.1", Path: httpapi.LinkPath(token)}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
				t.Fatalf("%s %q %q: got %d %s", method, token, form, w.Code, w.Body)
			}
			if w.Code == http.StatusOK {
				t.Fatalf("%s %q: got a page of a step: %s", method, token, w.Body)
			}
		}
	})
}

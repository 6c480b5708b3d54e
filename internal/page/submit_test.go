package page_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The form is sent as a browser sends it, and leads to the job; sent again, it is the same job.
func TestAFormSubmitsAJobOnce(t *testing.T) {
	w := newWorld(t)
	form := w.get("workflows/trip/submit")
	form.wants(t, `action="../../workflows/trip/submit"`, `<textarea id="s-input" name="input"`)
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(form.text)
	if id == nil {
		t.Fatalf("the form has no id:\n%s", form.text)
	}
	at := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Minute)
	sent := url.Values{
		"id": {html.UnescapeString(id[1])}, "input": {`{"hold": true}`}, "tenant": {"acme"}, "labels": {"order=17 country=ch"}, "start": {at.Format("2006-01-02T15:04")},
	}
	for range 2 {
		if got := w.post("workflows/trip/submit", sent); !strings.HasSuffix(got.at.Path, "/jobs/"+id[1]) {
			t.Errorf("got %s, want the job", got.at)
		}
	}
	job, err := w.Get(t.Context(), id[1])
	if err != nil {
		t.Fatal(err)
	}
	if job.Tenant != "acme" || job.Labels["country"] != "ch" || job.StartAt == nil || !job.StartAt.Equal(at) || string(job.Input) != `{"hold":true}` {
		t.Errorf("got tenant %q, labels %v, start %v, input %s", job.Tenant, job.Labels, job.StartAt, job.Input)
	}
}

func TestAFormThatIsWrongComesBackWithWhatWasWritten(t *testing.T) {
	w := newWorld(t)
	w.submit("taken", `{}`, true)
	for _, row := range []struct {
		change url.Values
		wants  string
	}{
		{url.Values{"input": {"{\n\"a\": }"}}, "the input is not JSON: line 2: invalid character"},
		{url.Values{"input": {" "}}, "the input is not JSON: line 1: unexpected end of JSON input"},
		{url.Values{"labels": {"order"}}, `the label "order" has no value: want NAME=VALUE`},
		{url.Values{"start": {"tomorrow"}}, `the start "tomorrow" is no time`},
		{url.Values{"id": {"a b"}}, "a b"},
		{url.Values{"id": {"taken"}}, "there is a job taken with another input"},
		{url.Values{"tenant": {"<b>"}}, "<b>"},
		{url.Values{"start": {"2999-01-01T00:00"}}, "2999"},
	} {
		sent := url.Values{"id": {"n-1"}, "input": {`{"written": "by hand"}`}}
		for name, values := range row.change {
			sent[name] = values
		}
		got := w.post("workflows/trip/submit", sent)
		got.wants(t, "It was not submitted", html.EscapeString(sent.Get("input"))[:1])
		if !strings.Contains(html.UnescapeString(got.text), row.wants) {
			t.Errorf("%v: got no %q in\n%s", row.change, row.wants, got.text)
		}
		if _, changed := row.change["input"]; !changed && !strings.Contains(html.UnescapeString(got.text), sent.Get("input")+"</textarea>") {
			t.Errorf("%v: what was written is lost", row.change)
		}
	}
}

func TestThereIsNoFormForAWorkflowThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	if got := w.get("workflows/nobody/submit"); got.status != http.StatusNotFound {
		t.Errorf("got %d, want 404", got.status)
	}
}

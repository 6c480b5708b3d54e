package page_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// refundFile is a workflow that says what its input is.
const refundFile = `name: refund
input:
  type: object
  required: [order, amount]
  additionalProperties: false
  properties:
    order: {type: string, minLength: 2, pattern: "^[a-z0-9-]+$", title: Order, description: Which one.}
    amount: {type: number, minimum: 0.5, maximum: 500, default: 10}
    count: {type: integer}
    kind: {enum: [whole, part]}
    quick: {type: boolean}
    at: {type: string, format: date-time}
    day: {type: string, format: date}
    mail: {type: string, format: email, examples: [a@example.com]}
    lines: {type: array, items: {type: object, required: [n]}}
    to: {type: object, required: [city], properties: {city: {type: string, title: City}, zip: {type: string}}}
steps:
  - name: charge
    agent: shop
    with: "${ .input }"
`

// refunds is a world with that workflow.
func refunds(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, fstest.MapFS{"refund.yaml": {Data: []byte(refundFile)}})
}

func TestAFormIsMadeOfTheSchemaOfTheInput(t *testing.T) {
	w := refunds(t)
	form := w.get("workflows/refund/submit")
	form.wants(t,
		`name="by" value="fields"`,
		`<label for="in/order">Order <small class="must">required</small> <small class="faint">Which one.</small></label>`,
		`<input id="in/order" name="in/order" type="text" value="" minlength="2" pattern="[a-z0-9-]&#43;"`,
		`<input id="in/amount" name="in/amount" type="number" value="10" min="0.5" max="500" step="any"`,
		`<input id="in/count" name="in/count" type="number" value="" step="1"`,
		`<option value="&#34;whole&#34;">whole</option>`,
		`<select id="in/quick"`, `type="datetime-local"`, `type="date"`, `type="email" value="" placeholder="a@example.com"`,
		`<textarea id="in/lines"`, `<legend>to</legend>`, `name="in/to/city"`,
	)
	if strings.Index(form.text, "in/order") > strings.Index(form.text, "in/at") {
		t.Error("what must be there does not stand first")
	}
	if strings.Contains(form.text, `id="s-input"`) {
		t.Error("the JSON is asked for, too")
	}
	sent := url.Values{
		"id": {"f-1"}, "by": {"fields"}, "in/order": {"o-1"}, "in/amount": {"12.50"}, "in/kind": {`"part"`}, "in/quick": {"false"},
		"in/at": {"2026-12-24T18:00"}, "in/day": {"2026-12-24"}, "in/lines": {`[{"n": 1}]`}, "in/to/city": {"Bern"},
	}
	if got := w.post("workflows/refund/submit", sent); !strings.HasSuffix(got.at.Path, "/jobs/f-1") {
		t.Fatalf("got %s, want the job:\n%s", got.at, got.text)
	}
	job, err := w.Get(t.Context(), "f-1")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"amount":12.50,"at":"2026-12-24T18:00:00Z","day":"2026-12-24","kind":"part","lines":[{"n":1}],"order":"o-1","quick":false,"to":{"city":"Bern"}}`
	if string(job.Input) != want {
		t.Errorf("input %s, want %s", job.Input, want)
	}
}

func TestWhatDoesNotFitIsSaidAtItsFieldAndWhatWasWrittenStays(t *testing.T) {
	w := refunds(t)
	sent := url.Values{"id": {"f-1"}, "by": {"fields"}, "in/order": {"X"}, "in/amount": {"900"}, "in/lines": {`[{"n": 1}, {}]`}, "in/to/zip": {"3000"}}
	got := w.post("workflows/refund/submit", sent)
	got.wants(t,
		"the input does not fit the schema of refund",
		`<input id="in/amount" name="in/amount" type="number" value="900" min="0.5" max="500" step="any" autocomplete="off" spellcheck="false" required aria-invalid="true" aria-describedby="in/amount-wrong">`,
		`<span class="wrong" id="in/amount-wrong">must be at most 500 </span>`,
		`<span class="wrong" id="in/order-wrong">has 1 characters, and must have at least 2 must match ^[a-z0-9-]&#43;$ </span>`,
		`<span class="wrong" id="in/lines-wrong">/1/n is missing </span>`, `[{&#34;n&#34;: 1}, {}]</textarea>`,
		`<span class="wrong" id="in/to/city-wrong">is missing </span>`, `value="3000"`,
	)
	sent = url.Values{"id": {"f-1"}, "by": {"fields"}, "in/order": {"o-1"}, "in/amount": {"many"}, "in/lines": {`[`}}
	w.post("workflows/refund/submit", sent).wants(t,
		`<span class="wrong" id="in/amount-wrong">is no number </span>`, `<span class="wrong" id="in/lines-wrong">is not JSON: line 1: unexpected end of JSON input </span>`, `value="many"`)
	if _, err := w.Get(t.Context(), "f-1"); err == nil {
		t.Error("there is a job")
	}
}

// The input is shown in the other way with all that was written, and nothing is submitted; what fields cannot hold stays JSON.
func TestTheInputIsWrittenByFieldsOrAsJSON(t *testing.T) {
	w := refunds(t)
	asJSON := w.post("workflows/refund/submit", url.Values{"id": {"f-1"}, "by": {"fields"}, "show": {"json"}, "in/order": {"o-1"}, "in/amount": {"7"}, "in/to/city": {"Bern"}})
	asJSON.wants(t, `id="s-input"`, `&#34;amount&#34;: 7`, `&#34;city&#34;: &#34;Bern&#34;`)
	const written = `{"order": "o-2", "amount": 8.5, "quick": true, "at": "2026-12-24T18:00:00Z", "to": {"city": "Ulm"}}`
	fields := w.post("workflows/refund/submit", url.Values{"id": {"f-1"}, "input": {written}, "show": {"fields"}})
	fields.wants(t, `name="in/order" type="text" value="o-2"`, `value="8.5"`, `<option value="true" selected>`, `value="2026-12-24T18:00:00"`, `value="Ulm"`)
	more := w.post("workflows/refund/submit", url.Values{"id": {"f-1"}, "input": {`{"order": "o-2", "colour": 1}`}, "show": {"fields"}})
	more.wants(t, "The fields cannot hold all of this", "colour")
	w.post("workflows/refund/submit", url.Values{"id": {"f-1"}, "input": {`{"order": "o-2"}`}}).wants(t, `<code>/amount</code> is missing`, `aria-invalid="true"`)
	if _, err := w.Get(t.Context(), "f-1"); err == nil {
		t.Error("there is a job")
	}
}

func TestAWorkflowIsChosenBeforeItsForm(t *testing.T) {
	w := newWorld(t)
	w.get("submit").wants(t, `href="./workflows/trip/submit"`, `href="./workflows/voyage/submit"`)
}

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
		"id": {html.UnescapeString(id[1])}, "input": {`{"hold": true}`}, "tenant": {"acme"}, "priority": {"idle"}, "labels": {"order=17 country=ch"}, "start": {at.Format("2006-01-02T15:04")},
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
	if job.Tenant != "acme" || job.Priority != "idle" || job.Labels["country"] != "ch" || job.StartAt == nil || !job.StartAt.Equal(at) || string(job.Input) != `{"hold":true}` {
		t.Errorf("got tenant %q, priority %q, labels %v, start %v, input %s", job.Tenant, job.Priority, job.Labels, job.StartAt, job.Input)
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
		{url.Values{"priority": {"high"}}, "want urgent, normal or idle"},
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

// A schema that refers to itself has forty fields more for each of forty at each depth: two and a half million.
func TestASchemaThatRefersToItselfIsNoFormWithoutEnd(t *testing.T) {
	file := "name: tree\ninput:\n  type: object\n  properties:\n"
	for i := range 40 {
		file += fmt.Sprintf("    a%d: {$ref: \"#\"}\n", i)
	}
	file += "steps:\n  - name: charge\n    agent: shop\n    with: \"${ .input }\"\n"
	w := newWorldOf(t, fstest.MapFS{"tree.yaml": {Data: []byte(file)}})
	w.get("workflows/tree/submit").wants(t, `id="s-input"`)
}

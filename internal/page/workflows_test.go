package page_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/graph"
)

// tripAgain is another definition of trip: charge is tried more often, and receipt is new.
const tripAgain = tripFile + `    retry: {attempts: 9}
    undo: none
  - name: receipt
    agent: shop
    action: charge
`

func TestWorkflowsAreListedWithTheJobsThatHaveNotEnded(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"fail": "charge"}`, true)
	w.submit("t-2", `{}`, true)
	got := w.get("workflows")
	got.wants(t, `<a href="./workflows/trip">trip</a>`, `href="#error"/></svg> 1 Error`, ">shop<", `<a href="./workflows" aria-current="page">Workflows</a>`)
	if strings.Contains(got.text, "1 Processed") {
		t.Errorf("a job that has ended is counted among those that have not:\n%s", got.text)
	}
}

func TestAWorkflowIsDrawnWithItsDefinitions(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"fail": "charge"}`, true)
	workflows, err := w.Workflows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := workflows[0].Definition
	w.get("workflows/trip").wants(t, `<h1>trip</h1>`, `<svg class="graph"`, `aria-label="The steps of trip: reserve; then charge"`,
		`<a href="#step-charge" class="idle">`, `<tr id="step-reserve">`, ">release<", "new jobs get", "1 Error", "name: trip\n")
	defined, err := w.Define(t.Context(), "trip.yaml", []byte(tripAgain))
	if err != nil {
		t.Fatal(err)
	}
	w.get("workflows/trip").wants(t, "receipt", old[:8], defined.Definition[:8], `name="with" value="`+old+`"`)
	before := w.get("workflows/trip?definition=" + old)
	before.wants(t, "This is not the definition that new jobs get")
	if strings.Contains(before.text, "receipt") {
		t.Error("the definition of before has the step of the one of after")
	}
	w.get("workflows/trip?definition="+defined.Definition+"&with="+old).wants(t,
		"<b>receipt</b> was added", "<b>charge</b> has another retry, undo", `<span class="added">&#43;       attempts: 9</span>`, `<span class="same">  …</span>`)
	w.get("workflows/trip?definition="+old+"&with="+defined.Definition).wants(t, "<b>receipt</b> was removed")
}

func TestTheTableOfStepsSaysAfterWhatEachComesAndHowItIsUndone(t *testing.T) {
	const wide = `name: wide
steps:
  - {name: a, agent: shop, action: reserve, undo: {action: release}}
  - {name: b, agent: shop, action: charge, needs: [], timeout: 2m, undo: {agent: http, action: give_back, with: {url: "https://bank.example"}}}
  - {name: c, agent: shop, action: charge, needs: {any: [a, b]}, undo: none, onError: [{kind: "*", do: goto d}], retry: {attempts: 3}}
  - {name: d, agent: shop, action: charge, only: onError}
`
	w := newWorldOf(t, fstest.MapFS{"wide.yaml": {Data: []byte(wide)}})
	w.get("workflows/wide").wants(t,
		`<tr id="step-a"><td><b>a</b></td><td>shop</td><td>reserve</td><td class="soft"></td><td>release</td><td class="soft">for 15m0s, from 1s up to 1m0s</td><td class="r">30s</td></tr>`,
		`<tr id="step-b"><td><b>b</b></td><td>shop</td><td>charge</td><td class="soft"></td><td>give_back of http</td><td class="soft">for 15m0s, from 1s up to 1m0s</td><td class="r">2m0s</td></tr>`,
		`<td class="soft">any of a, b</td><td>none: it stays</td><td class="soft">3 attempts, from 1s up to 1m0s</td>`,
		`<td class="soft">an error or an answer of c</td><td></td>`)
	if _, err := w.Submit(t.Context(), makegood.Submission{Workflow: "wide", ID: "w-1", Input: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	w.get("jobs/w-1").wants(t, "<span>agent shop, action reserve, undo release</span>", "<span>agent shop, action charge, undo none</span>", "<span>agent shop, action charge</span>")
}

func TestAWorkflowThatIsNotThereIsAPageThatSaysSo(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"workflows/nobody", "workflows/trip?definition=" + strings.Repeat("0", 32), "workflows/trip?definition=..", "workflows/trip?with=x"} {
		got := w.get(path)
		if got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
		got.wants(t, "There is no such workflow")
	}
}

// The shapes of the page are those of a graph that stands alone.
func TestTheShapesAreWrittenTwiceAndAreTheSame(t *testing.T) {
	parts, err := os.ReadFile("templates/parts.html")
	if err != nil {
		t.Fatal(err)
	}
	for symbol := range strings.Lines(graph.Symbols()) {
		if !strings.Contains(string(parts), strings.TrimSpace(symbol)) {
			t.Errorf("parts.html has no %s", symbol)
		}
	}
}

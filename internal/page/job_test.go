package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// voyageFile is a workflow with an approval, and undos that fail if the input says so.
const voyageFile = `name: voyage
steps:
  - name: book
    agent: shop
    action: reserve
    with: "${ .input }"
    undo: {action: release, with: "${ .input }"}
  - {name: sign, agent: approval, with: {choices: ["go", "stay"], question: "Does ${ .job.id } sail?"}}
  - name: sail
    agent: shop
    action: charge
    with: "${ .input }"
    undo: none
  - {name: land, agent: shop, action: charge, with: "${ .input }"}
`

// voyage submits a voyage, and waits until it is as wanted.
func (w *world) voyage(id, input string, is func(makegood.Job) bool) {
	w.t.Helper()
	if _, err := w.Submit(w.t.Context(), makegood.Submission{Workflow: "voyage", ID: id, Input: json.RawMessage(input)}); err != nil {
		w.t.Fatal(err)
	}
	w.until(id, is)
}

// until waits until a job is as wanted.
func (w *world) until(id string, is func(makegood.Job) bool) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	for j, err := range w.Watch(ctx, id) {
		if err != nil {
			w.t.Fatalf("job %s is not as wanted: %v", id, err)
		}
		if is(j) {
			return
		}
	}
	w.t.Fatalf("job %s ended before it was as wanted", id)
}

func signs(j makegood.Job) bool { return j.Steps[1].State == makegood.StepWaiting }

func in(state makegood.ProcessState) func(makegood.Job) bool {
	return func(j makegood.Job) bool { return j.ProcessState == state }
}

var (
	ids      = regexp.MustCompile(` id="([^"]*)"`)
	pointers = regexp.MustCompile(`(?:href="#|aria-describedby="|aria-labelledby="|url\(#)([^")]+)`)
)

// sound fails the test where a page has an id twice, points at one that is not there, or has what the policy forbids.
func (a answered) sound(t *testing.T) {
	t.Helper()
	var known []string
	for _, found := range ids.FindAllStringSubmatch(a.text, -1) {
		if slices.Contains(known, found[1]) {
			t.Errorf("the id %q is there twice", found[1])
		}
		known = append(known, found[1])
	}
	for _, found := range pointers.FindAllStringSubmatch(a.text, -1) {
		if !slices.Contains(known, found[1]) {
			t.Errorf("something points at %q, which is not there", found[1])
		}
	}
	for _, forbidden := range []string{"<no value>", "%!", " style=", "javascript:", "onclick="} {
		if strings.Contains(a.text, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	for _, element := range []string{"section", "table", "form", "details", "svg", "ul", "li", "div", "p"} {
		if opened, closed := len(regexp.MustCompile(`<`+element+`[ >]`).FindAllString(a.text, -1)), strings.Count(a.text, "</"+element+">"); opened != closed {
			t.Errorf("%d of <%s> are opened, and %d closed", opened, element, closed)
		}
	}
}

// A job that stopped says first why, then what stands, and of each verb what it would do, or in the words of the API why it would be
// refused.
func TestAJobSaysFirstWhyItStandsHere(t *testing.T) {
	w := newWorld(t)
	w.submit("t-2", `{"fail":"charge"}`, true)
	page := w.get("jobs/t-2")
	page.wants(t, "It waits for a person: charge was refused for good.", "the card was declined", "<b>reserve</b> stands", "goes on from what failed, forwards",
		`class="graph"`, `id="step-charge"`, "Settle charge…", "makegood resubmit t-2")
	page.sound(t)
	if why, facts := strings.Index(page.text, "It waits for a person"), strings.Index(page.text, `id="job-time"`); why > facts {
		t.Error("why it stands here is not said first")
	}
	offers, err := w.Offers(t.Context(), "t-2")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range offers.Verbs {
		if o.Ask != domain.AskWake && !o.Granted() {
			page.wants(t, fmt.Sprintf(`<p id="verb-%s">%s</p>`, o.Ask, o.Reason))
		}
	}
}

// Every state that a job can be in has its view, and each of its verbs its page.
func TestEveryJobHasItsView(t *testing.T) {
	w := newWorld(t)
	w.submit("done", `{}`, true)
	w.submit("held", `{"hold":true}`, false)
	w.until("held", func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepClaimed })
	w.voyage("waits", `{}`, signs)
	w.voyage("undone", `{"fail":"charge"}`, signs)
	w.voyage("stuck", `{"fail":"release"}`, signs)
	w.post("jobs/undone/ask/complete", url.Values{"step": {"sign"}, "choice": {"go"}})
	w.until("undone", in(makegood.JobUndone))
	w.post("jobs/stuck/ask/cancel", url.Values{"reason": {"no wind"}})
	w.until("stuck", in(makegood.JobError))
	for id, says := range map[string][]string{
		"done":   {"It is done: 2 steps of 2.", `aria-label="attempt 1 `, "it went well so far"},
		"held":   {"Step reserve is at work, attempt 1", "in the queue"},
		"waits":  {"Step sign waits to be completed", "Does waits sail?", `value="stay"`},
		"undone": {"Its steps are undone.", "book undone", "Turned round: wanted Undone", "not reached: it comes after sail"},
		"stuck":  {"the undo of book was refused for good", "<b>book</b> stands: its undo was given up", "Settle undo of book…", "no wind", "wanted: Cancelled", "goes on undoing, from what failed, and will end Cancelled"},
	} {
		t.Run(id, func(t *testing.T) {
			page := w.get("jobs/" + id)
			page.wants(t, says...)
			page.sound(t)
			w.get("jobs/" + id + "?scale=true").sound(t)
			for _, verb := range append(domain.Verbs(), domain.AskWake) {
				got := w.get("jobs/" + id + "/ask/" + string(verb))
				got.sound(t)
				if got.status != http.StatusOK {
					t.Errorf("the page of %s: got %d", verb, got.status)
				}
			}
			for _, ask := range []string{"settle", "complete", "fail", "heartbeat"} {
				for _, step := range []string{"?step=sign", "?step=book&undo=true"} {
					w.get("jobs/" + id + "/ask/" + ask + step).sound(t)
				}
			}
		})
	}
	if got := w.get("jobs/nobody"); got.status != http.StatusNotFound {
		t.Errorf("a job that is not there: got %d, want 404", got.status)
	}
}

// An approval is answered by a click, what was refused for good is settled with a reason, and the job is shown as it is then.
func TestAStepIsAnsweredAndSettled(t *testing.T) {
	w := newWorld(t)
	w.voyage("v-1", `{"fail":"charge"}`, signs)
	if got := w.post("jobs/v-1/ask/complete", url.Values{"step": {"sign"}, "round": {"1"}, "choice": {"perhaps"}}); got.status != http.StatusConflict {
		t.Errorf("an answer that is none: got %d, want it refused", got.status)
	}
	if got := w.post("jobs/v-1/ask/complete", url.Values{"step": {"sign"}, "round": {"1"}, "choice": {"go"}}); got.at.Path != "/makegood/jobs/v-1" {
		t.Errorf("after an answer: at %s, want the job", got.at)
	}
	w.until("v-1", in(makegood.JobUndone))
	w.get("jobs/v-1").wants(t, "go", "sail: ")

	w.submit("t-2", `{"fail":"charge"}`, true)
	refused := w.post("jobs/t-2/ask/settle", url.Values{"step": {"charge"}, "as": {"skipped"}})
	if refused.status != http.StatusBadRequest {
		t.Errorf("skipped without a reason: got %d, want 400", refused.status)
	}
	refused.wants(t, "reason is missing")
	got := w.post("jobs/t-2/ask/settle", url.Values{"step": {"charge"}, "as": {"skipped"}, "reason": {"paid in cash"}})
	got.wants(t, "settled by hand: paid in cash", "Processed")
}

// What changes much has a page between, which says what would become of each step; nothing is changed before it is sent.
func TestAResubmitIsPlannedBeforeItIsDone(t *testing.T) {
	w := newWorld(t)
	w.submit("t-2", `{"fail":"charge"}`, true)
	plan := w.get("jobs/t-2/ask/resubmit")
	plan.wants(t, "goes on from what failed, forwards", "is tried again", "stays as it is")
	unsettled := w.post("jobs/t-2/ask/resubmit", url.Values{"then": {"plan"}, "input": {`{"fail":""}`}})
	unsettled.wants(t, "the outcome of step charge is unknown", "settle it as not done")
	w.get("jobs/t-2/ask/settle?step=charge").wants(t, `value="notDone"`, "it had no effect that stands")
	for _, attempt := range []string{"", "2"} {
		got := w.post("jobs/t-2/ask/settle", url.Values{"step": {"charge"}, "as": {"notDone"}, "attempt": {attempt}, "reason": {"no"}})
		if got.status != http.StatusBadRequest && got.status != http.StatusConflict {
			t.Errorf("settled as not done, of attempt %q: got %d, want it refused", attempt, got.status)
		}
	}
	settled := w.post("jobs/t-2/ask/settle", url.Values{"step": {"charge"}, "as": {"notDone"}, "attempt": {"1"}, "reason": {"the bank knows of nothing"}})
	settled.wants(t, "settled as notDone", "the bank knows of nothing")
	changed := w.post("jobs/t-2/ask/resubmit", url.Values{"then": {"plan"}, "input": {`{"fail":""}`}})
	changed.wants(t, "asks for another thing under the same key", "is undone with the input that it had")
	changed.wants(t, "with another input", "the job is unchanged so far", `{&#34;fail&#34;:&#34;&#34;}`)
	if j, err := w.Look(t.Context(), "t-2"); err != nil || j.ProcessState != makegood.JobError {
		t.Fatalf("after a plan the job is %s, %v, want it as it was", j.ProcessState, err)
	}
	wrong := w.post("jobs/t-2/ask/resubmit", url.Values{"then": {"do"}, "input": {`{"fail":`}})
	if wrong.status != http.StatusBadRequest {
		t.Errorf("an input that is no JSON: got %d, want 400", wrong.status)
	}
	w.post("jobs/t-2/ask/resubmit", url.Values{"then": {"do"}, "input": {`{"fail":""}`}, "reason": {"the card was replaced"}})
	w.until("t-2", in(makegood.JobProcessed))
	w.get("jobs/t-2").wants(t, "Asked for resubmit", "the card was replaced", "another input")
}

func TestVerbsAreAskedForByForms(t *testing.T) {
	w := newWorld(t)
	w.submit("held", `{"hold":true}`, false)
	w.post("jobs/held/ask/pause", nil).wants(t, "It is paused since", "Resume")
	w.post("jobs/held/ask/resume", nil)
	w.post("jobs/held/ask/edit", url.Values{"timeout": {"2h"}, "reason": {"slow"}}).wants(t, "Asked for edit", "timeout 2h")
	if got := w.post("jobs/held/ask/edit", url.Values{"timeout": {"soon"}}); got.status != http.StatusBadRequest {
		t.Errorf("a timeout that is none: got %d, want 400", got.status)
	}
	if got := w.post("jobs/held/ask/resubmit", nil); got.status != http.StatusConflict || !strings.Contains(got.text, "it has not stopped") {
		t.Errorf("a verb that is refused: got %d, want 409 with the reason", got.status)
	}
	if got := w.post("jobs/held/ask/explode", nil); got.status != http.StatusNotFound {
		t.Errorf("a verb that is none: got %d, want 404", got.status)
	}
	w.get("jobs/held/ask/cancel").wants(t, "undoes its steps")
	w.post("jobs/held/ask/cancel", url.Values{"reason": {"no wind"}})
	close(w.hold)
	w.until("held", in(makegood.JobCancelled))
	w.get("jobs/held").wants(t, "It was cancelled", "no wind")
}

// A payload that is large is not in the view of its job, and a click away.
func TestALargePayloadIsFetchedOnDemand(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("x", 2*limits.MaxOutlineBytes)
	w.submit("large", `{"note":"`+large+`"}`, true)
	page := w.get("jobs/large")
	if strings.Contains(page.text, large) {
		t.Error("a large input is in the view of its job")
	}
	page.wants(t, `href="../jobs/large/payload"`)
	w.get("jobs/large/payload").wants(t, large)
	w.get("jobs/large/payload?step=reserve").wants(t, "reserve is done")
	if got := w.get("jobs/large/payload?step=nobody"); got.status != http.StatusNotFound {
		t.Errorf("an output of no step: got %d, want 404", got.status)
	}
}

// What a submitter writes turns nothing round on the page, neither when it is asked for nor as it changes: it is shown as JSON escapes
// it, and JSON that is edited and sent back means the same.
func TestTextOfOthersTurnsNothingRoundOnThePage(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"file":"exe.`+"\u202e"+`gpj`+"\u009b"+`"}`, true)
	page := w.get("jobs/t-1")
	page.wants(t, `exe.\u202egpj\u009b`)
	updates, _ := w.follow("/jobs/t-1")
	for id, text := range (<-updates).Regions {
		if strings.ContainsAny(text, "\u202e\u009b") {
			t.Errorf("region %s turns text round:\n%s", id, text)
		}
	}
	if strings.ContainsAny(page.text, "\u202e\u009b") {
		t.Errorf("the page turns text round:\n%s", page.text)
	}
}

// The step of a child leads to the child, and the page of the child to the step's job, while it is at work and afterwards.
func TestAJobAndTheJobThatDoesAStepOfItLeadToEachOther(t *testing.T) {
	w := newWorldOf(t, fstest.MapFS{
		"order.yaml": {Data: []byte("name: order\nsteps: [{name: reserve, agent: workflow, action: line}]\n")},
		"line.yaml":  {Data: []byte("name: line\nsteps: [{name: sign, agent: approval, with: {choices: [\"yes\", \"no\"]}}]\n")},
	})
	if _, err := w.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "o", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	j, err := w.Look(t.Context(), "o")
	if err != nil || j.Steps[0].Child == "" {
		t.Fatalf("got %+v, %v, want a step with a child", j.Steps, err)
	}
	child := j.Steps[0].Child
	w.until(child, func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepWaiting })
	by := `By <a class="m" href="../jobs/` + child + `">job ` + child + `</a>`
	w.get("jobs/o").wants(t, "is the work of job "+child, by, `<a href="../jobs/`+child+`">The job that does reserve</a>`)
	w.get("jobs/"+child).wants(t, `does a step of <a class="m" href="../jobs/o">o</a>`)
	if _, err := w.Complete(t.Context(), child, api.StepRef{Step: "sign"}, json.RawMessage(`"yes"`)); err != nil {
		t.Fatal(err)
	}
	w.until("o", func(j makegood.Job) bool { return j.ProcessState == makegood.JobProcessed })
	w.get("jobs/o").wants(t, by)
}

// childOf is the job that does the first step of a job.
func (w *world) childOf(id string) string {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if j, err := w.Look(w.t.Context(), id); err == nil && j.Steps[0].Child != "" {
			return j.Steps[0].Child
		}
	}
	w.t.Fatalf("no job does the first step of %s", id)
	return ""
}

// A job with a child that stands before a person says so, at any depth, and leads there.
func TestAJobSaysWhichJobBelowItStandsBeforeAPerson(t *testing.T) {
	w := newWorldOf(t, fstest.MapFS{
		"order.yaml": {Data: []byte("name: order\nsteps: [{name: pack, agent: workflow, action: box}]\n")},
		"box.yaml":   {Data: []byte("name: box\nsteps: [{name: sign, agent: workflow, action: line}]\n")},
		"line.yaml":  {Data: []byte("name: line\nsteps: [{name: sign, agent: approval, with: {choices: [\"yes\", \"no\"]}}]\n")},
	})
	if _, err := w.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "o", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	box := w.childOf("o")
	line := w.childOf(box)
	w.until(line, func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepWaiting })
	says := `It waits for <a class="m" href="../jobs/` + line + `">job ` + line + `</a>: `
	w.get("jobs/o").wants(t, says+"step sign waits until")
	w.get("jobs/"+box).wants(t, says+"step sign waits until")
	if _, err := w.Request(t.Context(), line, api.Request{Verb: makegood.VerbPause, Reason: "lunch"}); err != nil {
		t.Fatal(err)
	}
	w.get("jobs/o").wants(t, says+"paused")
	if got := w.get("jobs/" + line); strings.Contains(got.text, "It waits for <a") {
		t.Errorf("the page of the job that waits says that it waits for another:\n%s", got.text)
	}
}

// A step with a map says how many items there are, and a failed one leads to the job and the step that did it.
func TestAJobLeadsToTheFailedItemsOfItsMap(t *testing.T) {
	w := newWorldOf(t, fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
steps: [{name: reserve, map: {over: "${ .input }", tolerate: {items: 1}}, agent: shop, undo: none}]
`)}})
	if _, err := w.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "o", Input: json.RawMessage(`[{}, {"fail": "reserve"}, {}]`)}); err != nil {
		t.Fatal(err)
	}
	j, err := w.Wait(t.Context(), "o")
	if err != nil || j.Steps[0].Items == nil || j.Steps[0].Items.Failed != 1 {
		t.Fatalf("got %+v, %v, want a failed item", j.Steps, err)
	}
	child := j.Steps[0].Child
	w.get("jobs/o").wants(t, "reserve</a>: 3 items: 2 done, 1 failed", `1 failed: the card was declined; <a href="../jobs/`+child+`#step-item_1">item 1</a>`,
		`b s go" href="../jobs/o/ask/redrive"`)
	w.get("jobs/"+child).wants(t, `id="step-item_1"`, "the card was declined")
	w.get("jobs/o/ask/redrive").wants(t, "does the failed items of its maps again")
	w.get("jobs/o").wants(t, `href="../jobs/o/ask/redrive?of=reserve&amp;indexes=1"`)
	w.get("jobs/o/ask/redrive?of=reserve&indexes=1").wants(t, `name="of" value="reserve"`, `name="indexes" value="1"`)
	w.post("jobs/o/ask/redrive", url.Values{"of": {"reserve"}, "indexes": {"0-1"}}).wants(t, "item 0 of step reserve has not failed")
	w.post("jobs/o/ask/redrive", url.Values{"reason": {"another card"}, "of": {"reserve"}, "indexes": {"1"}})
	w.until("o", func(j makegood.Job) bool { return j.ProcessState == makegood.JobProcessed && j.HistoryCount > 0 })
	w.get("jobs/o").wants(t, "Asked to redrive reserve", "1 failed item", "items 1 of reserve", "another card")
}

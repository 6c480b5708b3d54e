package page_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

func TestTheFirstViewSaysWhatNeedsAPersonBeforeAllElse(t *testing.T) {
	w := newWorld(t)
	w.eventually("", "No job waits for a person")
	w.submit("t-1", `{}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	// What is counted is counted beside, so it may come a little later than the rows.
	w.eventually("", "1 job waits for a person").wants(t, `id="job-t-1"`, `id="job-t-2"`, "the card was declined")
}

func TestJobsAreFoundByWordsAndByParameters(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	for path, found := range map[string][2]bool{
		"?state=Error":                   {false, true},
		"?q=state:error":                 {false, true},
		"?q=workflow:trip":               {true, true},
		"?workflow=trip&state=Processed": {true, false},
		"?q=since:1h+state:processed":    {true, false},
		"?until=1h":                      {false, false},
		"?q=nobody":                      {false, false},
		"?q=t-":                          {true, true},
		"?q=t-+state:error":              {false, true},
		"?q=CARD+declined":               {false, true},
		"?q=declined":                    {false, true},
		"?id-prefix=t-1":                 {true, false},
	} {
		got := w.get(path)
		for i, id := range []string{"t-1", "t-2"} {
			if has := strings.Contains(got.text, `id="job-`+id+`"`); has != found[i] {
				t.Errorf("%q: got %v for %s, want %v", path, has, id, found[i])
			}
		}
	}
	w.get("?q=nobody").wants(t, "There is no job <code>nobody</code>", "No id begins so", "No job fits")
	w.get("?q=t-").wants(t, "ids that begin with t-", "reasons that say so")
	w.get("?q=declined").wants(t, "in reasons: declined")
	for _, path := range []string{"?q=stat:Error", "?stat=Error"} {
		w.get(path).wants(t, "unknown filter &#34;stat&#34;: did you mean &#34;state&#34;?")
	}
}

// maxFirstView is how many bytes the first view may have: the page, its style and its script, before they are packed.
const maxFirstView = 100_000

// The first view of a file that holds more than it shows: with what every page needs, and as a browser gets it.
func TestTheFirstViewHasLessThan100KB(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		fails := ""
		if i%3 == 0 {
			fails = "charge"
		}
		w.submit(fmt.Sprintf("an-order-with-quite-a-long-id-2026-11-22-%04d", i), fmt.Sprintf(`{"fail":%q,"hold":%v}`, fails, i%3 == 1), i%3 != 1)
	}
	bytes := 0
	for _, path := range []string{"", "page.css", "page.js"} {
		bytes += len(w.get(path).text)
	}
	if bytes >= maxFirstView {
		t.Errorf("the first view has %d bytes, the limit is %d", bytes, maxFirstView)
	}
	t.Logf("the first view has %d bytes", bytes)
	close(w.hold)
}

func TestAnIDLeadsToItsJob(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	if got := w.get("?q=t-1").at.Path; got != "/makegood/jobs/t-1" {
		t.Errorf("got %s, want /makegood/jobs/t-1", got)
	}
}

// A row says of a long attempt how far it is, as it has reported last.
func TestARowSaysHowFarAnAttemptIs(t *testing.T) {
	w := newWorld(t)
	w.submit("long", `{"hold": true, "report": "page 3 of 9"}`, false)
	w.eventually("", "attempt 1, under way, reported &#34;page 3 of 9&#34;")
	close(w.hold)
}

// The first view leaves out jobs that do steps of others, unless they stand before a person: then it says whose they are,
// and so does the inbox. A search shows what it says.
func TestListsLeaveOutJobsThatDoStepsOfOthers(t *testing.T) {
	w := newWorldOf(t, fstest.MapFS{
		"order.yaml": {Data: []byte("name: order\nsteps: [{name: reserve, agent: workflow, action: line}]\n")},
		"line.yaml":  {Data: []byte("name: line\nsteps: [{name: sign, agent: approval, with: {choices: [\"yes\", stop]}, onAnswer: {stop: stop}}]\n")},
	})
	children := map[string]string{}
	for _, id := range []string{"o-1", "o-2"} {
		if _, err := w.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		children[id] = w.childOf(id)
		w.until(children[id], func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepWaiting })
	}
	row := func(id string) string { return `id="job-` + id + `"` }
	says := `step reserve of <a class="m" href="` // the inbox is one level below the root
	first := w.get("")
	first.wants(t, row("o-1"), row("o-2"))
	first.lacks(t, row(children["o-1"]), row(children["o-2"]))
	w.get("errors").wants(t, "line · sign asks", children["o-1"], says+`./jobs/o-1">o-1</a>`)
	if _, err := w.Complete(t.Context(), children["o-2"], api.StepRef{Step: "sign"}, json.RawMessage(`"stop"`)); err != nil {
		t.Fatal(err)
	}
	w.until(children["o-2"], func(j makegood.Job) bool { return j.ProcessState == makegood.JobError })
	first = w.get("")
	first.wants(t, row("o-2"), row(children["o-2"]), `step reserve of <a href="./jobs/o-2">o-2</a>`)
	first.lacks(t, row(children["o-1"]))
	w.get("errors").wants(t, "line · sign", says+`./jobs/o-2">o-2</a>`)
	w.get("?workflow=line").wants(t, row(children["o-1"]), row(children["o-2"]))
	w.get("?q=tenant:none+roots:true").lacks(t, row("o-1"))
	w.get("?state=Processing&roots=true").lacks(t, row(children["o-1"]))
	if _, err := w.Complete(t.Context(), children["o-1"], api.StepRef{Step: "sign"}, json.RawMessage(`"yes"`)); err != nil {
		t.Fatal(err)
	}
	w.until("o-1", func(j makegood.Job) bool { return j.ProcessState == makegood.JobProcessed })
	ended := w.get("")
	ended.wants(t, row("o-1"))
	ended.lacks(t, row(children["o-1"]))
}

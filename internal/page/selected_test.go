package page_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Jobs that were selected in the list get a dry run of their own, and only they are asked: one of them refuses, and a third job that
// would grant it stays as it is.
func TestSelectedJobsAreAskedAndNoOthers(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	w.submit("t-3", `{"fail":"charge"}`, true)
	list := w.get("")
	list.wants(t, `name="job" value="t-2"`, `name="ask" value="cancel"`, `action="./repair"`)
	list.sound(t)
	dry := w.get("repair?ask=cancel&job=t-2&job=t-1&job=t-2")
	dry.wants(t, "Cancel 2 jobs?", "Selected: t-1, t-2", "refused", `name="job" value="t-1"`)
	dry.sound(t)
	form := url.Values{"reason": {"the customer called"}}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(dry.text, -1) {
		form.Add(field[1], field[2])
	}
	if got := w.post("repairs", form); got.status != http.StatusOK || !strings.Contains(got.at.Path, "/repairs/") {
		t.Fatalf("got %d at %s, want the progress of a repair", got.status, got.at)
	}
	w.eventually("jobs/t-2", "It was cancelled, and its steps are undone.").wants(t, "the customer called")
	if j, err := w.Get(t.Context(), "t-3"); err != nil || j.ProcessState != makegood.JobError {
		t.Errorf("t-3, which was not selected, is %s, %v: want it in Error", j.ProcessState, err)
	}
}

// A selection has a limit, which is named, and names jobs.
func TestASelectionThatIsNoneIsRefused(t *testing.T) {
	w := newWorld(t)
	many := url.Values{"ask": {"cancel"}}
	for i := range 201 {
		many.Add("job", fmt.Sprintf("t-%d", i))
	}
	for query, says := range map[string]string{many.Encode(): "201 jobs are selected, the limit is 200", "ask=cancel&job=a%20b": "job"} {
		got := w.get("repair?" + query)
		got.wants(t, says)
		if got.status != http.StatusBadRequest {
			t.Errorf("got %d, want 400", got.status)
		}
	}
}

// A healthy job that has a timeout, and is under way, is not spoken of as late: it was, as one that "will be within the hour".
func TestAHealthyJobIsNotCalledLate(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"hold":true}`, false)
	w.eventually("", "No job waits for a person, and none is late.")
	close(w.hold)
}

// What simply went well is in no history; the page makes a short one of what the steps say.
func TestAJobThatWentWellHasAHistory(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	page := w.get("jobs/t-1")
	page.wants(t, "Ended: Processed", "charge: done", "reserve: done", "attempt 1, took ", "Submitted")
	_, history, _ := strings.Cut(page.text, `id="job-history"`)
	last := -1
	for _, says := range []string{"Ended: Processed", "charge: done", "reserve: done", "Submitted"} {
		at := strings.Index(history, says)
		if at < last {
			t.Errorf("%q does not stand below what came after it", says)
		}
		last = at
	}
}

// A verb that would be refused is folded away with its reason, and those that are granted stand open.
func TestVerbsThatWouldBeRefusedAreFoldedAway(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"hold":true}`, false)
	page := w.eventually("jobs/t-1", "is at work")
	close(w.hold)
	open, folded, found := strings.Cut(page.text, `<details class="fold refused">`)
	if !found {
		t.Fatal("nothing is folded away")
	}
	folded, _, _ = strings.Cut(folded, "</details>")
	if strings.Contains(open, "aria-disabled") || !strings.Contains(open, `id="verb-cancel"`) {
		t.Error("what stands open is not what would be granted")
	}
	if !strings.Contains(folded, `id="verb-resubmit">it has not stopped`) {
		t.Errorf("the fold has no reason: %s", folded)
	}
}

// A job that ended, and one that stopped, lead by one click to a form that holds their input.
func TestAJobIsRunAgainWithEditedInputByOneClick(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"fail":"nothing"}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	w.get("jobs/t-1").wants(t, `href="../workflows/trip/submit?like=t-1"`)
	again := w.get("workflows/trip/submit?like=t-1")
	again.wants(t, "&#34;fail&#34;: &#34;nothing&#34;", "what t-1 was submitted with")
	again.sound(t)
	w.get("jobs/t-2").wants(t, `href="../jobs/t-2/ask/resubmit?edit=true"`)
	edit := w.get("jobs/t-2/ask/resubmit?edit=true")
	edit.wants(t, "&#34;fail&#34;: &#34;charge&#34;\n}</textarea>", `<details class="fold" open>`)
	edit.sound(t)
	if got := w.get("workflows/trip/submit?like=nobody"); got.status != http.StatusNotFound {
		t.Errorf("a job that there is not: got %d, want 404", got.status)
	}
}

// What a step was asked stands on the page of its job, and says that it is as it was sent; what is large is a click away.
func TestWhatAStepWasAskedIsOnThePage(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{"fail":"charge"}`, true)
	page := w.get("jobs/t-1")
	page.wants(t, "Asked with, 17 bytes", "as it was sent")
	page.sound(t)
	w.submit("t-2", `{"fail":"charge","text":"`+strings.Repeat("x", limits.MaxSentInputBytes)+`"}`, true)
	w.get("jobs/t-2").wants(t, `href="../jobs/t-2/payload?asked=true&amp;step=charge"`)
	w.get("jobs/t-2/payload?asked=true&step=charge").wants(t, "charge, Asked with, as it was sent", strings.Repeat("x", limits.MaxSentInputBytes))
	if got := w.get("jobs/t-2/payload?asked=true&step=nothing"); got.status != http.StatusBadRequest {
		t.Errorf("a step that there is not: got %d, want 400", got.status)
	}
}

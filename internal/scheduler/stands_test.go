package scheduler_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// Of an audit's page the jobs are looked at whose keys are far off: one that is out in an hour and has a key a month later
// stands still. A job that cannot be loaded is left as it is, and so is one that a sweep looks at soon.
func TestAnAuditHearsWhichJobsStandStill(t *testing.T) {
	w := newWorld(t)
	c := w.define("name: one\nsteps: [{name: first, agent: a, timeout: 1h}]")
	far := w.now.Add(30 * 24 * time.Hour)
	for _, id := range []string{"sound", "late"} {
		w.submit(c, id)
	}
	j := w.job("late")
	seen := j.CompleteBy
	j.CompleteBy = far
	if err := w.file.Save(t.Context(), store.Change{Job: j, Seen: seen}); err != nil {
		t.Fatal(err)
	}
	page := []store.Audited{
		{Job: "gone", CompleteBy: far, Indexed: true},
		{Job: "sound", CompleteBy: w.job("sound").CompleteBy, Indexed: true},
		{Job: "late", CompleteBy: far, Indexed: true},
	}
	w.s.Stands(t.Context(), page)
	for i, want := range []store.Stray{"", "", "unfinished, and its key is later than its next deadline"} {
		if got := page[i].Standing; got != want {
			t.Errorf("%s: got %q, want %q", page[i].Job, got, want)
		}
	}
}

// Of an approval its question is told, as its task has it; of another step there is none.
func TestTheQuestionOfAnApprovalIsTold(t *testing.T) {
	w := newWorld(t)
	c := w.define(`
name: order
steps:
  - {name: approve, agent: approval, needs: [], with: {question: "${ \"Pay \" + .input.to + \"?\" }", choices: [yes, no]}}
  - {name: pay, agent: a, needs: []}
`)
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{"to":"Ann"}`)}); err != nil {
		t.Fatal(err)
	}
	asked, err := w.s.Asks(t.Context(), w.job("j"), job.Place{Step: "approve"})
	if err != nil || asked.Text != "Pay Ann?" || len(asked.Choices) != 2 || asked.Closed != "" {
		t.Errorf("got %+v, %v, want the question, and two choices", asked, err)
	}
	if asked, err := w.s.Asks(t.Context(), w.job("j"), job.Place{Step: "pay"}); err != nil || asked.Text != "" {
		t.Errorf("got %+v, %v, want no question of pay", asked, err)
	}
}

// What can be asked of a job is told with the questions of its approvals. Of a job that cannot be read, or of whose claims nothing
// is known, nothing is told.
func TestOffersHaveTheQuestionsOfApprovals(t *testing.T) {
	w := newWorld(t)
	c := w.define(`
name: order
steps:
  - {name: approve, agent: approval, needs: [], with: {question: "Pay?", choices: [yes, no]}}
  - {name: pay, agent: a, needs: []}
`)
	w.submit(c, "bad")
	w.claim("bad", "pay")
	offers, err := w.s.Offers(t.Context(), "bad")
	told, marshalled := json.Marshal(offers)
	if err != nil || marshalled != nil || !strings.Contains(string(told), "Pay?") {
		t.Errorf("got %s, %v, want the question", told, err)
	}
	for _, op := range []string{"Load", "Look"} {
		w.failing(op, faultstore.FailBefore)
		if _, err := w.s.Offers(t.Context(), "bad"); err == nil {
			t.Errorf("%s fails: got no error, want one", op)
		}
	}
	w.strike = nil
	if _, err := w.s.Offers(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want %v", err, store.ErrNotFound)
	}
}

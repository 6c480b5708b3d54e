package scheduler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// history returns the entries of a job, which must be all that it has.
func (w *world) history(id string) (entries []job.Numbered, pages map[string][]byte) {
	w.t.Helper()
	j := w.job(id)
	pages, err := w.file.HistoryPages(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	entries, gaps := j.History.Read(j.Birth, pages)
	if len(entries) != j.History.Count || len(gaps) > 0 {
		w.t.Errorf("%d of %d entries are shown, and gaps %v", len(entries), j.History.Count, gaps)
	}
	return entries, pages
}

// A job whose first step fails at its birth has that in its history.
func TestWhatFailsAtBirthIsInTheHistory(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a, with: \"${ .input.amount | tonumber }\"}]"), "j")
	entries, _ := w.history("j")
	if len(entries) == 0 || entries[0].Step != "first" || entries[0].Error == nil {
		t.Errorf("got %+v, want that the first step failed", entries)
	}
}

// A job that goes well writes nothing beside its saves. A save that notes something writes one page beside it, however many
// events are folded into it, and of the usual failures it is within one write unit.
func TestASaveThatNotesSomethingWritesOnePage(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(threeBranches), "well")
	w.forget()
	w.handle(w.done("well", "left"), w.done("well", "middle"), w.done("well", "right"))
	w.handle(w.done("well", "join"))
	w.checkCalls(map[string]int{"Load": 2, "Save": 2})

	w.submit(w.define(threeBranches), "ill")
	why := job.StepError{Message: strings.Repeat("no answer from the bank. ", 8), Retryable: true, Applied: makegood.AppliedUnknown}
	left, middle := w.failed("ill", "left", w.claim("ill", "left"), why), w.failed("ill", "middle", w.claim("ill", "middle"), why)
	w.forget()
	w.handle(left, middle)
	w.checkCalls(map[string]int{"Load": 1, "Close": 2, "PutPayload": 1, "Save": 1})
	entries, pages := w.history("ill")
	if len(entries) != 2 || entries[0].Failure != 1 || entries[1].Failure != 2 || entries[0].LockedBy == "" || entries[0].Error.Message != why.Message {
		t.Errorf("got %+v, want both failures, in full", entries)
	}
	for key, body := range pages {
		if size := len("job#ill") + len(key) + len(body); size > 1000 {
			t.Errorf("a page of two failures has %d bytes, want it within a write unit", size)
		}
	}
	w.forget()
	w.handle(left)
	w.checkCalls(map[string]int{"Load": 1})
	if again, _ := w.history("ill"); len(again) != 2 {
		t.Errorf("a failure that came again has left %d entries, want 2", len(again))
	}
	if _, _, err := w.s.Request(t.Context(), "ill", job.Requested{Verb: makegood.VerbCancel, Request: "c", By: "anna", Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	entries, _ = w.history("ill")
	at := slices.IndexFunc(entries, func(e job.Numbered) bool { return e.Kind == makegood.EntryRequest })
	if at < 0 || entries[at].By != "anna" || entries[at].Reason != "enough" || entries[at+1].Kind != makegood.EntryTurned {
		t.Errorf("got %+v, want who asked and why, and that it turned", entries)
	}
}

// A save that lost leaves its page, which is shown to nobody; so does one whose page could not be written: it is not made.
func TestASaveThatWasLostLeavesNoEntry(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(threeBranches), "j")
	reply := w.failed("j", "left", w.claim("j", "left"), job.StepError{Message: "no", Retryable: true})
	other := w.failed("j", "right", w.claim("j", "right"), job.StepError{Message: "neither", Retryable: true})
	rival := w.with(func(c *scheduler.Config) {
		c.Jobs, c.Closings, c.Payloads, c.Definitions = w.file, w.file, w.file, w.file
	})
	w.beforeSave("j", func() { w.handleWith(rival, other) })
	w.handle(reply)
	entries, pages := w.history("j")
	if len(entries) != 2 || entries[0].Step != "right" || entries[1].Step != "left" || len(pages) != 3 {
		t.Errorf("got %+v in %d pages, want both failures once, and the page of the save that was lost", entries, len(pages))
	}
	w.failingOn("", "PutPayload", faultstore.FailBefore)
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbPause, Request: "p"}); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("got %v, want %v", err, faultstore.ErrInjected)
	}
	w.strike = nil
	if after, _ := w.history("j"); len(after) != 2 || w.job("j").Paused() {
		t.Errorf("without its page got %d entries, paused %t, want neither", len(after), w.job("j").Paused())
	}
}

// Of a history that never ends the store keeps its ends, and what could not be dropped is taken along by the next.
func TestALongHistoryIsBounded(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	ask := func(verb makegood.Verb) {
		t.Helper()
		if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: verb}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 150 {
		w.strike = nil
		if i%2 == 0 {
			w.failingOn("", "DropPages", faultstore.FailBefore)
		}
		ask(makegood.VerbPause)
		ask(makegood.VerbResume)
	}
	j := w.job("j")
	pages, err := w.file.HistoryPages(t.Context(), "j")
	entries, gaps := j.History.Read(j.Birth, pages)
	want := job.Gap{From: 101, To: j.History.Count - 100, Why: "not kept"}
	if err != nil || j.History.Count < 300 || len(entries) != 200 || len(pages) > 200 || len(gaps) != 1 || gaps[0] != want {
		t.Errorf("got %d of %d entries in %d pages and %v, %v, want 200 and %v", len(entries), j.History.Count, len(pages), gaps, err, want)
	}
}

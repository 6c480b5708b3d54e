package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// EmbeddedHarness gives one test the store of an engine in one process.
type EmbeddedHarness struct {
	// Open returns an empty store. The harness closes it when the test has ended.
	Open func() store.Embedded
	// Reopen closes the store that Open returned, as a death would, and opens it again on the same data.
	Reopen func() store.Embedded
}

// RunEmbedded runs the suite of what store.Embedded has beyond store.Store. It calls newHarness once for each test.
func RunEmbedded(t *testing.T, newHarness func(t *testing.T) EmbeddedHarness) {
	for name, test := range map[string]func(*embeddedWorld){
		"a run has a number of its own, and knows how the run before it ended":      runsAreCounted,
		"a loop of deaths is counted until something is done":                       deathsAreCounted,
		"unfinished jobs are listed in pages, also after a death":                   unfinishedAreListed,
		"the next key is the earliest":                                              nextIsEarliest,
		"each job is visited once, and an error ends the visit":                     eachIsVisited,
		"a definition that is something else than its hash says is mended":          definitionsAreMended,
		"a job expires with its payloads after its end, and its id is free again":   jobsExpire,
		"a message in quarantine is read in pages, dropped, and expires":            quarantineIsKept,
		"a store that can be written says so, and fails when it is shut":            aShutStoreFails,
		"room is given back until there is none, and what is stored stays readable": roomIsGivenBack,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			w := &embeddedWorld{t: t, h: h, s: h.Open(), base: domain.Instant(time.Now()).UTC().Add(-time.Hour)}
			test(w)
		})
	}
}

type embeddedWorld struct {
	t    *testing.T
	h    EmbeddedHarness
	s    store.Embedded
	base time.Time
}

func (w *embeddedWorld) ctx() context.Context { return w.t.Context() }

func (w *embeddedWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create stores a job of one step, which ended at a time; zero: it did not.
func (w *embeddedWorld) create(id string, ended time.Time) job.Job {
	w.t.Helper()
	j := job.Job{
		ID: id, Workflow: "w", Definition: "0123456789abcdef0123456789abcdef", ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed,
		CreatedAt: w.base, Round: 1, Birth: "6b1f0c9a41d2e37f", CompleteBy: w.base.Add(time.Minute), Steps: []job.StepState{{Name: "s"}},
	}
	w.must(w.s.Create(w.ctx(), j))
	if ended.IsZero() {
		return j
	}
	j, err := w.s.Load(w.ctx(), id)
	w.must(err)
	seen := j.CompleteBy
	j.ProcessState, j.FinishedAt, j.CompleteBy = makegood.JobProcessed, ended, time.Time{}
	w.must(w.s.Save(w.ctx(), store.Change{Job: j, Seen: seen}))
	return j
}

func (w *embeddedWorld) next(now time.Time) store.Incarnation {
	w.t.Helper()
	run, err := w.s.NextIncarnation(w.ctx(), now)
	w.must(err)
	return run
}

func runsAreCounted(w *embeddedWorld) {
	if run := w.next(w.base); run != (store.Incarnation{Number: 1}) {
		w.t.Errorf("the first run: got %+v", run)
	}
	w.must(w.s.Stopped(w.ctx()))
	w.s = w.h.Reopen()
	if run := w.next(w.base.Add(time.Hour)); run != (store.Incarnation{Number: 2, Stopped: true}) {
		w.t.Errorf("after a run that was stopped: got %+v", run)
	}
	w.s = w.h.Reopen()
	if run := w.next(w.base.Add(24 * time.Hour)); run.Number != 3 || run.Stopped {
		w.t.Errorf("after a run that died: got %+v", run)
	}
}

func deathsAreCounted(w *embeddedWorld) {
	w.next(w.base)
	for n := range 3 {
		w.s = w.h.Reopen()
		run := w.next(w.base.Add(time.Duration(n+1) * time.Second))
		if run.Deaths != n+1 || !run.Since.Equal(w.base) {
			w.t.Errorf("after %d deaths: got %+v, want them since %v", n+1, run, w.base)
		}
	}
	w.must(w.s.Progressed(w.ctx()))
	w.s = w.h.Reopen()
	if run := w.next(w.base.Add(time.Minute)); run.Deaths != 0 {
		w.t.Errorf("after a run in which something was done: got %+v, want no loop", run)
	}
}

func unfinishedAreListed(w *embeddedWorld) {
	for n := range 5 {
		id := fmt.Sprint("j", n)
		w.create(id, time.Time{})
		j, err := w.s.Load(w.ctx(), id)
		w.must(err)
		seen := j.CompleteBy
		j.CompleteBy = w.base.Add(-time.Duration(n/2) * time.Hour)
		w.must(w.s.Save(w.ctx(), store.Change{Job: j, Seen: seen}))
	}
	w.create("ended", w.base)
	w.s = w.h.Reopen()
	var all []string
	for after := (store.Entry{}); ; {
		page, err := w.s.Unfinished(w.ctx(), after, 2)
		w.must(err)
		if len(page) == 0 {
			break
		}
		for _, after = range page {
			all = append(all, after.Job)
		}
	}
	if want := []string{"j4", "j2", "j3", "j0", "j1"}; !slices.Equal(all, want) {
		w.t.Errorf("got %v, want %v, by their keys", all, want)
	}
}

func nextIsEarliest(w *embeddedWorld) {
	if next, err := w.s.NextDue(w.ctx(), time.Time{}); err != nil || !next.IsZero() {
		w.t.Errorf("an empty store: got %v, %v", next, err)
	}
	j := w.create("j", time.Time{})
	w.create("k", time.Time{})
	if next, err := w.s.NextDue(w.ctx(), j.CompleteBy.Add(-time.Millisecond)); err != nil || !next.Equal(j.CompleteBy) {
		w.t.Errorf("got %v, %v, want %v", next, err, j.CompleteBy)
	}
	if next, err := w.s.NextDue(w.ctx(), j.CompleteBy); err != nil || !next.IsZero() {
		w.t.Errorf("after all keys: got %v, %v", next, err)
	}
}

func eachIsVisited(w *embeddedWorld) {
	for n := range 3 {
		w.create(fmt.Sprint("j", n), time.Time{})
	}
	var all []string
	w.must(w.s.Each(w.ctx(), func(j job.Job) error { all = append(all, j.ID); return nil }))
	if slices.Sort(all); !slices.Equal(all, []string{"j0", "j1", "j2"}) {
		w.t.Errorf("got %v, want each once", all)
	}
	enough, visits := errors.New("enough"), 0
	if err := w.s.Each(w.ctx(), func(job.Job) error { visits++; return enough }); !errors.Is(err, enough) || visits != 1 {
		w.t.Errorf("got %v after %d visits, want the error of the first", err, visits)
	}
}

func definitionsAreMended(w *embeddedWorld) {
	const hash = "0123456789abcdef0123456789abcdef"
	w.must(w.s.PutDefinition(w.ctx(), "w", hash, []byte("spoilt")))
	for _, want := range []bool{true, false} {
		if mended, err := w.s.MendDefinition(w.ctx(), hash, []byte("whole")); err != nil || mended != want {
			w.t.Errorf("got %t, %v, want %t", mended, err, want)
		}
	}
	w.s = w.h.Reopen()
	if text, err := w.s.Definition(w.ctx(), hash); err != nil || string(text) != "whole" {
		w.t.Errorf("got %q, %v, want it whole", text, err)
	}
	if mended, err := w.s.MendDefinition(w.ctx(), "ffffffffffffffffffffffffffffffff", []byte("new")); err != nil || mended {
		w.t.Errorf("a definition that is not stored: got %t, %v, want it left alone", mended, err)
	}
}

func jobsExpire(w *embeddedWorld) {
	w.create("old", w.base.Add(-time.Hour))
	w.create("young", w.base)
	w.create("open", time.Time{})
	deleted, more, err := w.s.Expire(w.ctx(), w.base.Add(-time.Minute))
	if err != nil || more || !slices.Equal(deleted, []string{"old"}) {
		w.t.Fatalf("got %v, %t, %v, want old, which ended before", deleted, more, err)
	}
	if _, err := w.s.Load(w.ctx(), "old"); !errors.Is(err, store.ErrNotFound) {
		w.t.Errorf("old: got %v, want it gone", err)
	}
	w.create("old", time.Time{})
	if left, err := w.s.Unfinished(w.ctx(), store.Entry{}, 10); err != nil || len(left) != 2 {
		w.t.Errorf("got %v, %v, want the id taken again", left, err)
	}
}

func quarantineIsKept(w *embeddedWorld) {
	for n := range 3 {
		w.must(w.s.Quarantine(w.ctx(), fmt.Sprint("body ", n), w.base.Add(time.Duration(n)*time.Minute)))
	}
	w.s = w.h.Reopen()
	page, err := w.s.Quarantined(w.ctx(), 0, 2)
	w.must(err)
	if len(page.Messages) != 2 || page.Messages[0].Body != "body 0" || page.Messages[1].Body != "body 1" {
		w.t.Fatalf("got %+v, want the two oldest", page)
	}
	first, second := page.Messages[0].ID, page.Messages[1].ID
	w.must(w.s.DropQuarantined(w.ctx(), first))
	if err := w.s.DropQuarantined(w.ctx(), first); !errors.Is(err, store.ErrNotFound) {
		w.t.Errorf("dropped twice: got %v", err)
	}
	if more, err := w.s.ExpireQuarantined(w.ctx(), w.base.Add(time.Minute)); err != nil || more {
		w.t.Errorf("expiry: got %t, %v", more, err)
	}
	if _, err := w.s.QuarantinedMessage(w.ctx(), second); !errors.Is(err, store.ErrNotFound) {
		w.t.Errorf("an expired message: got %v", err)
	}
	if page, err := w.s.Quarantined(w.ctx(), 0, 10); err != nil || len(page.Messages) != 1 || page.Messages[0].Body != "body 2" {
		w.t.Errorf("got %+v, %v, want the youngest", page, err)
	}
}

func roomIsGivenBack(w *embeddedWorld) {
	w.create("j", time.Time{})
	for range 1000 {
		more, err := w.s.Shrink(w.ctx())
		w.must(err)
		if !more {
			w.must(w.s.CheckFiles(w.ctx()))
			if _, err := w.s.Load(w.ctx(), "j"); err != nil {
				w.t.Error(err)
			}
			return
		}
	}
	w.t.Error("there is always more room")
}

func aShutStoreFails(w *embeddedWorld) {
	w.must(w.s.Probe(w.ctx()))
	select {
	case <-w.s.Lost():
		w.t.Error("it is lost")
	default:
	}
	w.must(w.s.Failure())
	w.must(w.s.Shut())
	if err := w.s.Probe(w.ctx()); !errors.Is(err, store.ErrClosed) {
		w.t.Errorf("a write after the end: got %v, want %v", err, store.ErrClosed)
	}
}

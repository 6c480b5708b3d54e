package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

func historyRules() []rule {
	return []rule{
		{"the pages of a history are those of its job, and no other payloads", historyApart},
		{"of two saves with a page the one that won is in the history", historyRaced},
		{"what a lost save has written is no part of the history that goes on", historyLost},
		{"a page that is gone or damaged leaves a gap, and the rest", historyGaps},
		{"of a long history the first and the last entries stay", historyLong},
		{"a dropped page takes nothing else along", historyDrop},
		{"a history is there with the save that names it", historyDurable},
	}
}

// noted returns a job with n entries more, which its save is to make part of its history, and writes their page.
func (w *world) noted(j job.Job, n int, by string) job.Job {
	w.Helper()
	entries := make([]job.Entry, n)
	for i := range entries {
		entries[i] = job.Entry{At: w.base, Kind: makegood.EntryFailed, Step: "reserve", Failure: j.History.Count + i + 1, By: by}
	}
	var page job.Page
	j.History, page = j.History.With(j.Birth, entries)
	w.want("put page", w.store.PutPayload(w.ctx, j.ID, page.Key, page.Body), nil)
	return j
}

// saved is noted, and saved.
func (w *world) saved(j job.Job, n int, by string) job.Job {
	w.Helper()
	j = w.noted(j, n, by)
	w.want("save", w.store.Save(w.ctx, store.Change{Job: j, Seen: j.CompleteBy}), nil)
	j.Rev++
	return j
}

func (w *world) pages(id string) map[string][]byte {
	w.Helper()
	pages, err := w.store.HistoryPages(w.ctx, id)
	w.want("pages", err, nil)
	return pages
}

// history wants the history of a job to be shown so: the numbers of its entries with their authors, and the gaps.
func (w *world) history(id, want string) {
	w.Helper()
	j := w.load(id)
	entries, gaps := j.History.Read(j.Birth, w.pages(id))
	var parts []string
	for i, first := 0, 0; i < len(entries); i++ {
		if last := i == len(entries)-1; last || entries[i+1].N != entries[i].N+1 || entries[i+1].By != entries[i].By {
			parts = append(parts, fmt.Sprintf("%d-%d %s", entries[first].N, entries[i].N, entries[i].By))
			first = i + 1
		}
	}
	for _, g := range gaps {
		parts = append(parts, fmt.Sprintf("%d-%d is %s", g.From, g.To, g.Why))
	}
	w.same("history of "+id, strings.Join(parts, ", "), want)
}

func historyApart(w *world) {
	a, b := w.create(w.job("a")), w.create(w.job("b"))
	w.same("pages before there are any", len(w.pages(a.ID)), 0)
	w.want("put", w.store.PutPayload(w.ctx, a.ID, "input#1", []byte(`1`)), nil)
	w.want("put", w.store.PutPayload(w.ctx, a.ID, "output#history#1", []byte(`2`)), nil)
	a, b = w.saved(a, 1, "a"), w.saved(b, 2, "b")
	a = w.saved(a, 3, "a")
	pages := w.pages(a.ID)
	w.same("pages", len(pages), 2)
	if _, ok := pages[a.History.HeadKey()]; !ok {
		w.Errorf("the last page is not among %v", slices.Sorted(maps.Keys(pages)))
	}
	w.history(a.ID, "1-4 a")
	w.history(b.ID, "1-2 b")
}

func historyRaced(w *world) {
	j := w.saved(w.create(w.job("a")), 1, "both")
	slow := w.noted(j, 2, "slow")
	w.saved(j, 1, "fast")
	w.want("save of who lost", w.store.Save(w.ctx, store.Change{Job: slow, Seen: j.CompleteBy}), store.ErrConflict)
	w.history(j.ID, "1-1 both, 2-2 fast")
}

func historyLost(w *world) {
	j := w.create(w.job("a"))
	w.noted(j, 2, "lost")
	w.history(j.ID, "")
	j = w.saved(j, 1, "first")
	w.noted(j, 5, "lost, too")
	w.history(j.ID, "1-1 first")
	w.saved(j, 2, "second")
	w.history(j.ID, "1-1 first, 2-3 second")
}

func historyGaps(w *world) {
	j := w.saved(w.create(w.job("a")), 2, "x")
	// The page of this one was never written, or is gone.
	gone, _ := j.History.With(j.Birth, []job.Entry{{At: w.base, Kind: makegood.EntryFailed}})
	j.History = gone
	j = w.saved(j, 1, "y")
	w.history(j.ID, "4-4 y, 1-3 is missing")
	h, page := j.History.With(j.Birth, []job.Entry{{At: w.base, Kind: makegood.EntryFailed, Reason: "as it was"}})
	w.want("put", w.store.PutPayload(w.ctx, j.ID, page.Key, []byte(`{"first":5,"entries":[{"kind":"failed"}]}`)), nil)
	j.History = h
	j = w.saved(j, 1, "z")
	w.history(j.ID, "6-6 z, 1-5 is damaged")
}

func historyLong(w *world) {
	j := w.create(w.job("a"))
	for range 6 {
		j = w.saved(j, 40, "x")
		if after, before, ok := j.History.Between(); ok {
			w.want("drop", w.store.DropPages(w.ctx, j.ID, after, before), nil)
		}
	}
	// A page that lies partly in the middle stays whole.
	w.history(j.ID, "1-240 x")
	for range 3 {
		j = w.saved(j, 40, "y")
		after, before, _ := j.History.Between()
		w.want("drop", w.store.DropPages(w.ctx, j.ID, after, before), nil)
	}
	w.history(j.ID, "1-120 x, 241-360 y, 121-240 is not kept")
	w.saved(j, 1, "z")
	w.history(j.ID, "1-120 x, 241-360 y, 361-361 z, 121-240 is not kept")
}

func historyDrop(w *world) {
	a, b := w.create(w.job("a")), w.create(w.job("b"))
	w.want("put", w.store.PutPayload(w.ctx, a.ID, "input#1", []byte(`1`)), nil)
	a, b = w.saved(a, 100, "x"), w.saved(b, 100, "x")
	for i := range 5 {
		a, b = w.saved(a, 40, fmt.Sprint(i)), w.saved(b, 40, fmt.Sprint(i))
	}
	after, before, _ := a.History.Between()
	w.same("between", fmt.Sprint(after, " ", before), "100 201")
	for range 2 {
		w.want("drop", w.store.DropPages(w.ctx, a.ID, after, before), nil)
	}
	w.payload(a.ID, "input#1", `1`)
	w.history(a.ID, "1-100 x, 181-220 2, 221-260 3, 261-300 4, 101-180 is not kept")
	w.history(b.ID, "1-100 x, 181-220 2, 221-260 3, 261-300 4, 101-180 is not kept")
	for key := range w.pages(b.ID) {
		if strings.Contains(key, "101+") {
			return
		}
	}
	w.Error("a page of the other job is gone")
}

func historyDurable(w *world) {
	j := w.saved(w.create(w.job("a")), 2, "x")
	if w.harness.Reopen == nil {
		w.Skip("this store keeps nothing")
	}
	w.store = w.harness.Reopen()
	w.history(j.ID, "1-2 x")
}

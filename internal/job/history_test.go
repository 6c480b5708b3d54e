package job_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// kept is a history and its pages, as a store has them.
type kept struct {
	h     job.History
	pages map[string][]byte
}

func (k *kept) add(n int) job.Page {
	entries := make([]job.Entry, n)
	for i := range entries {
		entries[i] = job.Entry{At: time.UnixMilli(0).UTC(), Kind: makegood.EntryFailed, Step: "s", Failure: k.h.Count + i + 1}
	}
	var page job.Page
	k.h, page = k.h.With("birth", entries)
	if k.pages == nil {
		k.pages = map[string][]byte{}
	}
	k.pages[page.Key] = page.Body
	return page
}

// drop is what a store does between two entries.
func (k *kept) drop() {
	if after, before, ok := k.h.Between(); ok {
		maps.DeleteFunc(k.pages, func(key string, _ []byte) bool { return job.Falls(key, after, before) })
	}
}

// says returns which entries are shown, and why others are not.
func (k *kept) says(t *testing.T) string {
	t.Helper()
	entries, gaps := k.h.Read("birth", k.pages)
	var spans []string
	for i, e := range entries {
		if e.N != e.Failure {
			t.Errorf("entry %d is shown as number %d", e.Failure, e.N)
		}
		if i == 0 || entries[i-1].N+1 != e.N {
			spans = append(spans, fmt.Sprint(e.N))
		}
		if i == len(entries)-1 || entries[i+1].N != e.N+1 {
			spans[len(spans)-1] += fmt.Sprintf("-%d", e.N)
		}
	}
	for _, g := range gaps {
		spans = append(spans, fmt.Sprintf("%d-%d %s", g.From, g.To, g.Why))
	}
	return strings.Join(spans, ", ")
}

func TestAHistoryKeepsItsFirstAndItsLastEntries(t *testing.T) {
	for _, tt := range []struct {
		each, times int
		want        string
	}{
		{0, 0, ""},
		{1, 1, "1-1"},
		{1, 100, "1-100"},
		{1, 200, "1-200"},
		{1, 201, "1-100, 102-201, 101-101 not kept"},
		{1, 1000, "1-100, 901-1000, 101-900 not kept"},
		{7, 28, "1-196"},
		{7, 29, "1-203"},
		{7, 31, "1-105, 113-217, 106-112 not kept"},
		{300, 1, "1-300"},
		{300, 2, "1-600"},
		{300, 3, "1-300, 601-900, 301-600 not kept"},
	} {
		for _, dropping := range []bool{true, false} {
			var k kept
			for range tt.times {
				k.add(tt.each)
				if dropping {
					k.drop()
				}
			}
			if got := k.says(t); got != tt.want {
				t.Errorf("%d times %d entries (dropping %t): got %q, want %q", tt.times, tt.each, dropping, got, tt.want)
			}
			if most := limits.MaxHistoryFirst + limits.MaxHistoryLast + 2*tt.each; dropping && len(k.pages)*tt.each > most {
				t.Errorf("%d times %d entries: %d pages are kept", tt.times, tt.each, len(k.pages))
			}
		}
	}
}

func TestALostSaveLeavesNothingThatIsShown(t *testing.T) {
	var k kept
	k.add(1)
	before := k.h
	lost := k.add(2)
	k.h = before
	k.add(3)
	if got := k.says(t); got != "1-4" || k.pages[lost.Key] == nil {
		t.Errorf("got %q, want 1-4 and the page of the lost save beside it", got)
	}
}

func TestAHistoryThatCannotBeReadSaysSo(t *testing.T) {
	var k kept
	k.add(2)
	second := k.add(2)
	k.add(2)
	whole := maps.Clone(k.pages)
	delete(k.pages, second.Key)
	if got := k.says(t); got != "5-6, 1-4 missing" {
		t.Errorf("a page is gone: got %q", got)
	}
	for name, wrong := range map[string][]byte{
		"cut off": second.Body[:len(second.Body)-1], "empty": nil, "another's": whole[k.h.HeadKey()],
		"changed": []byte(strings.Replace(string(second.Body), "failed", "silent", 1)),
	} {
		k.pages = maps.Clone(whole)
		k.pages[second.Key] = wrong
		if got := k.says(t); got != "5-6, 1-4 damaged" {
			t.Errorf("a page is %s: got %q", name, got)
		}
	}
	if entries, _ := k.h.Read("another birth", whole); len(entries) != 0 {
		t.Errorf("the pages of another job of this id show %v", entries)
	}
}

func TestPagesStandInTheOrderOfTheirEntries(t *testing.T) {
	var k kept
	var keys []string
	for i := range 150 {
		keys = append(keys, k.add(1+i%3).Key)
	}
	if !slices.IsSorted(keys) {
		t.Error("the keys of pages are not in the order of their entries")
	}
	if at, _ := slices.BinarySearch(keys, job.HistoryFrom(1)); at != 0 {
		t.Errorf("the first page is at %d", at)
	}
}

package pagesoak_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/lab/pagesoak"
)

// The short one: what make page-soak does for ten minutes.
func TestThePageHoldsNoMoreAsTimePasses(t *testing.T) {
	figures, err := pagesoak.Run(t.Context(), pagesoak.Config{
		Dir: t.TempDir(), Jobs: 200, Windows: 10, Period: 2 * time.Second, Periods: 3, Say: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	last := figures[len(figures)-1]
	if last.Streams != 10 {
		t.Errorf("got %d streams open at the end, want 10", last.Streams)
	}
	var list, job, lag int
	for _, f := range figures {
		list, job, lag = list+len(f.List), job+len(f.Job), lag+len(f.Lag)
	}
	if list == 0 || job == 0 || lag == 0 {
		t.Errorf("got no times: %+v", figures)
	}
}

func TestWhatGrowsIsFound(t *testing.T) {
	steady := pagesoak.Figures{Heap: 100 << 20, Goroutines: 300, ScreenHeap: 5 << 20, ScreenNodes: 4000}
	four := func(last pagesoak.Figures) []pagesoak.Figures {
		return []pagesoak.Figures{{}, steady, steady, last, last}
	}
	if err := pagesoak.Grown(four(steady)); err != nil {
		t.Errorf("got %v of what is steady", err)
	}
	for want, grows := range map[string]func(*pagesoak.Figures){
		"bytes of heap:":               func(f *pagesoak.Figures) { f.Heap *= 2 },
		"goroutines:":                  func(f *pagesoak.Figures) { f.Goroutines *= 5 },
		"bytes of heap in the browser": func(f *pagesoak.Figures) { f.ScreenHeap *= 8 },
		"nodes in the browser":         func(f *pagesoak.Figures) { f.ScreenNodes *= 3 },
	} {
		last := steady
		grows(&last)
		if err := pagesoak.Grown(four(last)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if pagesoak.Grown([]pagesoak.Figures{steady, steady}) == nil {
		t.Error("two periods were enough to say that nothing grows")
	}
}

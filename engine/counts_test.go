package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A step through the public package takes one read of the job and one flush of the file, a chain as much for all of its
// steps; the birth takes a flush, and a call of Wait a read. Times are in the benchmarks.
func TestAStepIsReadAndFlushedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fields string
		times  int64
	}{
		"by the queue": {"", 10}, "inline": {", inline: true", 10}, "in a chain": {", inline: true, exclusive: false", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkReadsAndFlushes(t, c.fields, c.times) })
		})
	}
}

// checkReadsAndFlushes plays a job of ten steps with these fields, and wants so many reads and flushes of them.
func checkReadsAndFlushes(t *testing.T, fields string, want int64) {
	work := gated{open: make(chan struct{})}
	close(work.open)
	text := "name: ten\nsteps:\n"
	for i := range 10 {
		text += fmt.Sprintf("  - {name: step%02d, agent: gated%s}\n", i, fields)
	}
	e, counted := openCounted(t, text, work)
	synctest.Wait()
	file := counted.Store.(*sqlitestore.Store)
	if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "ten", ID: "first", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // Once in its life an engine notes that something was done.
	loads, syncs := counted.n.Load(), file.Stats().Syncs
	if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "ten", ID: "j", Input: json.RawMessage(`{"sku":"a-17"}`)}); err != nil {
		t.Fatal(err)
	}
	if j, err := e.Wait(t.Context(), "j"); err != nil || j.ProcessState != makegood.JobProcessed {
		t.Fatalf("got %s, %v, want %s", j.ProcessState, err, makegood.JobProcessed)
	}
	synctest.Wait()
	if n := int64(counted.n.Load() - loads); n != want+1 {
		t.Errorf("got %d reads of a job of ten steps, want %d and one by who waits", n, want)
	}
	if n := int64(file.Stats().Syncs - syncs); n != want+1 {
		t.Errorf("got %d flushes for a job of ten steps, want %d and one for its birth", n, want)
	}
}

package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A step through the public package, by the queue or inline, takes one read of the job and one flush of the file; a call of
// Wait adds one read a job. Times are in the benchmarks (lab/bench).
func TestAStepIsReadAndFlushedOnce(t *testing.T) {
	for _, fields := range []string{"", ", inline: true"} {
		synctest.Test(t, func(t *testing.T) {
			work := gated{open: make(chan struct{})}
			close(work.open)
			text := "name: ten\nsteps:\n"
			for i := range 10 {
				text += fmt.Sprintf("  - {name: step%02d, agent: gated%s}\n", i, fields)
			}
			e, counted := openCounted(t, text, work)
			synctest.Wait()
			file := counted.Store.(*sqlitestore.Store)
			loads, syncs := counted.n.Load(), file.Stats().Syncs
			if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "ten", ID: "j", Input: json.RawMessage(`{"sku":"a-17"}`)}); err != nil {
				t.Fatal(err)
			}
			if j, err := e.Wait(t.Context(), "j"); err != nil || j.ProcessState != makegood.JobProcessed {
				t.Fatalf("got %s, %v, want %s", j.ProcessState, err, makegood.JobProcessed)
			}
			synctest.Wait()
			if n := counted.n.Load() - loads; n != 10+1 {
				t.Errorf("%q: got %d reads of a job of ten steps, want one for each and one by who waits", fields, n)
			}
			if n := file.Stats().Syncs - syncs; n != 10+1 {
				t.Errorf("%q: got %d flushes for a job of ten steps, want one for each and one for its birth", fields, n)
			}
		})
	}
}

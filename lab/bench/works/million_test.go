package works

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/lab/pagesoak"
)

// lists are asked for in turn: all jobs, those of a state, of a workflow and state, of a tenant.
var lists = []api.Filter{{}, {State: makegood.JobError}, {Workflow: "order-7", State: makegood.JobProcessed}, {Tenant: "tenant-75"}}

// more are workflows beside those of the file: the three steps of W1, by one of its agents, and a job that becomes
// due.
var more = []string{
	`{name: row, steps: [{name: a, agent: shop-1, action: ship}, {name: b, agent: shop-1, action: ship}, {name: c, agent: shop-1, action: ship}]}`,
	`{name: due, steps: [{name: wait, agent: wait, with: {until: "${ .input.at }"}}]}`,
}

// W5: a copy of a file with a million jobs, 10,000 of which wait for a person. An operation is a job of three steps
// that is submitted and done; a page of a list; a job that becomes due, all of them in one moment; a restart of the
// engine.
func BenchmarkMillion(b *testing.B) {
	made, dir := "../../../.build/"+pagesoak.MillionFolder, b.TempDir()
	pagesoak.MakeMillion(b, made)
	copyFile(b, filepath.Join(made, "makegood.db"), filepath.Join(dir, "makegood.db"))
	born := 0 // Each run has ids of its own.
	m := &theMillion{dir: dir, id: func() string { born++; return fmt.Sprintf("new-%07d", born) }}
	b.Run("submit", func(b *testing.B) {
		eng := m.open(b)
		measure(b, 3, func() { throughMillion(b, eng, m.id) })
	})
	b.Run("list", func(b *testing.B) {
		eng := m.open(b)
		b.ResetTimer()
		for i := range b.N {
			if page, err := eng.Page(b.Context(), lists[i%len(lists)], ""); err != nil || len(page.Jobs) == 0 {
				b.Fatalf("%+v: got a page of %d jobs, cursor %q, %v", lists[i%len(lists)], len(page.Jobs), page.Cursor, err)
			}
		}
	})
	b.Run("sweep", func(b *testing.B) {
		sweepMillion(b, m.open(b), m.id)
	})
	b.Run("restart", func(b *testing.B) {
		eng, stop := m.run(b)
		m.one(b, eng) // An engine in which nothing was done leaves nothing to go on with.
		restarts(b, stop, func() (*engine.Engine, func() error) { return m.run(b) }, func(eng *engine.Engine, _ int) { m.one(b, eng) })
	})
}

// theMillion is the folder of the file, and the next id.
type theMillion struct {
	dir string
	id  func() string
}

// open opens an engine that runs until the benchmark ends. It has looked at all jobs that were under way, since a
// new one is done.
func (m *theMillion) open(b *testing.B) *engine.Engine {
	b.Helper()
	eng, stop := m.run(b)
	b.Cleanup(func() {
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
	m.one(b, eng)
	return eng
}

func (m *theMillion) run(b *testing.B) (*engine.Engine, func() error) {
	eng := pagesoak.OpenMillion(b, m.dir, more)
	return eng, run(eng)
}

// one has a job done.
func (m *theMillion) one(b *testing.B, eng *engine.Engine) {
	waitDone(b, eng, submit(b, eng, "row", m.id(), `{"sku":"a-17","quantity":3}`))
}

// throughMillion submits as many jobs as the benchmark asks for, and waits for each.
func throughMillion(b *testing.B, eng *engine.Engine, id func() string) {
	b.Helper()
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = id()
	}
	var waiters sync.WaitGroup
	sideBySide(b.N, func(i int) {
		submit(b, eng, "row", ids[i], `{"sku":"a-17","quantity":3}`)
		waiters.Go(func() { waitDone(b, eng, ids[i]) })
	})
	waiters.Wait()
}

// sweepMillion lets jobs wait for one moment, and measures from there until all are done.
func sweepMillion(b *testing.B, eng *engine.Engine, id func() string) {
	b.Helper()
	at := time.Now().Add(2*time.Second + time.Duration(b.N)*time.Millisecond).Truncate(time.Second)
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = id()
	}
	sideBySide(b.N, func(i int) { submit(b, eng, "due", ids[i], fmt.Sprintf(`{"at": %q}`, at.Format(time.RFC3339))) })
	if left := time.Until(at); left < 0 {
		b.Fatalf("the jobs were submitted %s after they were due", -left)
	}
	time.Sleep(time.Until(at))
	b.ResetTimer()
	var waiters sync.WaitGroup
	for _, id := range ids {
		waiters.Go(func() { waitDone(b, eng, id) })
	}
	waiters.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Milliseconds()), "all-ms")
}

func copyFile(b *testing.B, from, to string) {
	b.Helper()
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		b.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
}

package works

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// waitingSteps is how many steps wait in the file on which the restart is measured.
const waitingSteps = 10_000

const waiting = "name: row\nsteps: [{name: pay, agent: idle}]"

// W6: steps that an agent hands over, and that wait for their completion. An operation is a step that has come to
// wait, one that is completed and its job done, and a restart of an engine in whose file 10,000 wait.
func BenchmarkWaiting(b *testing.B) {
	b.Run("begin", func(b *testing.B) {
		eng := open(b, b.TempDir(), waiting, handOver)
		measure(b, 1, func() { beginAll(b, eng, b.N) })
	})
	b.Run("complete", func(b *testing.B) {
		eng := open(b, b.TempDir(), waiting, handOver)
		beginAll(b, eng, b.N)
		measure(b, 1, func() { sideBySide(b.N, func(i int) { complete(b, eng, i) }) })
	})
	b.Run("restart", func(b *testing.B) {
		dir := b.TempDir()
		eng := mustOpen(b, options(dir, waiting, handOver))
		stop := run(eng)
		beginAll(b, eng, waitingSteps)
		restarts(b, stop, func() (*engine.Engine, func() error) {
			eng := mustOpen(b, options(dir, waiting, handOver))
			return eng, run(eng)
		}, func(eng *engine.Engine, i int) { complete(b, eng, i) })
	})
}

// handOver lets the step wait for a day.
func handOver(context.Context, makegood.Task) (json.RawMessage, error) {
	return nil, agent.Wait(time.Now().Add(24 * time.Hour))
}

// beginAll submits n jobs, and returns when the step of each has been seen to wait.
func beginAll(b *testing.B, eng *engine.Engine, n int) {
	b.Helper()
	sideBySide(n, func(i int) { submitNumber(b, eng, i) })
	for i := range n {
		for !waits(b, eng, number(i)) {
			time.Sleep(time.Millisecond)
		}
	}
}

func waits(b *testing.B, eng *engine.Engine, id string) bool {
	b.Helper()
	j, err := eng.Look(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return j.Steps[0].State == makegood.StepWaiting
}

func complete(b *testing.B, eng *engine.Engine, i int) {
	id := number(i)
	if _, err := eng.Complete(b.Context(), id, api.StepRef{Step: "pay"}, json.RawMessage(`"paid"`)); err != nil {
		b.Error(err)
	}
	waitDone(b, eng, id)
}

// restarts measures from the opening of an engine until it has brought a job to its end; stop ends the engine before.
func restarts(b *testing.B, stop func() error, open func() (*engine.Engine, func() error), work func(eng *engine.Engine, i int)) {
	b.Helper()
	var opened time.Duration
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		if err := stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		begin := time.Now()
		var eng *engine.Engine
		eng, stop = open()
		opened += time.Since(begin)
		work(eng, i)
	}
	b.StopTimer()
	if err := stop(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(opened.Microseconds())/1000/float64(b.N), "open-ms")
}

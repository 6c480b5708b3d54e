package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
)

//go:embed workflows/*.yaml
var files embed.FS

// workflows are those of the soak.
var workflows, _ = fs.Sub(files, "workflows") // The folder is in the program.

// failsEvery is how many attempts one fails.
const failsEvery = 7

// crew is the agent of all steps. Some of its attempts fail, and some never answer.
func crew(tries *atomic.Int64) agent.Handler {
	work := func(context.Context, json.RawMessage) (string, error) {
		if tries.Add(1)%failsEvery == 0 {
			return "", errors.New("the line was busy")
		}
		return "done", nil
	}
	return agent.New("crew",
		agent.Do("look", func(context.Context, json.RawMessage) (string, error) { return "seen", nil }),
		agent.Do("reserve", work).Undo("release", func(context.Context, json.RawMessage, *string) error { return nil }),
		agent.Do("refuse", func(context.Context, json.RawMessage) (string, error) {
			return "", agent.Final(errors.New("it is not to be had"))
		}),
		agent.Do("hang", func(ctx context.Context, _ json.RawMessage) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
	)
}

// submit submits the n-th job of a workflow.
func submit(ctx context.Context, jobs api.Jobs, workflow string, n int) error {
	_, err := jobs.Submit(ctx, makegood.Submission{ID: fmt.Sprintf("%s-%08d", workflow, n), Workflow: workflow, Input: json.RawMessage(`{"sku":"a-17","quantity":3}`)})
	return err
}

// figures are the sizes of an engine at a moment.
type figures struct {
	at time.Duration
	// heap is reachable after a collection, in bytes; data and log are the sizes of the files.
	heap, data, log int64
	goroutines      int
	// queued are jobs that have begun and not ended, ended those that have.
	queued, ended int
	// waited is for how long submissions have waited so far because too many jobs were under way.
	waited time.Duration
}

// measure takes the sizes of this process, and of the engine's files.
func measure(began time.Time, dir string) (figures, error) {
	f := figures{at: time.Since(began), goroutines: runtime.NumGoroutine()}
	runtime.GC()
	runtime.GC() // what pools keep is gone after the second
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(live)
	f.heap = int64(live[0].Value.Uint64())
	for name, size := range map[string]*int64{"makegood.db": &f.data, "makegood.db-wal": &f.log} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return f, err
		}
		*size = info.Size()
	}
	return f, nil
}

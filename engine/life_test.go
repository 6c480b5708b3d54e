package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// slow is an agent that takes its time to stop.
type slow struct {
	begun, told, may chan struct{}
	over             atomic.Bool
}

func (s *slow) Name() string { return "post" }

func (s *slow) Handle(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
	close(s.begun)
	<-ctx.Done()
	close(s.told)
	<-s.may
	s.over.Store(true)
	return nil, ctx.Err()
}

// Whoever closes an engine that works stops it, however many they are: nothing of it works on when the folder is free.
func TestCloseStopsRunAndWaitsForIt(t *testing.T) {
	dir := t.TempDir()
	post := &slow{begun: make(chan struct{}), told: make(chan struct{}), may: make(chan struct{})}
	eng := run(t, engine.Options{Dir: dir, Agents: []agent.Handler{post}})
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "l"}); err != nil {
		t.Fatal(err)
	}
	<-post.begun
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := eng.Close(); err != nil || !post.over.Load() {
				t.Errorf("closed: got %v, its agent was over: %t", err, post.over.Load())
			}
		})
	}
	<-post.told
	if other, err := engine.Open(t.Context(), engine.Options{Dir: dir}); err == nil {
		t.Error("while its agent works, another engine got the folder")
		_ = other.Close()
	}
	close(post.may)
	all.Wait()
	if err := <-eng.ended; err != nil {
		t.Errorf("Run that was stopped by Close: got %v, want nil", err)
	}
	if err := eng.Run(t.Context()); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("Run after Close: got %v, want %v", err, engine.ErrClosed)
	}
	again := run(t, engine.Options{Dir: dir})
	again.close(t)
}

// A second Run beside the first is refused at once, and does the first no harm. One after it goes on.
func TestAnEngineRunsOnceAtATime(t *testing.T) {
	eng := run(t, engine.Options{})
	write(t, eng, "first")
	if err := eng.Run(t.Context()); !errors.Is(err, engine.ErrRunning) {
		t.Errorf("a second Run: got %v, want %v", err, engine.ErrRunning)
	}
	write(t, eng, "second")
	eng.stop()
	if err := <-eng.ended; err != nil {
		t.Fatal(err)
	}
	go func() { eng.ended <- eng.Run(t.Context()) }()
	write(t, eng, "third")
	if err := errors.Join(eng.Close(), <-eng.ended); err != nil {
		t.Error(err)
	}
}

// write submits a job, and waits until it is Processed.
func write(t *testing.T, eng *running, id string) {
	t.Helper()
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: id, Input: json.RawMessage(`"Ada"`)}); err != nil {
		t.Fatal(err)
	}
	job, err := eng.Wait(t.Context(), id)
	if err != nil || job.ProcessState != makegood.JobProcessed {
		t.Fatalf("%s: got %s, %v, want Processed", id, job.ProcessState, err)
	}
}

package sqlitestore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// A step costs the store a load, a claim and a save. What matters is CPU: two cores serve the client,
// the agents and the store.

func BenchmarkStep(b *testing.B) { benchmarkSteps(b, 64, 0) }

func BenchmarkStepUncached(b *testing.B) { benchmarkSteps(b, 64, -1) }

func BenchmarkLone(b *testing.B) { benchmarkSteps(b, 1, 0) }

func benchmarkSteps(b *testing.B, goroutines, cacheSteps int) {
	s, err := sqlitestore.Open(context.Background(), sqlitestore.Options{Path: b.TempDir() + "/bench.db", CacheSteps: cacheSteps})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shut()
	for i := range goroutines {
		if err := s.Create(b.Context(), benchJob(i)); err != nil {
			b.Fatal(err)
		}
	}
	before, cpu := s.Stats(), cpuTime()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range goroutines {
		id := benchJob(i).ID
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := step(b.Context(), s, id); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	after := s.Stats()
	n := float64(b.N)
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/n, "cpu-µs/op")
	b.ReportMetric(float64(after.Syncs-before.Syncs)/n, "syncs/op")
	b.ReportMetric(float64(after.Groups-before.Groups)/n, "groups/op")
	b.ReportMetric(float64(after.Checkpoints-before.Checkpoints), "checkpoints")
}

// step is a load, a claim, and the save that opens the next attempt.
func step(ctx context.Context, s store.Store, id string) error {
	j, err := s.Load(ctx, id)
	if err != nil {
		return err
	}
	attempt := j.Steps[1].Forward.Attempt
	claim := job.Claim{Attempt: attempt, LockedBy: fmt.Sprintf("agent-1234/%016x", attempt), StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
	if err := s.Claim(ctx, slotOf(id), claim, j.CompleteBy); err != nil {
		return err
	}
	seen := j.CompleteBy
	j.Steps[1].Forward.Attempt++
	j.LockedBy = claim.LockedBy
	return s.Save(ctx, store.Change{Job: j, Seen: seen})
}

// birth is the nonce of all jobs of these tests.
const birth = "0123456789abcdef"

// slotOf is the slot of charge12 of a job.
func slotOf(id string) store.Slot {
	return store.Slot{Agent: "payments", Job: id, Birth: birth, Step: "charge12"}
}

func benchJob(i int) job.Job {
	now := domain.Instant(time.Now())
	j := job.Job{
		ID: fmt.Sprintf("order-%06d", i), Workflow: "order", Definition: "0123456789abcdef", Round: 1,
		ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, CompleteBy: now.Add(time.Minute), CreatedAt: now,
		Input:     wire.Inline([]byte(`{"sku":"abc","quantity":3,"email":"someone@example.com"}`)),
		InputHash: "0123456789abcdef0123456789abcdef", Birth: birth,
	}
	for _, name := range []string{"reserve1", "charge12", "notify12", "packing1", "shipping"} {
		forward := job.Activity{State: job.Done, Attempt: 1, Tries: 1, At: now, Cause: "submit", Output: wire.Inline([]byte(`{"ok":true,"id":12345678}`)), StartedAt: now, FinishedAt: now}
		j.Steps = append(j.Steps, job.StepState{Name: name, Attempt: 1, Forward: forward})
	}
	return j
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

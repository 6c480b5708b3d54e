package jobformat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// What a save and a load cost in the processor, and how large a job is: docs/decisions/0012-the-stored-job.md.
func BenchmarkJob(b *testing.B) {
	for _, n := range []int{5, 20, limits.MaxSteps} {
		j := benchJob(n)
		data := jobformat.Encode(j, jobformat.Apart{})
		b.Run(fmt.Sprint("encode ", n, " steps"), func(b *testing.B) {
			for b.Loop() {
				jobformat.Encode(j, jobformat.Apart{})
			}
			b.ReportMetric(float64(len(data)), "bytes")
		})
		b.Run(fmt.Sprint("decode ", n, " steps"), func(b *testing.B) {
			for b.Loop() {
				_, err := jobformat.DecodeWhole(data)
				must(b, "decode", err)
			}
		})
	}
}

// benchJob is a job whose last step is under way, and all before it went well.
func benchJob(n int) job.Job {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	j := job.Job{
		ID: "order-123456", Workflow: "order", Definition: strings.Repeat("0a", 32), InputHash: strings.Repeat("0b", 32), Birth: strings.Repeat("0c", 8), Round: 1,
		ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, CreatedAt: at, Deadline: at.Add(time.Hour), Transitions: n, Secret: []byte("sixteen bytes of"),
		Input: job.Payload{Inline: []byte(`{"sku":"A1","quantity":2}`), Bytes: 25},
	}
	for i := range n {
		s := job.StepState{Name: fmt.Sprintf("step_%03d", i), Attempt: 1}
		begun := at.Add(time.Duration(i) * 1234 * time.Millisecond)
		s.Forward = job.Activity{
			State: job.Done, Attempt: 1, Tries: 1, At: begun, Cause: fmt.Sprintf("step_%03d#1", max(0, i-1)),
			StartedAt: begun.Add(41 * time.Millisecond), FinishedAt: begun.Add(1039 * time.Millisecond),
			Output: job.Payload{Inline: []byte(`{"ok":true,"reference":"0123456"}`), Bytes: 33},
		}
		if i == n-1 {
			s.Forward.State, s.Forward.Output, s.Forward.FinishedAt = job.Dispatched, job.Payload{}, time.Time{}
			s.Forward.LookAt = begun.Add(time.Minute)
		}
		j.Steps = append(j.Steps, s)
	}
	return j
}

package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// seen is a breaker that notes the jobs of the outcomes that it is told of.
type seen struct{ jobs []string }

func (s *seen) Saw(_ context.Context, _, id string, _ *job.StepError, _ time.Time) (string, error) {
	s.jobs = append(s.jobs, id)
	return "", nil
}

func (s *seen) Heal(context.Context, string, bool, time.Time) error { return nil }

func (s *seen) SlowDown(context.Context, string, time.Time, string) error { return nil }

// Another has written a claim that cannot be true over that of an attempt, which replies. So the attempt counts as silent,
// and its reply is told; the breaker counts it once.
func TestAnAttemptIsJudgedOnce(t *testing.T) {
	w, breaker := newWorld(t), &seen{}
	w.use(func(c *scheduler.Config) { c.Breaker, c.Breakers = breaker, []string{"*"} })
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, timeout: 10s, retry: {attempts: 3, backoff: 1m}}]"), "j")
	reply := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "502", Retryable: true})
	lie := job.Claim{Attempt: 2, LockedBy: "liar", StartedAt: w.now, CompleteBy: w.now.Add(480 * time.Hour)}
	if err := w.file.Claim(t.Context(), w.slot("j", "first"), lie, w.claimUntil("j", "first")); err != nil {
		t.Fatal(err)
	}
	w.handle(reply)
	if len(breaker.jobs) != 1 {
		t.Errorf("it is judged %d times, want once", len(breaker.jobs))
	}
}

package scheduler_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// What the configuration leaves out is filled in, and what it says is kept.
func TestWhatTheConfigurationLeavesOutIsFilledIn(t *testing.T) {
	s := scheduler.New(scheduler.Config{})
	if s.Now == nil || s.Random == nil || s.Bytes == nil || s.Logger == nil || s.Notifier == nil || s.Evaluations != scheduler.DefaultEvaluations {
		t.Errorf("got %+v, want a clock, chance, a log, somebody to tell, and %d evaluations", s.Config, scheduler.DefaultEvaluations)
	}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	var told teller
	s = scheduler.New(scheduler.Config{Logger: logger, Notifier: &told, Evaluations: 7})
	if s.Logger != logger || s.Notifier != &told || s.Evaluations != 7 {
		t.Errorf("got %+v, want what was given", s.Config)
	}
}

// What no decision can know of itself it is told: how often the Supervisor looks, and a number to draw the waits from.
func TestDecisionsAreToldThePeriodAndARandomNumber(t *testing.T) {
	waits := map[time.Duration]bool{}
	for _, random := range []uint64{1, 2} {
		w := newWorld(t)
		w.s = w.with(func(c *scheduler.Config) { c.Period, c.Random = time.Minute, func() uint64 { return random } })
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a, timeout: 10s, retry: {backoff: 1h, max: 1h}}]"), "j")
		if got := w.job("j").Steps[0].Forward.LookAt; !got.Equal(w.now.Add(time.Minute)) {
			t.Errorf("got the attempt looked at after %s, want the period, which is longer than its timeout", got.Sub(w.now))
		}
		w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Retryable: true}))
		waits[w.job("j").Steps[0].Forward.At.Sub(w.now)] = true
	}
	if len(waits) != 2 {
		t.Errorf("got the waits %v, want another for each random number", waits)
	}
}

package scheduler_test

import (
	"io"
	"log/slog"
	"testing"

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

package scheduler

import (
	"io"
	"log/slog"
	"testing"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// needed is a configuration of what must be set, and no more.
func needed() Config {
	var all struct{ store.Store }
	var sender struct{ queue.Sender }
	return Config{Jobs: all, Closings: all, Payloads: all, Definitions: all, Queue: sender, Tasks: func(string) string { return "" }}
}

// What the configuration leaves out is filled in, and what it says is kept.
func TestWhatTheConfigurationLeavesOutIsFilledIn(t *testing.T) {
	c := New(needed()).config
	if c.Now == nil || c.Read == nil || c.Random == nil || c.Bytes == nil || c.Logger == nil || c.Notifier == nil || c.Evaluations != DefaultEvaluations {
		t.Errorf("got %+v, want a clock, a reader, chance, a log, somebody to tell, and %d evaluations", c, DefaultEvaluations)
	}
	given := needed()
	given.Logger, given.Notifier, given.Evaluations = slog.New(slog.NewTextHandler(io.Discard, nil)), &deaf{}, 7
	if c = New(given).config; c.Logger != given.Logger || c.Notifier != given.Notifier || c.Evaluations != 7 {
		t.Errorf("got %+v, want what was given", c)
	}
}

// A Scheduler that lacks something could only fail later, and at a worse time.
func TestAConfigurationThatLacksSomethingIsRefused(t *testing.T) {
	for name, take := range map[string]func(*Config){
		"Jobs": func(c *Config) { c.Jobs = nil }, "Closings": func(c *Config) { c.Closings = nil },
		"Payloads": func(c *Config) { c.Payloads = nil }, "Definitions": func(c *Config) { c.Definitions = nil },
		"Queue": func(c *Config) { c.Queue = nil }, "Tasks": func(c *Config) { c.Tasks = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := needed()
			take(&c)
			defer func() {
				if recover() == nil {
					t.Errorf("without %s: got a Scheduler, want a panic", name)
				}
			}()
			New(c)
		})
	}
}

// deaf is somebody to tell.
type deaf struct{ notify.Notifier }

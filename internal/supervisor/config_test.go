package supervisor

import (
	"io"
	"log/slog"
	"testing"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// needed is a configuration of what must be set, and no more.
func needed() Config {
	var index struct{ store.Index }
	var sender struct{ queue.Sender }
	return Config{Index: index, Queue: sender, Events: "events"}
}

// What the configuration leaves out is filled in, and what it says is kept.
func TestWhatTheConfigurationLeavesOutIsFilledIn(t *testing.T) {
	c := New(needed()).config
	if c.Page != DefaultPage || c.MaxPages != DefaultMaxPages || c.Depth != DefaultDepth || c.AuditPage != DefaultAuditPage {
		t.Errorf("got %+v, want the default limits", c)
	}
	if c.Now == nil || c.Logger == nil || c.Strays == nil || c.Places == nil {
		t.Errorf("got %+v, want a clock, logs and places", c)
	}
	given := needed()
	given.Logger, given.Page, given.MaxPages, given.Depth, given.AuditPage = slog.New(slog.NewTextHandler(io.Discard, nil)), 7, 8, 9, 10
	if c = New(given).config; c.Logger != given.Logger || c.Strays != given.Logger || c.Page != 7 || c.MaxPages != 8 || c.Depth != 9 || c.AuditPage != 10 {
		t.Errorf("got %+v, want what was given, and its log for strays", c)
	}
}

// A Supervisor that lacks something could only fail later, and at a worse time.
func TestAConfigurationThatLacksSomethingIsRefused(t *testing.T) {
	for name, take := range map[string]func(*Config){
		"Index": func(c *Config) { c.Index = nil }, "Queue": func(c *Config) { c.Queue = nil }, "Events": func(c *Config) { c.Events = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := needed()
			take(&c)
			defer func() {
				if recover() == nil {
					t.Errorf("without %s: got a Supervisor, want a panic", name)
				}
			}()
			New(c)
		})
	}
}

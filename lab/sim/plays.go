package sim

import (
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// plays notes what a write shows, for the table of what each layer plays. w.mu is held.
func (c change) plays() {
	if c.layer == nil {
		return
	}
	events := []job.Event{nil}
	if c.writer != nil && len(c.writer.batch[c.after.ID]) > 0 {
		events = c.writer.batch[c.after.ID]
	}
	if len(events) > 1 {
		c.layer.Played(layers.Batches)
	}
	for _, e := range events {
		c.layer.Moved(layers.Move{Workflow: c.w, Before: c.before, After: c.after, Event: e})
	}
}

// playedFaults notes what went wrong.
func (w *world) playedFaults() {
	for kind, of := range map[Kind]layers.Feature{
		Lost: layers.Doubled, CrashBefore: layers.Deaths, PowerLost: layers.PowerLost, ClockSkewed: layers.Clocks,
		Stranger: layers.Strangers, ListenerDeaf: layers.Deaf,
	} {
		if w.faults.counts[kind] > 0 {
			w.layer.Played(of)
		}
	}
	if w.mixed {
		w.layer.Played(layers.Releases)
	}
}

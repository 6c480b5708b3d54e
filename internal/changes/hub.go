package changes

import (
	"context"
	"sync"

	"github.com/makegood-dev/makegood"
)

const (
	// maxRecent is how many changes a Hub remembers for viewers that come back.
	maxRecent = 10_000
	// maxBehind is how many changes may wait for one viewer.
	maxBehind = 1000
)

// Shown is a change for viewers: At is its place among all changes that the Hub has shown, from 1. Missed is how many
// were left out before it, because the viewer was too slow, or away too long.
type Shown struct {
	At       int64
	Job      string
	Workflow string
	Missed   int64
	makegood.Change
}

// Hub shows changes to viewers. It does not wait: a slow viewer misses some changes, and is told how many.
type Hub struct {
	mu      sync.Mutex
	last    int64
	recent  []Shown // the last ones, a ring
	viewers map[*viewer]struct{}
	ended   chan struct{}
	end     sync.Once
	// shown and before are the last shown numbers of recently changed jobs: runs repeat unacknowledged changes.
	shown, before map[jobKey]int
}

// jobKey names a job for ever: its id may be given again.
type jobKey struct {
	id        string
	createdAt int64
}

// viewer is a live viewer.
type viewer struct {
	out    chan Shown
	missed int64
}

// NewHub makes a Hub.
func NewHub() *Hub {
	return &Hub{viewers: map[*viewer]struct{}{}, shown: map[jobKey]int{}, ended: make(chan struct{})}
}

// Close ends all viewers. A nil Hub has none.
func (h *Hub) Close() {
	if h != nil {
		h.end.Do(func() { close(h.ended) })
	}
}

// Ended is closed when viewers must leave.
func (h *Hub) Ended() <-chan struct{} { return h.ended }

// Show shows a run.
func (h *Hub) Show(run makegood.Changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := jobKey{run.Job, run.CreatedAt.UnixMilli()}
	seen := max(h.shown[key], h.before[key])
	for _, c := range run.Changes {
		if c.Number <= seen {
			continue
		}
		seen = c.Number
		h.last++
		s := Shown{At: h.last, Job: run.Job, Workflow: run.Workflow, Change: c}
		if h.recent = append(h.recent, s); len(h.recent) > 2*maxRecent {
			h.recent = append([]Shown(nil), h.recent[len(h.recent)-maxRecent:]...)
		}
		for v := range h.viewers {
			v.show(s)
		}
	}
	if len(h.shown) >= maxRecent {
		h.shown, h.before = map[jobKey]int{}, h.shown
	}
	h.shown[key] = seen
}

// show never waits.
func (v *viewer) show(s Shown) {
	s.Missed = v.missed
	select {
	case v.out <- s:
		v.missed = 0
	default:
		v.missed++
	}
}

// Watch returns the changes from now on, or, with after above zero, those after that place, as far as they are
// remembered; until stop is called, which the caller must do.
func (h *Hub) Watch(after int64) (all <-chan Shown, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := &viewer{out: make(chan Shown, maxBehind)}
	if after > 0 {
		v.catchUp(h, after)
	}
	h.viewers[v] = struct{}{}
	return v.out, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.viewers, v)
	}
}

func (v *viewer) catchUp(h *Hub, after int64) {
	if after > h.last {
		return // It is of a Hub before this one, which the caller tells apart.
	}
	kept := h.recent[max(0, len(h.recent)-maxBehind/2):] // At least one: the last, which is not before after.
	v.missed = max(0, kept[0].At-after-1)
	for _, s := range kept {
		if s.At > after {
			v.show(s)
		}
	}
}

// Live shows runs to viewers, and passes them on. Without Next it passes them to no publisher.
type Live struct {
	Hub  *Hub
	Next Publisher
}

var _ Publisher = Live{}

// Publish implements Publisher.
func (l Live) Publish(ctx context.Context, runs []Run) []error {
	for _, run := range runs {
		l.Hub.Show(run.Changes)
	}
	if l.Next == nil {
		return make([]error, len(runs))
	}
	return l.Next.Publish(ctx, runs)
}

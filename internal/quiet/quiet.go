// Package quiet keeps a log readable during a lasting failure: the same warning is written once a minute, and then
// with how many times it was held back. It never holds back records below a warning, or records that go through Loud.
package quiet

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Every is how often the same warning is written.
	Every = time.Minute
	// MaxWarnings is how many warnings are distinguished at a time. All further ones count as one.
	MaxWarnings = 1000
	// HeldBack is the attribute that says how many times a warning was held back.
	HeldBack = "heldBack"
)

// tellApart are the attributes by which warnings of one message differ. A job is not among them: one failure of a
// thousand jobs for one reason is one warning.
var tellApart = []string{"agent", "queue", "workflow", "step", "kind", "shard"}

// Handler holds back the warnings that repeat.
type Handler struct {
	inner slog.Handler
	*memory
	// attrs are those of tellApart that all records of this handler have; grouped: what records bring is
	// in a group, and none of ours.
	attrs   []slog.Attr
	grouped bool
}

var _ slog.Handler = (*Handler)(nil)

// memory is what a handler, and those made from it, remember.
type memory struct {
	now func() time.Time

	mu       sync.Mutex
	warnings map[string]*warning
	swept    time.Time
}

// warning is one that was written.
type warning struct {
	at    time.Time
	held  int
	inner slog.Handler
	// level, message and attrs are what its repetitions are told by.
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// New puts a Handler before inner; now is the clock. One that holds back already is given back as it is.
func New(inner slog.Handler, now func() time.Time) *Handler {
	if h, is := inner.(*Handler); is {
		return h
	}
	return &Handler{inner: inner, memory: &memory{now: now, warnings: map[string]*warning{}, swept: now()}}
}

// Loud returns a logger that writes to the same log and holds no record back.
func Loud(logger *slog.Logger) *slog.Logger {
	if h, is := logger.Handler().(*Handler); is {
		return slog.New(h.inner)
	}
	return logger
}

// Enabled is inner's.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

// WithAttrs is inner's.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.inner = h.inner.WithAttrs(attrs)
	if !h.grouped {
		next.attrs = append(slices.Clone(h.attrs), apart(attrs)...)
	}
	return &next
}

// WithGroup is inner's.
func (h *Handler) WithGroup(name string) slog.Handler {
	next := *h
	next.inner, next.grouped = h.inner.WithGroup(name), h.grouped || name != ""
	return &next
}

// Handle writes a record, unless it is a warning that was written less than Every ago.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.inner.Handle(ctx, r)
	}
	write, held := h.remember(r)
	err := h.Say(ctx)
	if !write {
		return err
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int(HeldBack, held))
	}
	return errors.Join(err, h.inner.Handle(ctx, r))
}

// remember reports whether a warning may be written, and how many times it was held back before.
func (h *Handler) remember(r slog.Record) (write bool, held int) {
	var attrs []slog.Attr
	if !h.grouped {
		r.Attrs(func(a slog.Attr) bool {
			attrs = append(attrs, apart([]slog.Attr{a})...)
			return true
		})
	}
	key := keyOf(r.Message, h.attrs, attrs)
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.warnings[key]
	if w == nil && len(h.warnings) >= MaxWarnings {
		key = ""
		w = h.warnings[key]
	}
	switch {
	case w == nil:
		h.warnings[key] = &warning{at: now, inner: h.inner, level: r.Level, message: r.Message, attrs: attrs}
		return true, 0
	case now.Sub(w.at) < Every:
		w.held++
		return false, 0
	}
	held, w.held, w.at = w.held, 0, now
	return true, held
}

// Say writes how many times each warning was held back that was last written Every ago, and forgets it. Every handled
// record does so too; a program that may fall silent calls it from time to time.
func (h *Handler) Say(ctx context.Context) error { return h.say(ctx, h.overdue(Every)) }

// SayAll does that of all warnings, as a program does that ends.
func (h *Handler) SayAll(ctx context.Context) error { return h.say(ctx, h.overdue(0)) }

func (h *Handler) say(ctx context.Context, overdue []*warning) error {
	var errs []error
	for _, w := range overdue {
		r := slog.NewRecord(h.now(), w.level, w.message, 0)
		r.AddAttrs(w.attrs...)
		r.AddAttrs(slog.Int(HeldBack, w.held))
		errs = append(errs, w.inner.Handle(ctx, r))
	}
	return errors.Join(errs...)
}

// overdue takes out the warnings that were last written so long ago, and returns those that were held back.
// It looks through them once in that time.
func (m *memory) overdue(age time.Duration) []*warning {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.swept) < age {
		return nil
	}
	m.swept = now
	var overdue []*warning
	for key, w := range m.warnings {
		if now.Sub(w.at) < age {
			continue
		}
		delete(m.warnings, key)
		if w.held > 0 {
			overdue = append(overdue, w)
		}
	}
	slices.SortFunc(overdue, func(a, b *warning) int { return a.at.Compare(b.at) })
	return overdue
}

// apart returns the attributes by which warnings differ.
func apart(attrs []slog.Attr) []slog.Attr {
	return slices.DeleteFunc(slices.Clone(attrs), func(a slog.Attr) bool { return !slices.Contains(tellApart, a.Key) })
}

func keyOf(message string, lists ...[]slog.Attr) string {
	var key strings.Builder
	key.WriteString(message)
	for _, attrs := range lists {
		for _, a := range attrs {
			key.WriteString("\x00" + a.Key + "\x00" + a.Value.String())
		}
	}
	return key.String()
}

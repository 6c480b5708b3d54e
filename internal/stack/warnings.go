package stack

import (
	"context"
	"log/slog"
	"strings"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// warnings makes of the Scheduler's warnings what a person at a terminal should know: that something was
// stored, and was not sent.
type warnings struct {
	to      func(string)
	explain func(error) *Error
}

// Enabled leaves out all but warnings.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle tells of a warning, unless it is that nobody was told: the stack does that.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		switch {
		case ok && deployed.Untold(err):
			text = ""
			return false
		case ok:
			text += ": " + strings.ReplaceAll(w.explain(err).Error(), "\n", "; ")
		}
		return true
	})
	if text != "" {
		w.to("stored; but " + text)
	}
	return nil
}

// WithAttrs changes nothing: what it would add is for programs.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup changes nothing.
func (w *warnings) WithGroup(string) slog.Handler { return w }

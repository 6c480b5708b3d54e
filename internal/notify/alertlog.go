package notify

import (
	"context"
	"log/slog"
)

// AlertLog writes alerts to a log, one line each: all but the reasons of jobs, which may quote a payload.
type AlertLog struct{ Logger *slog.Logger }

var _ Alerter = AlertLog{}

// Alert writes a warning.
func (l AlertLog) Alert(ctx context.Context, a Alert) error {
	var args []any
	add := func(key, value string) {
		if value != "" {
			args = append(args, key, value)
		}
	}
	add("jobs", a.names())
	for _, c := range a.Commands() {
		add(map[string]string{"Look": "look", "Type": "type"}[c.For], c.Line)
	}
	add("page", a.Link())
	add("runbook", a.RunbookLink())
	l.Logger.WarnContext(ctx, a.what(), args...)
	return nil
}

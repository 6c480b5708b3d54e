package embedded

import (
	"context"
	"errors"
)

// ErrIdle: the engine does not run.
var ErrIdle = errors.New("the engine does not run")

// Ready returns nil if the engine runs and its store takes a write, which is flushed; the error names the failure.
// This detects a full disk.
func (e *Engine) Ready(ctx context.Context) error {
	if !e.life.running() {
		return ErrIdle
	}
	return e.file.Probe(ctx)
}

func (l *life) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended != nil && !l.closed
}

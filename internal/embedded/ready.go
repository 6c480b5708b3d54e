package embedded

import (
	"context"
	"errors"
)

// ErrIdle: the engine does not run.
var ErrIdle = errors.New("the engine does not run")

// Ready returns nil if the engine runs and its store takes a write, which is flushed; the error says what is not so. A disk that is
// full is found by that.
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

package embedded

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
)

var (
	// ErrRunning: another Run of the same engine has not returned. That Run goes on unaffected.
	ErrRunning = errors.New("this engine runs already")
	// ErrClosed: the engine was closed, and runs no more.
	ErrClosed = errors.New("this engine was closed")
)

// life lets an engine run once at a time, and no more once it was closed. The zero value is ready to run.
type life struct {
	mu     sync.Mutex
	closed bool
	// stop ends the Run that is there, and ended is closed when it has returned; nil: there is none.
	stop  context.CancelFunc
	ended chan struct{}
}

// begin starts Run, and end ends it; ctx ends with the one given, or by close. It fails with ErrRunning or ErrClosed
// before any work has begun.
func (l *life) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, ErrClosed
	case l.ended != nil:
		return nil, nil, ErrRunning
	}
	ctx, l.stop = context.WithCancel(ctx)
	l.ended = make(chan struct{})
	return ctx, l.end, nil
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop()
	close(l.ended)
	l.stop, l.ended = nil, nil
}

// close prevents further runs, stops the present Run, and waits until it has returned.
func (l *life) close() {
	l.mu.Lock()
	l.closed = true
	stop, ended := l.stop, l.ended
	l.mu.Unlock()
	if ended != nil {
		stop()
		<-ended
	}
}

// unlock frees the folder. Agents that ignored the order to stop still work in this process: until they have ended,
// or their work counts no more, another engine would make successors, or undos, beside them.
func (e *Engine) unlock() {
	if e.lock == nil {
		return
	}
	var zombies []string
	for _, workers := range e.workers {
		for _, w := range workers {
			zombies = append(zombies, w.Zombies()...)
		}
	}
	if len(zombies) == 0 {
		e.lock.Release()
		return
	}
	slices.Sort(zombies)
	why := "it was closed, and waits for what did not stop: " + strings.Join(zombies, "; ")
	if err := e.lock.Say(why); err != nil {
		e.config.Logger.Warn("the lock of the folder cannot say why it is held", "error", err)
	}
	e.config.Logger.Warn("the folder is not free yet, unless this process ends", "folder", e.config.Dir, "why", why)
	go func() {
		for _, workers := range e.workers {
			for _, w := range workers {
				w.AwaitZombies()
			}
		}
		e.lock.Release()
	}()
}

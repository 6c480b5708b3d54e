package embedded

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/store"
)

// deathsOfALoop is how many runs in a row must have died within minutes, before anything was done in them, to be called a loop.
const deathsOfALoop = 5

// warnOfDeaths says what a loop of deaths is. Whatever was under way in each of them is a suspect, and most of it is innocent: it
// is not their jobs that a person has to look at first.
func (e *Engine) warnOfDeaths(ctx context.Context, run store.Incarnation) {
	if run.Deaths < deathsOfALoop {
		return
	}
	quiet.Loud(e.config.Logger).ErrorContext(ctx, "the engine dies again and again before any attempt has ended: what was under way each time runs alone now, "+
		"and a job is stopped for it only if the engine dies while nothing else runs", "deaths", run.Deaths, "since", run.Since)
}

// stoppedRun is the number of the run before, if that was told to stop; 0: it died, or there was none.
func stoppedRun(run store.Incarnation) int {
	if run.Stopped {
		return run.Number - 1
	}
	return 0
}

// noteProgress keeps, once, that an attempt has ended in this run: it is none of a loop of deaths.
func (e *Engine) noteProgress() {
	if e.progressed.Load() || e.scheduler.Stats().Replies == 0 {
		return
	}
	// Else the next save tries again.
	e.progressed.Store(e.file.Progressed(context.Background()) == nil)
}

// noteStop keeps that this run ends because it was told to: what it cut off, it did not die over.
func (e *Engine) noteStop() {
	if e.scheduler == nil {
		return // It was never counted.
	}
	err := e.file.Stopped(context.Background())
	if err != nil && !errors.Is(err, store.ErrFailed) && !errors.Is(err, store.ErrClosed) {
		e.config.Logger.Warn("the next engine takes the end of this one for a death", "error", err)
	}
}

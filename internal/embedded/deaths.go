package embedded

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/store"
)

// deathsOfALoop is how many runs in a row must have died within minutes, without progress, to be called a loop.
const deathsOfALoop = 5

// warnOfDeaths explains a loop of deaths. Every attempt under way at each death is a suspect, and most are innocent:
// their jobs are not the first for a person to look at.
func (e *Engine) warnOfDeaths(ctx context.Context, run store.Incarnation) {
	if run.Deaths < deathsOfALoop {
		return
	}
	quiet.Loud(e.config.Logger).ErrorContext(ctx, "the engine dies again and again before any attempt has ended: the attempts under way each time run alone now, "+
		"and a job is stopped for it only if the engine dies while no other attempt runs", "deaths", run.Deaths, "since", run.Since)
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

// noteStop records that this run ends because it was told to: the attempts that it cut off did not kill it.
func (e *Engine) noteStop() {
	if e.scheduler == nil {
		return // It was never counted.
	}
	err := e.file.Stopped(context.Background())
	if err != nil && !errors.Is(err, store.ErrFailed) && !errors.Is(err, store.ErrClosed) {
		e.config.Logger.Warn("the next engine takes the end of this one for a death", "error", err)
	}
}

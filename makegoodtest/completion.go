package makegoodtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/completion"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/wire"
)

// asker tells the services of a case whom its workflow asks.
type asker struct{ services Services }

// Ask is what notify.Asker says.
func (a asker) Ask(_ context.Context, name string, q notify.Question) error {
	if a.services.Ask == nil {
		return nil
	}
	return a.services.Ask(name, engine.Question(q))
}

// event is what the engine is told.
func (c Completion) event() (id string, e job.StepCompleted, err error) {
	id, place, err := job.ReadCompletionToken(c.Token)
	if err != nil {
		return "", e, err
	}
	e = job.StepCompleted{Place: place, Request: c.Request, By: wire.ByToken}
	if c.Err != nil {
		failure := agent.Failure(c.Err)
		e.Error = &job.StepError{Message: failure.Message, Retryable: failure.Retryable, Applied: failure.Applied, Kind: failure.Kind}
		return id, e, nil
	}
	output, err := json.Marshal(c.Output)
	e.Output = wire.Inline(output)
	return id, e, err
}

// answer tells the engine what comes by the completions of the services, until the world ends.
func (w *world) answer() {
	over, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for {
			select {
			case <-over.Done():
				return
			case c, more := <-w.services.Completions:
				if !more {
					return
				}
				w.insistOn(over, c)
			}
		}
	}()
}

// insistOn tells an answer until the engine has taken or refused it.
func (w *world) insistOn(over context.Context, c Completion) {
	for over.Err() == nil {
		err := w.complete(c)
		switch {
		case err == nil:
			return
		case !errors.Is(err, errFault) && !errors.Is(err, errKilled) && !errors.Is(err, errNoEngine):
			w.t.Errorf("completion: %v", err)
			return
		}
		select {
		case <-over.Done():
		case <-time.After(again):
		}
	}
}

// errNoEngine: no engine runs at the moment.
var errNoEngine = errors.New("no engine runs")

// complete tells an answer once. That it was refused is no error.
func (w *world) complete(c Completion) error {
	id, e, err := c.event()
	if err != nil {
		return err
	}
	engine := w.running()
	if engine == nil {
		return errNoEngine
	}
	_, _, err = engine.Complete(context.Background(), id, e)
	return err
}

// running returns the engine that runs, if one does.
func (w *world) running() *embedded.Engine {
	w.mu.Lock()
	engine, life := w.engine, w.life
	w.mu.Unlock()
	// A life notes its faults in the world while it is locked itself.
	if life == nil || life.isDead() {
		return nil
	}
	return engine
}

// Settle says that a person has dealt with a step of the job, or its undo, as `makegood settle` does, and lets happen what
// follows at once. The error says why it was refused.
func (r *Running) Settle(at api.StepRef, s api.SettleOptions) error {
	desk := completion.Desk{Backend: r.w.engine}
	_, err := desk.Settle(context.Background(), completion.Address{Job: JobID, StepRef: at, By: "test"}, s)
	synctest.Wait()
	return err
}

// Complete tells the engine what somebody outside says of a step that waits, and lets happen what follows at once. The error
// says why it was refused.
func (r *Running) Complete(c Completion) error {
	id, e, err := c.event()
	if err != nil {
		return err
	}
	_, verdict, err := r.w.engine.Complete(context.Background(), id, e)
	if err == nil && verdict.Kind == machine.Refused {
		err = fmt.Errorf("the completion is refused: %s", verdict.Reason)
	}
	synctest.Wait()
	return err
}

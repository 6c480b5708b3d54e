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
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// asker passes the questions of a workflow to the services of a case.
type asker struct{ services Services }

// Ask is what notify.Asker says.
func (a asker) Ask(_ context.Context, name string, q notify.Question) error {
	if a.services.Ask == nil {
		return nil
	}
	return a.services.Ask(name, engine.Question(q))
}

// answer is what the engine is told.
func (c Completion) answer() (control.Answer, error) {
	a := control.Answer{Request: c.Request}
	if c.Err != nil {
		failure := agent.Failure(c.Err)
		a.Error = &failure
		return a, nil
	}
	output, err := json.Marshal(c.Output)
	a.Output = output
	return a, err
}

// answer sends the engine the completions of the services, until the world ends.
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
		case !errors.Is(err, faultstore.ErrInjected) && !errors.Is(err, faultstore.ErrCrashed) && !errors.Is(err, errNoEngine):
			w.t.Errorf("completion: %v", err)
			return
		}
		select {
		case <-over.Done():
		case <-time.After(again):
		}
	}
}

// byTest is the author of what a test asks.
const byTest = "test"

// errNoEngine: no engine runs at the moment.
var errNoEngine = errors.New("no engine runs")

// complete tells an answer once. That it was refused is no error.
func (w *world) complete(c Completion) error {
	said, err := c.answer()
	if err != nil {
		return err
	}
	engine := w.running()
	if engine == nil {
		return errNoEngine
	}
	_, err = engine.Jobs(byTest, nil).AnswerByToken(context.Background(), c.Token, said)
	if _, refused := errors.AsType[*api.RefusedError](err); refused {
		return nil
	}
	return err
}

// running returns the engine that runs, if one does.
func (w *world) running() *embedded.Engine {
	w.mu.Lock()
	engine, life := w.engine, w.life
	w.mu.Unlock()
	// A life notes its faults in the world while it is locked itself.
	if life == nil || life.Crashed() {
		return nil
	}
	return engine
}

// Settle settles a step of the job, or its undo, as a person does with `makegood settle`, and lets all immediate
// effects happen. The error is the reason of a refusal.
func (r *Running) Settle(at api.StepRef, s api.SettleOptions) error {
	_, err := r.w.engine.Jobs(byTest, nil).Settle(context.Background(), JobID, at, s)
	synctest.Wait()
	return err
}

// Complete completes a step that waits, as a person or a service outside does, and lets all immediate effects happen.
// The error is the reason of a refusal.
func (r *Running) Complete(c Completion) error {
	said, err := c.answer()
	if err != nil {
		return err
	}
	_, err = r.w.engine.Jobs(byTest, nil).AnswerByToken(context.Background(), c.Token, said)
	synctest.Wait()
	return refusal("the completion", err)
}

// refusal words the error of a request that was refused.
func refusal(what string, err error) error {
	if refused, is := errors.AsType[*api.RefusedError](err); is {
		return fmt.Errorf("%s is refused: %s", what, refused.Reason)
	}
	return err
}

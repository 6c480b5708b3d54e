package agentrun

import (
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/secret"
)

// readable reads an agent's error, once, and returns an error of ours with the same text without secrets: the methods
// of an error are its agent's code, and may panic wherever they are called. Those of a nil pointer mostly do, and a nil
// pointer that is returned as an error is not a nil error.
func readable(err error, hider secret.Hider) (plain error) {
	if err == nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			plain = agent.Kind(makegood.KindPanic, hider.Error(fmt.Errorf("panic: the agent's error, a %T, cannot be read: %v%s", err, value, panickedAt())))
		}
	}()
	if deadline, waits := agentctx.Waits(err); waits {
		return agent.Wait(deadline)
	}
	f := agent.Failure(hider.Error(err))
	pause := agent.RetryAfter
	if f.SlowDown {
		pause = agent.SlowDown
	}
	plain = pause(f.RetryAfter.Std(), agent.Kind(f.Kind, errors.New(f.Message)))
	if !f.Retryable {
		plain = agent.Final(plain)
	}
	if f.Applied == makegood.AppliedNo {
		plain = agent.NotApplied(plain)
	}
	if errors.Is(err, agent.ErrOver) {
		plain = overError{plain}
	}
	return plain
}

// overError is an error that says that the attempt is over.
type overError struct{ error }

func (e overError) Unwrap() error { return e.error }

// Is makes it an agent.ErrOver.
func (overError) Is(target error) bool { return target == agent.ErrOver }

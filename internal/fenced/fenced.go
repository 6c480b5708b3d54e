// Package fenced is the common part of the fences (agent/dynamofence, agent/sqlitefence): the state of a step's
// effect under its idempotency key, how its output is kept there, and the errors of a fence.
package fenced

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/limits"
)

// State is the state of an effect.
type State string

const (
	None State = ""
	Done State = "done"
	// Undone: it was there, and was undone. Refused: its undo came first, so it never will be.
	Undone  State = "undone"
	Refused State = "refused"
	// Missing: it is not there, though the job says that it was done. This finding is not stored.
	Missing State = "missing"
)

// The refusals of a fence, which it exports and explains.
var (
	ErrLost    = fmt.Errorf("the write did not happen: %w", agent.ErrOver)
	ErrUndone  = fmt.Errorf("the step was undone, and the write did not happen: %w", agent.ErrOver)
	ErrMissing = errors.New("the step was done, and its effect is not here")
	ErrTask    = errors.New("no attempt that could be fenced")
)

// CheckKeep returns the fault of how long effects are to be kept; nil: none.
func CheckKeep(keep time.Duration) error {
	if keep != 0 && keep < limits.MinKeepEffect {
		return fmt.Errorf("effects are to be kept for %v, the least is %v (zero: for ever)", keep, limits.MinKeepEffect)
	}
	return nil
}

// Undoing goes through the effects of a step that is undone, one for each of its keys, the newest first.
type Undoing struct {
	task    makegood.Task
	keys    []string
	undone  bool
	missing bool
}

// NewUndoing begins the undo that a task asks for. ErrTask: it asks for none.
func NewUndoing(task makegood.Task) (*Undoing, error) {
	if task.Undo == nil {
		return nil, agent.Final(agent.NotApplied(fmt.Errorf("%w: step %q is no undo", ErrTask, task.Step)))
	}
	return &Undoing{task: task, keys: task.Undo.Keys()}, nil
}

// Key returns the next key; false: there is none any more.
func (u *Undoing) Key() (key string, ok bool) {
	if len(u.keys) == 0 {
		return "", false
	}
	return u.keys[0], true
}

// Judge returns the state that the present effect counts as, given the state found.
func (u *Undoing) Judge(found State) State {
	repeatedSince := len(u.keys) <= u.task.Undo.Repeats
	if found == None && (repeatedSince || u.task.Undo.Outcome == makegood.OutcomeDone) {
		return Missing
	}
	return found
}

// Next records the state of the present effect, and goes on to the next.
func (u *Undoing) Next(judged State) {
	u.undone = u.undone || judged == Done
	u.missing = u.missing || judged == Missing
	u.keys = u.keys[1:]
}

// Err returns how it has ended: ErrMissing, if an effect was not there that must be.
func (u *Undoing) Err() error {
	err := fmt.Errorf("undo of %s: %w", u.task.Undo.ForwardKey, ErrMissing)
	switch {
	case !u.missing:
		return nil
	case u.undone:
		return err
	default:
		return agent.NotApplied(err)
	}
}

// Failed returns the error of an effect that has left no trace. A step cannot wait for an effect that is not there.
func Failed(err error) error {
	if _, waits := agentctx.Waits(err); !waits {
		return err
	}
	return agent.Final(agent.NotApplied(errors.New("the function behind the fence answered agent.Wait, and is rolled back: return Wait when the fence has returned")))
}

// Write writes an output as the action meant it, and refuses one that is larger, or nested deeper, than an output may
// be. An error is final, and no effect was made yet.
func Write(output any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(output); err != nil {
		return nil, agent.Final(agent.NotApplied(fmt.Errorf("write the output as JSON: %w", err)))
	}
	text := bytes.TrimSpace(b.Bytes())
	if len(text) > makegood.MaxPayloadBytes {
		return nil, agent.Final(agent.NotApplied(fmt.Errorf("the output has %d bytes, the limit is %d", len(text), makegood.MaxPayloadBytes)))
	}
	if err := canonical.CheckDepth(text); err != nil {
		return nil, agent.Final(agent.NotApplied(fmt.Errorf("the output is %w", err)))
	}
	return text, nil
}

// Read reads the stored output of the step of the attempt that runs in ctx. An error is final; the effect is there.
func Read[Out any](ctx context.Context, kept json.RawMessage) (Out, error) {
	out, err := read[Out](agent.TaskOf(ctx).Key, kept)
	if err != nil {
		return out, agent.Final(err)
	}
	return out, nil
}

// ReadForUndo reads the stored output of the step that ctx undoes. An error is final, and no undo was made.
func ReadForUndo[Out any](ctx context.Context, kept json.RawMessage) (Out, error) {
	out, err := read[Out](agent.TaskOf(ctx).Undo.ForwardKey, kept)
	if err != nil {
		return out, agent.Final(agent.NotApplied(err))
	}
	return out, nil
}

func read[Out any](key string, kept json.RawMessage) (out Out, err error) {
	if err := json.Unmarshal(kept, &out); err != nil {
		return out, fmt.Errorf("read the output that was stored under %s: %w", key, err)
	}
	return out, nil
}

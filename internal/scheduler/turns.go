package scheduler

import (
	"context"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// DefaultEvaluations is how many evaluations may run at a time by default.
	DefaultEvaluations = 4
	// maxKept is how many bytes of payloads are kept in memory while a job is moved.
	maxKept = 2 << 20
	// maxAhead is how many bytes of payloads may be read before it is an evaluation's turn.
	maxAhead = 1 << 20
)

// turns bounds how much memory evaluations take together: a batch has ten jobs, and each may read many large outputs.
// Waiting in vain for a turn proves no fault of an expression.
type turns chan struct{}

func (t turns) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turns) release() { <-t }

// evaluation lets do evaluate with the data of a step when it is its turn. Small values are read before, so that no
// evaluation waits for another's reads; large values are read and held within the turn.
func (v *values) evaluation(ctx context.Context, j job.Job, w machine.Want, do func(workflowfile.Data) error) error {
	large := v.toRead(j, w) > maxAhead
	if large {
		if err := v.turns.acquire(ctx); err != nil {
			return err
		}
		defer v.turns.release()
	}
	data, err := v.data(ctx, j, w.Step, w.Undo)
	if err != nil {
		return err
	}
	if !large {
		if err := v.turns.acquire(ctx); err != nil {
			return err
		}
		defer v.turns.release()
	}
	return do(data)
}

// toRead is how many bytes of payloads the data of a step are made of.
func (v *values) toRead(j job.Job, w machine.Want) int {
	bytes := j.InputOf(w.Step, w.Undo).Bytes
	for _, name := range v.compiled.Reads(w.Step, w.Undo) {
		s, _ := j.Step(name)
		bytes += s.Forward.Output.Bytes
	}
	return bytes
}

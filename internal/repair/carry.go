package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/pause"
)

// askTimeout is how long a job may take to answer before it is asked again.
const askTimeout = 30 * time.Second

// run is an order on its way.
type run struct {
	mu       sync.Mutex
	progress Progress
	answered map[string]bool
	file     *journal
	cancel   context.CancelFunc
}

// answer is what came of asking a job; without an outcome nobody answered, and it is to be asked again.
type answer struct {
	outcome Outcome
	reason  string
}

// carry carries an order out, beside whoever asked for it.
func (k *Keeper) carry(r *run) {
	ctx, cancel := context.WithCancel(k.ctx)
	r.cancel = cancel
	order := r.progress.Order
	k.runs.Go(func() {
		defer cancel()
		err := Do(ctx, r.left(), Pace{AtOnce: atOnce, PerSecond: order.PerSecond},
			func(_ context.Context, id string) answer { return k.ask(ctx, r, order, id) }, r.heard)
		if err = errors.Join(err, r.through(ctx)); err != nil && ctx.Err() == nil {
			r.waits(err.Error())
			k.logger.Error("a repair stands still until the next start", "repair", order.Name, "error", err)
		}
	})
}

// left are the jobs that have not answered.
func (r *run) left() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, id := range r.progress.Jobs {
			r.mu.Lock()
			done := r.answered[id]
			r.mu.Unlock()
			if !done && !yield(id, nil) {
				return
			}
		}
	}
}

// ask asks a job until it answers, or ctx ends. What was sent is not cut off by that.
func (k *Keeper) ask(ctx context.Context, r *run, o Order, id string) answer {
	for rest := firstPause; ; rest = min(2*rest, longestPause) {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		said, err := k.guarded(within, o, id)
		cancel()
		if err == nil {
			r.waits("")
			return said
		}
		r.waits(err.Error())
		if pause.For(ctx, rest) != nil {
			return answer{}
		}
	}
}

// guarded is once, with a panic returned as an error: a call runs code of others, and a repair runs beside them all.
func (k *Keeper) guarded(ctx context.Context, o Order, id string) (said answer, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
			k.logger.ErrorContext(ctx, "a repair asked for what panicked, and asks again", "repair", o.Name, "job", id, "error", err, "stack", string(debug.Stack()))
		}
	}()
	return k.once(api.As(ctx, o.By), o, id)
}

// once asks a job. An error means that nobody answered, or that whoever asks may not: their credentials have expired, say, and the
// other jobs would all refuse for that.
func (k *Keeper) once(ctx context.Context, o Order, id string) (answer, error) {
	var job makegood.Job
	var err error
	switch {
	case o.Answer != "":
		job, err = k.answer(ctx, o, id)
	case o.Verb == "":
		job, err = k.jobs.Settle(ctx, id, api.StepRef{Step: o.Step, Undo: o.Undo}, api.SettleOptions{Skipped: o.Skipped, Reason: o.Reason, Name: o.Name})
	default:
		job, err = k.jobs.Request(ctx, id, api.Request{Verb: o.Verb, Reason: o.Reason, Name: o.Name, Definition: o.Definition})
	}
	if outcome, reason, answered := OutcomeOf(job, err); answered {
		return answer{outcome, reason}, nil
	}
	return answer{}, err
}

// OutcomeOf returns the outcome of a request, and the reason of a refusal, from the job and the error of its answer. answered is false
// where no job has answered, or where the caller may not ask: then the error is the same for every job.
func OutcomeOf(job makegood.Job, err error) (o Outcome, reason string, answered bool) {
	var refused *api.RefusedError
	var mismatch *api.MismatchError
	var invalid *api.InvalidError
	switch {
	case err == nil && job.Existed:
		return Already, "", true
	case err == nil:
		return Granted, "", true
	case errors.Is(err, api.ErrNotFound):
		return Refused, api.ErrNotFound.Error(), true
	case errors.Is(err, api.ErrDamaged):
		return Refused, api.ErrDamaged.Error(), true // It stays so, and the other jobs do not wait for it.
	case errors.As(err, &refused):
		return Refused, refused.Reason, true
	case errors.As(err, &mismatch):
		return Refused, "its id is that of another job already", true
	case errors.As(err, &invalid) && invalid.Status != http.StatusUnauthorized && invalid.Status != http.StatusForbidden:
		return Refused, invalid.Message, true
	}
	return "", "", false
}

// answer gives a step its answer. The same again is the same, so it may be given twice.
func (k *Keeper) answer(ctx context.Context, o Order, id string) (makegood.Job, error) {
	output, err := json.Marshal(o.Answer)
	if err != nil {
		return makegood.Job{}, err
	}
	return k.jobs.Complete(ctx, id, api.StepRef{Step: o.Step, Undo: o.Undo, Why: o.Reason}, output)
}

// waits says why nobody answers; empty: somebody does.
func (r *run) waits(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Waits = why
}

// heard counts and keeps what came of a job.
func (r *run) heard(id string, a answer) error {
	if a.outcome == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(id, a)
	return r.file.write(line{Job: id, Outcome: a.outcome, Reason: a.reason})
}

// count counts what came of a job, once.
func (r *run) count(id string, a answer) {
	if r.answered[id] {
		return
	}
	r.answered[id] = true
	p := &r.progress
	p.Asked++
	switch a.outcome {
	case Granted:
		p.Granted++
	case Already:
		p.Already++
	case Refused:
		p.Refused++
		if len(p.Refusals) < maxRefusals {
			p.Refusals = append(p.Refusals, Refusal{id, a.reason})
		}
	}
}

// through ends an order all of whose jobs have answered.
func (r *run) through(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.progress.Goes() || r.progress.Left() > 0 {
		return context.Cause(ctx)
	}
	return r.end(false)
}

// end ends an order for good. Whoever calls it holds mu.
func (r *run) end(stopped bool) error {
	r.progress.EndedAt, r.progress.Stopped = time.Now().UTC(), stopped
	file := r.file
	r.file = nil
	return errors.Join(file.end(r.progress.EndedAt, stopped), file.close())
}

// snapshot returns how far it is. Its slices are not to be changed.
func (r *run) snapshot() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.progress
	p.Refusals = append([]Refusal(nil), p.Refusals...)
	return p
}

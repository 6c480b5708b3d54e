package bulk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"
)

// Run is an order on its way.
type Run struct {
	mu       sync.Mutex
	progress Progress
	answered map[string]bool
	file     *journal
	cancel   context.CancelFunc
}

// Begin returns the run of an order that no file keeps.
func Begin(o Order) *Run { return &Run{progress: Progress{Order: o}, answered: map[string]bool{}} }

// Resume returns the run of an order whose journal is the file at path; made, if it is missing. The jobs that have
// answered by it are not asked again: their answers are passed to heard. Its order may be of other jobs, but must be
// described in the same words. Close the run.
func Resume(path string, o Order, heard func(string, Answer)) (*Run, error) {
	r, err := load(path, func(kept Order) error {
		if kept.Name != o.Name || kept.Says != o.Says {
			return fmt.Errorf("it is of %.200q under the name %.140q", kept.Says, kept.Name)
		}
		return nil
	}, heard)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r = Begin(Order{Name: o.Name, Says: o.Says})
		err = r.keep(path)
	case err == nil && r.file == nil:
		err = errors.New("another process has it")
	}
	if err != nil {
		return nil, err
	}
	r.progress.Jobs = o.Jobs
	r.progress.Jobs = slices.AppendSeq(r.left(), maps.Keys(r.answered))
	return r, nil
}

// Carry asks each job that has not answered, at the pace, until all were asked, ctx ends or heard returns an error. The
// journal has an answer before heard gets it.
func (r *Run) Carry(ctx context.Context, p Pace, ask func(context.Context, string) Answer, heard func(string, Answer) error) error {
	return Do(ctx, Each(r.left()), p, ask, func(id string, a Answer) error {
		return errors.Join(r.heard(id, a), heard(id, a))
	})
}

// Close ends the work on a run. Its journal stays, for the next Resume, where some jobs have answered and others not.
func (r *Run) Close() error {
	if p := r.Progress(); p.Asked == 0 || p.Left() == 0 {
		return r.file.remove()
	}
	return r.file.close()
}

// left returns the jobs that have not answered.
func (r *Run) left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.progress.Jobs), func(id string) bool { return r.answered[id] })
}

// waits notes why no answer comes; empty: answers come.
func (r *Run) waits(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Waits = why
}

// heard counts and stores the answer of a job.
func (r *Run) heard(id string, a Answer) error {
	if a.Outcome == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(id, a)
	return r.file.write(line{Job: id, Outcome: a.Outcome, Reason: a.Reason})
}

// count counts the answer of a job, once.
func (r *Run) count(id string, a Answer) {
	if r.answered[id] {
		return
	}
	r.answered[id] = true
	p := &r.progress
	p.Asked++
	switch a.Outcome {
	case Granted:
		p.Granted++
	case Already:
		p.Already++
	case Refused:
		p.Refused++
		if len(p.Refusals) < maxRefusals {
			p.Refusals = append(p.Refusals, Refusal{id, a.Reason})
		}
	}
}

// through ends an order with answers from all jobs.
func (r *Run) through(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.progress.Goes() || r.progress.Left() > 0 {
		return context.Cause(ctx)
	}
	return r.end(false)
}

// end ends an order for good. The caller holds mu.
func (r *Run) end(stopped bool) error {
	r.progress.EndedAt, r.progress.Stopped = time.Now().UTC(), stopped
	file := r.file
	r.file = nil
	return errors.Join(file.end(r.progress.EndedAt, stopped), file.close())
}

// Progress returns how far it is. Its slices are not to be changed.
func (r *Run) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.progress
	p.Refusals = append([]Refusal(nil), p.Refusals...)
	return p
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

// maxTries is how often a load is run at most.
const maxTries = 5

// measure returns what a load costs where every batch is full and every request is answered, which is what the load
// says. A run in which a busy machine made it otherwise shows another load, and is made again in a new world.
func measure(ctx context.Context, at endpoints, l load) (figures, error) {
	var why []error
	for range maxTries {
		f, err := measureOnce(ctx, at, l)
		if err == nil {
			return f, nil
		}
		why = append(why, err)
		if ctx.Err() != nil {
			break
		}
	}
	return figures{}, fmt.Errorf("%s: no run was undisturbed: %w", l.name, errors.Join(why...))
}

func measureOnce(ctx context.Context, at endpoints, l load) (f figures, err error) {
	w, err := open(ctx, at, l, false)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	// The first jobs of a process also pay for reads and writes that are made once: the definition, the steps' names. Among
	// the items of a map these are few.
	if !l.mapped {
		if _, _, err := w.run(ctx, "first"); err != nil {
			return f, err
		}
	}
	submission, steps, err := w.run(ctx, "order")
	if err != nil {
		return f, err
	}
	if err := errors.Join(sure(submission), sure(steps), full(steps, l)); err != nil {
		return f, err
	}
	f = figures{load: l, submission: costmeter.Sum(submission), steps: costmeter.Sum(steps), kept: w.kept, runs: w.runs}
	f.index, f.events = eventsOf(append(submission, steps...), deployed.EventsQueue)
	return f, nil
}

// sure fails when the meter doubts an entry.
func sure(entries []costmeter.Entry) error {
	for _, e := range entries {
		if e.Doubt != "" {
			return fmt.Errorf("%s %s: %s", e.Service, e.Operation, e.Doubt)
		}
	}
	return nil
}

// full fails when the messages of steps did not come and go in full batches. Replies that had to wait for each other
// longer than agents let them are sent in two.
func full(steps []costmeter.Entry, l load) error {
	for _, e := range steps {
		// The births of parts, and their ends, come alone, and the first tasks of a part are sent together.
		part := (l.mapped || l.limited()) && (e.Records == 1 || e.Records == limits.MaxBatch || e.Records == limits.PartItems/max(1, l.together))
		if e.Records != 0 && e.Records != l.batch() && !part {
			return fmt.Errorf("%s %s: %d records at once, want %d", e.Service, e.Operation, e.Records, l.batch())
		}
	}
	return nil
}

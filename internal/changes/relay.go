package changes

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/pause"
)

const (
	// MaxWaiting is how many jobs' changes may wait in a Relay. Changes of further jobs are refused, and published at the
	// next event of their job.
	MaxWaiting = 10_000
	// sendWithin is how long handing over one run may take.
	sendWithin = 10 * time.Second
	// grace is the time that a sink has to return by itself when its time is over, or the Relay ends.
	grace = 5 * time.Second
	// firstPause and longestPause are how long a Relay waits after a run that could not be handed over; it doubles.
	firstPause   = time.Second
	longestPause = time.Minute
)

// errFull: more jobs' changes wait than a Relay keeps.
var errFull = fmt.Errorf("the changes of %d jobs wait to be published", MaxWaiting)

// Sink takes one run. An error means that it is handed over again.
type Sink func(ctx context.Context, run makegood.Changes) error

// Relay accepts runs at once and hands them to a sink one after the other, however slow that is. Waiting runs of one
// job are merged. While the sink fails, it is retried with backoff, and the runs stay: jobs remember changes that were
// not handed over, so a Relay that ends loses none.
type Relay struct {
	sink      Sink
	receivers *pause.Receivers // the sink alone
	logger    *slog.Logger

	mu      sync.Mutex
	waiting map[string]Run
	order   []string
	wake    chan struct{}
}

// NewRelay makes a Relay. It hands over no run until Run is called.
func NewRelay(sink Sink, logger *slog.Logger) *Relay {
	return &Relay{
		sink: sink, receivers: pause.NewReceivers(logger), logger: logger, waiting: map[string]Run{}, wake: make(chan struct{}, 1),
	}
}

var _ Publisher = (*Relay)(nil)

// Publish takes runs in, and answers ErrLater, or an error for those for which there is no room.
func (r *Relay) Publish(_ context.Context, runs []Run) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := make([]error, len(runs))
	for i, run := range runs {
		before, waits := r.waiting[run.Job]
		switch {
		case !waits && len(r.order) >= MaxWaiting:
			errs[i] = errFull
			continue
		case !waits:
			r.order = append(r.order, run.Job)
		}
		// A run begins with the first unacknowledged change, so the later one includes the waiting one; but an earlier run may
		// arrive after it.
		if !waits || !before.CreatedAt.Equal(run.CreatedAt) || run.UpTo() >= before.UpTo() {
			r.waiting[run.Job] = run
		}
		errs[i] = ErrLater
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return errs
}

// Run hands over the accepted runs until ctx ends, and reports the outcome of each to handed.
func (r *Relay) Run(ctx context.Context, handed func(context.Context, Run, error)) {
	pause := firstPause
	for ctx.Err() == nil {
		run, ok := r.next()
		if !ok {
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		err := r.hand(ctx, run)
		if err == nil {
			pause = firstPause
			handed(ctx, run, nil)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		r.logger.WarnContext(ctx, "changes could not be published, and are tried again", "job", run.Job, "error", err)
		r.back(run)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// hand hands over a run. It gives up on a sink that hangs; if the sink still uses the run, that is a repeated run:
// listeners recognise the numbers.
func (r *Relay) hand(ctx context.Context, run Run) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	return r.receivers.Call(ctx, "changes", grace, func() error { return r.sink(ctx, run.Changes) })
}

// next removes the run that has waited longest.
func (r *Relay) next() (Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		return Run{}, false
	}
	run := r.waiting[r.order[0]]
	delete(r.waiting, r.order[0])
	r.order = r.order[1:]
	return run, true
}

// back puts a run that was not handed over where it was, unless a later one of its job has come in.
func (r *Relay) back(run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.waiting[run.Job]; waits {
		return
	}
	r.waiting[run.Job] = run
	r.order = append([]string{run.Job}, r.order...)
}

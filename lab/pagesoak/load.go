package pagesoak

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
)

const (
	// watched is the job that is paused and resumed.
	watched = "watched"
	// submitters submit at once.
	submitters = 64
	// stuck are the jobs that wait for a person from the beginning, reporting those that say how far they are.
	stuck, reporting = 20, 8
	// failsEvery is how many attempts one fails, and is tried again.
	failsEvery = 50
	// rest is how long a job waits the first time; those of the beginning for less than spread, so that they never move all
	// at once.
	rest, spread = time.Minute, 210 * time.Second
	// reportEvery is how far apart a job says how far it is.
	reportEvery = time.Second
)

// watchedVerbs are what is asked of the watched job, in turn, and watchedStates what it then reads as.
var (
	watchedVerbs  = [2]makegood.Verb{makegood.VerbPause, makegood.VerbResume}
	watchedStates = [2]string{"Paused", "Waiting"}
)

//go:embed workflows/*.yaml
var files embed.FS

// workflows are those of the load.
var workflows, _ = fs.Sub(files, "workflows") // The folder is in the program.

// load keeps jobs under way: whenever one has come to its end another one is submitted.
type load struct {
	jobs   int
	client api.Jobs
	born   atomic.Int64
	tries  atomic.Int64
	ends   chan struct{}
	ended  atomic.Int64
}

func newLoad(jobs int) *load { return &load{jobs: jobs, ends: make(chan struct{}, jobs)} }

// agents do the steps.
func (l *load) agents() []agent.Handler {
	crew := agent.New("crew",
		agent.Do("work", func(context.Context, json.RawMessage) (string, error) {
			if l.tries.Add(1)%failsEvery == 0 {
				return "", errors.New("the line was busy")
			}
			return "done", nil
		}),
		agent.Do("end", func(context.Context, json.RawMessage) (string, error) {
			select {
			case l.ends <- struct{}{}:
			default: // An attempt that is made twice ends one job.
			}
			return "ended", nil
		}),
		agent.Do("refuse", func(context.Context, json.RawMessage) (string, error) {
			return "", agent.Final(errors.New("nobody takes this"))
		}),
	)
	reporter := agent.New("reporter", agent.Do("report", report))
	return []agent.Handler{crew, reporter}
}

// report says how far it is until nobody wants to know any more.
func report(ctx context.Context, _ json.RawMessage) (string, error) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		if err := agent.Progress(ctx, map[string]int{"done": n}); err != nil {
			return "", err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// begin submits the jobs that there are at any time.
func (l *load) begin(ctx context.Context, jobs api.Jobs) error {
	l.client = jobs
	if err := l.submit(ctx, "still", watched, 0); err != nil {
		return err
	}
	for n := range stuck {
		if err := l.submit(ctx, "stuck", fmt.Sprintf("stuck-%d", n), 0); err != nil {
			return err
		}
	}
	for n := range reporting {
		if err := l.submit(ctx, "reporting", fmt.Sprintf("reporting-%d", n), 0); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failed := make(chan error, submitters)
	for range submitters {
		all.Go(func() {
			for n := l.born.Add(1); n <= int64(l.jobs); n = l.born.Add(1) {
				if err := l.submit(ctx, "long", l.name(n), spread*time.Duration(n)/time.Duration(l.jobs)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	l.born.Store(int64(l.jobs))
	close(failed)
	return <-failed
}

// refill submits one for each that has ended.
func (l *load) refill(ctx context.Context) error {
	for {
		select {
		case <-l.ends:
			l.ended.Add(1)
			if err := l.next(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// taken is how many have ended since it was asked last.
func (l *load) taken() int { return int(l.ended.Swap(0)) }

// next submits one more.
func (l *load) next(ctx context.Context) error {
	return l.submit(ctx, "long", l.name(l.born.Add(1)), rest)
}

func (l *load) name(n int64) string { return fmt.Sprintf("long-%07d", n) }

// some is one of the jobs that were submitted last.
func (l *load) some(n int) string {
	born := l.born.Load()
	return l.name(max(1, born-int64(n)%min(born, int64(l.jobs))))
}

// submit submits a job that departs after a time.
func (l *load) submit(ctx context.Context, workflow, id string, after time.Duration) error {
	input, err := json.Marshal(map[string]any{"customer": "c-1@example.com", "departs": time.Now().Add(after).UTC()})
	if err != nil {
		return err
	}
	if _, err := l.client.Submit(ctx, makegood.Submission{Workflow: workflow, ID: id, Input: input}); err != nil {
		return fmt.Errorf("submit job %s: %w", id, err)
	}
	return nil
}

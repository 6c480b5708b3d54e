package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// racers is how many rounds are under way at once.
const racers = 64

// ring is an engine of which each round is a job. The first attempt of every odd round fails, so that
// there is an Error to resubmit.
type ring struct {
	engine *embedded.Engine
	hash   string

	mu      sync.Mutex
	ends    map[string]chan job.Job
	effects map[string]int
	undone  map[string]int
}

func (r *ring) Name() string { return "ring" }

func (r *ring) Handle(_ context.Context, task makegood.Task) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case task.Undo != nil:
		r.undone[task.Job]++
	case strings.HasPrefix(task.Job, "odd") && task.Attempt == 1:
		return nil, agent.NotApplied(agent.Final(errFailed))
	default:
		r.effects[task.Job]++
	}
	return nil, nil
}

// saved tells the racer of a job that it is Processed or Cancelled.
func (r *ring) saved(j job.Job) {
	if !j.ProcessState.Finished() {
		return
	}
	r.mu.Lock()
	end := r.ends[j.ID]
	r.mu.Unlock()
	if end != nil {
		end <- j
	}
}

// outcome is what the two who asked were told, and how the job ended.
type outcome struct {
	cancel, resubmit machine.Verdict
	end              job.Job
}

// Ten thousand times, somebody cancels a job, and somebody resubmits it, while its step completes or
// fails. Each time one of them wins, everybody was told the truth, and what stands in the world is what
// the job says.
func TestCancelAgainstCompletionAgainstResubmitHasOneWinner(t *testing.T) {
	seed := seed.Of(t)
	rounds := 10_000
	if testing.Short() {
		rounds = 1_000
	}
	r := newRing(t)
	var mu sync.Mutex
	counts := map[string]int{}
	var all sync.WaitGroup
	for racer := range racers {
		random := rand.New(rand.NewPCG(seed, uint64(racer)))
		all.Go(func() {
			for i := range (rounds + racers - 1) / racers {
				id := fmt.Sprintf("%s-%d-%d", []string{"even", "odd"}[random.IntN(2)], racer, i)
				got := r.race(t, id, turns{random.IntN(60), random.IntN(60), random.IntN(4) == 0})
				for _, wrong := range r.wrong(id, got) {
					t.Errorf("round %s: %s", id, wrong)
				}
				mu.Lock()
				counts[fmt.Sprintf("%s: cancel %s, resubmit %s", got.end.ProcessState, got.cancel.Kind, got.resubmit.Kind)]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%v", counts)
	for _, want := range []string{
		"Cancelled: cancel applied, resubmit refused", "Cancelled: cancel applied, resubmit applied",
		"Processed: cancel refused, resubmit refused", "Processed: cancel refused, resubmit applied",
	} {
		if counts[want] == 0 {
			t.Errorf("it never came to %q: the rounds show nothing of it", want)
		}
	}
}

func newRing(t *testing.T) *ring {
	r := &ring{ends: map[string]chan job.Job{}, effects: map[string]int{}, undone: map[string]int{}}
	engine, err := embedded.Open(t.Context(), embedded.Config{
		Agents: []agent.Handler{r}, Saved: r.saved, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	check(t, err)
	compiled, err := workflowfile.Parse("race.yaml", []byte("name: race\nonFailure: stop\nsteps: [{name: do, agent: ring, undo: {action: back}}]"))
	check(t, err)
	check(t, engine.Define(t.Context(), compiled))
	r.engine, r.hash = engine, compiled.Hash
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check(t, <-ran)
		check(t, engine.Close())
	})
	return r
}

// turns says when those who ask do: how often each lets others go first, and whether who cancels waits
// until who resubmits was answered.
type turns struct {
	cancel, resubmit int
	patient          bool
}

// race runs a round. Who resubmits asks until their request is granted, or is refused for good.
func (r *ring) race(t *testing.T, id string, when turns) (got outcome) {
	end := make(chan job.Job, 10)
	r.mu.Lock()
	r.ends[id] = end
	r.mu.Unlock()
	if _, _, err := r.engine.Submit(t.Context(), scheduler.Submission{ID: id, Definition: r.hash, Input: json.RawMessage(`{}`)}); err != nil {
		t.Errorf("submit %s: %v", id, err)
		return got
	}
	var both sync.WaitGroup
	resubmitted := make(chan struct{})
	both.Go(func() {
		if when.patient {
			<-resubmitted
		}
		give(when.cancel)
		got.cancel = r.ask(t, id, makegood.VerbCancel)
	})
	both.Go(func() {
		defer close(resubmitted)
		for {
			give(when.resubmit)
			got.resubmit = r.ask(t, id, makegood.VerbResubmit)
			if got.resubmit.Reason != "it has not stopped" {
				return
			}
		}
	})
	both.Wait()
	got.end = <-end
	return got
}

func give(times int) {
	for range times {
		runtime.Gosched()
	}
}

func (r *ring) ask(t *testing.T, id string, verb makegood.Verb) machine.Verdict {
	_, verdict, err := r.engine.Parts().Scheduler.Request(t.Context(), id, job.Requested{Verb: verb, Request: string(verb)})
	if err != nil {
		t.Errorf("%s of %s: %v", verb, id, err)
	}
	return verdict
}

// wrong says what of an outcome does not fit together.
func (r *ring) wrong(id string, got outcome) (found []string) {
	r.mu.Lock()
	effects, undone := r.effects[id], r.undone[id]
	delete(r.ends, id)
	r.mu.Unlock()
	want := makegood.JobProcessed
	switch {
	case got.cancel.Kind == machine.Applied:
		want = makegood.JobCancelled
	case got.cancel.Kind != machine.Refused || got.cancel.Reason != "it is Processed; undo takes it back":
		found = append(found, fmt.Sprintf("cancel was answered %v", got.cancel))
	}
	if got.end.ProcessState != want {
		found = append(found, fmt.Sprintf("cancel was %s, and the job is %s", got.cancel.Kind, got.end.ProcessState))
	}
	if got.resubmit.Kind == machine.Applied && strings.HasPrefix(id, "even") {
		found = append(found, "resubmit was applied to a job that had not failed")
	}
	if want == makegood.JobProcessed && (effects != 1 || undone != 0) {
		found = append(found, fmt.Sprintf("it is Processed with %d effects and %d undos", effects, undone))
	}
	if want == makegood.JobCancelled && undone < effects {
		found = append(found, fmt.Sprintf("it is Cancelled with %d effects and %d undos", effects, undone))
	}
	if got.resubmit.Kind == machine.Refused {
		rule := machine.RuleFor(makegood.VerbResubmit, got.end.ProcessState)
		undoing := machine.RuleFor(makegood.VerbResubmit, makegood.JobUndoing)
		if got.resubmit.Reason != rule.Reason && !(want == makegood.JobCancelled && got.resubmit.Reason == undoing.Reason) {
			found = append(found, fmt.Sprintf("resubmit was refused with %q, and the job is %s", got.resubmit.Reason, got.end.ProcessState))
		}
	}
	return found
}

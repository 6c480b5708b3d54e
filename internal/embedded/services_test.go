package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/job"
)

// services are three remote services in memory: inventory, payments and shipping. Like good ones they
// do a thing once for a key, and refuse a key that was undone. Unlike those they also count every
// request of an attempt, and do not forgive a second one.
type services struct {
	// seed decides about faults, with the name of what is asked.
	seed uint64
	// faulty: each key meets up to three faults before it is served.
	faulty bool
	// refuses says which actions are refused for good.
	refuses func(task makegood.Task) bool
	// before, if set, is called before a task is looked at.
	before func(ctx context.Context, task makegood.Task)

	mu sync.Mutex
	// requests counts by JOB/STEP#ATTEMPT.
	requests map[string]int
	asked    map[string]int
	applied  map[string]bool
	undone   map[string]bool
	net      map[string]int
	// tombstones counts the forward calls that came after their undo.
	tombstones int
}

func newServices(seed uint64) *services {
	return &services{
		seed: seed, requests: map[string]int{}, asked: map[string]int{}, applied: map[string]bool{},
		undone: map[string]bool{}, net: map[string]int{},
	}
}

func (s *services) agents() []agent.Handler {
	return []agent.Handler{actor{"inventory", s.handle}, actor{"payments", s.handle}, actor{"shipping", s.handle}}
}

// fault is what goes wrong with a request.
type fault int

const (
	none        fault = iota
	failsBefore       // an error that may be tried again; nothing was done, and it says so
	breaksOff         // the same, but it cannot say
	failsAfter        // it was done, and the answer is an error
	hangs             // nothing comes until the context ends
	isHeldUp          // the caller has given up when it is done: it ignores its context
	faults
)

func (s *services) handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	if s.before != nil {
		s.before(ctx, task)
	}
	switch s.request(task) {
	case failsBefore:
		return nil, agent.NotApplied(errNo)
	case breaksOff:
		return nil, errNo
	case failsAfter:
		_, _ = s.serve(task)
		return nil, errNo
	case hangs:
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case isHeldUp:
		time.Sleep(2 * task.Timeout.Std())
	}
	return s.serve(task)
}

// request counts a request, and returns the fault that it meets.
func (s *services) request(task makegood.Task) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[fmt.Sprintf("%s/%s#%d", task.Job, task.Step, task.Attempt)]++
	n := s.asked[task.Key]
	s.asked[task.Key]++
	if !s.faulty || n >= 3 {
		return none
	}
	return fault(s.roll(fmt.Sprintf("%s %d", task.Key, n)) % uint64(2*faults))
}

// onceFor refuses one key in so many for good, but only once: whoever asks again is served.
func (s *services) onceFor(rate uint64) func(makegood.Task) bool {
	refused := map[string]bool{}
	return func(task makegood.Task) bool {
		refuse := s.roll("refuse "+task.Key)%rate == 0 && !refused[task.Key]
		refused[task.Key] = refused[task.Key] || refuse
		return refuse
	}
}

func (s *services) roll(what string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, s.seed, what)
	return h.Sum64()
}

// serve does what is asked, once for a key.
func (s *services) serve(task makegood.Task) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := task.Job + "/" + task.Step
	switch {
	case s.refuses != nil && s.refuses(task):
		return nil, agent.Final(agent.NotApplied(errNo))
	case task.Undo != nil:
		s.undone[task.Undo.ForwardKey] = true
		if s.applied[task.Undo.ForwardKey] && !s.applied[task.Key] {
			s.applied[task.Key] = true
			s.net[account]--
		}
	case s.undone[task.Key]:
		s.tombstones++
		return nil, agent.Final(agent.NotApplied(errNo))
	case !s.applied[task.Key]:
		s.applied[task.Key] = true
		s.net[account]++
	}
	return json.RawMessage(`"served"`), nil
}

// check compares what the services did for a job with what its end says.
func (s *services) check(t testing.TB, j job.Job) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range j.Steps {
		want := 0
		if step.Forward.State == job.Done && step.Undo.State != job.Done {
			want = 1
		}
		if got := s.net[j.ID+"/"+step.Name]; got != want {
			t.Errorf("job %s in %s (%s): step %s is %s, undo %q; its effect was made %d times net, want %d",
				j.ID, j.ProcessState, j.Reason, step.Name, step.Forward.State, step.Undo.State, got, want)
		}
		want = 0
		if j.ProcessState == makegood.JobProcessed && step.Forward.State != job.Skipped {
			want = 1
		}
		if got := s.net[j.ID+"/"+step.Name]; got != want && j.ProcessState.Finished() {
			t.Errorf("job %s is %s, and the effect of step %s, which is %s, was made %d times net, want %d",
				j.ID, j.ProcessState, step.Name, step.Forward.State, got, want)
		}
	}
}

// checkAttempts checks that no attempt was asked for twice.
func (s *services) checkAttempts(t testing.TB) (requests int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for attempt, n := range s.requests {
		requests += n
		if n > 1 {
			t.Errorf("attempt %s came %d times, want at most once", attempt, n)
		}
	}
	return requests
}

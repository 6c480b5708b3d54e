package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/domain"
)

// agents are the agents of a world. Each wraps a remote service.
var agents = []string{"a", "b"}

// remote is an agent of one process, and the service that it calls. The service outlives all processes; it
// does a thing once under its key, and refuses one that was undone, as the samples do.
type remote struct {
	*life
	agent string
}

// Name is what agent.Handler says.
func (a remote) Name() string { return a.agent }

// Handle is what agent.Handler says.
func (a remote) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	a.alive()
	name := on(task.Job, task.Step, task.Attempt)
	// A shared task comes here without a call, several at one moment, and also when its context is over.
	time.Sleep(between(a.w.chance.of("begin", a.calling("begin", name)), time.Microsecond, time.Millisecond))
	a.alive()
	a.w.begun(a.life, task)
	r := a.w.chance.of("remote", name)
	a.w.mu.Lock()
	bad := a.w.faults.first(name, RemoteRefuses, RemoteFails, RemoteHangs, RemoteForGood, RemoteTakesFor)
	liar := a.w.faults.strikes(AgentLies, name)
	takes := between(r, time.Millisecond, 200*time.Millisecond)
	if a.w.inChain(task) {
		takes /= 10
	}
	a.w.mu.Unlock()
	if err := wait(ctx, takes); err != nil {
		return nil, err
	}
	a.alive()
	if liar {
		a.lie(r, task)
	}
	if err := a.down(ctx, task); err != nil {
		return nil, err
	}
	switch bad {
	case RemoteRefuses:
		return nil, agent.NotApplied(errors.New("busy"))
	case RemoteForGood:
		a.w.saysFinal(task)
		return nil, agent.Final(agent.NotApplied(errors.New("never")))
	case RemoteFails:
		if oneIn(r, 2) {
			_ = a.w.apply(a.life, task)
		}
		return nil, errors.New("broken")
	case RemoteHangs:
		return nil, a.hang(ctx, r, task)
	case RemoteTakesFor:
		if err := a.slow(ctx, r, task); err != nil {
			return nil, err
		}
	}
	if a.w.handsOver(task) {
		return nil, a.handOver(task)
	}
	if a.w.large != nil {
		if err := a.read(ctx, task); err != nil {
			return nil, err
		}
	}
	if task.Batch != nil {
		return a.together(r, task)
	}
	if err := a.w.apply(a.life, task); err != nil {
		return nil, err
	}
	if task.Undo != nil {
		return nil, nil
	}
	pad := strings.Repeat("y", pick(r, 0, 0, 0, 400))
	a.w.mu.Lock()
	output := json.RawMessage(fmt.Sprintf(`{"a":%d,"run":%d,"pad":%q}`, task.Attempt, a.w.runs[name], pad))
	a.w.mu.Unlock()
	if a.w.large != nil {
		return a.refers(ctx, a.w.chance.of("refers", name), task, output)
	}
	return output, nil
}

// together does the items of a batch, and answers for each of them, or, now and then, not.
func (a remote) together(r *rand.Rand, task makegood.Task) (json.RawMessage, error) {
	items, err := task.Items()
	if err != nil {
		return nil, agent.Final(err)
	}
	var answers []makegood.Answer
	for i, item := range items {
		var err error
		draw := r.IntN(24)
		if draw != 0 && draw != 1 {
			err = a.w.applyOne(a.life, item, true)
		}
		switch draw {
		case 0:
			err = agent.NotApplied(errors.New("busy"))
		case 1:
			err = agent.Final(agent.NotApplied(errors.New("never")))
		case 2:
			err = errors.New("broken")
		case 3:
			continue
		}
		answer := makegood.Answer{Item: task.Batch[i]}
		if err == nil {
			answer.Output = json.RawMessage(fmt.Sprintf(`{"a":%d}`, task.Attempt))
		} else {
			answer.Error = &makegood.AnswerError{StepError: agent.Failure(err)}
		}
		answers = append(answers, answer)
	}
	return json.Marshal(answers)
}

// hang never answers; what was asked for happens before, after, or not at all.
func (a remote) hang(ctx context.Context, r *rand.Rand, task makegood.Task) error {
	switch r.IntN(3) {
	case 0:
		_ = a.w.apply(a.life, task)
	case 1:
		a.w.after(between(r, time.Second, 2*time.Minute), func() {
			a.w.mu.Lock()
			over := a.w.over
			a.w.mu.Unlock()
			if !over {
				_ = a.w.apply(a.life, task)
			}
		})
	}
	<-ctx.Done()
	a.alive()
	return context.Cause(ctx)
}

// slow takes longer than the timeout; half the time it says so in time.
func (a remote) slow(ctx context.Context, r *rand.Rand, task makegood.Task) error {
	heartbeats, parts := oneIn(r, 2), 3
	if task.Heartbeat > 0 && heartbeats {
		// Now and then longer than the attempt may last in all.
		parts = 4 + task.Attempt%2*2*int(task.Timeout/task.Heartbeat)
	}
	for range parts {
		if err := wait(ctx, domain.Silence(task).Std()*6/10); err != nil {
			return err
		}
		a.alive()
		if heartbeats {
			if err := agent.Heartbeat(ctx); errors.Is(err, agent.ErrOver) || errors.Is(err, agent.ErrWithdrawn) {
				return err
			}
		}
	}
	return nil
}

func (w *world) saysFinal(task makegood.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.referee(task.Job).SaidFinal(task.Step, task.Undo != nil)
}

// begun notes that an attempt runs, and that it may.
func (w *world) begun(l *life, task makegood.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := on(task.Job, task.Step, task.Attempt)
	w.note(l.name, "runs "+name)
	w.runs[name]++
	w.known(task)
	outcome := makegood.Outcome("")
	if task.Undo != nil {
		outcome = task.Undo.Outcome
	}
	w.referee(task.Job).Began(task.Step, task.Attempt, task.Round, task.Undo != nil, outcome)
	if !task.Shared && w.runs[name] > 1 {
		w.violate(task.Job, "I5: attempt %s runs %d times", name, w.runs[name])
	}
	want := keyOf(task)
	if task.Key != want {
		w.violate(task.Job, "I6: attempt %s goes out under the key %s, want %s", name, task.Key, want)
	}
}

package sim

import (
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
)

// build publishes the workflows, and makes the queues, each with a function of at most so many environments.
func (w *world) build(embedded bool, most int) {
	for _, c := range w.load.workflows {
		w.publish(c)
	}
	times := timesOfLambda
	if embedded {
		times = timesOfEngine
	}
	w.period = times.period
	w.addQueue(quarantineQueue, 0, nil)
	w.addQueue(eventsQueue, 30*time.Second, &function{most: most, timeout: times.events, make: w.schedulerOf})
	w.queues[eventsQueue].gather = pick(w.chance.of("gather"), 0, 0, 0, 200*time.Millisecond, 2*time.Second, 8*time.Second)
	for _, name := range agents {
		w.addQueue(tasksPrefix+name, times.visibility, &function{most: most, timeout: times.tasks, make: func(l *life) queue.Handler {
			return w.agentOf(l, name)
		}})
	}
	if embedded {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.startEngine()
	}
}

// times are those of functions and their queues: how long an invocation may take, how long a task is hidden from others
// when somebody has it, and how often the Supervisor looks.
type times struct{ events, tasks, visibility, period time.Duration }

var (
	timesOfLambda = times{20 * time.Second, time.Minute, 90 * time.Second, sweepEvery}
	// An embedded engine has no invocations, and its Supervisor is woken.
	timesOfEngine = times{events: time.Hour, tasks: time.Hour, visibility: time.Hour}
)

func (w *world) addQueue(name string, visibility time.Duration, f *function) {
	q := &simQueue{w: w, name: name, visibility: visibility, messages: map[string]*message{}, function: f}
	if w.limits != nil && w.period > 0 && oneIn(w.chance.of("fair"), 2) { // Worlds with limits have tenants.
		q.fair = &fairness{noisy: map[string]time.Time{}}
	}
	q.stopped = w.faults.window(PollingStopped, name, w.start, 5*time.Minute)
	w.queues[name] = q
	if f != nil {
		f.w, f.name, f.queue = w, name+"-function-", q
	}
}

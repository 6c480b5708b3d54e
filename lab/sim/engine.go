package sim

import (
	"context"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Some worlds are embedded: Scheduler, agents and Supervisor are one process over a file. When it dies, its queues are
// lost, and perhaps the last claims with the power; it is started again as the next run.

// engineTick is how often the Supervisor of an embedded engine looks whether a key has passed.
const engineTick = 5 * time.Second

// engine is a run of the embedded engine.
type engine struct {
	incarnation int
	dead        bool
	clock       time.Duration
}

// startEngine starts the next run, whose first work is to touch every job that is not at its end. w.mu is held.
func (w *world) startEngine() {
	if w.over {
		return
	}
	n := 1
	if w.engine != nil {
		n = w.engine.incarnation + 1
	}
	w.engine = &engine{incarnation: n}
	name := "engine" + strconv.Itoa(n)
	if w.faults.strikes(ClockSkewed, name) {
		w.engine.clock = skew(w.chance.of("clock", name))
	}
	w.note(name, "starts")
	l := w.life("recovery")
	w.wg.Go(func() { l.recover() })
}

// recover is what the embedded engine does at its start; see internal/embedded.
func (l *life) recover() {
	ctx := context.Background()
	jobs, err := ask(ctx, l, "unfinished", "", func() ([]job.Job, error) { return l.w.store.All(), nil })
	if err != nil {
		l.die("cannot list its jobs")
		return
	}
	var messages []queue.Message
	for _, j := range jobs {
		if j.CompleteBy.IsZero() {
			continue
		}
		body, err := wire.EncodeEvent(j.ID, job.DeadlinePassed{})
		if err != nil {
			panic(err)
		}
		messages = append(messages, queue.Message{Body: body, Group: j.ID})
	}
	if len(messages) > 0 {
		l.Send(ctx, eventsQueue, messages...)
	}
}

// crash ends the run: what is not in the file is lost. w.mu is held.
func (w *world) crash(e *engine) {
	if e.dead {
		return
	}
	e.dead = true
	for _, referee := range w.referees {
		referee.Died()
	}
	r := w.chance.of("restart", strconv.Itoa(e.incarnation))
	for _, q := range w.queues {
		if q.function == nil {
			continue
		}
		for _, m := range q.order {
			m.gone = true
		}
		q.order, q.messages = nil, map[string]*message{}
		q.function.running, q.function.idle = 0, nil
	}
	if w.faults.strikes(PowerLost, strconv.Itoa(e.incarnation)) {
		w.note("world", "the power fails: claims lost: "+strconv.Itoa(w.store.losePower(r)))
	}
	w.after(between(r, 100*time.Millisecond, 10*time.Second), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.startEngine()
	})
}

// supervise is the Supervisor of the embedded engine: it is woken when a key has passed.
func (w *world) supervise() {
	for n := 0; ; n++ {
		tick := "tick" + strconv.Itoa(n)
		time.Sleep(engineTick + between(w.chance.of(tick), 0, time.Second))
		w.mu.Lock()
		over, up := w.over, !w.engine.dead && w.store.overdue(time.Now().Add(w.engine.clock))
		if up {
			up = !w.faults.strikes(TickDropped, tick)
		}
		w.mu.Unlock()
		if over {
			return
		}
		if !up {
			continue
		}
		w.process("supervisor", func(l *life) {
			s := supervisor.New(supervisor.Config{Index: l, Queue: l, Events: eventsQueue, Now: l.now, Logger: quiet})
			_, _ = s.Sweep(context.Background())
		})
	}
}

// process runs something in a process of its own, and returns a channel that closes with it.
func (w *world) process(name string, do func(*life)) <-chan struct{} {
	w.mu.Lock()
	l := w.life(name)
	w.mu.Unlock()
	done := make(chan struct{})
	w.wg.Go(func() {
		defer close(done)
		do(l)
	})
	return done
}

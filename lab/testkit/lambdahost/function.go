//go:build linux

package lambdahost

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
)

// initLimit is how long a new environment may take until it asks for its first event.
const initLimit = 10 * time.Second

// Config says what a function is.
type Config struct {
	// Name is AWS_LAMBDA_FUNCTION_NAME.
	Name string
	// Command is the bootstrap, with arguments if it has any.
	Command []string
	// Environment is all that its processes see, beside what the host sets: the name and the Runtime API.
	Environment []string
	// Timeout is how long an invocation may take; then the process is killed.
	Timeout time.Duration
	// Terminate is RecursiveLoop: Terminate, AWS's own setting where none is made. False is Allow.
	Terminate bool
	// Concurrency is the reserved concurrency: above it invocations are throttled. 0: no limit.
	Concurrency int
}

// Counts are what happened to a function.
type Counts struct {
	Invocations, ColdStarts, Deaths, Timeouts, Throttled, Recursive atomic.Int64
	// MostAtOnce is the largest number of invocations that ran at the same time.
	MostAtOnce atomic.Int64
}

// Answer is what a function posted.
type Answer struct {
	// Failed: it posted an error instead of a response.
	Failed bool
	Body   []byte
}

// Function is a function with its environments. Environments are made when they are needed and none is
// idle, and stay until they die.
type Function struct {
	Counts Counts

	host   *Host
	config Config

	mu     sync.Mutex
	live   []*environment
	idle   []*environment // the last that was used is used next
	busy   int
	refuse int
	closed bool
	output bytes.Buffer
	took   Took
}

// Took is how long answered invocations took, from Invoke to the answer.
type Took struct {
	// Cold began with the start of a process; Warm found one.
	Cold, Warm []time.Duration
}

// Function makes a function known. No process is started before the first invocation.
func (h *Host) Function(c Config) *Function {
	// Its processes start later, when the caller may have appended to the same array again.
	c.Command, c.Environment = slices.Clone(c.Command), slices.Clone(c.Environment)
	f := &Function{host: h, config: c}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.functions = append(h.functions, f)
	return f
}

// Throttle refuses the next n invocations.
func (f *Function) Throttle(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse += n
}

// Signal sends a signal to one process that is working, chosen by choose among n, and reports whether there
// was one. SIGKILL is a crash; SIGSTOP brings on the timeout, and a process that it stopped works no longer.
func (f *Function) Signal(signal syscall.Signal, choose func(n int) int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	working := slices.DeleteFunc(slices.Clone(f.live), func(e *environment) bool { return e.stopped || slices.Contains(f.idle, e) })
	if len(working) == 0 {
		return false
	}
	e := working[choose(len(working))]
	e.stopped = signal == syscall.SIGSTOP
	return e.process.Process.Signal(signal) == nil
}

// Wake lets all processes go on that a SIGSTOP has stopped and that are there still, and returns how many those were.
func (f *Function) Wake() (woken int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.live {
		if e.stopped && e.process.Process.Signal(syscall.SIGCONT) == nil {
			e.stopped = false
			woken++
		}
	}
	return woken
}

// Recycle kills the idle processes, as Lambda does when it pleases: the next invocations start cold.
func (f *Function) Recycle() {
	f.mu.Lock()
	idle := f.idle
	f.idle = nil
	for _, e := range idle {
		_ = e.process.Process.Kill()
	}
	f.mu.Unlock()
	for _, e := range idle {
		<-e.ended
	}
}

// Took returns how long the invocations took so far.
func (f *Function) Took() Took {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Took{Cold: slices.Clone(f.took.Cold), Warm: slices.Clone(f.took.Warm)}
}

// Output is what all processes have printed.
func (f *Function) Output() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.output.String()
}

// Write takes what a process prints.
func (f *Function) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.output.Write(p)
}

// Invoke runs the function on an event, in an idle environment or a new one. trace is the X-Ray header of what
// brought the event about, empty for the start of a chain. The error is functionurl.ErrThrottled, ErrRecursive,
// ErrTimeout, ErrDied, that of ctx, or that no process could be started; after those of ctx and the timeout the
// process is dead.
func (f *Function) Invoke(ctx context.Context, event []byte, trace string) (Answer, error) {
	trace, hops := extend(trace, f.config.Name)
	if f.config.Terminate && hops > MaxHops {
		f.Counts.Recursive.Add(1)
		return Answer{}, ErrRecursive
	}
	began := time.Now()
	e, err := f.take()
	if err != nil {
		return Answer{}, err
	}
	answer, err := f.run(ctx, e, event, trace)
	f.give(e, err == nil, time.Since(began))
	return answer, err
}

func (f *Function) run(ctx context.Context, e *environment, event []byte, trace string) (Answer, error) {
	i := e.begin(event, trace, f.config.Timeout)
	starting := time.NewTimer(initLimit)
	defer starting.Stop()
	select {
	case e.next <- i:
	case <-e.ended:
		f.Counts.Deaths.Add(1)
		return Answer{}, ErrDied
	case <-starting.C:
		f.Counts.Timeouts.Add(1)
		return Answer{}, ErrTimeout
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	running := time.NewTimer(i.timeout)
	defer running.Stop()
	select {
	case a := <-e.answers:
		return a, nil
	case <-e.ended:
		f.Counts.Deaths.Add(1)
		return Answer{}, ErrDied
	case <-running.C:
		f.Counts.Timeouts.Add(1)
		return Answer{}, ErrTimeout
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// take returns an environment to work in.
func (f *Function) take() (*environment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrDied
	}
	if f.refuse > 0 || f.config.Concurrency > 0 && f.busy >= f.config.Concurrency {
		f.refuse = max(f.refuse-1, 0)
		f.Counts.Throttled.Add(1)
		return nil, functionurl.ErrThrottled
	}
	var e *environment
	if last := len(f.idle) - 1; last >= 0 {
		e, f.idle = f.idle[last], f.idle[:last]
	} else {
		var err error
		if e, err = f.start(); err != nil {
			return nil, err
		}
		f.live = append(f.live, e)
		f.Counts.ColdStarts.Add(1)
	}
	f.busy++
	f.Counts.Invocations.Add(1)
	f.Counts.MostAtOnce.Store(max(f.Counts.MostAtOnce.Load(), int64(f.busy)))
	return e, nil
}

// give takes it back, after an invocation that took this long. One that did not answer is killed.
func (f *Function) give(e *environment, answered bool, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	e.mu.Lock()
	first := e.count == 1
	e.mu.Unlock()
	switch {
	case answered && first:
		f.took.Cold = append(f.took.Cold, took)
	case answered:
		f.took.Warm = append(f.took.Warm, took)
	}
	select {
	case <-e.ended:
		return
	default:
	}
	if answered && !f.closed {
		f.idle = append(f.idle, e)
		return
	}
	_ = e.process.Process.Kill() // It has ended, or it ends now.
}

// gone forgets an environment whose process has ended.
func (f *Function) gone(e *environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := func(other *environment) bool { return other == e }
	f.live, f.idle = slices.DeleteFunc(f.live, same), slices.DeleteFunc(f.idle, same)
	f.host.forget(e)
	close(e.ended)
}

func (f *Function) close() {
	f.mu.Lock()
	f.closed = true
	live := slices.Clone(f.live)
	for _, e := range live {
		_ = e.process.Process.Kill()
	}
	f.mu.Unlock()
	for _, e := range live {
		<-e.ended
	}
}

// environment is one execution environment: a process.
type environment struct {
	name, function string
	process        *exec.Cmd
	next           chan invocation
	answers        chan Answer
	ended          chan struct{}
	stopped        bool // by Signal, under the function's lock

	mu      sync.Mutex
	current string
	count   int
}

// invocation is what the Runtime API hands over.
type invocation struct {
	id      string
	event   []byte
	trace   string
	timeout time.Duration
}

// start starts a process, in a group of its own and so that the kernel kills it when this one dies.
func (f *Function) start() (*environment, error) {
	e := &environment{function: f.config.Name, next: make(chan invocation), answers: make(chan Answer, 1), ended: make(chan struct{})}
	api := f.host.register(e)
	e.process = exec.Command(f.config.Command[0], f.config.Command[1:]...)
	e.process.Env = append(slices.Clone(f.config.Environment), "AWS_LAMBDA_FUNCTION_NAME="+f.config.Name, "AWS_LAMBDA_RUNTIME_API="+api)
	e.process.Stdout, e.process.Stderr = f, f
	e.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := e.process.Start(); err != nil {
		f.host.forget(e)
		return nil, fmt.Errorf("start %s: %w", f.config.Name, err)
	}
	go func() {
		_ = e.process.Wait() // Processes here mostly end by being killed.
		f.gone(e)
	}()
	return e, nil
}

// begin makes an invocation the one whose answer counts. Its time runs from when the process takes it: the start
// of a new environment does not count.
func (e *environment) begin(event []byte, trace string, timeout time.Duration) invocation {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	e.current = e.name + "-" + strconv.Itoa(e.count)
	return invocation{id: e.current, event: event, trace: trace, timeout: timeout}
}

// answer takes what the process posted, unless it is of an invocation that is over.
func (e *environment) answer(id string, a Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id != e.current {
		return
	}
	e.current = ""
	e.answers <- a
}

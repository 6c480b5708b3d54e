package bulk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/pause"
)

// Folder is the name of the folder of orders in that of an engine.
const Folder = "repairs"

const (
	// MaxJobs is how many jobs an order may have.
	MaxJobs = 100_000
	// MaxRunning is how many orders are carried out at once.
	MaxRunning = 8
	// MaxPerSecond is the maximum of jobs asked in a second, and DefaultPerSecond the default: as many as a stack's table
	// takes at once.
	MaxPerSecond     = 1000
	DefaultPerSecond = 50
	// maxKept is how many orders that have ended are remembered, the newest; keptFor is how long.
	maxKept = 50
	keptFor = 30 * 24 * time.Hour
	// atOnce is how many jobs of an order are asked at once.
	atOnce = 8
	// maxRefusals is how many refusals are told with the id of their job.
	maxRefusals = 20
	// firstPause and longestPause bound the wait before a request without an answer is repeated.
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	// askTimeout is how long a job may take to answer before it is asked again.
	askTimeout = 30 * time.Second
)

// Jobs takes the requests: a control.Service, or a *client.Client.
type Jobs interface {
	Request(ctx context.Context, id string, r api.Request) (makegood.Job, error)
	Settle(ctx context.Context, id string, at api.StepRef, s api.SettleOptions) (makegood.Job, error)
	Complete(ctx context.Context, id string, at api.StepRef, output json.RawMessage) (makegood.Job, error)
}

// ErrNone: there is no such order.
var ErrNone = errors.New("there is no such repair")

// Keeper carries orders out. Its methods may be called by many goroutines at once.
type Keeper struct {
	jobs   Jobs
	dir    string
	logger *slog.Logger

	ctx  context.Context
	stop context.CancelFunc
	runs sync.WaitGroup

	mu    sync.Mutex
	known map[string]*Run
}

// New returns a Keeper that keeps its orders in memory: they die with the process. Close it.
func New(jobs Jobs, logger *slog.Logger) *Keeper {
	k := &Keeper{jobs: jobs, logger: logger, known: map[string]*Run{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Open returns a Keeper that keeps its orders in a folder, made if missing, for its owner alone, and continues those
// that have not ended. Close it.
func Open(jobs Jobs, dir string, logger *slog.Logger) (*Keeper, error) {
	k := New(jobs, logger)
	k.dir = dir
	if err := k.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("repairs in %s: %w", dir, err), k.Close())
	}
	return k, nil
}

// Keeps reports whether its orders go on with the next Keeper when this process was killed.
func (k *Keeper) Keeps() bool { return k.dir != "" }

// Close completes the running requests, and begins no more. Stored orders go on with the next Keeper.
func (k *Keeper) Close() error {
	k.stop()
	k.runs.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, r := range k.known {
		errs = append(errs, r.file.close())
	}
	k.known = map[string]*Run{}
	return errors.Join(errs...)
}

// Begin begins an order, and returns when it is stored. If its name is known, it returns that order, and begins none.
// An *api.InvalidError describes a mistake, or says that too many are under way.
func (k *Keeper) Begin(o Order) (Progress, error) {
	if err := o.check(); err != nil {
		return Progress{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.known[o.Name]; r != nil {
		return r.Progress(), nil
	}
	if err := k.room(); err != nil {
		return Progress{}, err
	}
	r := Begin(o)
	if k.dir != "" {
		if err := r.keep(k.path(o.Name)); err != nil {
			return Progress{}, fmt.Errorf("keep repair %s: %w", o.Name, err)
		}
	}
	k.known[o.Name] = r
	k.carry(r)
	return r.Progress(), nil
}

// check reports the mistakes in an order.
func (o Order) check() error {
	switch {
	case makegood.CheckJobID(o.Name) != nil || len(o.Name) > limits.MaxRequestBytes:
		return &api.InvalidError{Message: fmt.Sprintf("the name of a repair, %.80q, is none that a request may have", o.Name)}
	case len(o.Jobs) == 0:
		return &api.InvalidError{Message: "no job is left to which this could be done"}
	case len(o.Jobs) > MaxJobs:
		return &api.InvalidError{Message: fmt.Sprintf("%d jobs, and one repair takes %d at most: narrow it, or use the command", len(o.Jobs), MaxJobs)}
	case !(o.PerSecond > 0 && o.PerSecond <= MaxPerSecond):
		return &api.InvalidError{Message: fmt.Sprintf("%v jobs a second: want more than 0, and at most %d", o.PerSecond, MaxPerSecond)}
	case limits.CheckWho(o.By) != nil:
		return &api.InvalidError{Message: fmt.Sprintf("who asks, %.80q, %v", o.By, limits.CheckWho(o.By))}
	case len(o.Reason) > limits.MaxReasonBytes:
		return &api.InvalidError{Message: fmt.Sprintf("the reason has %d bytes, the limit is %d", len(o.Reason), limits.MaxReasonBytes)}
	}
	return nil
}

// room makes room for one more order: it forgets those that ended long ago.
func (k *Keeper) room() error {
	going := 0
	var ended []*Run
	for _, r := range k.known {
		if r.Progress().Goes() {
			going++
			continue
		}
		ended = append(ended, r)
	}
	if going >= MaxRunning {
		return &api.InvalidError{Message: fmt.Sprintf("%d repairs are under way, which is what is done at once: wait for one of them, or stop it", going)}
	}
	slices.SortFunc(ended, func(a, b *Run) int { return b.progress.EndedAt.Compare(a.progress.EndedAt) })
	for i, r := range ended {
		if i >= maxKept || time.Since(r.progress.EndedAt) > keptFor {
			delete(k.known, r.progress.Name)
			k.forget(r.progress.Name)
		}
	}
	return nil
}

// List returns all orders, those that go on first, then the newest.
func (k *Keeper) List() []Progress {
	k.mu.Lock()
	k.lookElsewhere()
	all := slices.Collect(maps.Values(k.known))
	k.mu.Unlock()
	list := make([]Progress, len(all))
	for i, r := range all {
		list[i] = r.Progress()
	}
	slices.SortFunc(list, func(a, b Progress) int {
		if a.Goes() != b.Goes() {
			if a.Goes() {
				return -1
			}
			return 1
		}
		return cmp.Or(b.BeganAt.Compare(a.BeganAt), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Get returns an order. ErrNone.
func (k *Keeper) Get(name string) (Progress, error) {
	r, err := k.find(name)
	if err != nil {
		return Progress{}, err
	}
	return r.Progress(), nil
}

// Stop begins no more requests of an order, for good; running ones are completed. ErrNone.
func (k *Keeper) Stop(name string) error {
	r, err := k.find(name)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress.Elsewhere {
		return &api.RefusedError{Reason: "another process carries it out: stop it there"}
	}
	if !r.progress.Goes() {
		return nil
	}
	r.cancel()
	return r.end(true)
}

func (k *Keeper) find(name string) (*Run, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lookElsewhere()
	r := k.known[name]
	if r == nil {
		return nil, ErrNone
	}
	return r, nil
}

// path returns the path of the journal of an order.
func (k *Keeper) path(name string) string { return filepath.Join(k.dir, name+suffix) }

// read reads the folder, and continues orders that have not ended.
func (k *Keeper) read() error {
	if err := os.MkdirAll(k.dir, privateDir); err != nil {
		return err
	}
	names, err := fs.Glob(os.DirFS(k.dir), "*"+suffix)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		k.take(strings.TrimSuffix(name, suffix))
	}
	return nil
}

// take loads an order, and carries it out if it goes on and no other process has it. The caller holds mu.
func (k *Keeper) take(name string) {
	r, err := load(k.path(name), func(o Order) error {
		if o.Name != name {
			return fmt.Errorf("it is of %.80q", o.Name)
		}
		return o.check()
	}, func(string, Answer) {})
	if err != nil {
		k.logger.Warn("a repair cannot be read, and is left alone", "repair", name, "error", err)
		return
	}
	k.known[name] = r
	if r.file != nil {
		k.carry(r)
	}
}

// lookElsewhere reloads orders that another process carries out, and takes over those of a dead one. The caller holds
// mu.
func (k *Keeper) lookElsewhere() {
	for name, old := range k.known {
		if old.progress.Elsewhere {
			k.take(name)
		}
	}
}

// forget removes the journal of an order.
func (k *Keeper) forget(name string) {
	if k.dir == "" {
		return
	}
	path := k.path(name)
	if err := errors.Join(os.Remove(path), os.Remove(path+lockSuffix)); err != nil {
		k.logger.Warn("a repair that ended long ago could not be removed", "file", path, "error", err)
	}
}

// carry carries an order out in the background.
func (k *Keeper) carry(r *Run) {
	ctx, cancel := context.WithCancel(k.ctx)
	r.cancel = cancel
	order := r.progress.Order
	k.runs.Go(func() {
		defer cancel()
		err := r.Carry(ctx, Pace{AtOnce: atOnce, PerSecond: order.PerSecond},
			func(_ context.Context, id string) Answer { return k.ask(ctx, r, order, id) }, func(string, Answer) error { return nil })
		if err = errors.Join(err, r.through(ctx)); err != nil && ctx.Err() == nil {
			r.waits(err.Error())
			k.logger.Error("a repair stands still until the next start", "repair", order.Name, "error", err)
		}
	})
}

// ask asks a job until it answers, or ctx ends. A request that was sent is not cut off by that.
func (k *Keeper) ask(ctx context.Context, r *Run, o Order, id string) Answer {
	for rest := firstPause; ; rest = min(2*rest, longestPause) {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		said := k.guarded(within, o, id)
		cancel()
		if said.Err == nil {
			r.waits("")
			return said
		}
		r.waits(said.Err.Error())
		if pause.For(ctx, rest) != nil {
			return said
		}
	}
}

// guarded is once, and makes an error of a panic: the jobs run code of others, and a repair runs beside all other work.
func (k *Keeper) guarded(ctx context.Context, o Order, id string) (said Answer) {
	defer func() {
		if value := recover(); value != nil {
			said.Err = fmt.Errorf("panic: %v", value)
			k.logger.ErrorContext(ctx, "a repair asked for what panicked, and asks again", "repair", o.Name, "job", id, "error", said.Err, "stack", string(debug.Stack()))
		}
	}()
	return k.once(api.As(ctx, o.By), o, id)
}

// once asks a job.
func (k *Keeper) once(ctx context.Context, o Order, id string) Answer {
	var job makegood.Job
	var err error
	switch {
	case o.Answer != "":
		job, err = k.answer(ctx, o, id)
	case o.Verb == "":
		job, err = k.jobs.Settle(ctx, id, api.StepRef{Step: o.Step, Undo: o.Undo}, api.SettleOptions{Skipped: o.Skipped, Reason: o.Reason, Name: o.Name})
	default:
		job, err = k.jobs.Request(ctx, id, api.Request{Verb: o.Verb, Reason: o.Reason, Name: o.Name, Definition: o.Definition})
	}
	return AnswerOf(job, err)
}

// answer gives a step its answer. The same again is the same, so it may be given twice.
func (k *Keeper) answer(ctx context.Context, o Order, id string) (makegood.Job, error) {
	output, err := json.Marshal(o.Answer)
	if err != nil {
		return makegood.Job{}, err
	}
	return k.jobs.Complete(ctx, id, api.StepRef{Step: o.Step, Undo: o.Undo, Why: o.Reason}, output)
}

// Package repair makes one request of many jobs in the background: at a bounded speed, with its progress to be looked
// at, and going on after a crash of either side. It decides nothing about jobs, and finds none: callers give their ids.
// Do, which makes the requests, serves the command's requests for many jobs, too.
//
// # Storage
//
// An order, the list of requests, is in a file on the disk before the first job is asked. The effects are in the jobs:
// each is asked under the order's name, and a job grants a request of one name once (decision 0027), so a repeated
// request has no second effect. The answer of each job is a line behind the order; a lost line costs a request that is
// answered by "it is so already".
package repair

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
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
)

// Order is a request and the jobs to make it of.
type Order struct {
	// Name is the name of the order, and of the request to each job.
	Name string `json:"name"`
	// Says describes the order for people.
	Says string `json:"says"`
	// Answer, if it is not empty, is the answer to Step, or its Undo, with Reason as why. Else Verb is asked of each job,
	// for Reason; by Definition, where that is not empty (api.Request). With both empty, Step, or its Undo, is settled, as
	// done or as Skipped.
	Verb       makegood.Verb `json:"verb,omitempty"`
	Definition string        `json:"definition,omitempty"`
	Step       string        `json:"step,omitempty"`
	Undo       bool          `json:"undo,omitempty"`
	Skipped    bool          `json:"skipped,omitempty"`
	Answer     string        `json:"answer,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	// By is the author, which each job keeps with the request unless a login gives a better name; empty: not known.
	By string `json:"by,omitempty"`
	// PerSecond is how many jobs are asked in a second at most.
	PerSecond float64   `json:"perSecond"`
	BeganAt   time.Time `json:"beganAt"`
	Jobs      []string  `json:"jobs"`
}

// Outcome is the outcome of asking a job.
type Outcome string

// The outcomes.
const (
	Granted Outcome = "granted"
	// Already: it was so, or this order had asked before.
	Already Outcome = "already"
	Refused Outcome = "refused"
)

// Refusal is a job that was refused, and why.
type Refusal struct{ Job, Reason string }

// Progress is how far an order is.
type Progress struct {
	Order
	// Asked is how many jobs have answered: Granted, Already and Refused together.
	Asked, Granted, Already, Refused int
	// Refusals are the first refusals.
	Refusals []Refusal
	// EndedAt is when all jobs had answered, or it was stopped; zero: it goes on. Stopped: by a person.
	EndedAt time.Time
	Stopped bool
	// Elsewhere: another process carries it out.
	Elsewhere bool
	// Waits is why no answer comes; empty: answers come. The order asks again by itself.
	Waits string
	// Kept: it is in a file, and goes on after a restart.
	Kept bool
}

// Goes reports whether it has not ended.
func (p Progress) Goes() bool { return p.EndedAt.IsZero() }

// Total is how many jobs it has.
func (p Progress) Total() int { return len(p.Jobs) }

// Left is how many jobs have not answered.
func (p Progress) Left() int { return len(p.Jobs) - p.Asked }

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
	known map[string]*run
}

// New returns a Keeper that keeps its orders in memory: they die with the process. Close it.
func New(jobs Jobs, logger *slog.Logger) *Keeper {
	k := &Keeper{jobs: jobs, logger: logger, known: map[string]*run{}}
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
	k.known = map[string]*run{}
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
		return r.snapshot(), nil
	}
	if err := k.room(); err != nil {
		return Progress{}, err
	}
	file, err := k.create(o)
	if err != nil {
		return Progress{}, fmt.Errorf("keep repair %s: %w", o.Name, err)
	}
	r := &run{progress: Progress{Order: o, Kept: file != nil}, answered: map[string]bool{}, file: file}
	k.known[o.Name] = r
	k.carry(r)
	return r.snapshot(), nil
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
	var ended []*run
	for _, r := range k.known {
		if r.snapshot().Goes() {
			going++
			continue
		}
		ended = append(ended, r)
	}
	if going >= MaxRunning {
		return &api.InvalidError{Message: fmt.Sprintf("%d repairs are under way, which is what is done at once: wait for one of them, or stop it", going)}
	}
	slices.SortFunc(ended, func(a, b *run) int { return b.progress.EndedAt.Compare(a.progress.EndedAt) })
	for i, r := range ended {
		if i >= maxKept || time.Since(r.progress.EndedAt) > keptFor {
			delete(k.known, r.progress.Name)
			k.forget(r)
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
		list[i] = r.snapshot()
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
	r, err := k.run(name)
	if err != nil {
		return Progress{}, err
	}
	return r.snapshot(), nil
}

// Stop begins no more requests of an order, for good; running ones are completed. ErrNone.
func (k *Keeper) Stop(name string) error {
	r, err := k.run(name)
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

func (k *Keeper) run(name string) (*run, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lookElsewhere()
	r := k.known[name]
	if r == nil {
		return nil, ErrNone
	}
	return r, nil
}

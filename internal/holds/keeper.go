package holds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

var (
	// ErrInvalid: the request can never be granted. Its text says why.
	ErrInvalid = errors.New("invalid")
	// ErrNotHeld: it is not paused, or not by the breaker.
	ErrNotHeld = errors.New("not paused")
	// ErrNoLimit: it has no limit.
	ErrNoLimit = errors.New("no limit")
)

const (
	// maxTries is how often a change is tried again that others came between.
	maxTries = 20
	// maxCounted is how many jobs of a hold are counted for people to look at.
	maxCounted = 100_000
)

// Config has the settings and dependencies of a Keeper. Store, Queue and Events must be set.
type Config struct {
	Store  store.Holds
	Queue  queue.Sender
	Events string
	// Agents are the known agents; empty: they are not known, and any may be paused.
	Agents []string
	// Knows says why there is no workflow of a name; nil: there is one, or, without the function, workflows are not known.
	Knows func(ctx context.Context, workflow string) error
	// Gates look at the gates of agents with a limit. Nil: there are none, and no agent may have a limit.
	Gates Gates
	// Changed, if set, hears of every change that was stored, and when the next jobs go on; zero: none do.
	Changed func(ctx context.Context, key time.Time)
	Now     func() time.Time
	Logger  *slog.Logger
}

// Gates are what a Keeper has of gates; see gate.Keeper.
type Gates interface {
	Look(ctx context.Context, agent string, l job.Limit, before time.Time) error
	Open(ctx context.Context, agent string) error
	// Stand returns the permits of the attempts that are with the agent, and counts those that wait for one, at most so
	// many. more: there may be others.
	Stand(ctx context.Context, agent string, most int) (permits []job.Permit, waiting int, more bool, err error)
}

// Keeper pauses agents and workflows, resumes them, and keeps the limits of agents. Its methods may be called by many
// goroutines at once.
type Keeper struct {
	config Config
	judge  Judge
}

// New makes a Keeper. It panics on a configuration without a required field.
func New(c Config) *Keeper {
	if c.Store == nil || c.Queue == nil || c.Events == "" {
		panic("holds: the configuration must have Store, Queue and Events")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Keeper{config: c}
}

// Pause pauses an agent or a workflow, and returns after that is stored. An existing pause stays, with its time and
// reason. ErrInvalid; after any other error the outcome is unknown.
func (k *Keeper) Pause(ctx context.Context, kind makegood.HoldKind, name, reason, by string) (job.Hold, error) {
	if err := k.check(ctx, kind, name, reason); err != nil {
		return job.Hold{}, err
	}
	return k.change(ctx, kind, name, func(h *job.Hold, all int) error {
		if h.Name != "" && h.On() && !h.Automatic() {
			return nil
		}
		// Being released it is paused again: the jobs that have not gone on stay. A pause that a person sets has no end.
		return k.pause(h, all, job.Hold{Kind: kind, Name: name, By: by, Reason: reason})
	})
}

// pause puts a pause, or a limit, in the place of the one that is there, or of none.
func (k *Keeper) pause(h *job.Hold, all int, by job.Hold) error {
	if h.Name == "" && all >= limits.MaxHolds {
		return fmt.Errorf("%w: %d agents and workflows are paused or have a limit, which is the most", ErrInvalid, all)
	}
	by.Since, by.By, by.Reason, by.Kept = domain.Instant(k.config.Now()), limits.Cut(by.By, limits.MaxHoldByBytes), limits.Cut(by.Reason, limits.MaxHoldReasonBytes), h.Kept
	*h = by
	return nil
}

// Resume resumes an agent or a workflow, and returns after that is stored: new work flows from then on, and the held
// jobs go on little by little. A release under way goes on. ErrNotHeld, ErrInvalid; after any other error the outcome
// is unknown.
func (k *Keeper) Resume(ctx context.Context, kind makegood.HoldKind, name, by string) (job.Hold, error) {
	if err := domain.CheckHold(kind, name); err != nil {
		return job.Hold{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return k.change(ctx, kind, name, func(h *job.Hold, _ int) error {
		if h.Name == "" {
			return fmt.Errorf("%s is %w", job.HoldName(kind, name), ErrNotHeld)
		}
		if h.On() {
			k.resume(h, by)
		}
		return nil
	})
}

func (k *Keeper) resume(h *job.Hold, by string) {
	now := domain.Instant(k.config.Now())
	h.ReleasedAt, h.ReleasedBy, h.Next = now, limits.Cut(by, limits.MaxHoldByBytes), now
}

// Limit sets the limit of an agent, and returns after that is stored; the zero value takes it away, from an agent that
// is not known any more, too. The same limit again, with the same reason or none, keeps the one that stands. It holds
// for attempts that are opened limits.HoldsFresh later; those with the agent already are not counted. ErrInvalid;
// ErrNoLimit, where there is none to take away; after any other error the outcome is unknown.
func (k *Keeper) Limit(ctx context.Context, agent string, limit makegood.Limit, reason, by string) (job.Hold, error) {
	none, err := limit == makegood.Limit{}, domain.CheckLimit(agent)
	switch {
	case k.config.Gates == nil:
		return job.Hold{}, fmt.Errorf("%w: agents cannot have limits here", ErrInvalid)
	case err != nil:
		return job.Hold{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err = k.check(ctx, makegood.HoldAgent, agent, reason); err != nil && !none {
		return job.Hold{}, err
	}
	l, err := job.LimitOf(limit)
	if err == nil && l.Key != "" {
		_, err = workflowfile.CompileKey(l.Key)
	}
	if err != nil {
		return job.Hold{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	was := job.Hold{}
	h, err := k.change(ctx, makegood.HoldLimit, agent, func(h *job.Hold, all int) error {
		was = *h
		switch {
		case none && h.Name == "":
			return fmt.Errorf("agent %s has %w", agent, ErrNoLimit)
		case none:
			*h = job.Hold{}
			return nil
		case h.Limit == l && (reason == "" || reason == h.Reason):
			return nil
		}
		next := domain.Instant(k.config.Now()).Add(limits.GateLook)
		return k.pause(h, all, job.Hold{Kind: makegood.HoldLimit, Name: agent, Limit: l, By: by, Reason: reason, Next: next})
	})
	if none && (err == nil || errors.Is(err, ErrNoLimit)) || err == nil && was.Key != l.Key {
		// Without a limit, too: the process that took it away may have died before it opened the gates. If it dies with
		// another key, looks come to the gates of the former.
		if failed := k.config.Gates.Open(ctx, agent); failed != nil {
			return job.Hold{}, failed
		}
	}
	switch {
	case err != nil:
		return job.Hold{}, err
	case none:
		was.Limit = l
		return was, nil
	}
	return h, k.config.Gates.Look(ctx, agent, l, time.Time{})
}

func (k *Keeper) check(ctx context.Context, kind makegood.HoldKind, name, reason string) error {
	if err := domain.CheckHold(kind, name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case len(reason) > limits.MaxHoldReasonBytes:
		return fmt.Errorf("%w: the reason has %d bytes, the limit is %d", ErrInvalid, len(reason), limits.MaxHoldReasonBytes)
	case !utf8.ValidString(reason):
		return fmt.Errorf("%w: the reason is not UTF-8", ErrInvalid)
	case kind == makegood.HoldAgent && len(k.config.Agents) > 0 && !slices.Contains(k.config.Agents, name):
		return fmt.Errorf("%w: there is no agent %q; there are %v", ErrInvalid, name, k.config.Agents)
	case kind == makegood.HoldWorkflow && k.config.Knows != nil:
		return k.config.Knows(ctx, name)
	}
	return nil
}

// change changes one hold, or the zero value if there is none. It retries while other writers come between.
func (k *Keeper) change(ctx context.Context, kind makegood.HoldKind, name string, change func(h *job.Hold, all int) error) (job.Hold, error) {
	for range maxTries {
		held, err := k.config.Store.Holds(ctx, true)
		if err != nil {
			return job.Hold{}, err
		}
		all := slices.Clone(held.Holds)
		i := slices.IndexFunc(all, func(h job.Hold) bool { return h.Kind == kind && h.Name == name })
		var h job.Hold
		if i >= 0 {
			h = all[i]
		}
		was := h
		if err := change(&h, len(all)); err != nil || h == was {
			return h, err
		}
		if i < 0 {
			all, i = append(all, h), len(all)
		}
		all[i] = h
		if h.Name == "" {
			all = slices.Delete(all, i, i+1)
		}
		if err = k.put(ctx, held.Rev, all); err == nil {
			return h, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return job.Hold{}, err
		}
	}
	return job.Hold{}, fmt.Errorf("%s: %w, %d times", job.HoldName(kind, name), store.ErrConflict, maxTries)
}

// put stores holds in the place of the revision seen, and calls Changed.
func (k *Keeper) put(ctx context.Context, rev int64, all job.Holds) error {
	held := store.Held{Rev: rev, Holds: all}
	if err := k.config.Store.PutHolds(ctx, held); err != nil {
		return err
	}
	if k.config.Changed != nil {
		k.config.Changed(ctx, held.Key())
	}
	return nil
}

// Counted is a hold, and how many jobs it holds; AtLeast, if there may be more. Of a limit it is the attempts that
// wait, and the permits of those under way.
type Counted struct {
	job.Hold
	Permits []job.Permit
	Jobs    int
	AtLeast bool
}

// List returns the holds, by kind and name.
func (k *Keeper) List(ctx context.Context) ([]Counted, error) {
	held, err := k.config.Store.Holds(ctx, true)
	if err != nil {
		return nil, err
	}
	var all []Counted
	for _, h := range held.Holds {
		c, err := k.Count(ctx, h)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Counted) int { return cmp.Compare(a.String(), b.String()) })
	return all, nil
}

// Count counts the jobs that a hold holds, or the attempts that wait before the gate of a limit.
func (k *Keeper) Count(ctx context.Context, h job.Hold) (Counted, error) {
	if h.Kind == makegood.HoldLimit {
		permits, n, more, err := k.config.Gates.Stand(ctx, h.Name, maxCounted)
		return Counted{Hold: h, Permits: permits, Jobs: n, AtLeast: more}, err
	}
	n, err := k.config.Store.CountHeld(ctx, h.String(), maxCounted)
	return Counted{Hold: h, Jobs: n, AtLeast: n == maxCounted}, err
}

// Release lets the next jobs of each release go on, if their time has come. Callers pass on a key that they saw; a
// second caller finds it moved. The next sweep finds the jobs that it missed.
func (k *Keeper) Release(ctx context.Context) error {
	for range maxTries {
		err := k.release(ctx)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("release: %w, %d times", store.ErrConflict, maxTries)
}

// told are the jobs of a hold that are to be told, and in how long.
type told struct {
	hold string
	jobs []string
}

func (k *Keeper) release(ctx context.Context) error {
	held, err := k.config.Store.Holds(ctx, true)
	if err != nil {
		return err
	}
	now := domain.Instant(k.config.Now())
	var left, looks job.Holds
	var all []told
	for _, h := range held.Holds {
		if h.Kind == makegood.HoldLimit && !now.Before(h.Next) {
			looks = append(looks, h)
			h.Next = now.Add(limits.GateLook)
			left = append(left, h)
			continue
		}
		if h.On() && !h.Automatic() || now.Before(h.Next) {
			left = append(left, h)
			continue
		}
		if h.On() {
			probe, err := k.comeDue(ctx, &h)
			if err != nil {
				return err
			}
			if probe != nil {
				left, all = append(left, h), append(all, told{h.String(), probe})
				continue
			}
		}
		jobs, err := k.config.Store.HeldJobs(ctx, h.String(), quota(h.Steps))
		if err != nil {
			return err
		}
		if over(h, len(jobs), now) {
			k.config.Logger.InfoContext(ctx, "released", "hold", h.String(), "resumed", h.Resumed)
			all = append(all, told{h.String(), nil})
			continue
		}
		h.Steps++
		h.Resumed += len(jobs)
		h.Next = now.Add(limits.ResumeEvery)
		left = append(left, h)
		all = append(all, told{h.String(), jobs})
	}
	if len(all)+len(looks) == 0 {
		return nil
	}
	// Store this step first, so that no other process makes it.
	if err := k.put(ctx, held.Rev, left); err != nil {
		return err
	}
	for _, t := range all {
		k.tell(ctx, t)
	}
	for _, h := range looks {
		if err := k.config.Gates.Look(ctx, h.Name, h.Limit, h.Next.Add(-limits.GateLook)); err != nil {
			k.config.Logger.WarnContext(ctx, "a gate is looked at again at the next sweep", "agent", h.Name, "error", err)
		}
	}
	return nil
}

// quota is how many jobs go on in a step.
func quota(step int) int {
	n := limits.ResumeFirst
	for ; step > 0 && n < limits.MaxResume; step-- {
		n *= 2
	}
	return min(n, limits.MaxResume)
}

// over reports whether no jobs are left to release: none was found, some time after the resume, because the index may
// lag and a process that did not know of the resume may have held a job.
func over(h job.Hold, found int, now time.Time) bool {
	return found == 0 && now.Sub(h.ReleasedAt) >= limits.ResumeEvery || now.Sub(h.ReleasedAt) >= limits.MaxRelease
}

// tell tells the Scheduler of jobs that may go on, spread over the time until the next step. If that fails for a job,
// the next step finds it again.
func (k *Keeper) tell(ctx context.Context, t told) {
	messages := make([]queue.Message, 0, len(t.jobs))
	for i, id := range t.jobs {
		body, err := wire.EncodeEvent(id, job.DeadlinePassed{})
		if err != nil {
			k.config.Logger.WarnContext(ctx, "a job that was held waits for its key", "job", id, "error", err)
			continue
		}
		after := time.Duration(i) * limits.ResumeEvery / time.Duration(len(t.jobs))
		messages = append(messages, queue.Message{Body: body, Group: id, Delay: after.Truncate(time.Second)})
	}
	if len(messages) == 0 {
		return
	}
	failed := 0
	for _, err := range k.config.Queue.Send(ctx, k.config.Events, messages...) {
		if err != nil {
			failed++
		}
	}
	k.config.Logger.InfoContext(ctx, "jobs that were held go on", "hold", t.hold, "jobs", len(messages)-failed, "failed", failed)
}

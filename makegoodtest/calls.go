package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var (
	errFault  = errors.New("a fault of the test")
	errKilled = errors.New("the engine was killed")
)

// effect is the fate of a call of the engine to its store or its queues.
type effect int

const (
	goesOn effect = iota
	failsBefore
	failsAfter
	killedBefore
	killedAfter
)

// effectNames are in the order of the effects.
var effectNames = []string{"goes-on", "fails-before", "fails-after", "killed-before", "killed-after"}

func (e effect) String() string { return effectNames[e] }

// call is a call of the engine: the n-th of its name in its life, and its purpose as a clause: "the job was loaded".
type call struct {
	name string
	n    int
	what string
}

// suffers describes the fate of a call in a sentence.
func (c call) suffers(e effect) string {
	switch e {
	case failsBefore:
		return "a call failed, so that this did not happen: " + c.what
	case failsAfter:
		return c.what + ", and yet that call answered with an error"
	case killedBefore:
		return "the engine was killed before " + c.what
	case killedAfter:
		return "the engine was killed after " + c.what + ", before anything that follows from it"
	default:
		panic(fmt.Sprintf("makegoodtest: effect %d is no fault", e))
	}
}

// life is one life of the engine, from its start to its death.
type life struct {
	// strike decides the fate of a call; one goroutine at a time calls it. Nil: all go on.
	strike func(call) effect
	// note is told of every call that is struck.
	note func(call, effect)
	kill context.CancelFunc

	mu     sync.Mutex
	counts map[string]int
	dead   bool
}

// do makes a call, with the fate that strike decides.
func (l *life) do(name, what string, execute func() error) error {
	e, err := l.begin(name, what)
	switch {
	case err != nil:
		return err
	case e == failsBefore:
		return errFault
	case e == killedBefore:
		return l.die()
	}
	err = execute()
	switch {
	case l.isDead():
		return errKilled
	case e == failsAfter:
		return errFault
	case e == killedAfter:
		return l.die()
	}
	return err
}

func (l *life) begin(name, what string) (effect, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return goesOn, errKilled
	}
	l.counts[name]++
	if l.strike == nil {
		return goesOn, nil
	}
	c := call{name: name, n: l.counts[name], what: what}
	e := l.strike(c)
	if e != goesOn {
		l.note(c, e)
	}
	return e, nil
}

func (l *life) die() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.kill()
	return errKilled
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// counted returns how many calls of each name there were.
func (l *life) counted() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// watchedStore is the store of one life.
type watchedStore struct {
	store.Store
	life *life
	// before returns the job as it was last stored, and saved gets each later one.
	before func(id string) job.Job
	saved  func(job.Job)
}

var _ store.Store = (*watchedStore)(nil)

func (s *watchedStore) Create(ctx context.Context, j job.Job) error {
	return s.life.do("Create", "the job was stored", func() error {
		err := s.Store.Create(ctx, j)
		if err == nil {
			s.saved(j)
		}
		return err
	})
}

func (s *watchedStore) Load(ctx context.Context, id string) (j job.Job, err error) {
	err = s.life.do("Load", "the job was loaded", func() (err error) {
		j, err = s.Store.Load(ctx, id)
		return err
	})
	return j, err
}

func (s *watchedStore) Save(ctx context.Context, change store.Change) error {
	return s.life.do("Save", "it was saved that "+changes(s.before(change.Job.ID), change.Job), func() error {
		err := s.Store.Save(ctx, change)
		if err == nil {
			s.saved(change.Job)
		}
		return err
	})
}

func (s *watchedStore) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	return s.life.do("Park", "the job was parked: "+reason, func() error {
		return s.Store.Park(ctx, id, seen, reason, completeBy)
	})
}

func (s *watchedStore) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	return s.life.do("Claim", fmt.Sprintf("attempt %d of step %s was claimed", claim.Attempt, slot.Step), func() error {
		return s.Store.Claim(ctx, slot, claim, until)
	})
}

func (s *watchedStore) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (completeBy time.Time, err error) {
	err = s.life.do("Heartbeat", fmt.Sprintf("attempt %d of step %s got more time by a heartbeat", claim.Attempt, slot.Step), func() (err error) {
		completeBy, err = s.Store.Heartbeat(ctx, slot, claim, until)
		return err
	})
	return completeBy, err
}

func (s *watchedStore) Close(ctx context.Context, slot store.Slot, c store.Closing) (found job.Found, err error) {
	err = s.life.do("Close", fmt.Sprintf("it was tried to close attempt %d of step %s", c.Attempt, slot.Step), func() (err error) {
		found, err = s.Store.Close(ctx, slot, c)
		return err
	})
	return found, err
}

func (s *watchedStore) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (found job.Found, err error) {
	err = s.life.do("Look", fmt.Sprintf("attempt %d of step %s was looked at", attempt, slot.Step), func() (err error) {
		found, err = s.Store.Look(ctx, slot, attempt, until, now)
		return err
	})
	return found, err
}

func (s *watchedStore) Overrule(ctx context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	return s.life.do("Overrule", fmt.Sprintf("the claim on step %s was overruled", slot.Step), func() error {
		return s.Store.Overrule(ctx, slot, attempt, lie, until)
	})
}

func (s *watchedStore) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) (due []store.Entry, err error) {
	err = s.life.do("Due", "the Supervisor looked for overdue jobs", func() (err error) {
		due, err = s.Store.Due(ctx, shard, now, after, limit)
		return err
	})
	return due, err
}

func (s *watchedStore) PutPayload(ctx context.Context, job, key string, value []byte) error {
	return s.life.do("PutPayload", key+" was stored", func() error { return s.Store.PutPayload(ctx, job, key, value) })
}

func (s *watchedStore) Payload(ctx context.Context, job, key string) (value []byte, err error) {
	err = s.life.do("Payload", key+" was read", func() (err error) {
		value, err = s.Store.Payload(ctx, job, key)
		return err
	})
	return value, err
}

func (s *watchedStore) PutDefinition(ctx context.Context, name, hash string, definition []byte) error {
	return s.life.do("PutDefinition", "the workflow was stored", func() error {
		return s.Store.PutDefinition(ctx, name, hash, definition)
	})
}

func (s *watchedStore) Definition(ctx context.Context, hash string) (definition []byte, err error) {
	err = s.life.do("Definition", "the workflow was read", func() (err error) {
		definition, err = s.Store.Definition(ctx, hash)
		return err
	})
	return definition, err
}

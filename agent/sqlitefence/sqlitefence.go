// Package sqlitefence makes the effects of an agent in its own SQLite database happen exactly once.
//
//	func (l *Ledger) charge(ctx context.Context, in Charge) (Receipt, error) {
//		return sqlitefence.Do(ctx, l.fence, func(tx *sql.Tx) (Receipt, error) {
//			_, err := tx.ExecContext(ctx, `INSERT INTO ledger(account, amount) VALUES(?, ?)`, in.Account, in.Amount)
//			return Receipt{Account: in.Account}, err
//		})
//	}
//
// In the same transaction as the effect it keeps the output under the idempotency key of the task, so that every
// later attempt gets it and has no effect. An undo leaves a mark under the key of the step that it undoes: a delayed
// effect can never land after it.
//
// # Guarantees
//
// In the file of the jobs (DIR/makegood.db, which the caller opens with a driver of their own, as for
// client/sqlitetx): the claim of the attempt is looked at in the same transaction, so the effect happens only while
// the attempt is held. In a file of the caller's own: the fence keeps the highest attempt of each step that came to
// it, and refuses lower ones. So an attempt that is over is refused from the moment on at which a later one, or the
// undo, has come here, and not before. In both the effect happens at most once, and never after its undo.
//
// # Duties of the caller
//
// Open the database with a busy_timeout (5 s, say), and leave PRAGMA synchronous at FULL, or a power failure may lose
// an effect that was answered. In the file of the jobs keep transactions short: the engine cannot write meanwhile.
// Only the transaction is fenced, and no effect outside of it.
package sqlitefence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/fenced"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

var (
	// ErrLost: the attempt is no longer the agent's, and the transaction has no effect. Return it: the runner checks that
	// this is so, and then sends no reply.
	ErrLost = fenced.ErrLost
	// ErrUndone: the effect was undone, or its undo came first and prevents it. The transaction has no effect.
	ErrUndone = fenced.ErrUndone
	// ErrMissing: the job records the step as done, and there is no effect under its key to undo: it expired, or the step
	// was done elsewhere, by a person or before there was a fence. The transaction has no effect; but for a repeated
	// step, the effects that are there have been undone.
	ErrMissing = fenced.ErrMissing
	// ErrTask: the context is not that of an attempt, or the attempt has no claim though its step wants one.
	ErrTask = fenced.ErrTask
)

// Config is what a Fence is made of.
type Config struct {
	// DB is the database that the effects are in, with a driver of the caller's.
	DB *sql.DB
	// Keep is how long the fence keeps its record of an effect, at least 90 days; zero: for ever. A step
	// that is tried again, or undone, after that counts as one that never happened here.
	Keep time.Duration
	// Now returns the time that is kept with effects. Default: time.Now.
	Now func() time.Time
}

// Fence keeps effects in one database. It may be used by many goroutines at once.
type Fence struct {
	config Config

	mu    sync.Mutex
	ready bool
	// jobs: the claims lie in the same file.
	jobs bool
}

// New makes a Fence, without a query: the tables are made when it is first used, since the file of the jobs is there
// only when its engine is.
func New(c Config) (*Fence, error) {
	if c.DB == nil {
		return nil, errors.New("sqlitefence: the database is missing")
	}
	if err := fenced.CheckKeep(c.Keep); err != nil {
		return nil, fmt.Errorf("sqlitefence: %w", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Fence{config: c}, nil
}

// Effect is what a step did here.
type Effect struct {
	// Output is the output of the step, as JSON.
	Output json.RawMessage
	// Attempt did it, at At.
	Attempt int
	At      time.Time
}

// Do does the step of the attempt that runs in ctx: it calls effect in a transaction, stores its output under the
// task's key, and commits. Where the step was done before, by an attempt with a lost answer, effect is not called,
// and the stored output is returned. effect must write through tx alone, and neither commit nor roll back.
//
// An error of effect is returned as it is, after its writes were rolled back. agent.Wait is refused there: an action
// that waits for an event returns it when Do has returned. After ErrLost, ErrUndone and ErrTask no effect was
// written. Any other error may leave it open whether the transaction was committed; the next attempt finds out.
func Do[Out any](ctx context.Context, f *Fence, effect func(tx *sql.Tx) (Out, error)) (out Out, err error) {
	done, err := f.do(ctx, func(tx *sql.Tx) (json.RawMessage, error) {
		made, err := effect(tx)
		if err != nil {
			return nil, fenced.Failed(err)
		}
		return fenced.Write(made)
	})
	if err != nil {
		return out, err
	}
	return fenced.Read[Out](ctx, done.Output)
}

// Undo undoes the step of the undo that runs in ctx: it calls undo in a transaction with the output that Do stored,
// and commits. From then on Do refuses the step's key with ErrUndone. Where the step never happened here, undo is not
// called, and its key is refused from now on all the same. Where it was undone before, Undo succeeds without effect.
//
// A step that was repeated has an effect for each success: undo is called for each, the newest first, in a
// transaction of its own. Those that are undone stay so where one fails, and the next attempt goes on from there.
//
// Errors are as with Do; ErrMissing, too.
func Undo[Out any](ctx context.Context, f *Fence, undo func(tx *sql.Tx, done Out) error) error {
	return f.undo(ctx, func(tx *sql.Tx, stored Effect) error {
		done, err := fenced.ReadForUndo[Out](ctx, stored.Output)
		if err != nil {
			return err
		}
		return fenced.Failed(undo(tx, done))
	})
}

func (f *Fence) do(ctx context.Context, effect func(*sql.Tx) (json.RawMessage, error)) (done Effect, err error) {
	err = f.within(ctx, func(tx *sql.Tx) error {
		before, was, err := f.Done(ctx, tx)
		if done = before; err != nil || was {
			return err
		}
		return f.tried(ctx, tx, func() error {
			output, err := effect(tx)
			if err != nil {
				return err
			}
			done = Effect{Output: output}
			return f.Store(ctx, tx, output)
		})
	})
	return done, err
}

func (f *Fence) undo(ctx context.Context, undo func(*sql.Tx, Effect) error) error {
	undoing, err := fenced.NewUndoing(agent.TaskOf(ctx))
	if err != nil {
		return err
	}
	for more := true; more; {
		err := f.within(ctx, func(tx *sql.Tx) (err error) {
			more, err = f.undoNext(ctx, tx, undoing, undo)
			return err
		})
		if err != nil {
			return err
		}
	}
	return undoing.Err()
}

// undoNext goes through the effects of a step until it has undone one. More is false if there are none any more.
func (f *Fence) undoNext(ctx context.Context, tx *sql.Tx, undoing *fenced.Undoing, undo func(*sql.Tx, Effect) error) (more bool, err error) {
	task := agent.TaskOf(ctx)
	for key, ok := undoing.Key(); ok; key, ok = undoing.Key() {
		done, is, err := f.read(ctx, tx, key, task.Birth)
		if err != nil {
			return false, err
		}
		switch is = undoing.Judge(is); is {
		case fenced.None:
			err = f.write(ctx, tx, task, key, fenced.Refused, []byte("null"))
		case fenced.Done:
			err = f.tried(ctx, tx, func() error {
				if err := undo(tx, done); err != nil {
					return err
				}
				return f.write(ctx, tx, task, key, fenced.Undone, done.Output)
			})
		}
		if err != nil {
			return false, err
		}
		if undoing.Next(is); is == fenced.Done {
			_, more = undoing.Key()
			return more, nil
		}
	}
	return false, nil
}

// errTried is the error of a failed try in a transaction that is committed all the same.
type errTried struct{ error }

// tried calls do, and rolls back the writes of a failed do, but not the earlier ones of the transaction: the record
// that this attempt has come must stay after a failure, too.
func (f *Fence) tried(ctx context.Context, tx *sql.Tx, do func() error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT makegood_effect"); err != nil {
		return err
	}
	failed := do()
	if failed == nil {
		_, err := tx.ExecContext(ctx, "RELEASE makegood_effect")
		return err
	}
	if _, err := tx.ExecContext(ctx, "ROLLBACK TO makegood_effect"); err != nil {
		return failed // All is rolled back.
	}
	return errTried{failed}
}

// within runs do in a transaction that holds the fence.
func (f *Fence) within(ctx context.Context, do func(*sql.Tx) error) error {
	if err := f.Setup(ctx); err != nil {
		return err
	}
	tx, err := f.config.DB.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // Without effect after a commit.
	if err := f.Hold(ctx, tx); err != nil {
		return err
	}
	tried := do(tx)
	failed := errTried{}
	if tried != nil && !errors.As(tried, &failed) {
		return tried
	}
	if err := tx.Commit(); err != nil && failed.error == nil {
		return fmt.Errorf("commit: %w", err)
	}
	return failed.error
}

func slotOf(task makegood.Task) store.Slot {
	return store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
}

// Setup makes the fence's tables, makegood_attempts and makegood_effects, if they are not there. Do and Undo call it;
// for Hold, Done and Store in a transaction of your own, call it before the first.
func (f *Fence) Setup(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready {
		return nil
	}
	for _, statement := range f.tables() {
		if _, err := f.config.DB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make the tables of the fence: %w", err)
		}
	}
	jobs, err := sqlitestore.Here(ctx, f.config.DB)
	if err != nil {
		return err
	}
	f.jobs, f.ready = jobs, true
	return nil
}

package sqlitefence_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/limits"
)

// exec changes the database as another hand does.
func (l *ledger) exec(statement string) {
	l.t.Helper()
	if _, err := l.db.Exec(statement); err != nil {
		l.t.Fatal(err)
	}
}

// indexes are the names of the fence's indexes, but for those of its primary keys.
func (l *ledger) indexes() (names []string) {
	l.t.Helper()
	rows, err := l.db.Query(`SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'makegood_%' ORDER BY name`)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			l.t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	return names
}

// What expires is found by an index, in both tables. Where nothing expires, there is none, which each effect would
// write.
func TestWhatExpiresHasAnIndex(t *testing.T) {
	for keep, want := range map[time.Duration][]string{0: nil, limits.MinKeepEffect: {"makegood_attempts_at", "makegood_effects_at"}} {
		l := openLedger(t, filepath.Join(t.TempDir(), "own.db"), keep)
		if err := l.fence.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := l.indexes(); !slices.Equal(got, want) {
			t.Errorf("kept for %v: got the indexes %v, want %v", keep, got, want)
		}
	}
}

// Each effect of a repeated step is undone in a transaction of its own.
func TestEachEffectIsUndoneInATransactionOfItsOwn(t *testing.T) {
	l := ownFile(t)
	for n := 1; n <= 3; n++ {
		if _, err := l.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	var in []*sql.Tx
	err := sqlitefence.Undo(agentctx.NewContext(t.Context(), undoOf(2, 4, makegood.OutcomeDone), nil), l.fence, func(tx *sql.Tx, _ receipt) error {
		if slices.Contains(in, tx) {
			t.Error("two are undone in one transaction")
		}
		in = append(in, tx)
		return nil
	})
	if err != nil || len(in) != 3 {
		t.Errorf("got %d undone, %v, want 3", len(in), err)
	}
}

// A caller's transaction reads an effect as it was stored: its output, its attempt and its time.
func TestWhatWasStoredIsReadAsItWas(t *testing.T) {
	l := ownFile(t)
	l.now = time.Date(2026, 11, 25, 12, 0, 0, 123_000_000, time.UTC)
	if err := l.fence.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	within := func(attempt int, do func(ctx context.Context, tx *sql.Tx) error) {
		t.Helper()
		ctx := agentctx.NewContext(t.Context(), forward(attempt), nil)
		tx, err := l.db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := errors.Join(l.fence.Hold(ctx, tx), do(ctx, tx), tx.Commit()); err != nil {
			t.Error(err)
		}
	}
	within(3, func(ctx context.Context, tx *sql.Tx) error {
		if done, was, err := l.fence.Done(ctx, tx); err != nil || was || done.Output != nil || done.Attempt != 0 {
			t.Errorf("before: got %+v, %v, %v, want nothing", done, was, err)
		}
		return l.fence.Store(ctx, tx, json.RawMessage(`{"a":1}`))
	})
	then := l.now
	l.now = l.now.Add(time.Hour)
	within(4, func(ctx context.Context, tx *sql.Tx) error {
		done, was, err := l.fence.Done(ctx, tx)
		if err != nil || !was || string(done.Output) != `{"a":1}` || done.Attempt != 3 || !done.At.Equal(then) || done.At.Location() != time.UTC {
			t.Errorf("after: got %+v, %v, %v, want attempt 3 at %v", done, was, err, then)
		}
		if err := l.fence.Store(ctx, tx, func() {}); err == nil {
			t.Error("what is no JSON was stored")
		}
		return nil
	})
}

// An error of the database is told as one, and is neither a lost attempt nor an effect.
func TestADatabaseThatFailsIsToldOf(t *testing.T) {
	do := func(l *ledger) error { _, err := l.pay(forward(2)); return err }
	undo := func(l *ledger) error { return l.refund(backward(2, makegood.OutcomeDone)) }
	for says, c := range map[string]struct {
		breaks func(*ledger)
		do     func(*ledger) error
	}{
		"begin: ":                 {func(l *ledger) { _ = l.db.Close() }, do},
		"fence of j/pay/1: ":      {func(l *ledger) { l.exec(`DROP TABLE makegood_attempts`) }, do},
		"fence of j/pay/1/undo: ": {func(l *ledger) { l.exec(`DROP TABLE makegood_attempts`) }, undo},
		"effect j/pay/1: ":        {func(l *ledger) { l.exec(`DROP TABLE makegood_effects`) }, do},
		"effect j/pay/1: SQL":     {func(l *ledger) { l.exec(`DROP TABLE makegood_effects`) }, undo},
		"store effect j/pay/1: SQL": {func(l *ledger) {
			l.exec(`CREATE TRIGGER full BEFORE INSERT ON makegood_effects BEGIN SELECT RAISE(ABORT, 'full'); END`)
		}, undo},
		"store effect j/pay/2: ": {func(l *ledger) {
			l.exec(`CREATE TRIGGER full BEFORE INSERT ON makegood_effects BEGIN SELECT RAISE(ABORT, 'full'); END`)
		}, func(l *ledger) error { _, err := l.pay(other(2)); return err }},
		"delete expired rows: ": {func(l *ledger) {
			l.exec(`CREATE TRIGGER held BEFORE DELETE ON makegood_attempts BEGIN SELECT RAISE(ABORT, 'held'); END`)
			l.now = l.now.Add(3 * limits.MinKeepEffect)
		}, func(l *ledger) error { _, err := l.pay(other(2)); return err }},
		"delete expired rows: SQL": {func(l *ledger) {
			l.exec(`CREATE TRIGGER held BEFORE DELETE ON makegood_effects BEGIN SELECT RAISE(ABORT, 'held'); END`)
			l.now = l.now.Add(3 * limits.MinKeepEffect)
		}, func(l *ledger) error { _, err := l.pay(other(2)); return err }},
	} {
		t.Run(says, func(t *testing.T) {
			l := openLedger(t, filepath.Join(t.TempDir(), "own.db"), limits.MinKeepEffect)
			if _, err := l.pay(forward(1)); err != nil {
				t.Fatal(err)
			}
			c.breaks(l)
			err := c.do(l)
			if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(says, "SQL")) || errors.Is(err, sqlitefence.ErrLost) || errors.Is(err, sqlitefence.ErrMissing) {
				t.Errorf("got %v, want that it says %q", err, says)
			}
			if says != "begin: " {
				l.want(1, 5)
			}
		})
	}
}

// other is the same step of another job.
func other(attempt int) makegood.Task {
	task := forward(attempt)
	task.Job, task.Key = "k", "j/pay/2"
	return task
}

// The tables of a fence cannot be made in a database that is closed, and are made once it can be used.
func TestTablesThatCannotBeMadeAreMadeLater(t *testing.T) {
	l := ownFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.fence.Setup(ctx); err == nil || !strings.Contains(err.Error(), "make the tables of the fence") {
		t.Errorf("got %v, want that they cannot be made", err)
	}
	if _, err := l.pay(forward(1)); err != nil {
		t.Errorf("later: got %v", err)
	}
	l.want(1, 5)
}

// Of an effect that fails and has ended its transaction by itself, which it must not, its own error is told.
func TestAnEffectThatEndsItsTransactionIsAnError(t *testing.T) {
	l := ownFile(t)
	failed := errors.New("failed")
	_, err := sqlitefence.Do(agentctx.NewContext(t.Context(), forward(1), nil), l.fence, func(tx *sql.Tx) (receipt, error) {
		if _, err := tx.Exec(`INSERT INTO ledger(step, amount) VALUES('x', 5)`); err != nil {
			return receipt{}, err
		}
		_, err := tx.Exec(`ROLLBACK`)
		return receipt{}, errors.Join(failed, err)
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	l.want(0, 0)
}

// New refuses a nil database and a Keep that is too short. Without a clock the fence uses the machine's clock.
func TestAFenceNeedsADatabase(t *testing.T) {
	l := ownFile(t)
	for name, c := range map[string]struct {
		config sqlitefence.Config
		good   bool
	}{
		"no database":    {sqlitefence.Config{}, false},
		"kept too short": {sqlitefence.Config{DB: l.db, Keep: limits.MinKeepEffect - 1}, false},
		"kept for ever":  {sqlitefence.Config{DB: l.db}, true},
		"kept for long":  {sqlitefence.Config{DB: l.db, Keep: limits.MinKeepEffect}, true},
	} {
		if f, err := sqlitefence.New(c.config); (err == nil) != c.good || (f != nil) != c.good {
			t.Errorf("%s: got %v, %v", name, f, err)
		}
	}
	var err error
	if l.fence, err = sqlitefence.New(sqlitefence.Config{DB: l.db}); err != nil {
		t.Fatal(err)
	}
	before := time.Now().UnixMilli()
	if _, err := l.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	var at int64
	if err := l.db.QueryRow(`SELECT at FROM makegood_effects`).Scan(&at); err != nil || at < before || at > time.Now().UnixMilli() {
		t.Errorf("got an effect at %d, %v, want now", at, err)
	}
}

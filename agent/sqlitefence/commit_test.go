package sqlitefence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/internal/agentctx"
)

// A transaction that could not be committed is an error, and its effect did not happen: the next attempt makes it.
func TestAnEffectThatCouldNotBeCommittedIsAnError(t *testing.T) {
	l := ownFile(t)
	l.db.SetMaxOpenConns(1)
	for _, statement := range []string{
		`PRAGMA foreign_keys = ON`, `CREATE TABLE account(id INTEGER PRIMARY KEY)`,
		`CREATE TABLE entry(account INTEGER REFERENCES account(id) DEFERRABLE INITIALLY DEFERRED)`,
	} {
		if _, err := l.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	enter := func(attempt int) error {
		_, err := sqlitefence.Do(agentctx.NewContext(context.Background(), forward(attempt), nil), l.fence, func(tx *sql.Tx) (int, error) {
			_, err := tx.Exec(`INSERT INTO entry(account) VALUES(1)`)
			return 1, err
		})
		return err
	}
	if err := enter(1); err == nil || !strings.Contains(err.Error(), "commit") {
		t.Errorf("without its account: got %v, want that it could not be committed", err)
	}
	if _, err := l.db.Exec(`INSERT INTO account(id) VALUES(1)`); err != nil {
		t.Fatal(err)
	}
	if err := enter(2); err != nil {
		t.Errorf("with its account: got %v", err)
	}
	// Of an effect that fails its own error is told, also where what came before it cannot be committed.
	if _, err := l.db.Exec(`CREATE TRIGGER spoil AFTER UPDATE ON makegood_attempts BEGIN INSERT INTO entry(account) VALUES(2); END`); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no cover")
	later := forward(3)
	later.Key = "j/pay/2"
	if _, err := l.payOr(later, failed); !errors.Is(err, failed) {
		t.Errorf("an effect that fails: got %v, want %v", err, failed)
	}
	n := 0
	if err := l.db.QueryRow(`SELECT count(*) FROM entry`).Scan(&n); err != nil || n != 1 {
		t.Errorf("got %d entries, %v, want one", n, err)
	}
}

// The tables are made once. Effects that are lost with their table afterwards are not taken for effects that never were.
func TestTablesThatAreLostAreNotMadeAnew(t *testing.T) {
	l := ownFile(t)
	if _, err := l.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.db.Exec(`DROP TABLE makegood_effects`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.pay(forward(2)); err == nil {
		t.Error("it was paid again, want an error")
	}
	l.want(1, 5)
}

// Of a step that was undone nothing is done, and nothing will be.
func TestWhatWasUndoneIsNotSaidToBeDone(t *testing.T) {
	l := ownFile(t)
	if _, err := l.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	if err := l.refund(backward(2, makegood.OutcomeDone)); err != nil {
		t.Fatal(err)
	}
	ctx := agentctx.NewContext(t.Context(), forward(3), nil)
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if done, was, err := l.fence.Done(ctx, tx); !errors.Is(err, sqlitefence.ErrUndone) || was || done.Output != nil {
		t.Errorf("got %+v, %v, %v, want %v", done, was, err, sqlitefence.ErrUndone)
	}
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing/fstest"
	"time"

	_ "modernc.org/sqlite" // the driver of the ledger

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/engine"
)

// workflows are a transfer, and one line by a teller that may hang, given up in three ways.
var workflows = fstest.MapFS{
	"transfer.yaml": {Data: []byte(`
name: transfer
steps:
  - name: debit
    agent: bank
    action: book
    with: {account: "${ .input.from }", cents: "${ -.input.cents }"}
    undo: {action: cancel}
  - name: credit
    agent: bank
    action: book
    with: {account: "${ .input.to }", cents: "${ .input.cents }"}
    undo: {action: cancel}
  - name: sign
    agent: notary
`)},
	"again.yaml":   {Data: []byte("name: again\nsteps: [{name: book, agent: teller, timeout: 1s, retry: {backoff: 10ms}, undo: {action: cancel}}]")},
	"undone.yaml":  {Data: []byte("name: undone\nsteps: [{name: book, agent: teller, timeout: 1s, retry: {attempts: 1}, undo: {action: cancel}}]")},
	"stopped.yaml": {Data: []byte("name: stopped\nonFailure: stop\nsteps: [{name: book, agent: teller, timeout: 1s, retry: {attempts: 1}, undo: {action: cancel}}]")},
}

// transfer is the input of a job, and line its entry in the ledger.
type transfer struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Cents int    `json:"cents"`
	// Bad: it is never signed.
	Bad bool `json:"bad,omitempty"`
}

type line struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

// ledger is a table in the file of the jobs.
type ledger struct {
	db    *sql.DB
	fence *sqlitefence.Fence
}

func openLedger(dir string) (*ledger, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "makegood.db")+"?_pragma=busy_timeout(30000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer.
	fence, err := sqlitefence.New(sqlitefence.Config{DB: db})
	return &ledger{db, fence}, err
}

// prepare makes the table; the file is there when an engine has opened it.
func (l *ledger) prepare(ctx context.Context) error {
	_, err := l.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS ledger(
		job TEXT NOT NULL, step TEXT NOT NULL, undo INTEGER NOT NULL, account TEXT NOT NULL, cents INTEGER NOT NULL)`)
	return err
}

func (l *ledger) book(ctx context.Context, in line) (line, error) {
	return sqlitefence.Do(ctx, l.fence, func(tx *sql.Tx) (line, error) { return in, write(ctx, tx, in, false) })
}

func (l *ledger) cancel(ctx context.Context, _ line, _ *line) error {
	return sqlitefence.Undo(ctx, l.fence, func(tx *sql.Tx, done line) error {
		done.Cents = -done.Cents
		return write(ctx, tx, done, true)
	})
}

func write(ctx context.Context, tx *sql.Tx, l line, undo bool) error {
	task := agent.TaskOf(ctx)
	_, err := tx.ExecContext(ctx, `INSERT INTO ledger(job, step, undo, account, cents) VALUES(?, ?, ?, ?, ?)`, task.Job, task.Step, undo, l.Account, l.Cents)
	return err
}

func sign(_ context.Context, t transfer) (string, error) {
	if t.Bad {
		return "", agent.Final(errors.New("nobody signs this"))
	}
	return "signed", nil
}

// open opens an engine on the folder, and what its agents write in.
func open(ctx context.Context, dir string) (*engine.Engine, *ledger, error) {
	l, err := openLedger(dir)
	if err != nil {
		return nil, nil, err
	}
	eng, err := engine.Open(ctx, engine.Options{
		Dir: dir, Workflows: workflows, Outside: []engine.Outside{{Name: "teller"}}, Logger: slog.New(slog.DiscardHandler),
		Agents: []agent.Handler{
			agent.New("bank", agent.Do("book", l.book).Undo("cancel", l.cancel)),
			agent.New("notary", agent.Do("sign", sign)),
		},
	})
	if err != nil {
		return nil, nil, errors.Join(err, l.db.Close())
	}
	if err := l.prepare(ctx); err != nil {
		return nil, nil, errors.Join(err, eng.Close(), l.db.Close())
	}
	return eng, l, nil
}

// running runs an engine on the folder while do uses it.
func running(ctx context.Context, dir string, do func(context.Context, *engine.Engine, *ledger) error) error {
	eng, l, err := open(ctx, dir)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	err = do(ctx, eng, l)
	stop()
	return errors.Join(err, <-ran, eng.Close(), l.db.Close())
}

// patience bounds what should be done long before.
const patience = 2 * time.Minute

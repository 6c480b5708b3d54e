package sqlitestore_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// takeFile has the file for a transaction of one's own, as client/sqlitetx and agent/sqlitefence do, until it is committed.
func takeFile(t *testing.T, path string) (commit func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check(t, err)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	_, err = tx.ExecContext(t.Context(), `CREATE TABLE orders(id TEXT)`)
	check(t, err)
	return func() { check(t, tx.Commit()) }
}

// Whoever writes to the file in a transaction of their own is waited for, and not for a moment alone.
func TestAWriteWaitsForTheTransactionOfAnotherProgram(t *testing.T) {
	s, path := openFile(t)
	commit := takeFile(t, path)
	created := make(chan error, 1)
	go func() { created <- s.Create(t.Context(), benchJob(1)) }()
	waitFor(t, "the write to have waited three times", func() bool { return s.Stats().Busy >= 3 })
	commit()
	check(t, <-created)
	load(t, s, benchJob(1).ID)
}

// One that does not end is named, and the next write finds the store as it was.
func TestATransactionOfAnotherProgramThatDoesNotEndIsNamed(t *testing.T) {
	s, path := openFile(t)
	s.TryToBegin(2)
	commit := takeFile(t, path)
	err := s.Create(t.Context(), benchJob(1))
	if want := "another program has had a transaction in the file for 200ms"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %q", err, want)
	}
	commit()
	create(t, s, 1)
}

// A store is opened while another program has a transaction in its file, which ends.
func TestAStoreIsOpenedWhenTheTransactionOfAnotherProgramHasEnded(t *testing.T) {
	s, path := openFile(t)
	create(t, s, 1)
	check(t, s.Shut())
	commit := takeFile(t, path)
	opened := make(chan error, 1)
	go func() {
		var err error
		s, err = sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path})
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("got %v while the transaction lasts, want it to wait", err)
	case <-time.After(300 * time.Millisecond): // three times as long as SQLite waits
	}
	commit()
	check(t, <-opened)
	load(t, s, benchJob(1).ID)
	check(t, s.Shut())
}

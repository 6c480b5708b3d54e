package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
)

// Damage makes the stored data of a job undecodable, in the row and in memory.
func (s *Store) Damage(id string) error {
	return s.submit(context.Background(), 0, func(g *group) (answer, err error) {
		g.items[id] = nil
		return nil, g.exec(`UPDATE jobs SET data = CAST('{"id":' AS BLOB) WHERE id = ?`, id)
	})
}

// Overwrite stores a job in the place of the one of its id, as a later release would.
func (s *Store) Overwrite(j job.Job) error {
	_, data := pack(j)
	return s.submit(context.Background(), 0, func(g *group) (answer, err error) {
		g.items[j.ID] = nil
		return nil, g.exec(`UPDATE jobs SET data = ?, process_state = ? WHERE id = ?`, data, string(j.ProcessState), j.ID)
	})
}

// FlushWith makes f flush the log in the place of the kernel's call, which it is given.
func (s *Store) FlushWith(f func(flush func() error) error) {
	s.log.syncFile = func(file *os.File) error { return f(func() error { return syncFile(file) }) }
}

// IsFinal reports whether a store should not go on after an error.
func IsFinal(err error) bool { return isFinal(err) }

// SyncFile makes what was written to a file durable.
func SyncFile(f *os.File) error { return syncFile(f) }

// WhenSettling calls f when a read has seen what it reads and is about to wait until that is durable.
func (s *Store) WhenSettling(f func()) {
	s.settle = func() error {
		f()
		return s.settled()
	}
}

// HoldWrites takes the write lock, so that writes wait, until the func returned is called.
func (s *Store) HoldWrites() (release func()) {
	s.writing <- struct{}{}
	return func() { <-s.writing }
}

// Panic makes a write panic.
func (s *Store) Panic() error {
	return s.submit(context.Background(), 0, func(*group) (answer, err error) { panic("on purpose") })
}

// LimitLog sets how long the log may become, in pages.
func (s *Store) LimitLog(pages int) { s.logLimit, s.checkpointAt = pages, pages }

// Checkpoint copies the log into the file now.
func (s *Store) Checkpoint() error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	return s.checkpoint()
}

// Waiting is how many writes wait for the next group.
func (s *Store) Waiting() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.waiting)
}

// Cached is how many jobs are kept in memory, and how many steps they have.
func (s *Store) Cached() (jobs, steps int) {
	s.cache.mu.RLock()
	defer s.cache.mu.RUnlock()
	return len(s.cache.items), s.cache.steps
}

// ClaimRows counts the claims that are kept.
func (s *Store) ClaimRows(t testing.TB) int {
	t.Helper()
	row, err := s.one(context.Background(), `SELECT count(*) FROM claims`)
	if err != nil {
		t.Fatal(err)
	}
	return int(asInt(row[0]))
}

// Shelf returns how full the quarantine is, as it is kept; counted is false where the next message counts it.
func (s *Store) Shelf() (messages, bytes int64, counted bool) {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	return s.shelf.messages, s.shelf.bytes, s.shelf.counted
}

// Plans returns how SQLite means to run the statements that must not read all jobs.
func (s *Store) Plans() (map[string]string, error) {
	statements := map[string]string{
		"due": selectDue, "next due": selectNextDue, "next due schedule": selectNextDueSchedule,
		"load": selectJob, "head": selectHead, "each": selectJobs,
		"slot": selectSlot, "sweep": selectSweep, "sweep within": deleteWithin, "sweep rest": deleteRest,
		"expired": selectExpired,
	}
	plans := map[string]string{}
	err := s.read(context.Background(), func(c *conn) error {
		for name, sql := range statements {
			args := make([]driver.Value, strings.Count(sql, "?"))
			err := c.query("EXPLAIN QUERY PLAN "+sql, args, func(row []driver.Value) error {
				plans[name] += asText(row[3]) + "; "
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return plans, err
}

// SchemaVersion is the layout of this release.
const SchemaVersion = schemaVersion

// Layout is what a release knows of files, for tests of releases that there are not yet.
type Layout struct{ layout }

// LayoutOf returns the layout of a release: its version, the oldest that may read it, and the steps that lead to it.
func LayoutOf(version, readableFrom int64, steps ...migration) Layout {
	return Layout{layout{version: version, readableFrom: readableFrom, migrations: steps}}
}

// Step is a step to a version.
func Step(version int64, statements ...string) migration { return migration{version, statements} }

// Steps are the steps that lead to the layout.
func (l Layout) Steps() []migration { return slices.Clone(l.migrations) }

// Version is that of the layout.
func (l Layout) Version() int64 { return l.version }

// OpenAs opens a store as the release would whose layout this is.
func OpenAs(ctx context.Context, options Options, l Layout) (*Store, error) {
	options.layout = &l.layout
	return Open(ctx, options)
}

// CheckReadable says what a reader of that release says of a file.
func CheckReadable(path string, l Layout) error {
	c, err := dial(path, true)
	if err != nil {
		return err
	}
	return errors.Join(l.readable(c), c.close())
}

// BreakCommit lets the store fail in the middle of a transaction, as a disk that is full for a moment does.
func (s *Store) BreakCommit(t testing.TB) error {
	t.Helper()
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	for _, sql := range []string{"BEGIN IMMEDIATE", "UPDATE meta SET value = value + 1 WHERE key = 'healed'"} {
		if _, err := s.conn.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	return s.fail(errors.New("the disk is full"))
}

// TryToBegin has a group wait so often for the transaction of another program.
func (s *Store) TryToBegin(tries int) {
	s.writing <- struct{}{}
	s.beginTries = tries
	<-s.writing
}

// CheckpointDue reports whether a log of so many pages is copied where it may have so many.
func (s *Store) CheckpointDue(pages, limit int) bool {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	s.logPages, s.checkpointAt = pages, limit
	due := s.checkpointDue()
	s.logPages, s.checkpointAt = 0, s.logLimit
	return due
}

// BreakClose lets a connection of a reader say that it cannot be closed, though it is.
func (r *Reader) BreakClose(err error) {
	c := <-r.pool
	c.raw = unclosed{c.raw, err}
	r.pool <- c
}

// BreakWriterClose lets the connection that writes say so.
func (s *Store) BreakWriterClose(err error) {
	s.writing <- struct{}{}
	s.conn.raw = unclosed{s.conn.raw, err}
	<-s.writing
}

// unclosed is a connection that is closed with an error.
type unclosed struct {
	driver.Conn
	err error
}

func (c unclosed) Close() error { return errors.Join(c.Conn.Close(), c.err) }

package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"modernc.org/sqlite"
)

// walLog is SQLite's write-ahead log, opened once more to be flushed. Opening and closing it is safe:
// the locks of a process on a file go when it closes any descriptor of that file, but SQLite keeps its
// locks on the database and on the -shm file, which are never opened here.
type walLog struct {
	path string
	file *os.File
	info fs.FileInfo
	// syncFile flushes a file; a test makes it fail.
	syncFile func(*os.File) error
}

// sync makes everything durable that was committed so far.
func (l *walLog) sync() error {
	// SQLite may have put another file in its place; flushing the old one would do nothing.
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	if l.file == nil || !os.SameFile(info, l.info) {
		if err := l.reopen(); err != nil {
			return err
		}
	}
	if err := l.syncFile(l.file); err != nil {
		return fmt.Errorf("%w: %w", errFlush, err)
	}
	return nil
}

func (l *walLog) reopen() error {
	if err := l.close(); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.info = file, info
	return nil
}

// close closes the file; there may be none.
func (l *walLog) close() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// checkpointDue reports whether the log has become long.
func (s *Store) checkpointDue() bool {
	if s.failure() != nil {
		return false
	}
	// The counter is reset each time: it is a C int, which a busy day would overflow.
	written, _, err := s.conn.raw.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
	if err != nil {
		s.fail(fmt.Errorf("length of the log: %w", err))
	}
	s.logPages += written
	return s.logPages >= s.checkpointAt
}

// checkpointOrFail lets the log grow on when it cannot be copied, which loses nothing: a disk may be full.
func (s *Store) checkpointOrFail() {
	err := s.checkpoint()
	switch {
	case err == nil:
	case isFinal(err):
		s.fail(err)
	default:
		s.logger.Error("the log cannot be copied into the file, and grows", "error", err)
		s.checkpointAt = s.logPages + s.logLimit
	}
}

// checkpoint copies the log into the file and lets the next commit start it afresh. SQLite flushes
// the log before and the file after. A reader that will not end keeps the log from starting afresh;
// then the next try waits until it is twice as long, so that trying stays cheap.
func (s *Store) checkpoint() error {
	row := make([]driver.Value, 3)
	if _, err := s.conn.one(`PRAGMA wal_checkpoint(RESTART)`, row); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.counts.checkpoints.Add(1)
	if busy := asInt(row[0]) != 0; busy {
		s.checkpointAt = 2 * s.logPages
		return nil
	}
	s.logPages, s.checkpointAt = 0, s.logLimit
	return nil
}

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"modernc.org/sqlite"

	"github.com/makegood-dev/makegood/internal/store"
)

// walLog is SQLite's write-ahead log, opened once more to be flushed. Opening and closing it is safe:
// the locks of a process on a file go when it closes any descriptor of that file, but SQLite keeps its
// locks on the database and on the -shm file, which are never opened here.
type walLog struct {
	path string
	file *os.File
	info fs.FileInfo
	// main is the file that the log is of, as it was when it was opened.
	mainPath string
	main     fs.FileInfo
	// syncFile flushes a file; a test makes it fail.
	syncFile func(*os.File) error
}

// errReplaced: a file of the store is not at its path any more. SQLite never replaces it as long as the connection that
// writes is open, so another program did; writes to the open file are gone when it is closed.
var errReplaced = errors.New("it was removed or replaced while it was in use")

// sync makes all commits so far durable. errReplaced: they are, but in a file that cannot be found again.
func (l *walLog) sync() error {
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if err := l.syncFile(l.file); err != nil {
		return fmt.Errorf("%w: %w", errFlush, err)
	}
	return l.same()
}

// same fails with errReplaced unless the files at their paths are those that are open.
func (l *walLog) same() error {
	for path, opened := range map[string]fs.FileInfo{l.path: l.info, l.mainPath: l.main} {
		if opened == nil {
			continue // It is opened with the next flush.
		}
		is, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(is, opened) {
			return fmt.Errorf("%s: %w", path, errReplaced)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *walLog) open() error {
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

// close closes the file; there may be none. The next flush opens the file at its path anew.
func (l *walLog) close() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file, l.info = nil, nil
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

// rescue copies the log into the file, since the log will not be found again, and returns why it cannot go on. Its
// caller has the write lock, and the connection that still has the log open.
func (s *Store) rescue(replaced error) error {
	if s.conn == nil || s.conn.raw == nil {
		return fmt.Errorf("%w, and no connection is left that has it open", replaced)
	}
	_, _ = s.conn.exec("ROLLBACK") // of a commit that has failed, if there is one
	for range rescueTries {
		row, err := s.conn.one(`PRAGMA wal_checkpoint(FULL)`)
		if err != nil {
			return fmt.Errorf("%w, and its content cannot be copied: %w", replaced, err)
		}
		if busy := asInt(row[0]) != 0; !busy {
			return fmt.Errorf("%w; what the log had was copied into %s", replaced, s.path)
		}
	}
	return fmt.Errorf("%w, and a reader kept a part from being copied", replaced)
}

// CheckFiles finds out whether the files are still those that were opened. If not, the log is copied, and the store is
// lost: errors are those of Failure.
func (s *Store) CheckFiles(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-s.closing:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.checkFiles()
}

// checkFiles is CheckFiles for the holder of the write lock.
func (s *Store) checkFiles() error {
	if err := s.failure(); err != nil || s.log == nil {
		return err
	}
	if err := s.log.same(); errors.Is(err, errReplaced) {
		return s.fail(s.rescue(err))
	}
	return nil // What cannot be found out now is found out later.
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

// checkpointOrFail lets the log grow on, without loss, when it cannot be copied: a disk may be full.
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
	row, err := s.conn.one(`PRAGMA wal_checkpoint(RESTART)`)
	if err != nil {
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

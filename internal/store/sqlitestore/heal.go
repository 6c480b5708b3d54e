package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/makegood-dev/makegood/internal/store"
)

// healEvery is how often a store that has failed tries to go on.
const healEvery = time.Second

// errFlush: the kernel could not make a write durable. It may have dropped that write, and reports it only once, so a
// later flush that succeeds proves no durability.
var errFlush = errors.New("flush")

// fail remembers that the outcome of a commit is unknown, and returns the error that every caller gets until the store
// goes on. The store tries that by itself, unless it could lose an answered write.
func (s *Store) fail(cause error) error {
	err := fmt.Errorf("%w: %w", store.ErrFailed, cause)
	if !s.failed.CompareAndSwap(nil, &err) {
		return s.failure()
	}
	if isFinal(cause) {
		s.lose(err)
		return err
	}
	s.logger.Error("the store has failed, and tries to go on", "every", healEvery, "error", cause)
	go s.heal()
	return err
}

func (s *Store) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// lose gives the store up, after any earlier failure too.
func (s *Store) lose(err error) {
	s.failed.Store(&err)
	s.logger.Error("the store has failed for good", "error", err)
	close(s.lost)
}

// Lost returns a channel that is closed when the store has failed and cannot go on by itself.
func (s *Store) Lost() <-chan struct{} { return s.lost }

// Failure says why the store takes no calls now; nil: it does.
func (s *Store) Failure() error { return s.failure() }

// isFinal reports whether a store should not go on after an error: an answered write may not be on the disk, or the
// data on it cannot be trusted, or the error is our own.
func isFinal(err error) bool {
	if errors.Is(err, errPanicked) || errors.Is(err, errFlush) || errors.Is(err, errReplaced) {
		return true
	}
	var said *sqlite.Error
	if !errors.As(err, &said) {
		return false
	}
	switch said.Code() {
	case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_NOTADB:
		return true
	}
	return said.Code()&0xff == sqlite3.SQLITE_CORRUPT
}

// heal tries to go on until it does, the store is lost, or it is closed.
func (s *Store) heal() {
	ticker := time.NewTicker(healEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-ticker.C:
		}
		select {
		case <-s.closing:
			return
		case s.writing <- struct{}{}:
		}
		err := s.reopen()
		switch {
		case err == nil:
			// Values read before may be of the commit that failed, or lack it.
			s.cache.clear()
			s.failed.Store(nil)
			s.logger.Warn("the store goes on")
		case isFinal(err):
			s.lose(fmt.Errorf("%w: %w", store.ErrFailed, err))
		default:
			s.logger.Error("the store cannot go on yet", "error", err)
		}
		<-s.writing
		if err == nil || isFinal(err) {
			return
		}
	}
}

// reopen takes a new connection, and makes a write durable. That proves that the disk takes writes, and settles the
// commit that failed: its remains in the log are written over, or it was committed and is flushed now. Its caller has
// the write lock.
func (s *Store) reopen() error {
	if s.log != nil {
		if err := s.log.same(); errors.Is(err, errReplaced) {
			return s.rescue(err)
		}
	}
	// The last connection that has it open takes the log away, if all was copied: then there is another.
	err := errors.Join(s.conn.close(), s.log.close())
	if err != nil {
		// It was to be given up in any case, with the transaction that it may be in.
		s.logger.WarnContext(context.Background(), "a connection of the store was not closed", "error", err)
	}
	if s.conn, err = s.dialWriter(); err != nil {
		return err
	}
	if _, err := s.conn.exec(`UPDATE meta SET value = value + 1 WHERE key = 'healed'`); err != nil {
		return err
	}
	if s.log == nil {
		return nil
	}
	return s.log.sync()
}

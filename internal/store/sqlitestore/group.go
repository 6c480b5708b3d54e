package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// maxGroupWrites and maxGroupBytes bound what one transaction takes.
	maxGroupWrites = 1024
	maxGroupBytes  = 16 << 20
)

var errPanicked = errors.New("a write panicked")

// write is one write that waits for its group.
type write struct {
	// do checks the conditions and writes. answer is the caller's answer once the group is committed: a condition that
	// fails is an answer, and leaves the other writes in place. err means that a statement failed, and ends the group.
	do     func(g *group) (answer, err error)
	bytes  int
	answer error
	done   chan error
}

// queue holds the writes that wait for the next group.
type queue struct {
	mu      sync.Mutex
	waiting []*write
	closed  bool
}

func (q *queue) put(w *write) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return store.ErrClosed
	}
	q.waiting = append(q.waiting, w)
	return nil
}

// close lets no more writes in; it reports whether the queue was open.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := !q.closed
	q.closed = true
	return was
}

// take returns everything that waits, within the limits.
func (q *queue) take() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.waiting) && n < maxGroupWrites && (n == 0 || bytes+q.waiting[n].bytes <= maxGroupBytes) {
		bytes += q.waiting[n].bytes
		n++
	}
	batch := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return batch
}

// withdraw takes a write out again, and reports whether it was still waiting.
func (q *queue) withdraw(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// submit puts a write into the next group and waits for its answer. The caller that finds the write lock free takes it
// and commits for all waiting callers: a lone write neither wakes another nor waits, and under load the calls that come
// while a group commits are the next group. When ctx ends before the group begins, no write is made; after that the
// answer is waited for.
func (s *Store) submit(ctx context.Context, bytes int, do func(g *group) (answer, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w, used := s.writes.Get().(*write)
	if !used {
		w = &write{done: make(chan error, 1)}
	}
	w.do, w.bytes = do, bytes
	err := s.await(ctx, w)
	w.do, w.answer = nil, nil
	s.writes.Put(w) // Not after a panic, which may leave an answer in it.
	return err
}

// await is submit for a write that was made for it.
func (s *Store) await(ctx context.Context, w *write) error {
	if err := s.queue.put(w); err != nil {
		return err
	}
	for {
		select {
		case err := <-w.done:
			return err
		case s.writing <- struct{}{}:
			s.lead()
		case <-ctx.Done():
			if s.queue.withdraw(w) {
				return ctx.Err()
			}
			return <-w.done
		}
	}
}

// lead commits one group and releases the write lock: when the log has become long, after it was copied, which no
// answered caller needs to wait for.
func (s *Store) lead() {
	defer func() {
		if !s.checkpointDue() {
			<-s.writing
			return
		}
		go func() {
			s.checkpointOrFail()
			<-s.writing
		}()
	}()
	s.commitWaiting()
}

// commitWaiting commits one group and answers its writes, and reports whether there were any. Its caller
// has the write lock.
func (s *Store) commitWaiting() bool {
	batch := s.queue.take()
	if len(batch) == 0 {
		return false
	}
	// A panic in a write is our own bug. It leaves a transaction half done, which must not go on.
	err := errPanicked
	defer func() {
		if errors.Is(err, errPanicked) {
			err = s.fail(err)
		}
		for _, w := range batch {
			if err != nil {
				w.answer = err
			}
			w.done <- w.answer
		}
	}()
	err = s.commitGroup(batch)
	return true
}

// group is one transaction.
type group struct {
	conn  *conn
	cache *cache
	sweep *sweep
	// shelf is how full this group leaves the quarantine.
	shelf shelf
	// items is how this group leaves the jobs that it changed; nil: look at the row.
	items map[string]*item
	// durable: a write of the group must be on the disk before any caller is answered.
	durable bool
	// settled is closed when it is, or will never be.
	settled chan struct{}
}

// commitGroup runs the writes of a group in one transaction. On an error it was either undone as a
// whole, or the store has failed.
func (s *Store) commitGroup(batch []*write) error {
	if err := s.failure(); err != nil {
		return err
	}
	if err := begin(s.conn, s.beginTries, &s.counts.busy); err != nil {
		return err
	}
	g := &group{conn: s.conn, cache: s.cache, sweep: &s.sweep, shelf: s.shelf, items: make(map[string]*item, len(batch)), settled: make(chan struct{})}
	s.shelf = shelf{} // until the group is committed
	for _, w := range batch {
		var err error
		if w.answer, err = w.do(g); err != nil {
			return s.rollback(err)
		}
	}
	s.counts.groups.Add(1)
	if !g.durable {
		return s.finish(g, len(batch))
	}
	s.counts.durable.Add(1)
	s.syncing.Store(g)
	defer func() { s.syncing.Store(nil); close(g.settled) }()
	return s.finish(g, len(batch))
}

// begin begins a transaction that writes. While another program has one it tries again, so many times in all; busy
// counts the tries that fail.
func begin(c *conn, tries int, busy *atomic.Int64) error {
	for try := 1; ; try++ {
		_, err := c.exec("BEGIN IMMEDIATE")
		var said *sqlite.Error
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &said) || said.Code()&0xff != sqlite3.SQLITE_BUSY:
			return fmt.Errorf("begin: %w", err)
		}
		busy.Add(1)
		if try >= tries {
			return fmt.Errorf("begin: another program has had a transaction in the file for %v: %w", time.Duration(tries)*busyWait, err)
		}
	}
}

func (s *Store) rollback(cause error) error {
	if _, err := s.conn.exec("ROLLBACK"); err != nil {
		return s.fail(fmt.Errorf("%w, and then: roll back: %w", cause, err))
	}
	return cause
}

// finish commits, flushes a group that must be durable, and only then shows the group to readers of the cache.
func (s *Store) finish(g *group, writes int) error {
	if _, err := s.conn.exec("COMMIT"); err != nil {
		return s.fail(fmt.Errorf("commit %d writes: %w", writes, err))
	}
	if g.durable && s.log != nil {
		err := s.log.sync()
		if errors.Is(err, errReplaced) {
			err = s.rescue(err)
		}
		if err != nil {
			return s.fail(fmt.Errorf("flush %d writes: %w", writes, err))
		}
		s.counts.syncs.Add(1)
	}
	s.cache.publish(g.items)
	s.shelf = g.shelf
	return nil
}

// item returns a job as this group has left it so far, at least its head; nil when there is none.
func (g *group) item(id string) (*item, error) {
	if it := g.items[id]; it != nil {
		return it, nil
	}
	if _, touched := g.items[id]; !touched {
		if it := g.cache.get(id); it != nil {
			return it, nil
		}
	}
	return readHead(g.conn, id)
}

// exec runs a statement that must change exactly one row.
func (g *group) exec(sql string, args ...driver.Value) error {
	result, err := g.conn.exec(sql, args...)
	return changedOne(sql, result, err)
}

// changedOne fails unless a statement has changed exactly one row.
func changedOne(sql string, result driver.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("%d rows changed, want 1, by %.40s", n, sql))
	}
	return nil
}

// change runs a statement that changes a row, which must be durable, or none, and reports whether it did.
func (g *group) change(sql string, args ...driver.Value) (changed bool, err error) {
	result, err := g.conn.exec(sql, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	g.durable = g.durable || n > 0
	return n > 0, err
}

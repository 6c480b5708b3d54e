// Package sqlitestore keeps a store in one SQLite file, for one engine in one process. Writes of many callers are
// grouped into one transaction and one flush; no caller is answered before that. It decides nothing about jobs, and it
// does not keep a second engine out: Lock does, and its caller holds it.
//
// # What is durable when
//
// Create, Save, Park and PutDefinition are on the disk when they are answered, with all writes before them. Claim,
// Heartbeat, Close, Overrule and PutPayload alone are with the operating system: they survive the death of the process,
// and the loss of power once a durable write was made after them.
//
// # How
//
// One goroutine writes at a time: the one that finds the write lock free commits for all that wait. While a group
// commits the next one collects, so the load makes the groups and a lone write does not wait. The file is in WAL mode
// with synchronous=NORMAL: SQLite itself flushes around checkpoints only, in the order that keeps the file whole, and
// this package flushes the log, once, after the commit of a group that must be durable. So flushes can be counted, and
// a group of claims costs none.
//
// The jobs written last are kept in memory, as they were answered: decoding one costs more than a claim and a save
// together. So no other program may change jobs in the file while a Store is open.
//
// # After a failure
//
// After a failed commit the outcome is unknown, and the store neither reads nor writes. It tries to go on once a
// second, with a new connection, and does as soon as it can make a write durable: a disk that was full for a while
// stops it for that while. After a failed flush it is lost: the kernel may have dropped the pages that it could not
// write. Then it takes no calls until it is opened again.
package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Embedded = (*Store)(nil)

const (
	// busyWait is how long a writer waits for another process at a time: a reader that holds up a checkpoint, or another
	// writer of the file.
	busyWait = 100 * time.Millisecond
	// beginTries is how often it waits so for a transaction to begin: ten seconds. Programs have transactions of their own
	// in the file (client/sqlitetx, agent/sqlitefence), which keep it as long as they take.
	beginTries = 100
	// checkpointPages is how much log is written before it is copied into the file: 8 MB.
	checkpointPages = 2048
	// defaultCacheSteps is about 30 MB of jobs.
	defaultCacheSteps = 50_000
	// rescueTries is how often a log that will not be found again is copied, each waiting for readers.
	rescueTries = 20
	// readers is how many goroutines may read the file at once; the jobs written last need no reading.
	readers = 2
)

// Options say where a store is kept.
type Options struct {
	// Path is the file, in a folder that exists. Empty: a private temporary file, which is
	// not flushed once it is open, and which Shut removes.
	Path string
	// CacheSteps bounds the jobs kept in memory, by their steps: about 600 bytes each and the inline data. Zero: 50,000.
	// Negative: none are kept.
	CacheSteps int
	// Logger hears of a store that fails, and that goes on. Default: slog.Default().
	Logger *slog.Logger
	// layout is that of another release, in tests; nil: ours.
	layout *layout
}

// Store is a store.Store in one SQLite file.
type Store struct {
	*Reader
	conn   *conn
	log    *walLog
	cache  *cache
	sweep  sweep
	shelf  shelf
	queue  queue
	leases leases
	// writes are those to use again: each was answered, and the answer taken, or it was withdrawn.
	writes sync.Pool
	// syncing is the group with a commit that readers may see already although it is not durable yet.
	syncing atomic.Pointer[group]
	failed  atomic.Pointer[error]
	counts  counts
	// beginTries is the constant of the name, but in tests.
	beginTries int
	// logPages is how long the log is, checkpointAt how long it may become now, and logLimit how long when no reader is in
	// the way. Only the writer uses them.
	logPages, checkpointAt, logLimit int
	// writing is the write lock: it is held by the one goroutine that writes.
	writing chan struct{}
	// path is the file; temporary is its folder, if the store is a private one.
	path, temporary string
	logger          *slog.Logger
	// closing ends the tries to go on; lost is closed when there will be none.
	closing, lost chan struct{}
}

// Stats counts what the writer did since Open.
type Stats struct {
	// Groups is how many transactions were committed; Durable how many groups were flushed.
	Groups, Durable int64
	// Busy is how often a group waited busyWait in vain for the transaction of another program.
	Busy int64
	// Syncs is how many flushes of the log were made; those of SQLite's checkpoints are not among them.
	Syncs, Checkpoints int64
}

type counts struct{ groups, durable, busy, syncs, checkpoints atomic.Int64 }

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{
		Groups: s.counts.groups.Load(), Durable: s.counts.durable.Load(), Busy: s.counts.busy.Load(),
		Syncs: s.counts.syncs.Load(), Checkpoints: s.counts.checkpoints.Load(),
	}
}

// Open opens the store, and makes the file if there is none. It brings a file of an older release to the layout of this
// one, and says so in the log. It refuses a file that is not a store, or one of a newer release that does not allow it.
// The log that a killed engine left is read again, and made durable before any caller sees it.
func Open(ctx context.Context, options Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{
		cache: newCache(max(0, cmp.Or(options.CacheSteps, defaultCacheSteps))), writing: make(chan struct{}, 1), checkpointAt: checkpointPages, logLimit: checkpointPages, beginTries: beginTries,
		logger: options.Logger, closing: make(chan struct{}), lost: make(chan struct{}),
	}
	s.logger = cmp.Or(s.logger, slog.Default())
	path := options.Path
	if path == "" {
		dir, err := os.MkdirTemp("", "makegood-")
		if err != nil {
			return nil, fmt.Errorf("open temporary store: %w", err)
		}
		s.temporary, path = dir, filepath.Join(dir, "makegood.db")
	}
	known := ourLayout()
	if options.layout != nil {
		known = *options.layout
	}
	if err := s.open(path, known); err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, errors.Join(err, s.removeTemporary()))
	}
	return s, nil
}

func (s *Store) open(path string, known layout) (err error) {
	s.path = path
	made, err := makeFile(path)
	if err != nil {
		return err
	}
	var pragmas []string
	if made {
		// First of all: the pragmas of a new file decide whether it can shrink.
		pragmas = []string{"auto_vacuum(incremental)"}
	}
	if s.conn, err = s.dialWriter(pragmas...); err != nil {
		return err
	}
	if err = known.prepare(s.conn, s.logger); err == nil {
		err = makePrivate(path)
	}
	if err == nil && s.temporary == "" {
		s.log = &walLog{path: path + "-wal", mainPath: path, syncFile: syncFile}
		s.log.main, err = os.Stat(path)
	}
	if err == nil && s.log != nil {
		// The name of a new file is durable with its folder; SQLite does that for the log only.
		err = errors.Join(s.log.sync(), syncFolder(filepath.Dir(path)))
	}
	if err == nil {
		s.Reader, err = openReader(path, readers)
	}
	if err != nil {
		return errors.Join(err, s.log.close(), s.conn.close())
	}
	s.settle = s.settled
	return nil
}

// dialWriter makes the one connection that writes. It executes first before all other statements.
func (s *Store) dialWriter(first ...string) (*conn, error) {
	synchronous := "synchronous(normal)"
	if s.temporary != "" {
		synchronous = "synchronous(off)"
	}
	busy := fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds())
	return dial(s.path, false, append(first, busy, synchronous, "journal_mode(wal)", "wal_autocheckpoint(0)", "cache_size(-16000)")...)
}

func (s *Store) removeTemporary() error {
	if s.temporary == "" {
		return nil
	}
	return os.RemoveAll(s.temporary)
}

// Shut ends the writes that were begun, copies the log into the file and closes it. Calls that come later fail with
// ErrClosed. (Close ends attempts.)
func (s *Store) Shut() error {
	if !s.queue.close() {
		return store.ErrClosed
	}
	close(s.closing)
	// The write lock is never released again. Waiting writes were begun, so they are ended.
	s.writing <- struct{}{}
	for s.commitWaiting() {
	}
	s.cache.clear()
	var err error
	if s.failure() == nil {
		err = s.checkFiles()
	}
	err = errors.Join(err, s.Reader.Close())
	// The last connection to close copies and flushes the log, and removes it.
	err = errors.Join(err, s.conn.close(), s.log.close(), s.removeTemporary())
	return store.About(err, "close store")
}

// settled waits until everything that a read which has just ended may have seen is durable.
func (s *Store) settled() error {
	if g := s.syncing.Load(); g != nil {
		<-g.settled
	}
	return s.failure()
}

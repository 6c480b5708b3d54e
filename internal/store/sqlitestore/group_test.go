package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// together makes the writes wait for one another, so that they are one group, and returns what each got.
func together(t *testing.T, s *sqlitestore.Store, writes ...func() error) []error {
	t.Helper()
	errs := make([]error, len(writes))
	leave := s.HoldWrites()
	var all sync.WaitGroup
	for i, write := range writes {
		all.Go(func() { errs[i] = write() })
		waitFor(t, "the write to wait", func() bool { return s.Waiting() == i+1 })
	}
	leave()
	all.Wait()
	return errs
}

func TestWritesThatWaitTogetherAreOneGroupAndOneFlush(t *testing.T) {
	s, _ := openFile(t)
	const many = 40
	var writes []func() error
	for i := range many {
		j := create(t, s, i)
		writes = append(writes, func() error { return s.Save(context.Background(), store.Change{Job: j, Seen: j.CompleteBy}) })
	}
	before := s.Stats()
	for i, err := range together(t, s, writes...) {
		if err != nil {
			t.Errorf("save %d: %v", i, err)
		}
	}
	same(t, "counts", since(s, before), sqlitestore.Stats{Groups: 1, Durable: 1, Syncs: 1})
}

// since returns what the store did since before.
func since(s *sqlitestore.Store, before sqlitestore.Stats) sqlitestore.Stats {
	now := s.Stats()
	return sqlitestore.Stats{
		Groups: now.Groups - before.Groups, Durable: now.Durable - before.Durable,
		Syncs: now.Syncs - before.Syncs, Checkpoints: now.Checkpoints - before.Checkpoints,
	}
}

func TestALoneSaveIsOneFlushAndClaimsAreNone(t *testing.T) {
	s, _ := openFile(t)
	j := create(t, s, 1)
	before := s.Stats()
	const saves, claims = 10, 25
	for range saves {
		check(t, s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}))
		j.Rev++
	}
	same(t, "counts of saves", since(s, before), sqlitestore.Stats{Groups: saves, Durable: saves, Syncs: saves})

	before = s.Stats()
	claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
	check(t, s.Claim(t.Context(), slotOf(j.ID), claim, j.CompleteBy))
	for i := range claims {
		claim.CompleteBy = claim.CompleteBy.Add(time.Second)
		_, err := s.Heartbeat(t.Context(), slotOf(j.ID), claim, j.CompleteBy)
		check(t, err)
		_, err = s.Close(t.Context(), slotOf(fmt.Sprint("job-", i)), store.Closing{Attempt: 1, Now: j.CreatedAt, Until: j.CompleteBy})
		check(t, err)
		check(t, s.PutPayload(t.Context(), j.ID, fmt.Sprint("output#charge12#", i), []byte(`1`)))
	}
	same(t, "counts of claims, heartbeats, closings and payloads", since(s, before), sqlitestore.Stats{Groups: 1 + 3*claims})

	before = s.Stats()
	for range saves {
		if err := s.Save(t.Context(), store.Change{Job: benchJob(1), Seen: j.CompleteBy}); !errors.Is(err, store.ErrConflict) {
			t.Fatalf("stale save: got %v, want %v", err, store.ErrConflict)
		}
	}
	same(t, "counts of saves that wrote nothing", since(s, before), sqlitestore.Stats{Groups: saves})
}

// An engine defines its workflows at each start, and nearly all are as they were.
func TestADefinitionThatIsCurrentCostsNoFlush(t *testing.T) {
	s, _ := openFile(t)
	for i, c := range []struct {
		hash  string
		syncs int64
	}{{"a", 1}, {"a", 0}, {"b", 1}, {"b", 0}, {"a", 1}} {
		before := s.Stats()
		check(t, s.PutDefinition(t.Context(), "order", c.hash, []byte(`{}`)))
		same(t, fmt.Sprint("counts of put ", i), since(s, before), sqlitestore.Stats{Groups: 1, Durable: c.syncs, Syncs: c.syncs})
		current, err := s.CurrentDefinition(t.Context(), "order")
		if check(t, err); current != c.hash {
			t.Errorf("put %d: %s is current, want %s", i, current, c.hash)
		}
	}
}

func TestConcurrentSavesFlushAtMostOnceAGroup(t *testing.T) {
	s, _ := openFile(t)
	const goroutines, saves = 32, 10
	for i := range goroutines {
		create(t, s, i)
	}
	before := s.Stats()
	// A disk that needs a while, so that writes come meanwhile on one processor, too.
	s.FlushWith(func(flush func() error) error {
		time.Sleep(time.Millisecond)
		return flush()
	})
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range saves {
				if err := step(context.Background(), s, benchJob(i).ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := since(s, before)
	if got.Syncs != got.Durable || got.Durable > got.Groups || got.Syncs >= goroutines*saves {
		t.Errorf("got %+v for %d saves, want as many flushes as durable groups, and fewer than saves", got, goroutines*saves)
	}
	for i := range goroutines {
		if j := load(t, s, benchJob(i).ID); j.Rev != 1+saves || look(t, s, j.ID).Claim.Attempt != saves {
			t.Errorf("job %d: got Rev %d and %+v, want Rev %d and a claim of attempt %d", i, j.Rev, look(t, s, j.ID), 1+saves, saves)
		}
	}
}

// One group sees its own writes, in order, and what fails in it is the affair of whoever asked.
func TestAConditionThatFailsUndoesNothingOfItsGroup(t *testing.T) {
	for name, cacheSteps := range map[string]int{"with a cache": 0, "without": -1} {
		t.Run(name, func(t *testing.T) {
			s := open(t, sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db"), CacheSteps: cacheSteps})
			ctx := context.Background()
			j := benchJob(1)
			first := j.Clone()
			first.Rev = 1
			claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
			late := claim
			late.LockedBy = "y"
			change := store.Change{Job: first, Seen: j.CompleteBy}
			stale := change
			stale.Job.Rev = 9
			var found job.Found
			got := together(t, s,
				func() error { return s.Create(ctx, j) },
				func() error { return s.Create(ctx, j) },
				func() error { return s.Claim(ctx, slotOf(j.ID), claim, j.CompleteBy) },
				func() error { return s.Claim(ctx, slotOf(j.ID), late, j.CompleteBy) },
				func() error { return s.Save(ctx, stale) },
				func() error { return s.Save(ctx, change) },
				func() error { return s.Save(ctx, change) },
				func() error { return s.Park(ctx, "nowhere", j.CompleteBy, "", j.CompleteBy) },
				func() error {
					_, err := s.Heartbeat(ctx, slotOf(j.ID), claim, j.CompleteBy)
					return err
				},
				func() error {
					var err error
					found, err = s.Close(ctx, slotOf(j.ID), store.Closing{Attempt: 1, Now: j.CompleteBy, Until: j.CompleteBy})
					return err
				},
				func() error { return s.Claim(ctx, slotOf(j.ID), claim, j.CompleteBy) },
				func() error { return s.Create(ctx, benchJob(2)) },
			)
			want := []error{nil, store.ErrExists, nil, store.ErrTaken, store.ErrConflict, nil, store.ErrConflict, store.ErrNotFound, nil, nil, store.ErrWithdrawn, nil}
			for i := range want {
				if !errors.Is(got[i], want[i]) {
					t.Errorf("write %d: got %v, want %v", i, got[i], want[i])
				}
			}
			same(t, "groups", s.Stats().Groups, int64(1))
			same(t, "answer of the close", found, job.Found{Finding: job.FoundSilent, Claim: claim})
			if after := load(t, s, j.ID); after.Rev != 2 {
				t.Errorf("got Rev %d, want 2", after.Rev)
			}
			load(t, s, benchJob(2).ID)
		})
	}
}

// A park is seen by what comes after it in its group, although the cache still has the job as it was.
func TestASaveInTheGroupOfAParkSeesIt(t *testing.T) {
	s, _ := openFile(t)
	j := create(t, s, 1)
	ctx := context.Background()
	parkedAt := domain.Instant(j.CompleteBy.Add(time.Hour))
	moved := j.Clone()
	moved.CompleteBy = j.CompleteBy.Add(time.Minute)
	errs := together(t, s,
		func() error { return s.Park(ctx, j.ID, j.CompleteBy, "why", parkedAt) },
		func() error { return s.Save(ctx, store.Change{Job: moved, Seen: j.CompleteBy}) },
	)
	if errs[0] != nil || !errors.Is(errs[1], store.ErrConflict) {
		t.Fatalf("got %v, want the park to win and the save to conflict", errs)
	}
	if got := load(t, s, j.ID); got.Reason != "why" || !got.CompleteBy.Equal(parkedAt) {
		t.Fatalf("got reason %q, key %v; want why, %v", got.Reason, got.CompleteBy, parkedAt)
	}
}

// A read must not show what a loss of power could still take back: somebody might act on it.
func TestALoadWaitsUntilWhatItSeesIsFlushed(t *testing.T) {
	s := open(t, sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db"), CacheSteps: -1})
	j := create(t, s, 1)
	var flushed atomic.Bool
	flushing, read := make(chan struct{}), make(chan struct{})
	hasRead := sync.OnceFunc(func() { close(read) })
	s.FlushWith(func(flush func() error) error {
		close(flushing)
		<-read
		flushed.Store(true)
		return flush()
	})
	s.WhenSettling(hasRead)
	saved := make(chan error, 1)
	go func() { saved <- s.Save(context.Background(), store.Change{Job: j, Seen: j.CompleteBy}) }()
	arrives(t, "the flush", flushing)
	// The commit is visible to readers of the file, and the flush waits for this one to have read it.
	got := load(t, s, j.ID)
	hadFlushed := flushed.Load()
	hasRead()
	check(t, <-saved)
	if got.Rev != 2 || !hadFlushed {
		t.Errorf("got revision %d, flushed: %v; want 2, and true", got.Rev, hadFlushed)
	}
}

// arrives waits until c is closed.
func arrives(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
}

func TestAWriteWhoseContextEndsWhileItsGroupCommitsIsAnswered(t *testing.T) {
	s, _ := openFile(t)
	flushing, cancelled := make(chan struct{}), make(chan struct{})
	s.FlushWith(func(flush func() error) error {
		close(flushing)
		<-cancelled
		return flush()
	})
	ctx, cancel := context.WithCancel(t.Context())
	// The other one is first in the queue, so it commits for both, and this one only waits.
	answers := make(chan []error, 1)
	go func() {
		answers <- together(t, s,
			func() error { return s.Create(context.Background(), benchJob(1)) },
			func() error { return s.Create(ctx, benchJob(2)) },
		)
	}()
	arrives(t, "the flush", flushing)
	cancel()
	close(cancelled)
	for i, err := range <-answers {
		if err != nil {
			t.Errorf("create %d: got %v, want the answer of its group", i, err)
		}
	}
}

func TestTheCacheShowsNothingBeforeItIsFlushed(t *testing.T) {
	s, _ := openFile(t)
	j := create(t, s, 1)
	s.FlushWith(func(flush func() error) error {
		if got := load(t, s, j.ID); got.Rev != 1 {
			t.Errorf("while the save is not flushed: got revision %d, want 1", got.Rev)
		}
		return flush()
	})
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}))
	same(t, "revision", load(t, s, j.ID).Rev, int64(2))
}

func TestAFailedFlushAnswersItsWholeGroupAndStopsTheStore(t *testing.T) {
	s, path := openFile(t)
	j := create(t, s, 1)
	broken := errors.New("the disk is gone")
	s.FlushWith(func(func() error) error { return broken })
	ctx := context.Background()
	claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
	errs := together(t, s,
		func() error { return s.Claim(ctx, slotOf(j.ID), claim, j.CompleteBy) },
		func() error { return s.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}) },
		func() error { return s.Create(ctx, j) },
	)
	for i, err := range errs {
		if !errors.Is(err, store.ErrFailed) || !errors.Is(err, broken) {
			t.Errorf("write %d of the group: got %v, want %v and %v", i, err, store.ErrFailed, broken)
		}
	}
	refusesEverything(t, s, j)
	select {
	case <-s.Lost():
	default:
		t.Error("the store means to go on though nobody knows what was flushed")
	}

	// Opened again it shows one of the two, and goes on.
	check(t, s.Shut())
	s = open(t, sqlitestore.Options{Path: path})
	after := load(t, s, j.ID)
	if after.Rev != 1 && after.Rev != 2 {
		t.Errorf("got revision %d, want 1 or 2", after.Rev)
	}
	check(t, s.Save(ctx, store.Change{Job: after, Seen: after.CompleteBy}))
}

func refusesEverything(t *testing.T, s *sqlitestore.Store, j job.Job) {
	t.Helper()
	ctx := context.Background()
	_, loadErr := s.Load(ctx, j.ID)
	_, payloadErr := s.Payload(ctx, j.ID, "input")
	_, closeErr := s.Close(ctx, slotOf(j.ID), store.Closing{Attempt: 1})
	_, lookErr := s.Look(ctx, slotOf(j.ID), 1, j.CompleteBy, j.CreatedAt)
	for what, err := range map[string]error{
		"load": loadErr, "payload": payloadErr, "close": closeErr, "look": lookErr,
		"create": s.Create(ctx, benchJob(2)),
		"claim":  s.Claim(ctx, slotOf(j.ID), job.Claim{Attempt: 1, LockedBy: "y"}, j.CompleteBy),
		"save":   s.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}),
	} {
		if !errors.Is(err, store.ErrFailed) {
			t.Errorf("%s afterwards: got %v, want %v", what, err, store.ErrFailed)
		}
	}
}

// A statement that fails, unlike a commit, leaves nothing unknown: its group is undone.
func TestAStatementThatFailsUndoesItsGroupAndTheStoreGoesOn(t *testing.T) {
	s, path := openFile(t)
	j := create(t, s, 1)
	ctx := context.Background()
	execSQL(t, path, `ALTER TABLE payloads RENAME TO elsewhere`)
	errs := together(t, s,
		func() error { return s.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}) },
		func() error { return s.PutPayload(ctx, j.ID, "input", []byte(`1`)) },
		func() error { return s.Create(ctx, benchJob(2)) },
	)
	for i, err := range errs {
		if err == nil || errors.Is(err, store.ErrFailed) {
			t.Errorf("write %d: got %v, want an error that is not %v", i, err, store.ErrFailed)
		}
	}
	same(t, "job", load(t, s, j.ID), j)
	execSQL(t, path, `ALTER TABLE elsewhere RENAME TO payloads`)
	check(t, s.PutPayload(ctx, j.ID, "input", []byte(`1`)))
	check(t, s.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}))
	create(t, s, 2)
}

// Each kind of save says that its row could not be written, and leaves it as it was.
func TestASaveWhoseRowCannotBeWrittenSaysSo(t *testing.T) {
	s, path := openFile(t)
	j := create(t, s, 1)
	execSQL(t, path, `CREATE TRIGGER refused BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'the row is refused'); END`)
	moved, parked := j, j
	moved.CompleteBy, parked.ProcessState = j.CompleteBy.Add(time.Minute), makegood.JobError
	for what, next := range map[string]job.Job{"nothing moves": j, "its key moves": moved, "its state moves": parked} {
		if err := s.Save(t.Context(), store.Change{Job: next, Seen: j.CompleteBy}); err == nil || !strings.Contains(err.Error(), "the row is refused") {
			t.Errorf("%s: got %v, want to hear that its row is refused", what, err)
		}
	}
	execSQL(t, path, `DROP TRIGGER refused`)
	same(t, "job", load(t, s, j.ID), j)
}

// A write that is larger than a group may be is a group of its own.
func TestAWriteThatIsLargerThanAGroupIsMade(t *testing.T) {
	s, _ := openFile(t)
	large := make([]byte, 16<<20+1)
	check(t, s.PutPayload(t.Context(), "order-000001", "input", large))
	got, err := s.Payload(t.Context(), "order-000001", "input")
	check(t, err)
	if len(got) != len(large) {
		t.Errorf("got %d bytes, want %d", len(got), len(large))
	}
}

func TestAPanicInAWriteStopsTheStoreAndHangsNobody(t *testing.T) {
	s, _ := openFile(t)
	j := create(t, s, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.Panic()
	}()
	refusesEverything(t, s, j)
}

func TestTheLogIsCopiedIntoTheFileAndStartsAfresh(t *testing.T) {
	s, path := openFile(t)
	const limit, page = 64, 4096
	s.LimitLog(limit)
	fill(t, s, "a", 100)
	// A group adds what it writes before the length is looked at.
	if size := logSize(t, path); size > 3*limit*page || s.Stats().Checkpoints < 5 {
		t.Errorf("got a log of %d bytes after %d checkpoints, want at most %d, after at least 5", size, s.Stats().Checkpoints, 3*limit*page)
	}
	again := open(t, sqlitestore.Options{Path: path})
	for i := range 100 {
		if value, err := again.Payload(t.Context(), "a", fmt.Sprint(i)); err != nil || len(value) != payloadSize {
			t.Fatalf("payload %d: got %d bytes, %v; want %d", i, len(value), err, payloadSize)
		}
	}
}

// Somebody reads the file and does not end: the log cannot start afresh, which must not stop the engine.
func TestAReaderThatStaysHoldsUpTheLogAndNothingElse(t *testing.T) {
	s, path := openFile(t)
	const limit = 16
	s.LimitLog(limit)
	create(t, s, 1)
	leave := readAndStay(t, path)
	fill(t, s, "a", 100)
	long, tries := logSize(t, path), s.Stats().Checkpoints
	if tries < 2 || tries > 8 {
		t.Errorf("got %d tries to copy the log, want a few, each after twice as much", tries)
	}
	leave()
	fill(t, s, "b", 200)
	if now := logSize(t, path); now > 2*long+limit*4096 {
		t.Errorf("after the reader left the log went on to grow, from %d to %d bytes", long, now)
	}
	if got := s.Stats().Checkpoints; got < tries+10 {
		t.Errorf("got %d checkpoints after the reader left, want at least 10", got-tries)
	}
}

const payloadSize = 16 << 10

func fill(t *testing.T, s *sqlitestore.Store, job string, payloads int) {
	t.Helper()
	for i := range payloads {
		check(t, s.PutPayload(t.Context(), job, fmt.Sprint(i), make([]byte, payloadSize)))
	}
	// The last checkpoint may be under way.
	s.HoldWrites()()
}

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	check(t, err)
	return info.Size()
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	return info.Size()
}

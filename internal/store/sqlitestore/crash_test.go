package sqlitestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// childVariable is the folder that a child process of these tests is to work in.
const childVariable = "MAKEGOOD_SQLITESTORE_CHILD"

// child starts this test binary once more, to run only the named test in the folder dir.
func child(t *testing.T, test, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// TestKilledEngine is the child of TestAKilledEngineLosesNothingThatItAnswered. It writes until it is
// killed, and says what it was answered.
func TestKilledEngine(t *testing.T) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		t.Skip("run by TestAKilledEngineLosesNothingThatItAnswered")
	}
	_, err := sqlitestore.Lock(dir)
	check(t, err)
	s := open(t, sqlitestore.Options{Path: filepath.Join(dir, "jobs.db")})
	run, err := s.NextIncarnation(t.Context(), time.Now())
	check(t, err)
	var say sync.Mutex
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("run%d-%d-%d", run.Number, g, i)
				if err := writeAll(context.Background(), s, id); err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				say.Lock()
				fmt.Println("answered", id)
				say.Unlock()
			}
		})
	}
	all.Wait()
}

// writeAll writes a job in each of the ways there are.
func writeAll(ctx context.Context, s *sqlitestore.Store, id string) error {
	j := benchJob(0)
	j.ID = id
	claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
	err := errors.Join(
		s.PutPayload(ctx, id, "input", []byte(`"large"`)),
		s.Create(ctx, j),
	)
	j.Rev = 1
	_, closeErr := s.Close(ctx, slotOf(id+"-closed"), store.Closing{Attempt: 1, Now: j.CreatedAt, Until: j.CompleteBy})
	err = errors.Join(err, closeErr,
		s.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}),
		s.Claim(ctx, slotOf(id), claim, j.CompleteBy),
	)
	claim.CompleteBy = claim.CompleteBy.Add(time.Hour)
	_, heartbeatErr := s.Heartbeat(ctx, slotOf(id), claim, j.CompleteBy)
	return errors.Join(err, heartbeatErr)
}

func TestAKilledEngineLosesNothingThatItAnswered(t *testing.T) {
	dir := t.TempDir()
	var answered []string
	for range 3 {
		cmd, out := child(t, "TestKilledEngine", dir)
		before := len(answered)
		for out.Scan() {
			if id, ok := strings.CutPrefix(out.Text(), "answered "); ok {
				answered = append(answered, id)
			}
			if len(answered) == before+100 {
				if _, err := sqlitestore.Lock(dir); !errors.Is(err, sqlitestore.ErrLocked) {
					t.Fatalf("lock while the engine runs: got %v, want %v", err, sqlitestore.ErrLocked)
				}
				// What it said before it died is still in the pipe, and is read to the end.
				check(t, cmd.Process.Kill())
			}
		}
		if len(answered) < before+100 {
			t.Fatalf("the child answered %d writes, want at least 100", len(answered)-before)
		}
		_ = cmd.Wait()
		allThere(t, dir, answered)
	}
}

func allThere(t *testing.T, dir string, answered []string) {
	t.Helper()
	lock, err := sqlitestore.Lock(dir)
	check(t, err)
	defer lock.Release()
	start := time.Now()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(dir, "jobs.db")})
	check(t, err)
	defer s.Shut()
	t.Logf("opened %v after the kill", time.Since(start))
	for _, id := range answered {
		j := load(t, s, id)
		held, closed := look(t, s, id), look(t, s, id+"-closed")
		if j.Rev != 2 || held.Claim.LockedBy != "x" || !held.Claim.CompleteBy.Equal(j.CompleteBy.Add(time.Hour)) || closed.Finding != job.FoundClosed {
			t.Fatalf("%s: got Rev %d, %+v and %+v; want 2, the claim of x as it was extended, and one that is closed", id, j.Rev, held, closed)
		}
		if _, err := s.Payload(t.Context(), id, "input"); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
}

// A reader of the folder of an engine that was killed finds the log as it was left.
func TestAReaderReadsWhatAKilledEngineLeft(t *testing.T) {
	dir := t.TempDir()
	cmd, out := child(t, "TestKilledEngine", dir)
	var answered string
	for out.Scan() {
		if id, ok := strings.CutPrefix(out.Text(), "answered "); ok && answered == "" {
			answered = id
			check(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait()
	r, err := sqlitestore.OpenReader(t.Context(), filepath.Join(dir, "jobs.db"))
	check(t, err)
	defer r.Close()
	if j := load(t, r, answered); j.Rev != 2 {
		t.Fatalf("got revision %d, want 2", j.Rev)
	}
}

// A disk that was full for a while stops the store for that while: everybody is answered, and it goes on by
// itself, with everything that was answered and one truth about what was not.
func TestAFullDiskStopsTheStoreOnlyWhileItIsFull(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, sqlitestore.Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
		j := create(t, s, 1)
		full := fillDisk(t, uint64(logSize(t, path)))
		errs := together(t, s,
			func() error { return s.PutPayload(context.Background(), j.ID, "input", make([]byte, 100_000)) },
			func() error {
				return s.Save(context.Background(), store.Change{Job: j, Seen: j.CompleteBy})
			},
		)
		for i, err := range errs {
			if !errors.Is(err, store.ErrFailed) {
				t.Errorf("write %d: got %v, want %v", i, err, store.ErrFailed)
			}
		}
		refusesEverything(t, s, j)
		time.Sleep(time.Minute)
		synctest.Wait()
		refusesEverything(t, s, j)
		full()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := s.Failure(); err != nil {
			t.Fatalf("with room again: got %v, want a store that goes on", err)
		}
		after := load(t, s, j.ID)
		check(t, s.PutPayload(t.Context(), j.ID, "output", make([]byte, 100_000)))
		create(t, s, 2)
		// What was seen after it went on is what the file says, too.
		check(t, s.Shut())
		again := open(t, sqlitestore.Options{Path: path})
		same(t, "job that was saved while the disk was full", load(t, again, j.ID), after)
		check(t, again.Save(t.Context(), store.Change{Job: after, Seen: after.CompleteBy}))
	})
}

// The log may grow while the file may not: it is copied when it can be.
func TestALogThatCannotBeCopiedGrowsAndLosesNothing(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, sqlitestore.Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
		create(t, s, 1)
		s.LimitLog(20)
		full := fillDisk(t, 400_000)
		made := 2
		for s.Create(t.Context(), benchJob(made)) == nil {
			made++
		}
		s.HoldWrites()()
		if size := logSize(t, path); size < 200_000 {
			t.Errorf("the log has %d bytes, want it to have grown while it could not be copied", size)
		}
		full()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		before := s.Stats().Checkpoints
		for i := range 100 {
			check(t, s.PutPayload(t.Context(), "order-000001", strconv.Itoa(i), make([]byte, 4000)))
		}
		s.HoldWrites()()
		if s.Stats().Checkpoints == before {
			t.Error("the log was not copied though there is room")
		}
		check(t, s.Shut())
		again := open(t, sqlitestore.Options{Path: path})
		for i := 1; i < made; i++ {
			load(t, again, benchJob(i).ID)
		}
	})
}

// fillDisk lets no file of this process grow beyond limit, until it is undone. SIGXFSZ must be ignored.
func fillDisk(t *testing.T, limit uint64) (undo func()) {
	t.Helper()
	var was syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: was.Max}))
	undo = sync.OnceFunc(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(undo)
	return undo
}

func TestAFolderIsLockedByOneEngineWhichSaysWhoItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	const day = "2006-01-02"
	today := time.Now().UTC().Format(day)
	lock, err := sqlitestore.Lock(dir)
	check(t, err)
	_, err = sqlitestore.Lock(dir)
	host, _ := os.Hostname()
	if now := time.Now().UTC().Format(day); !strings.Contains(fmt.Sprint(err), today) {
		today = now // Midnight passed.
	}
	want := fmt.Sprintf("process %d on %s, since %s", os.Getpid(), host, today)
	if !errors.Is(err, sqlitestore.ErrLocked) || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want %v which says %q", err, sqlitestore.ErrLocked, want)
	}
	lock.Release()
	next, err := sqlitestore.Lock(dir)
	check(t, err)
	// Released twice, the second time when it is another's already.
	lock.Release()
	if _, err = sqlitestore.Lock(dir); !errors.Is(err, sqlitestore.ErrLocked) || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want %v which says %q", err, sqlitestore.ErrLocked, want)
	}
	check(t, next.Say("it waits for the shop"))
	if _, err = sqlitestore.Lock(dir); !errors.Is(err, sqlitestore.ErrLocked) || !strings.Contains(err.Error(), "Z: it waits for the shop") {
		t.Fatalf("got %v, want %v which says what it waits for", err, sqlitestore.ErrLocked)
	}
	next.Release()
}

// Whoever cleans up takes the file of the lock away while its engine runs: no other engine begins beside it.
func TestAFolderStaysLockedWhenTheFileOfItsLockIsRemoved(t *testing.T) {
	dir := t.TempDir()
	lock, err := sqlitestore.Lock(dir)
	check(t, err)
	check(t, os.Remove(filepath.Join(dir, "lock")))
	for range 2 {
		if _, err = sqlitestore.Lock(dir); !errors.Is(err, sqlitestore.ErrLocked) || !strings.Contains(err.Error(), "which was removed") {
			t.Fatalf("got %v, want %v, and that its file is gone", err, sqlitestore.ErrLocked)
		}
	}
	lock.Release()
	lock, err = sqlitestore.Lock(dir)
	check(t, err)
	lock.Release()
}

package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// The counts of the store are its own word. Here the kernel counts: a child process runs the phases
// below under ptrace, and every fsync and fdatasync that any of its threads makes is seen. That also
// shows that nothing has switched SQLite's own flushes off: they belong to a checkpoint.

// phaseMark is the argument of a harmless system call by which the child says which phase begins.
const phaseMark = 0x4d47

type phase struct {
	name string
	want int
	run  func(t *testing.T, s *sqlitestore.Store)
}

// phases are the phases; temporary is a temporary store that is open already, for SQLite flushes a new
// file while it gives it a log, whatever synchronous says.
func phases(temporary *sqlitestore.Store) []phase {
	ctx := context.Background()
	save := func(t *testing.T, s *sqlitestore.Store, id int) {
		j := load(t, s, benchJob(id).ID)
		check(t, s.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}))
	}
	return []phase{
		{"20 lone saves", 20, func(t *testing.T, s *sqlitestore.Store) {
			for range 20 {
				save(t, s, 1)
			}
		}},
		{"a claim, 20 heartbeats and closings, a payload and 20 stale saves", 0, func(t *testing.T, s *sqlitestore.Store) {
			j := load(t, s, benchJob(1).ID)
			claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
			check(t, s.Claim(ctx, slotOf(j.ID), claim, j.CompleteBy))
			check(t, s.PutPayload(ctx, j.ID, "input", []byte(`1`)))
			for i := range 20 {
				claim.CompleteBy = claim.CompleteBy.Add(time.Second)
				_, err := s.Heartbeat(ctx, slotOf(j.ID), claim, j.CompleteBy)
				check(t, err)
				_, err = s.Close(ctx, slotOf(fmt.Sprint("job-", i)), store.Closing{Attempt: 1, Now: j.CreatedAt, Until: j.CompleteBy})
				check(t, err)
				if err := s.Save(ctx, store.Change{Job: benchJob(1), Seen: j.CompleteBy}); !errors.Is(err, store.ErrConflict) {
					t.Errorf("stale save: %v", err)
				}
			}
		}},
		{"a claim that another process holds, and 3 heartbeats of it", 4, func(t *testing.T, s *sqlitestore.Store) {
			j := load(t, s, benchJob(2).ID)
			claim := job.Claim{Attempt: 1, LockedBy: job.OutsidePrefix + "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
			check(t, s.Claim(ctx, slotOf(j.ID), claim, j.CompleteBy))
			if err := s.Claim(ctx, slotOf(j.ID), job.Claim{Attempt: 1, LockedBy: job.OutsidePrefix + "y", StartedAt: j.CreatedAt}, j.CompleteBy); !errors.Is(err, store.ErrTaken) {
				t.Errorf("another's claim: %v", err)
			}
			for range 3 {
				claim.CompleteBy = claim.CompleteBy.Add(time.Second)
				_, err := s.Heartbeat(ctx, slotOf(j.ID), claim, j.CompleteBy)
				check(t, err)
			}
		}},
		{"20 saves together", 1, func(t *testing.T, s *sqlitestore.Store) {
			var writes []func() error
			for i := range 20 {
				writes = append(writes, func() error { return s.Create(ctx, benchJob(100+i)) })
			}
			for _, err := range together(t, s, writes...) {
				check(t, err)
			}
		}},
		{"a park, a definition and an incarnation", 3, func(t *testing.T, s *sqlitestore.Store) {
			j := load(t, s, benchJob(2).ID)
			check(t, s.Park(ctx, j.ID, j.CompleteBy, "why", j.CompleteBy))
			check(t, s.PutDefinition(ctx, "order", "hash", []byte(`{}`)))
			_, err := s.NextIncarnation(ctx, time.Now())
			check(t, err)
		}},
		// SQLite's own: the log before it is copied, the file after.
		{"a checkpoint", 2, func(t *testing.T, s *sqlitestore.Store) { check(t, s.Checkpoint()) }},
		// SQLite's own: the new header, before anything follows it. Then ours.
		{"the save that starts the log afresh", 2, func(t *testing.T, s *sqlitestore.Store) { save(t, s, 1) }},
		{"the next save", 1, func(t *testing.T, s *sqlitestore.Store) { save(t, s, 1) }},
		{"a temporary store, until it is closed", 0, func(t *testing.T, _ *sqlitestore.Store) {
			create(t, temporary, 1)
			save(t, temporary, 1)
			check(t, temporary.Checkpoint())
			save(t, temporary, 1)
			check(t, temporary.Shut())
		}},
	}
}

// TestFlushingEngine is the child of TestTheKernelSeesEveryFlushAndNoOther.
func TestFlushingEngine(t *testing.T) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		t.Skip("run by TestTheKernelSeesEveryFlushAndNoOther")
	}
	s := open(t, sqlitestore.Options{Path: filepath.Join(dir, "jobs.db")})
	create(t, s, 1)
	create(t, s, 2)
	all := phases(open(t, sqlitestore.Options{}))
	for i, p := range all {
		mark(i)
		p.run(t, s)
	}
	mark(len(all))
}

func mark(phase int) { syscall.RawSyscall(syscall.SYS_GETPRIORITY, phaseMark, uintptr(phase), 0) }

func TestTheKernelSeesEveryFlushAndNoOther(t *testing.T) {
	got, err := traceFlushes("TestFlushingEngine", t.TempDir())
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("this machine lets nobody trace: %v", err)
	}
	check(t, err)
	want := map[int]int{}
	all := phases(nil)
	for i, p := range all {
		if p.want > 0 {
			want[i] = p.want
		}
		t.Logf("%s: %d flushes, want %d", p.name, got[i], p.want)
	}
	delete(got, len(all)) // what Close does
	delete(got, -1)       // what Open does
	if !reflect.DeepEqual(got, want) {
		t.Errorf("flushes by phase: got %v, want %v", got, want)
	}
}

// traceFlushes runs a test in a child process and counts its flushes by phase; -1 is before the first.
func traceFlushes(test, dir string) (map[int]int, error) {
	// A traced process answers only to the thread that traces it; it dies with this goroutine.
	runtime.LockOSThread()
	pid, err := syscall.ForkExec(os.Args[0], []string{os.Args[0], "-test.run=^" + test + "$"}, &syscall.ProcAttr{
		Env:   append(os.Environ(), childVariable+"="+dir, "GODEBUG=asyncpreemptoff=1"),
		Files: []uintptr{0, 2, 2},
		Sys:   &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s to trace it: %w", test, err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return nil, fmt.Errorf("wait for %s: %w", test, err)
	}
	const exitKill = 0x100000 // PTRACE_O_EXITKILL, which package syscall lacks
	options := syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACESYSGOOD | exitKill
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		return nil, fmt.Errorf("trace %s: %w", test, err)
	}
	tr := tracer{phase: -1, flushes: map[int]int{}, inside: map[int]bool{}}
	if err := tr.follow(pid); err != nil {
		return nil, fmt.Errorf("trace %s: %w", test, err)
	}
	return tr.flushes, nil
}

type tracer struct {
	phase   int
	flushes map[int]int
	// inside says which threads are in a system call: each stops twice, when it enters and when it leaves.
	inside map[int]bool
}

// follow lets the process run from stop to stop until it has ended.
func (tr *tracer) follow(pid int) error {
	stopped, deliver := pid, 0
	for {
		// A thread may be gone by now; the process' end is what counts.
		if err := syscall.PtraceSyscall(stopped, deliver); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		var status syscall.WaitStatus
		var err error
		for {
			stopped, err = syscall.Wait4(-1, &status, syscall.WALL, nil)
			if err != nil && !errors.Is(err, syscall.EINTR) {
				return err
			}
			if err == nil && status.Stopped() {
				break
			}
			if err == nil && stopped == pid {
				if status.ExitStatus() != 0 {
					return fmt.Errorf("it ended with status %d, signal %v", status.ExitStatus(), status.Signal())
				}
				return nil
			}
		}
		if deliver, err = tr.stop(stopped, status.StopSignal()); err != nil {
			return err
		}
	}
}

// stop looks at a thread that has stopped, and returns the signal that it is to get.
func (tr *tracer) stop(thread int, signal syscall.Signal) (deliver int, err error) {
	const atSyscall = syscall.SIGTRAP | 0x80 // PTRACE_O_TRACESYSGOOD
	switch signal {
	case atSyscall:
		tr.inside[thread] = !tr.inside[thread]
		if !tr.inside[thread] {
			return 0, nil
		}
		var regs syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(thread, &regs); err != nil {
			return 0, err
		}
		tr.enter(regs)
		return 0, nil
	case syscall.SIGTRAP, syscall.SIGSTOP: // a new thread
		return 0, nil
	default:
		return int(signal), nil
	}
}

func (tr *tracer) enter(regs syscall.PtraceRegs) {
	switch {
	case regs.Orig_rax == syscall.SYS_FSYNC, regs.Orig_rax == syscall.SYS_FDATASYNC:
		tr.flushes[tr.phase]++
	case regs.Orig_rax == syscall.SYS_GETPRIORITY && regs.Rdi == phaseMark:
		tr.phase = int(regs.Rsi)
	}
}

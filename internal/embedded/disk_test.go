//go:build unix

package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// fillDisk lets no file of this process grow beyond the size that this one has, until it is undone. SIGXFSZ
// must be ignored.
func fillDisk(t *testing.T, name string) (undo func()) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(info.Size()), Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	undo = sync.OnceFunc(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(undo)
	return undo
}

// alone runs a test in a process of its own, and reports whether this is it: on a full disk go test could not note either which files
// a test looks at, and would fail.
func alone(t *testing.T) bool {
	t.Helper()
	const asked = "MAKEGOOD_ALONE"
	if os.Getenv(asked) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), asked+"=1")
	said, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, said)
	}
	return false
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// count says in how many lines there is a text.
func (l *lines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// The engine stands still while its disk is full, and goes on with every job when it is not.
func TestADiskThatIsFullForAWhileStopsTheEngineForThatWhile(t *testing.T) {
	if !alone(t) {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	dir := memoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan string, 10), make(chan struct{})
		r := troupe{script: map[string]work{"charge": func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			begun <- task.Job
			<-release
			return json.RawMessage(`1`), nil
		}}}
		var log lines
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		w.patience = time.Hour
		c := w.define("name: two\nsteps: [{name: charge, agent: a, timeout: 10m, undo: none}, {name: ship, agent: a}]")
		jobs := ids(10)
		for _, id := range jobs {
			w.submit(c, id, `{}`)
			<-begun
		}
		hasRoom := fillDisk(t, filepath.Join(dir, embedded.DataFile+"-wal"))
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := w.engine.Job(t.Context(), jobs[0]); !errors.Is(err, store.ErrFailed) {
			t.Fatalf("while the disk is full: got %v, want %v", err, store.ErrFailed)
		}
		// It says so, and does not fill another disk with it.
		if n := log.count(""); log.count("the store has failed, and tries to go on") != 1 || n > 30 {
			t.Errorf("within a minute it wrote %d lines, want the failure and few others", n)
		}
		hasRoom()
		for _, id := range jobs {
			w.ends(id, makegood.JobProcessed)
		}
		if log.count("the store goes on") != 1 {
			t.Error("it does not say that the store goes on")
		}
		w.stop()
		if log.count("heldBack=") == 0 {
			t.Error("it does not say how often warnings were held back")
		}
		if got := len(r.seen("ship")); got != len(jobs) {
			t.Errorf("%d second steps were done for %d jobs", got, len(jobs))
		}
	})
}

// The disk may be full already when the engine begins: then it waits, and does not end.
func TestAnEngineThatBeginsOnAFullDiskWaitsForRoom(t *testing.T) {
	if !alone(t) {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	dir := memoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		engine, err := embedded.Open(t.Context(), embedded.Config{
			Dir: dir, Agents: []agent.Handler{actor{"a", ok}}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, engine: engine, patience: time.Hour, jobs: map[string]job.Job{}, more: make(chan struct{}, 1)}
		c := w.define("name: one\nsteps: [{name: charge, agent: a}]")
		w.submit(c, "stored", `{}`)
		hasRoom := fillDisk(t, filepath.Join(dir, embedded.DataFile+"-wal"))
		if _, _, err := engine.Submit(t.Context(), scheduler.Submission{ID: "refused", Definition: c.Hash, Input: json.RawMessage(`{}`)}); !errors.Is(err, store.ErrFailed) {
			t.Fatalf("on a full disk: got %v, want %v", err, store.ErrFailed)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- engine.Run(ctx) }()
		select {
		case err := <-ran:
			t.Errorf("it ended on a full disk: %v", err)
		case <-time.After(time.Minute):
		}
		hasRoom()
		time.Sleep(time.Minute)
		j, err := engine.Job(t.Context(), "stored")
		if err != nil || j.ProcessState != makegood.JobProcessed {
			t.Errorf("with room again: got %s, %v, want Processed", j.ProcessState, err)
		}
		stop()
		if err := errors.Join(<-ran, engine.Close()); err != nil {
			t.Error(err)
		}
	})
}

// After a failed flush nobody knows what is on the disk, so the engine ends and says why.
func TestAStoreThatIsLostEndsTheEngine(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Agents: []agent.Handler{actor{"a", ok}}})
	if err != nil {
		t.Fatal(err)
	}
	// Each connection of the store opens the log when it is first used.
	for range 4 {
		if _, err := engine.Job(t.Context(), "j"); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(t.Context()) }()
	// A pipe in the place of the log cannot be flushed.
	name := filepath.Join(dir, embedded.DataFile+"-wal")
	if err := errors.Join(os.Rename(name, name+".aside"), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, engine: engine}
	if err := w.defineErr("name: one\nsteps: [{name: charge, agent: a, undo: none}]"); !errors.Is(err, store.ErrFailed) {
		t.Errorf("define: got %v, want %v", err, store.ErrFailed)
	}
	if err := <-ran; !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), "flush") {
		t.Errorf("run: got %v, want an error that says what failed", err)
	}
	if err := os.Rename(name+".aside", name); err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Errorf("close: got %v, want success", err)
	}
}

func TestTheDataFolderOfAnEngineIsPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "data")
	w := open(t, embedded.Config{Dir: dir, Agents: []agent.Handler{actor{"a", ok}}})
	w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, undo: none}]"), "j", `{}`)
	files := 0
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v, want it for its owner alone", name, info.Mode())
		}
		return nil
	})
	if err != nil || files != 5 {
		t.Errorf("got %d files, %v, want the folder, the file, its log, its index and the lock", files, err)
	}
}

// The log of the store is removed under an engine that has nothing to do. It ends within seconds, says why, and the next engine has
// every job that was submitted.
func TestAnEngineWhoseLogIsRemovedEndsAndLosesNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var r troupe
		engine, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Agents: r.agents("a"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, engine: engine, patience: 20 * time.Second}
		c := w.define("name: late\nsteps: [{name: x, agent: wait, with: {for: 1h}}]")
		for i := range 10 {
			w.submit(c, fmt.Sprint("j-", i), `{}`)
		}
		if err := os.Remove(filepath.Join(dir, embedded.DataFile+"-wal")); err != nil {
			t.Fatal(err)
		}
		ran := engine.Run(t.Context())
		if ran == nil || !strings.Contains(ran.Error(), "-wal: it was removed or replaced while it was in use") {
			t.Errorf("run: got %v, want to hear of the log", ran)
		}
		if err := engine.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		w = open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
		for i := range 10 {
			w.stored(fmt.Sprint("j-", i), func(j job.Job) bool { return j.ID != "" })
		}
	})
}

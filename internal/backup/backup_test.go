package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/engine/folder"
	"github.com/makegood-dev/makegood/internal/backup"
	"github.com/makegood-dev/makegood/internal/embedded"
)

const file = `name: order
steps:
  - {name: reserve, agent: shop}
  - {name: pay, agent: shop, needs: [reserve]}
`

// shop does steps, and remembers under which keys it was asked. Payments wait until it is open.
type shop struct {
	open chan struct{}
	mu   sync.Mutex
	keys map[string][]string
}

func newShop() *shop { return &shop{open: make(chan struct{}), keys: map[string][]string{}} }

func (*shop) Name() string { return "shop" }

func (s *shop) Handle(ctx context.Context, t makegood.Task) (json.RawMessage, error) {
	s.mu.Lock()
	s.keys[t.Job+" "+t.Step] = append(s.keys[t.Job+" "+t.Step], fmt.Sprint(t.Key, " ", t.Attempt))
	s.mu.Unlock()
	if t.Step == "pay" {
		select {
		case <-s.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return json.RawMessage(`{}`), nil
}

func (s *shop) asked(what string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.keys[what]...)
}

// run starts an engine on a folder; the end of the test, or stop, ends it.
func run(t *testing.T, dir string, s *shop) (e *engine.Engine, stop func()) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Workflows: fstest.MapFS{"order.yaml": {Data: []byte(file)}}, Agents: []agent.Handler{s}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := errors.Join(<-ended, e.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return e, stop
}

func submit(t *testing.T, e *engine.Engine, id string) {
	t.Helper()
	if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to this: " + what)
		}
	}
}

// A copy is made while the engine works and jobs come. A folder of it goes on: what was done after the copy is done again, under the
// same key, and by an attempt of a run that never was.
func TestAFolderGoesOnFromItsBackup(t *testing.T) {
	dir, copied, restored := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "b", "monday"), filepath.Join(t.TempDir(), "restored")
	before := newShop()
	e, stop := run(t, dir, before)
	submit(t, e, "o-1")
	wait(t, "o-1 is paid for", func() bool { return len(before.asked("o-1 pay")) == 1 })
	large, err := e.WritePayload(t.Context(), "o-1", "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // Jobs come all the while.
		defer close(done)
		for i := range 300 {
			_, _ = e.Submit(context.Background(), makegood.Submission{Workflow: "order", ID: fmt.Sprintf("n-%d", i), Input: json.RawMessage(`{}`)})
		}
	}()
	l, err := backup.Make(t.Context(), dir, copied, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if l.Jobs < 1 || l.Jobs > 301 || l.Unfinished != l.Jobs || len(l.Files) < 3 {
		t.Errorf("got %+v", l)
	}
	close(before.open)
	if j, err := e.Wait(t.Context(), "o-1"); err != nil || j.ProcessState != makegood.JobProcessed {
		t.Fatal(j.ProcessState, err)
	}
	submit(t, e, "o-2") // Lost: it came after the copy.
	stop()

	if _, err := backup.Restore(t.Context(), copied, restored); err != nil {
		t.Fatal(err)
	}
	if got := count(t, restored); got != l.Jobs {
		t.Errorf("got %d jobs, the backup has %d", got, l.Jobs)
	}
	after := newShop()
	close(after.open)
	e, _ = run(t, restored, after)
	job, err := e.Wait(t.Context(), "o-1")
	if err != nil || job.ProcessState != makegood.JobProcessed {
		t.Fatal(job.ProcessState, err)
	}
	was, is := strings.Fields(before.asked("o-1 pay")[0]), strings.Fields(after.asked("o-1 pay")[0])
	if was[0] != is[0] || was[1] == is[1] {
		t.Errorf("payment was made under key and attempt %v, and again under %v: want the same key, another attempt", was, is)
	}
	if len(after.asked("o-1 reserve")) != 0 {
		t.Error("what was done before the copy was done again")
	}
	if _, err := e.Get(t.Context(), "o-2"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("o-2: got %v", err)
	}
	r, err := e.OpenPayload(t.Context(), "o-1", large)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
}

// count reads the jobs of a folder.
func count(t *testing.T, dir string) (n int64) {
	t.Helper()
	f, err := folder.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, err := range f.List(t.Context(), api.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestARestoreWritesNothingOver(t *testing.T) {
	dir, copied := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
	s := newShop()
	e, stop := run(t, dir, s)
	submit(t, e, "o-1")
	if _, err := backup.Make(t.Context(), dir, copied, time.Now()); err != nil {
		t.Fatal(err)
	}
	refused := func(want, from, to string) {
		t.Helper()
		if _, err := backup.Restore(t.Context(), from, to); !isUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("restore %s to %s: got %v, want %q", from, to, err, want)
		}
	}
	refused("another engine uses this folder", copied, dir)
	stop()
	refused("is not empty", copied, dir)
	refused("is no whole backup", dir, filepath.Join(t.TempDir(), "new"))
	if _, err := backup.Make(t.Context(), dir, copied, time.Now()); !isUsage(err) {
		t.Errorf("a second backup into the same folder: got %v", err)
	}
	if _, err := backup.Make(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "x"), time.Now()); !isUsage(err) {
		t.Errorf("a backup of no folder: got %v", err)
	}
	if got := count(t, dir); got != 1 {
		t.Errorf("got %d jobs", got)
	}
}

// A copy that was changed, or is not whole, makes no folder on which an engine begins.
func TestABackupThatWasChangedIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	e, stop := run(t, dir, newShop())
	submit(t, e, "o-1")
	stop()
	for name, change := range map[string]func(copied string) error{
		"a byte": func(copied string) error {
			f, err := os.OpenFile(filepath.Join(copied, embedded.DataFile), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{0xff}, 5000)
			return errors.Join(err, f.Close())
		},
		"its end":  func(copied string) error { return os.Truncate(filepath.Join(copied, embedded.DataFile), 8192) },
		"its list": func(copied string) error { return os.Remove(filepath.Join(copied, "backup.json")) },
		"a path": func(copied string) error {
			return os.WriteFile(filepath.Join(copied, "backup.json"), []byte(`{"format":1,"files":{"makegood.db":"x","../../etc/x":"y"}}`), 0o600)
		},
		"a newer list": func(copied string) error {
			return os.WriteFile(filepath.Join(copied, "backup.json"), []byte(`{"format":2,"files":{"makegood.db":"x"}}`), 0o600)
		},
		"its store": func(copied string) error { return os.Remove(filepath.Join(copied, embedded.DataFile)) },
	} {
		copied, restored := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
		if _, err := backup.Make(t.Context(), dir, copied, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := change(copied); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), copied, restored); err == nil {
			t.Errorf("%s: it was restored", name)
		}
		if _, err := os.Stat(filepath.Join(restored, embedded.DataFile)); err == nil {
			t.Errorf("%s: there is a store", name)
		}
	}
}

func isUsage(err error) bool {
	var usage *backup.UsageError
	return errors.As(err, &usage)
}

package embedded_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

const restarted = "name: restarted\nsteps: [{name: charge, agent: a, action: charge, timeout: 30m}]\n"

// leaveOne leaves a folder with a job under way and copies of another: of one that has ended, or of one that is to begin
// in an hour. Its name comes before that of the one under way.
func leaveOne(t *testing.T, ended bool, copies int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	began := make(chan struct{})
	r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
		if task.Job == "left" {
			close(began)
			<-ctx.Done()
		}
		return nil, ctx.Err()
	}}}
	w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
	c := w.define(restarted)
	if ended {
		w.submit(c, "copied", `{}`)
		w.ends("copied", makegood.JobProcessed)
	} else if _, _, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: "copied", Definition: c.Hash, StartAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	w.submit(c, "left", `{}`)
	<-began
	w.die()
	db, err := sql.Open("sqlite", filepath.Join(dir, embedded.DataFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, finished_at, data)
		SELECT printf('copy-%%07d', i), rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, finished_at, data
		FROM n JOIN jobs ON id = 'copied'`, copies)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// goOn opens an engine on a folder, and returns when the attempt of the job that was left is made again.
func goOn(t *testing.T, dir string, c embedded.Config) *world {
	t.Helper()
	again := make(chan struct{})
	r := troupe{script: map[string]work{"charge": func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
		if task.Job == "left" {
			close(again)
		}
		return nil, nil
	}}}
	c.Dir, c.Agents = dir, r.agents("a")
	w := open(t, c)
	w.define(restarted)
	<-again
	return w
}

// What a restart reads does not grow with the jobs that have ended: a hundred times as many add a few pages of the
// trees in which the one job under way is found.
func TestARestartReadsNoJobThatHasEnded(t *testing.T) {
	few, many := leaveOne(t, true, 200), leaveOne(t, true, 20_000)
	read := map[string]int{}
	for _, dir := range []string{few, many} {
		before := bytesRead(t)
		w := goOn(t, dir, embedded.Config{})
		read[dir] = bytesRead(t) - before
		w.stop() // It reads no more beside the next.
	}
	t.Logf("read %d bytes beside 200 jobs, %d beside 20,000", read[few], read[many])
	const pages, page = 30, 4096
	if read[few] == 0 || read[many] > read[few]+pages*page {
		t.Errorf("beside 200 jobs that have ended a restart read %d bytes, beside 20,000 %d, want at most %d more", read[few], read[many], pages*page)
	}
}

// bytesRead is how many bytes this process has read.
func bytesRead(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A restart takes up the job that was under way before the jobs that wait for a time, though its id is the last. The events
// of the waiting jobs do not fill the queue, so the replies of the first job do not stand behind them.
func TestARestartBeginsWithWhatWasUnderWay(t *testing.T) {
	const waiting, most = 3000, 320
	dir, p := leaveOne(t, false, waiting), &deep{}
	goOn(t, dir, embedded.Config{WrapQueues: p.wrap})
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.Contains(p.first, `"left"`) || p.most == 0 || p.most > most+10 {
		t.Errorf("the first event was %s, and at most %d waited; want one of the job left, and at most %d and a few", p.first, p.most, most)
	}
}

// deep notes the first event, and how many were sent at once or waited then.
type deep struct {
	embedded.Queues

	mu    sync.Mutex
	first string
	most  int
}

func (d *deep) wrap(q embedded.Queues) embedded.Queues {
	d.Queues = q
	return d
}

func (d *deep) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name != "events" || len(messages) == 0 {
		return d.Queues.Send(ctx, name, messages...)
	}
	if d.first == "" {
		d.first = messages[0].Body
	}
	if depth, err := d.Depth(ctx, name); err == nil {
		d.most = max(d.most, depth.Waiting+len(messages))
	}
	return d.Queues.Send(ctx, name, messages...)
}

// A job that waits has no attempt that could be cut off: a restart writes nothing of it, however many there are.
func TestARestartWritesNothingOfJobsThatWait(t *testing.T) {
	const waiting = 300
	dir, m := leaveOne(t, false, waiting), newMeter()
	goOn(t, dir, m.config(embedded.Config{}))
	for began := time.Now(); m.tap.count("events") < waiting+2 && time.Since(began) < 2*time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	for began := time.Now(); m.loads() < waiting && time.Since(began) < 2*time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	if asked := m.take(); asked["Load"] < waiting || asked["Save"] > 2 {
		t.Errorf("got %v, want a Load of each of %d jobs that wait, and two Saves of the one under way", asked, waiting)
	}
}

//go:build browser

package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/testkit/address"
	"github.com/makegood-dev/makegood/onhttp"
)

// world is makegood dev as a process, its agents in other processes' stead, and who asks it.
type world struct {
	t         *testing.T
	url, dir  string
	args      []string
	process   *exec.Cmd
	said      *bytes.Buffer
	crew      *crew
	client    *client.Client
	workflows string
}

// crewNames are the agents of the workflows of testdata.
var crewNames = []string{"inventory", "payments", "courier"}

// newWorld starts makegood dev on the workflows of testdata, with its agents at work.
func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	addr := freeAddr(t)
	w := &world{t: t, url: "http://" + addr, dir: t.TempDir(), crew: newCrew()}
	w.workflows = filepath.Join(w.dir, "workflows")
	if err := os.CopyFS(w.workflows, os.DirFS("testdata/workflows")); err != nil {
		t.Fatal(err)
	}
	w.args = append([]string{"dev", "--addr", addr, "--workflows", w.workflows, "--data", filepath.Join(w.dir, "data")}, args...)
	for _, name := range crewNames {
		w.args = append(w.args, "--outside", name)
	}
	c, err := client.New(w.url, client.WithPatience(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	w.client = c
	w.begin()
	t.Cleanup(w.kill)
	t.Cleanup(w.crew.work(t, w.url))
	return w
}

// freeAddr returns an address on which nobody listens, so that an engine can come back to it.
func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := address.Free()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// begin starts the process, and waits until it serves.
func (w *world) begin() {
	w.t.Helper()
	w.said = &bytes.Buffer{}
	w.process = exec.Command(program, w.args...)
	w.process.Stderr = w.said
	out, err := w.process.StdoutPipe()
	if err == nil {
		err = w.process.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "makegood serves ") {
		w.kill()
		w.t.Fatalf("makegood dev says %q, %v: %s", line, err, w.said)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
}

// kill ends the process at once, as a lack of memory would.
func (w *world) kill() {
	_ = w.process.Process.Kill()
	_ = w.process.Wait()
	if w.t.Failed() {
		w.t.Logf("makegood dev said:\n%s", w.said)
	}
}

// submit makes a job.
func (w *world) submit(workflow, id, input string) {
	w.t.Helper()
	if _, err := w.client.Submit(w.t.Context(), makegood.Submission{Workflow: workflow, ID: id, Input: json.RawMessage(input)}); err != nil {
		w.t.Fatal(err)
	}
}

// reaches waits until a job is in a state.
func (w *world) reaches(id string, state makegood.ProcessState) makegood.Job {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		j, err := w.client.Get(ctx, id)
		if err == nil && j.ProcessState == state {
			return j
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("job %s is %s, %v: it should come to be %s", id, j.ProcessState, err, state)
		}
	}
}

// crew are the agents: they do what they are asked, unless the test holds them up or lets them fail.
type crew struct {
	mu sync.Mutex
	// held and fails are by agent and action, such as payments.charge; whoever is held waits until it is closed.
	held  map[string]chan struct{}
	fails map[string]error
}

func newCrew() *crew { return &crew{held: map[string]chan struct{}{}, fails: map[string]error{}} }

// hold lets an action take until it is let go.
func (c *crew) hold(action string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan struct{})
	c.held[action] = held
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(held)
		delete(c.held, action)
	})
}

// fail lets an action fail from now on; nil: no more.
func (c *crew) fail(action string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails[action] = err
}

// member is one agent of the crew.
type member struct {
	*crew
	name string
}

func (m member) Name() string { return m.name }

// Handle does a task.
func (m member) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	action := m.name + "." + task.Action
	m.mu.Lock()
	held, err := m.held[action], m.fails[action]
	m.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"by": m.name, "key": task.Key})
}

// work lets each agent take tasks of the engine, through all its deaths, and returns what ends that.
func (c *crew) work(t *testing.T, url string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, name := range crewNames {
		all.Go(func() {
			err := onhttp.Run(ctx, member{c, name}, onhttp.Options{
				URL: url, Instance: name + "-1", Grace: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil && ctx.Err() == nil {
				t.Errorf("agent %s: %v", name, err)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

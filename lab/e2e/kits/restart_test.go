//go:build kits

package kits_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
)

// A long step is at work in an agent outside, and its engine is killed and started again, three times. Each time it stays away
// until a heartbeat has met nobody. The step is done in its first attempt, whether it heartbeats or is kept alive, and the agent
// says little about it.
func TestALongStepOutlivesRestartsOfItsEngine(t *testing.T) {
	makegoodCommand := filepath.Join(t.TempDir(), "makegood")
	command(t, root(t), "go", "build", "-o", makegoodCommand, "./cmd/makegood")
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			outlives(t, l, makegoodCommand)
		})
	}
}

func outlives(t *testing.T, l language, makegoodCommand string) {
	const restarts = 3
	began := time.Now()
	dir, addr := t.TempDir(), freeAddr(t)
	put(t, filepath.Join(dir, "workflows", "long.yaml"), "name: long\nsteps: [{name: hold, agent: probe, timeout: 20m, heartbeat: 20s, with: \"${ .input }\"}]\n")
	engine := &actor{name: "the engine", start: func() *process {
		return begin(t, exec.Command(makegoodCommand, "dev", "--addr", addr, "--workflows", filepath.Join(dir, "workflows"), "--data", filepath.Join(dir, "data"), "--outside", "probe"))
	}}
	engine.begin()
	probe := l.run(t, "MAKEGOOD_URL=http://"+addr)
	c, err := client.New("http://"+addr, client.WithPatience(patience))
	if err != nil {
		t.Fatal(err)
	}
	jobs, until := map[string]bool{"heartbeats": false, "kept-alive": true}, filepath.Join(dir, "until")
	for job, alive := range jobs {
		input := fmt.Sprintf(`{"begun": %q, "until": %q, "alive": %t}`, filepath.Join(dir, job), until, alive)
		if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "long", ID: job, Input: json.RawMessage(input)}); err != nil {
			t.Fatal(err)
		}
	}
	for job := range jobs {
		appears(t, filepath.Join(dir, job))
	}
	for range restarts {
		engine.kill(t)
		awayFor(t, addr, jobs)
		engine.begin()
	}
	put(t, until, "")
	for id := range jobs {
		job, err := c.Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.ProcessState != makegood.JobProcessed || job.Steps[0].Attempt != 1 {
			t.Errorf("%s: %s after %d attempts, want it processed after one: %s", id, job.ProcessState, job.Steps[0].Attempt, job.Reason)
		}
	}
	most := 1 + int(time.Since(began)/time.Minute) // One line a minute.
	if n := strings.Count(probe.output.String(), "no answer"); n < 1 || n > most {
		t.Errorf("it said %d times that nobody answers, want once to %d times:\n%s", n, most, probe.output.String())
	}
}

// awayFor stands where the engine was, and answers nothing well, until heartbeats of all jobs have come.
func awayFor(t *testing.T, addr string, jobs map[string]bool) {
	t.Helper()
	heard := make(chan string)
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ Job string }
		if strings.HasSuffix(r.URL.Path, "/heartbeats") && json.NewDecoder(r.Body).Decode(&m) == nil {
			select {
			case heard <- m.Job:
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(http.StatusBadGateway)
	})}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	for met := map[string]bool{}; len(met) < len(jobs); {
		select {
		case job := <-heard:
			met[job] = true
		case <-time.After(patience):
			t.Fatal("no heartbeat came")
		}
	}
}

// appears waits for a file.
func appears(t *testing.T, path string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s is not there after %s", path, patience)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/testkit/address"
)

// within is how long anything here may take before the test gives up on it.
const within = 4 * time.Minute

// world is the platform, and an engine beside it that is killed and started again: processes as the README starts them.
type world struct {
	t             *testing.T
	platform      string
	command, data string
	workflows     string
	addr          string
	client        *client.Client
	engine        *exec.Cmd
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{t: t, data: t.TempDir(), workflows: t.TempDir(), addr: freeAddr(t)}
	w.platform = startPlatform(t, args...)
	w.command = filepath.Join(t.TempDir(), "makegood")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", w.command, "../../cmd/makegood")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	text, err := os.ReadFile("workflows/subscription.yaml")
	if err != nil {
		t.Fatal(err)
	}
	source := strings.ReplaceAll(string(text), "http://127.0.0.1:4791", w.platform)
	if err := os.WriteFile(filepath.Join(w.workflows, "subscription.yaml"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.client, err = client.New("http://" + w.addr); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(w.kill)
	return w
}

// startPlatform runs the command until the test ends, and returns where it serves.
func startPlatform(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"--addr", "127.0.0.1:0"}, args...), in, io.Discard)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("the platform ended with %d, want 0", c)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the platform did not say where it serves: %v", err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "platform: "))
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := address.Free()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// start starts the engine, and waits until it answers.
func (w *world) start() {
	w.t.Helper()
	w.engine = exec.Command(w.command, "dev", "--data", w.data, "--workflows", w.workflows, "--addr", w.addr)
	w.engine.Stderr = io.Discard
	if err := w.engine.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.until("the engine answers", func() bool {
		_, err := w.client.Workflows(w.t.Context())
		return err == nil
	})
}

// kill ends the engine as kill -9 does.
func (w *world) kill() {
	_ = w.engine.Process.Kill()
	_ = w.engine.Wait()
}

// until waits for something to be so.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(within); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s: not yet that %s", within, what)
		}
	}
}

// did is how many things the platform has done.
func (w *world) did() int {
	w.t.Helper()
	r := w.report()
	return r.Totals.Activated + r.Totals.Deactivated
}

// killedAt kills the engine when the platform has done so many things, and starts it again.
func (w *world) killedAt(things int) {
	w.t.Helper()
	w.until(fmt.Sprintf("the platform has done %d things", things), func() bool { return w.did() >= things })
	w.kill()
	w.start()
}

func (w *world) report() (r report) {
	w.t.Helper()
	answer, err := http.Get(w.platform + "/subscriptions")
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// ends waits for a job, also while its engine is away.
func (w *world) ends(id string, want makegood.ProcessState) makegood.Job {
	w.t.Helper()
	var job makegood.Job
	w.until(id+" has ended", func() (is bool) {
		var err error
		job, err = w.client.Get(w.t.Context(), id)
		return err == nil && job.AtEnd()
	})
	if job.ProcessState != want {
		w.t.Fatalf("%s is %s (%s), want %s", id, job.ProcessState, job.Reason, want)
	}
	return job
}

// are wants all of a subscription's resources to be active, or none.
func (w *world) are(ids []string, active []string) {
	w.t.Helper()
	got := w.report()
	for _, id := range ids {
		if !slices.Equal(got.Subscriptions[id], active) {
			w.t.Errorf("%s has %v, want %v", id, got.Subscriptions[id], active)
		}
	}
	if got.Totals.Twice != 0 {
		w.t.Errorf("%d resources were activated that were active, want none: %+v", got.Totals.Twice, got.Totals)
	}
}

// Subscriptions are driven to active, back to inactive, and to active again, while the engine is killed on each way. The
// DNS name of each is refused once, so each takes two rounds at first; one whose name is never granted ends undone, after
// three. At no time is anything active twice, and at no end is a subscription half active.
func TestSubscriptionsGoBothWaysThoughTheEngineIsKilled(t *testing.T) {
	w := newWorld(t, "--slow", "20ms", "--refuse", "1")
	var ids []string
	for i := range 8 {
		ids = append(ids, fmt.Sprint("sub-", i))
	}
	never := taken + "name"
	for _, id := range append(slices.Clone(ids), never) {
		input := json.RawMessage(fmt.Sprintf(`{"subscription":%q}`, id))
		if _, err := w.client.Submit(t.Context(), makegood.Submission{Workflow: "subscription", ID: id, Input: input}); err != nil {
			t.Fatal(err)
		}
	}
	w.killedAt(3)
	w.killedAt(20)
	rounds := map[int]int{}
	for _, id := range ids {
		rounds[w.ends(id, makegood.JobProcessed).Round]++
	}
	if want := map[int]int{2: len(ids)}; !maps.Equal(rounds, want) {
		t.Errorf("rounds by how many took them: got %v, want %v", rounds, want)
	}
	if job := w.ends(never, makegood.JobUndone); job.Round != 3 || !strings.HasPrefix(job.Reason, "step dns failed in round 3 of 3: ") {
		t.Errorf("%s: got round %d, %q, want that its third of three failed", never, job.Round, job.Reason)
	}
	w.are(ids, resources)
	w.are([]string{never}, []string{})

	did := w.did() // Before they are asked: a busy machine may be nearly done when the last has been.
	w.all(ids, makegood.VerbUndo)
	w.killedAt(did + 5)
	for _, id := range ids {
		w.ends(id, makegood.JobUndone)
	}
	w.are(ids, []string{})

	did = w.did()
	w.all(ids, makegood.VerbResubmit)
	w.killedAt(did + 5)
	for _, id := range ids {
		if job := w.ends(id, makegood.JobProcessed); job.Round != 3 {
			t.Errorf("%s: got round %d, want 3", id, job.Round)
		}
	}
	w.are(ids, resources)
}

func (w *world) all(ids []string, verb makegood.Verb) {
	w.t.Helper()
	for _, id := range ids {
		if _, err := w.client.Request(w.t.Context(), id, api.Request{Verb: verb, Reason: "the customer asked for it"}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A call that was held up, and comes after its undo, does nothing: whoever deactivates wins.
func TestACallThatComesAfterItsUndoDoesNothing(t *testing.T) {
	url := startPlatform(t, "--slow", "0s")
	for _, c := range []struct {
		path, key, forwardKey string
		want                  int
	}{
		{"/access/deactivate", "s/access/1/undo", "s/access/1", http.StatusNotFound},
		{"/access/activate", "s/access/1", "", http.StatusGone},
		{"/access/activate", "s/access/2", "", http.StatusOK},
		{"/access/activate", "s/access/2", "", http.StatusOK},
		{"/access/activate", "", "", http.StatusBadRequest},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+c.path, strings.NewReader(`{"subscription":"s"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", c.key)
		r.Header.Set("Makegood-Forward-Key", c.forwardKey)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s under %q: got %d, want %d", c.path, c.key, answer.StatusCode, c.want)
		}
	}
}

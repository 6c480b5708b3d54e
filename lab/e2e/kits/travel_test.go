//go:build kits

package kits_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/examples/travel/agency"
)

// night is the travel agency's processes: its office, and the agents of its nightly run.
type night struct {
	office, books, mail *actor
	client              *client.Client
}

// openNight builds the office and the agents, and starts them. The 40 minutes last two seconds.
func openNight(t *testing.T) *night {
	t.Helper()
	a := agency.New()
	t.Cleanup(func() { _ = a.Close() })
	dir, addr, env := t.TempDir(), freeAddr(t), []string{"NIGHT_SECONDS=2"}
	for _, service := range agency.Services {
		url, err := a.Serve(t.Context(), service, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, strings.ToUpper(service)+"_URL="+url)
	}
	env = append(env, "MAKEGOOD_URL=http://"+addr+"/makegood", "LEDGER_URL="+switchboard(t, a)+"/ledger")
	travel := filepath.Join(dir, "travel")
	command(t, root(t), "go", "build", "-o", travel, "./examples/travel")
	tell := compiled(t, dir, root(t, "examples", "travel", "night", "tell.ts"))
	run := func(name string, cmd func() *exec.Cmd) *actor {
		return &actor{name: name, start: func() *process { return begin(t, cmd(), env...) }}
	}
	c, err := client.New("http://"+addr+"/makegood", client.WithPatience(patience))
	if err != nil {
		t.Fatal(err)
	}
	n := &night{
		office: run("the office", func() *exec.Cmd {
			return exec.Command(travel, "office", "-addr", addr, "-data", filepath.Join(dir, "data"))
		}),
		books: run("the books in Python", func() *exec.Cmd {
			cmd := exec.Command(need(t, "python3"), root(t, "examples", "travel", "night", "reconcile.py"))
			cmd.Env = []string{"PYTHONPATH=" + root(t, "kits", "python"), "PYTHONDONTWRITEBYTECODE=1"}
			return cmd
		}),
		mail:   run("the mail in TypeScript", func() *exec.Cmd { return exec.Command(need(t, "node"), tell) }),
		client: c,
	}
	for _, a := range []*actor{n.office, n.books, n.mail} {
		a.begin()
	}
	return n
}

func switchboard(t *testing.T, a *agency.Agency) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: a.Switchboard(), ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// Trips are booked, and the night is run: its long step in Python, what follows in TypeScript. The office is killed in the middle
// of the long step, which goes on and is done at its first attempt.
func TestTheNightIsReconciledInPythonAndToldInTypeScript(t *testing.T) {
	n := openNight(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for _, id := range []string{"trip-1", "trip-2"} {
		input := json.RawMessage(`{"customer":"Ada","flight":"LH 400","hotel":"Ritz","car":"Mini","cents":99900}`)
		if _, err := n.client.Submit(ctx, makegood.Submission{Workflow: "trip", ID: id, Input: input}); err != nil {
			t.Fatal(err)
		}
		if job, err := n.client.Wait(ctx, id); err != nil || job.ProcessState != makegood.JobProcessed {
			t.Fatalf("%s is %s (%s), %v, want Processed", id, job.ProcessState, job.Reason, err)
		}
	}
	id, err := n.client.RunSchedule(ctx, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	for job, err := range n.client.Watch(ctx, id) {
		if err != nil {
			t.Fatal(err)
		}
		if job.AtEnd() || job.Steps[0].State == makegood.StepClaimed {
			break
		}
	}
	time.Sleep(50 * time.Millisecond)
	n.office.kill(t)
	n.office.begin()
	job, err := n.client.Wait(ctx, id)
	if err != nil || job.ProcessState != makegood.JobProcessed {
		t.Fatalf("the night is %s (%s), %v, want Processed", job.ProcessState, job.Reason, err)
	}
	if job.Steps[0].FailureCount != 0 || !bytes.Contains(job.Steps[0].Output, []byte(`"paid":2`)) {
		t.Errorf("reconcile: got %s with %d failures, want two trips paid, at the first attempt", job.Steps[0].Output, job.Steps[0].FailureCount)
	}
	if want := `{"told":"2 paid, 0 differ"}`; string(job.Steps[1].Output) != want {
		t.Errorf("tell: got %s, want %s", job.Steps[1].Output, want)
	}
}

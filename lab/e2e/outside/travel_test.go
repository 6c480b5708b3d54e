package outside

import (
	"bufio"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/examples/travel/agency"
)

// inHere and outside are the import path of the example in this repository, and as a module of its own.
const inHere, outside = "github.com/makegood-dev/makegood/examples/travel", "example.com/travel"

// The example is a module outside this repository that tests itself and embeds the engine in a server of its own.
func TestAModuleOfItsOwnEmbedsTheEngine(t *testing.T) {
	m := module{t, t.TempDir()}
	if err := os.CopyFS(m.folder, os.DirFS("../../../examples/travel")); err != nil {
		t.Fatal(err)
	}
	m.moved()
	m.put("go.mod", "module "+outside+"\n\ngo 1.26.0\n\nrequire github.com/makegood-dev/makegood v0.0.0\n\nreplace github.com/makegood-dev/makegood => "+checkout(t)+"\n")
	sums, err := os.ReadFile(filepath.Join(checkout(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	m.put("go.sum", string(sums))
	m.does("go", "mod", "tidy")
	m.does("go", "vet", "./...")
	m.wants(m.does("go", "test", "./trips", "-run", "BookedWhole|Expensive"), "ok  \t"+outside+"/trips")
	m.does("go", "build", "-o", "bin/", ".")
	m.served()
}

// moved has the sources import each other by their new paths.
func (m module) moved() {
	m.t.Helper()
	err := filepath.WalkDir(m.folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, []byte(strings.ReplaceAll(string(text), inHere, outside)), 0o600)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m module) put(file, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.folder, file), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// served starts its office beside its services, books trips there by package client, and compares what the ledger has.
func (m module) served() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	services := agency.New()
	m.t.Cleanup(func() { _ = services.Close() })
	var env []string
	for _, service := range agency.Services {
		url, err := services.Serve(ctx, service, "127.0.0.1:0")
		if err != nil {
			m.t.Fatal(err)
		}
		env = append(env, strings.ToUpper(service)+"_URL="+url)
	}
	c, err := client.New(m.start(ctx, env))
	if err != nil {
		m.t.Fatal(err)
	}
	ends := map[string]makegood.ProcessState{}
	for id, want := range map[string]struct {
		car  string
		ends makegood.ProcessState
	}{"booked": {"Mini", makegood.JobProcessed}, "undone": {agency.SoldOut, makegood.JobUndone}} {
		input := json.RawMessage(`{"customer":"Ada","flight":"LH 400","hotel":"Ritz","car":"` + want.car + `","cents":99900}`)
		if _, err := c.Submit(ctx, makegood.Submission{Workflow: "trip", ID: id, Input: input}); err != nil {
			m.t.Fatal(err)
		}
		job, err := c.Wait(ctx, id)
		if err != nil || job.ProcessState != want.ends {
			m.t.Errorf("trip %s: got %s (%s), %v, want %s", id, job.ProcessState, job.Reason, err, want.ends)
		}
		ends[id] = job.ProcessState
	}
	for _, wrong := range agency.Check(services.Ledger(), ends) {
		m.t.Error(wrong)
	}
}

// start starts the office, which ends with the test, and returns where its jobs are.
func (m module) start(ctx context.Context, env []string) string {
	m.t.Helper()
	office := exec.CommandContext(ctx, filepath.Join(m.folder, "bin/travel"), "office", "-addr", "127.0.0.1:0", "-data", filepath.Join(m.folder, "data"))
	office.Env = append(os.Environ(), env...)
	office.Stderr = m.t.Output()
	out, err := office.StdoutPipe()
	if err == nil {
		err = office.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = office.Process.Signal(os.Interrupt) // it may have ended with ctx
		_ = office.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.t.Fatal("the office says no address: ", err)
	}
	_, jobs, _ := strings.Cut(line, "its jobs: ")
	return strings.TrimSuffix(strings.TrimSpace(jobs), "/)")
}

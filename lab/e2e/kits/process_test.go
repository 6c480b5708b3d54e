//go:build kits || aws

package kits_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is an agent of the suite that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	ended  chan error
	output output
}

// output keeps what a process wrote, for whoever looks for why a test failed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// language starts the suite's agent in one language.
type language struct {
	name  string
	start func(t *testing.T) *exec.Cmd
}

// languages are all that there is a kit for.
func languages() []language {
	return []language{{"go", golang}, {"python", python}, {"typescript", typescript}}
}

// need returns a program that the suite cannot do without: it is no pass where it is missing.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: the kits are tested with it (.ci/run installs it)", err)
	}
	return path
}

func root(t *testing.T, below ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".."}, below...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func golang(t *testing.T) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	if out, err := exec.Command("go", "build", "-o", program, "./agents/probe").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exec.Command(program)
}

func python(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(need(t, "python3"), "agents/probe.py")
	cmd.Env = []string{"PYTHONPATH=" + root(t, "kits", "python"), "PYTHONDONTWRITEBYTECODE=1"}
	return cmd
}

// typescript installs nothing: a link is all that npm install of the folder makes.
func typescript(t *testing.T) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("agents/probe.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "probe.mjs"), text, 0o600)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "node_modules"), 0o700)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(typescriptKit(t), "package"), filepath.Join(dir, "node_modules", "makegood-agent"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(need(t, "node"), filepath.Join(dir, "probe.mjs"))
}

// run starts an agent, and ends it with the test.
func (l language) run(t *testing.T, env ...string) *process {
	t.Helper()
	return begin(t, l.start(t), env...)
}

// begin starts a process, and ends it with the test.
func begin(t *testing.T, cmd *exec.Cmd, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan error, 1)}
	p.cmd.Env = append(append(os.Environ(), p.cmd.Env...), "CONCURRENCY=50", "PATIENCE_MS=20000")
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended by itself
		if t.Failed() {
			t.Logf("the agent said:\n%s", p.output.String())
		}
	})
	return p
}

// tell sends the signal that asks a process to end.
func (p *process) tell() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end of a process, and returns why it did not end well.
func (p *process) ends() error {
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		return fmt.Errorf("it runs still after %s", patience)
	}
}

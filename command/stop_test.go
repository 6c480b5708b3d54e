package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// asCommand makes the test binary the command, with an agent that never looks at its context.
const asCommand = "MAKEGOOD_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(begin(newRoot("makegood", nil, []agent.Handler{deaf{}})))
	}
	os.Exit(m.Run())
}

type deaf struct{}

func (deaf) Name() string { return "deaf" }

func (deaf) Handle(context.Context, makegood.Task) (json.RawMessage, error) {
	fmt.Fprintln(os.Stderr, "the agent works")
	select {}
}

// makegood run and dev stop by themselves within agentrun.StopPatience, as the test of that says. Who
// asks twice does not want to wait for it.
func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	for _, signals := range [][2]syscall.Signal{
		{syscall.SIGINT, syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGINT, syscall.SIGTERM},
	} {
		t.Run(fmt.Sprint(signals), func(t *testing.T) {
			command, stderr := startStuck(t)
			waitFor(t, stderr, "the agent works")
			signalTo(t, command, signals[0])
			waitFor(t, stderr, "stopping")
			signalTo(t, command, signals[1])
			_, _ = io.Copy(io.Discard, stderr)
			err := command.Wait()
			if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.ExitCode() != codeAtOnce {
				t.Errorf("it ended with %v, want exit code %d", err, codeAtOnce)
			}
		})
	}
}

// One signal is enough, where somebody has the patience: the agent is given up by name.
func TestOneSignalEndsTheProcessThoughAnAgentDoesNotStop(t *testing.T) {
	command, stderr := startStuck(t)
	waitFor(t, stderr, "the agent works")
	signalTo(t, command, syscall.SIGINT)
	waitFor(t, stderr, "did not stop")
	_, _ = io.Copy(io.Discard, stderr)
	err := command.Wait()
	if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.ExitCode() != codeFailed {
		t.Errorf("it ended with %v, want exit code %d", err, codeFailed)
	}
}

// startStuck starts makegood run on a step whose agent never ends, and returns its standard error.
func startStuck(t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"stuck.yaml":  "name: stuck\nsteps: [{name: wait, agent: deaf, timeout: 1h, undo: none}]\n",
		"input.jsonl": `{"id":"j"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "run", filepath.Join(dir, "stuck.yaml"), "--input", filepath.Join(dir, "input.jsonl"))
	command.Env = append(os.Environ(), asCommand+"=1")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command, bufio.NewReader(stderr)
}

func signalTo(t *testing.T, command *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := command.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// waitFor reads lines until one has text in it.
func waitFor(t *testing.T, from *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("it said %q and then %v, want a line with %q", line, err, text)
		}
	}
}

package command

import (
	"bufio"
	"bytes"
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
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
)

// asCommand makes the test binary the command, with an agent that never looks at its context.
const asCommand = "MAKEGOOD_TEST_AS_COMMAND"

// quickLook is how often it looks at files that may change: a test waits for it.
const quickLook = 10 * time.Millisecond

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(begin(newRootAt(pace{quickLook, quickLook}, "makegood", nil, []agent.Handler{deaf{}})))
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
	if testing.Short() {
		t.Skip("it takes agentrun.StopPatience on the clock; the next test has that in virtual time, without a process")
	}
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

// The same without a process and its signal: what the signal ends is the context.
func TestAnAgentThatDoesNotStopIsGivenUpByName(t *testing.T) {
	workflow, input := stuckFiles(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		end := make(chan struct{})
		defer close(end)
		var stderr bytes.Buffer
		root := newRoot("makegood", nil, []agent.Handler{stubborn{stop, end}})
		root.SetArgs([]string{"run", workflow, "--input", input})
		root.SetOut(io.Discard)
		root.SetErr(&stderr)
		began := time.Now()
		code := execute(ctx, root, &stderr)
		if took := time.Since(began); code != codeFailed || took < agentrun.StopPatience || took > agentrun.StopPatience+time.Second {
			t.Errorf("it ended with %d after %v, want %d after %v", code, took, codeFailed, agentrun.StopPatience)
		}
		if said := stderr.String(); !strings.Contains(said, "the agent did not stop") || !strings.Contains(said, "agent=deaf") {
			t.Errorf("it said %q, want the agent that was given up", said)
		}
	})
}

// stubborn is an agent that causes the end, and never looks at its context.
type stubborn struct {
	stop context.CancelFunc
	end  chan struct{}
}

func (stubborn) Name() string { return "deaf" }

func (s stubborn) Handle(context.Context, makegood.Task) (json.RawMessage, error) {
	s.stop()
	<-s.end
	return nil, nil
}

// stuckFiles writes a workflow whose agent never ends, and the input of a job.
func stuckFiles(t *testing.T) (workflow, input string) {
	t.Helper()
	dir := t.TempDir()
	workflow, input = filepath.Join(dir, "stuck.yaml"), filepath.Join(dir, "input.jsonl")
	for name, text := range map[string]string{
		workflow: "name: stuck\nsteps: [{name: wait, agent: deaf, timeout: 1h, undo: none}]\n",
		input:    `{"id":"j"}` + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return workflow, input
}

// startStuck starts makegood run on a step whose agent never ends, and returns its standard error.
func startStuck(t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	workflow, input := stuckFiles(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "run", workflow, "--input", input)
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

//go:build unix

package command

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// dev does not seem to run when its store can go on no more: it ends, and says what to do.
func TestDevEndsWhenItsStoreIsLostAndSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(filepath.Join(dir, "one.yaml"), []byte("name: one\nsteps: [{name: wait, agent: deaf, timeout: 1h, undo: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "dev", "--workflows", dir, "--data", data, "--addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), asCommand+"=1")
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	greeting := make([]byte, 1024)
	n, err := stdout.Read(greeting)
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(greeting[:n]))
	if err != nil || address == "" || !strings.Contains(string(greeting[:n]), "jobs for 30d after their end") {
		t.Fatalf("it said %q, %v, want where it serves and how long jobs are kept", greeting[:n], err)
	}

	// Each connection of the store opens the log when it is first used.
	for range 8 {
		list := newRoot("makegood", nil, nil)
		list.SetOut(io.Discard)
		list.SetArgs([]string{"list", "--addr", address})
		if code := execute(t.Context(), list, io.Discard); code != 0 {
			t.Fatalf("list: got exit code %d, want 0", code)
		}
	}
	// A pipe in the place of the log cannot be flushed.
	log := filepath.Join(data, embedded.DataFile+"-wal")
	if err := errors.Join(os.Rename(log, log+".aside"), syscall.Mkfifo(log, 0o600)); err != nil {
		t.Fatal(err)
	}
	// The command would ask again for as long as its patience.
	c, err := client.New("http://"+address, client.WithPatience(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "one"}); err == nil {
		t.Error("a job was taken that is not on the disk")
	}
	_, _ = io.Copy(io.Discard, stdout)
	err = command.Wait()
	if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.ExitCode() != codeFailed {
		t.Errorf("it ended with %v, want exit code %d", err, codeFailed)
	}
	if !strings.Contains(stderr.String(), "look at the disk of "+data+" and start again with the same --data") {
		t.Errorf("it said %q, want what to do", stderr.String())
	}
}

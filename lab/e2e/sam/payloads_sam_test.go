//go:build sam

package sam_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// payloads has the command bring a payload into the bucket that the stack was deployed with, submit a job that refers to it, and
// read it again.
func (w *world) payloads() {
	w.t.Helper()
	folder := w.t.TempDir()
	scan, back := filepath.Join(folder, "scan.bin"), filepath.Join(folder, "back.bin")
	written := make([]byte, 8<<20) // More than a function carries.
	_, _ = rand.Read(written)      // never fails, says its documentation
	if err := os.WriteFile(scan, written, 0o600); err != nil {
		w.t.Fatal(err)
	}
	ref := w.makegood("payload", "put", "scanned", scan, "--stack", stackName)
	w.makegood("submit", "hello", "--id", "scanned", "--input", fmt.Sprintf(`{"name":"Ada","scan":%s}`, bytes.TrimSpace(ref)), "--wait", "--stack", stackName)
	w.makegood("payload", "get", "scanned", "input", "--to", back, "--stack", stackName)
	if read, err := os.ReadFile(back); err != nil || !bytes.Equal(read, written) {
		w.t.Errorf("got %d bytes, %v, want the %d that were written", len(read), err, len(written))
	}
}

// makegood types a command that must succeed, and returns what it prints.
func (w *world) makegood(arguments ...string) []byte {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), w.command(), arguments...)
	command.Env = w.environment()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		w.t.Fatalf("makegood %q: %v\n%s%s", arguments, err, out, stderr.Bytes())
	}
	return out
}

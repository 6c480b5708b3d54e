package outside

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module is a folder with a module outside this repository.
type module struct {
	t      *testing.T
	folder string
}

// checkout is the root of this repository. A short run ends here: what follows builds whole programs.
func checkout(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// does runs a command there, which must succeed, and returns what it prints on standard output.
func (m module) does(command ...string) string {
	m.t.Helper()
	out, code := m.says(command...)
	if code != 0 {
		m.t.Fatalf("%s: exit code %d", strings.Join(command, " "), code)
	}
	return out
}

// says runs a command there, and returns what it prints on standard output, and its exit code.
func (m module) says(command ...string) (stdout string, code int) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), command[0], command[1:]...)
	cmd.Dir = m.folder
	// What says where a stack or an API is must not be that of whoever runs the tests.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MAKEGOOD_") && !strings.HasPrefix(v, "MAKEFLAGS=") && !strings.HasPrefix(v, "MAKELEVEL=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		m.t.Fatal(err)
	}
	m.t.Logf("%s\n%s%s", strings.Join(command, " "), out, stderr.Bytes())
	return string(out), cmd.ProcessState.ExitCode()
}

// replace replaces a text of a file there, which has it once.
func (m module) replace(file, old, with string) {
	m.t.Helper()
	name := filepath.Join(m.folder, file)
	text, err := os.ReadFile(name)
	if err != nil {
		m.t.Fatal(err)
	}
	if n := strings.Count(string(text), old); n != 1 {
		m.t.Fatalf("%s has %q %d times, want it once", file, old, n)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), old, with, 1)), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m module) wants(said string, parts ...string) {
	m.t.Helper()
	for _, part := range parts {
		if !strings.Contains(said, part) {
			m.t.Errorf("it says\n%s\nwant %q in it", said, part)
		}
	}
}

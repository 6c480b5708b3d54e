//go:build sam

package sam_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/makegood-dev/makegood/internal/stack"
)

// firstJobs types what docs/deploy.md has a reader type on a fresh stack, with the name of this one. It wants the
// first job Processed and the second Undone; neither needs a service.
func (w *world) firstJobs() {
	w.t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/deploy.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	binary := w.command()
	said := map[string]string{}
	for line := range strings.SplitSeq(string(page), "\n") {
		typed, is := strings.CutPrefix(line, "bin/makegood ")
		if !is {
			continue
		}
		command := exec.CommandContext(w.t.Context(), "sh", "-c", binary+" "+strings.Replace(typed, "makegood-dev", stackName, 1))
		command.Env = w.environment()
		// A job that was Undone is no success of watch, so its exit code says nothing here.
		out, _ := command.CombinedOutput()
		said[typed] = string(out)
		w.t.Logf("makegood %s\n%s", typed, out)
	}
	for typed, want := range map[string]string{
		"watch first --stack makegood-dev": "Processed", "watch second --stack makegood-dev": "Undone",
	} {
		if !strings.Contains(said[typed], want) {
			w.t.Errorf("docs/deploy.md: %q gives %q, want %s", typed, said[typed], want)
		}
	}
}

// command builds the makegood command, once.
func (w *world) command() string {
	w.t.Helper()
	if w.binary != "" {
		return w.binary
	}
	w.binary = filepath.Join(w.t.TempDir(), "makegood")
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", w.binary, "./cmd/makegood")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("build: %v\n%s", err, out)
	}
	return w.binary
}

// environment is that of a command that asks the doors on this machine, in place of the outputs of the stack.
func (w *world) environment() []string {
	return append(os.Environ(), stack.VarSubmitURL+"="+w.doors.Submit, stack.VarReadURL+"="+w.doors.Read, stack.VarOperateURL+"="+w.doors.Operate)
}

package command

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/store"
)

// fileOf writes lines into a file of this name.
func fileOf(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

func approvalLine(id string) string {
	return fmt.Sprintf(`{"workflow":"approvals","id":%q,"input":{"for":%q}}`, id, id)
}

// A file of submissions is checked as a whole, and then submitted; the same command again submits nothing.
func TestAFileOfManyIsSubmittedOnce(t *testing.T) {
	c := newCrowd(t, 0, 0)
	path := fileOf(t, "today.jsonl", approvalLine("a"), "", approvalLine("b"), `{"workflow":"approvals","input":7,"tenant":"acme","labels":{"shop":"north"}}`)
	wants(t, 0, "3 submissions of approvals, all as they must be; none was submitted", "submit", "--input", path, "--dry-run", "--addr", c.url)
	if _, err := c.engine.Job(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after a dry run: got %v, want no job", err)
	}
	wants(t, 0, "submit: 3 jobs in ", "submit", "--input", path, "--addr", c.url)
	wants(t, 0, "pause: 1 job in ", "pause", "--tenant", "acme", "--label", "shop=north", "--yes", "--addr", c.url)
	_, stdout, _ := ask(t, "submit", "--input", path, "--json", "--addr", c.url)
	got := readSaid(t, stdout)
	if !slices.Equal(counts(got.summary), []int{3, 0, 3, 0, 0}) || got.outcomes["b"].Line != 3 {
		t.Errorf("the same again: got %s, want three duplicates", stdout)
	}
	text, err := os.ReadFile(path)
	must(t, err)
	code, stdout, _ := askWith(t, string(text), "submit", "--input", "-", "--addr", c.url)
	if code != 0 || !strings.Contains(stdout, "granted           1") || !strings.Contains(stdout, "duplicate         2") {
		t.Errorf("from standard input: got %d, %s, want the line without an id to be another one", code, stdout)
	}
	other := fileOf(t, "today.jsonl", strings.Replace(approvalLine("a"), `"for":"a"`, `"for":"z"`, 1), approvalLine("c"))
	wants(t, codeOtherwise, "1  its id is that of another job already (a on line 1)", "submit", "--input", other, "--addr", c.url)
	wants(t, 0, "c  approvals", "get", "c", "--addr", c.url)
}

// Nothing of a file is submitted that has a line which is wrong.
func TestAFileThatIsWrongIsRefusedAsAWhole(t *testing.T) {
	c := newCrowd(t, 0, 0)
	path := fileOf(t, "today.jsonl", approvalLine("a"), `{"workflow":"approvals"}`, `{"workflow":"letter","id":"b","input":1}`)
	at := func(args ...string) []string { return append(args, "--addr", c.url) }
	wants(t, codeUsage, path+":2: input is missing; null is an input\nno job was submitted", at("submit", "--input", path)...)
	unknown := fileOf(t, "unknown.jsonl", approvalLine("a"), `{"workflow":"letter","id":"b","input":1}`)
	wants(t, codeUsage, unknown+":2: there is no workflow letter; there are [approvals broken]\nno job was submitted", at("submit", "--input", unknown, "--dry-run")...)
	wants(t, codeUsage, "no such file", at("submit", "--input", path+".gone")...)
	wants(t, codeUsage, "are for one job", at("submit", "--input", path, "--id", "a")...)
	wants(t, codeUsage, "--rate x: want N/s", at("submit", "--input", path, "--rate", "x")...)
	wants(t, codeUsage, "submit needs a WORKFLOW", at("submit")...)
	wants(t, codeUsage, "are for a file of many", at("submit", "approvals", "--dry-run")...)
	if _, err := c.engine.Job(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want no job", err)
	}
}

// Killed on the way, the same command submits the rest.
func TestASubmissionThatWasKilledGoesOn(t *testing.T) {
	const jobs, before = 120, 30
	c := newCrowd(t, 0, 0)
	var lines []string
	for i := range jobs {
		lines = append(lines, fmt.Sprintf(`{"workflow":"approvals","input":{"n":%d}}`, i))
	}
	path := fileOf(t, "today.jsonl", lines...)
	command := exec.CommandContext(t.Context(), os.Args[0], "submit", "--input", path, "--rate", "40/s", "--json", "--addr", c.url)
	command.Env = append(os.Environ(), asCommand+"=1")
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	said := bufio.NewReader(out)
	for range before {
		_, err := said.ReadString('\n')
		must(t, err)
	}
	must(t, command.Process.Kill())
	_ = command.Wait() // it was killed
	code, stdout, stderr := ask(t, "submit", "--input", path, "--json", "--addr", c.url)
	got := readSaid(t, stdout).summary
	if code != 0 || got.Granted+got.Duplicate != jobs || got.Duplicate < before || got.Granted == 0 {
		t.Errorf("got %d, %s, %+v, want the rest submitted", code, stderr, got)
	}
	_, stdout, _ = ask(t, "list", "--limit", "1000", "--addr", c.url)
	if n := strings.Count(stdout, "\n") - 1; n != jobs {
		t.Errorf("got %d jobs, want %d", n, jobs)
	}
}

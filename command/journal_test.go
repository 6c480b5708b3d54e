package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/makegood-dev/makegood"
)

// brokenIDs are the ids of the jobs of workflow broken.
func brokenIDs(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("broken-%d", i))
	}
	return ids
}

// answersIn counts the answers in a journal.
func answersIn(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return strings.Count(string(text), `"outcome"`)
}

func gone(t *testing.T, path string) {
	t.Helper()
	for _, path := range []string{path, path + ".lock"} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want it gone", path, err)
		}
	}
}

// The process is killed in the middle of 200 jobs, and all have failed again when the same command is run again. It
// asks only the jobs that have not answered, each job is granted the verb once, and the summary counts all.
func TestKilledWithAJournalItAsksTheOthersAlone(t *testing.T) {
	const jobs, read = 200, 60
	c := newCrowd(t, 0, jobs)
	path := filepath.Join(t.TempDir(), "monday")
	args := []string{"resubmit", "-", "--request", "monday", "--journal", path, "--json"}
	command, out := c.start(t, brokenIDs(jobs), append(args, "--rate", "40/s")...)
	for range read {
		_, err := out.ReadString('\n')
		must(t, err)
	}
	must(t, command.Process.Kill())
	_ = command.Wait() // it was killed
	before := answersIn(t, path)
	if before < read || before >= jobs {
		t.Fatalf("killed after %d of %d, want it to have been on its way", before, jobs)
	}
	c.until(t, "broken", jobs, func(s makegood.ProcessState) bool { return s == makegood.JobError })
	asked := c.requests()
	code, stdout, stderr := askWith(t, strings.Join(brokenIDs(jobs), "\n"), append(args, "--addr", c.url)...)
	got := readSaid(t, stdout)
	// Requests of the killed process may come to the server among those of the next.
	again, left := c.requests()-asked, jobs-before
	if len(got.outcomes) != left || again < left || again > left+atOnce || !strings.Contains(stderr, fmt.Sprintf("%d of 200 jobs answered before", before)) {
		t.Errorf("asked %d again, and said %d lines, %q; want the %d that had not answered", again, len(got.outcomes), stderr, left)
	}
	s := got.summary
	if all, same := c.most(); code != 0 || all != jobs || same != 1 || s.Jobs != jobs || s.Before != before || s.Granted+s.Duplicate != jobs || s.Duplicate > atOnce {
		t.Errorf("got %d, %+v; %d granted in all, %d times the same, want each once", code, s, all, same)
	}
	gone(t, path)
}

// A signal leaves the journal, and a filter, which finds other jobs by then, goes on with it.
func TestStoppedWithAJournalTheFilterGoesOn(t *testing.T) {
	const jobs = 120
	c := newCrowd(t, jobs, 0)
	path := filepath.Join(t.TempDir(), "monday")
	args := []string{"cancel", "--workflow", "approvals", "--state", "Pending", "--yes", "--request", "monday", "--journal", path}
	command, out := c.start(t, nil, append(args, "--json", "--rate", "20/s")...)
	for range 20 {
		_, err := out.ReadString('\n')
		must(t, err)
	}
	signalTo(t, command, syscall.SIGINT)
	_, _ = out.WriteTo(new(strings.Builder))
	_ = command.Wait() // the code is another test's
	before := answersIn(t, path)
	if all, _ := c.most(); before != all || all >= jobs {
		t.Fatalf("got %d answers, and %d were granted of %d, want all of these answers kept", before, all, jobs)
	}
	wants(t, 0, "  granted         120\n", append(args, "--addr", c.url)...)
	gone(t, path)
}

// A file that is no journal of the command is left as it is, and lines that cannot be read are told.
func TestAJournalThatCannotBeUsedIsTold(t *testing.T) {
	c := newCrowd(t, 3, 0)
	path := filepath.Join(t.TempDir(), "file")
	pause := func(args ...string) []string {
		return append([]string{"pause", "approvals-0", "approvals-1", "--request", "r", "--journal", path, "--addr", c.url}, args...)
	}
	for text, want := range map[string]string{
		"approvals-0\n":                       "--journal " + path + ": invalid character",
		"":                                    "--journal " + path + ": it is empty",
		`{"name":"r","says":"cancel"}` + "\n": `it is of "cancel" under the name "r"`,
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		wants(t, codeUsage, want, pause()...)
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("got %q, %v, want the file as it was", kept, err)
		}
	}
	if all, _ := c.most(); all != 0 {
		t.Errorf("%d requests were granted, want none", all)
	}
	wants(t, codeUsage, "--journal needs --request", "pause", "approvals-0", "--journal", path, "--addr", c.url)
	wants(t, codeUsage, "none of the others can be", pause("--dry-run")...)
	wants(t, codeUsage, "not a directory", pause("--journal", filepath.Join(path, "in", "it"))...)

	must(t, os.Remove(path))
	says := fmt.Sprintf("pause of %s, ", c.url) + `{\"Verb\":\"pause\",\"Reason\":\"\",\"Name\":\"\",\"StartAt\":\"0001-01-01T00:00:00Z\",\"Definition\":\"\",\"Input\":null,\"Timeout\":\"0s\"}`
	must(t, os.WriteFile(path, []byte(`{"name":"r","says":"`+says+`"}`+"\n"+`{"job":"approvals-0","outcome":"granted"}`+"\n"+`{"job":"appro`), 0o600))
	code, stdout, stderr := ask(t, pause()...)
	if all, _ := c.most(); code != 0 || all != 1 || !strings.Contains(stderr, "1 line cannot be read; their jobs are asked again\n1 of 2 jobs answered before\n") || !strings.Contains(stdout, "pause: 2 jobs in ") || !strings.Contains(stdout, "granted           2") {
		t.Errorf("got %d, %q, %q; %d granted, want that the damage is told, and the other job asked", code, stdout, stderr, all)
	}
	gone(t, path)
}

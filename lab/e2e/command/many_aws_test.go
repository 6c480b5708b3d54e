//go:build aws && linux

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// counts returns the summary of a verb's lines of JSON: jobs, granted, duplicate, refused, failed. It is the last line.
func counts(t *testing.T, stdout string) []int {
	t.Helper()
	var last struct {
		Summary *struct{ Jobs, Granted, Duplicate, Refused, Failed int }
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Summary == nil {
		t.Fatalf("got %q, %v, want a summary in the last line", stdout, err)
	}
	s := last.Summary
	return []int{s.Jobs, s.Granted, s.Duplicate, s.Refused, s.Failed}
}

// On a deployed stack, through its doors: a file of 200 jobs is submitted once, and 200 jobs in Error are found by the index, and
// resubmitted by one command. Run again, either changes nothing.
func TestManyJobsOnADeployedStack(t *testing.T) {
	const jobs = 200
	s := newDeployedStack(t)
	var lines []string
	for i := range jobs {
		lines = append(lines, fmt.Sprintf(`{"workflow":"order","id":"o-%d","input":{"id":"o-%d","customer":"c","total":1}}`, i, i))
	}
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	summary := func(code int, args ...string) []int {
		t.Helper()
		began := time.Now()
		out, _ := s.run(t, code, append(args, "--json")...)
		got := counts(t, out)
		t.Logf("%s: %d jobs in %s", args[0], got[0], time.Since(began).Round(time.Millisecond))
		return got
	}
	for _, want := range [][]int{{jobs, jobs, 0, 0, 0}, {jobs, 0, jobs, 0, 0}} {
		if got := summary(0, "submit", "--input", file, "--rate", "500/s"); !slices.Equal(got, want) {
			t.Errorf("submitted: got %v, want %v", got, want)
		}
	}
	var failing sync.WaitGroup
	places := make(chan struct{}, 16)
	for i := range jobs {
		places <- struct{}{}
		failing.Go(func() {
			s.fail(t, fmt.Sprintf("o-%d", i))
			<-places
		})
	}
	failing.Wait()
	if _, stderr := s.run(t, codeUsage, "resubmit", "--state", "Error", "--workflow", "order"); !strings.Contains(stderr, "resubmit 200 jobs? Nobody can be asked here") {
		t.Errorf("without --yes: got %q", stderr)
	}
	if got := summary(0, "resubmit", "--state", "Error", "--workflow", "order", "--yes", "--rate", "500/s", "--request", "monday"); !slices.Equal(got, []int{jobs, jobs, 0, 0, 0}) {
		t.Errorf("resubmitted: got %v", got)
	}
	if got := summary(0, "resubmit", "--state", "Error", "--workflow", "order", "--yes"); !slices.Equal(got, []int{0, 0, 0, 0, 0}) {
		t.Errorf("run again: got %v, want that there is nothing left", got)
	}
	out, _ := s.run(t, 0, "resubmit", "o-0", "o-1", "o-2", "--request", "monday", "--json")
	if got := counts(t, out); !slices.Equal(got, []int{3, 0, 3, 0, 0}) {
		t.Errorf("by the same name: got %v, want three duplicates", got)
	}
	for i := range jobs {
		j, err := s.store.Load(t.Context(), fmt.Sprintf("o-%d", i))
		if err != nil || j.ProcessState != makegood.JobProcessing || j.Steps[0].Attempt != 2 {
			t.Fatalf("o-%d: got %s, attempt %d, %v, want it to go on with its second attempt", i, j.ProcessState, j.Steps[0].Attempt, err)
		}
	}
}

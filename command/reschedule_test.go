package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// The start of a job is moved at a terminal, until the job has begun.
func TestAStartIsMoved(t *testing.T) {
	url := scheduling(t)
	at := func(ahead time.Duration) string { return time.Now().Add(ahead).UTC().Format(time.RFC3339) }
	for _, step := range []struct {
		line string
		code int
		says string // on standard output, or on standard error where it fails
	}{
		{"submit x --id later --at " + at(time.Hour), 0, "later"},
		{"reschedule later --at " + at(2*time.Hour), 0, "later  x  Pending"},
		{"reschedule later --at tomorrow", codeUsage, "--at tomorrow: want a time as in RFC 3339"},
		{"reschedule later", codeUsage, "--at is missing"},
		{"reschedule --at " + at(time.Hour), codeUsage, "ID"},
		{"reschedule later --at " + at(9000*time.Hour), codeUsage, "the limit is 8760h0m0s"},
		{"reschedule nobody --at " + at(time.Hour), codeUsage, "`makegood list --addr "},
		{"reschedule later --at " + at(-time.Hour), 0, "later  x  Pending"},
		{"reschedule later --at " + at(time.Hour), codeUsage, "it has started"},
	} {
		code, out, stderr := ask(t, append(words(step.line), "--addr", url)...)
		said := out
		if step.code != 0 {
			said = stderr
		}
		if code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("%s: got %d and\n%s%swant %d and %q", step.line, code, out, stderr, step.code, step.says)
		}
	}
}

func TestAMovedStartInJSON(t *testing.T) {
	url := scheduling(t)
	want := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Second)
	ask(t, "submit", "x", "--id", "later", "--at", want.Add(-time.Hour).Format(time.RFC3339), "--addr", url)
	_, out, stderr := ask(t, "reschedule", "later", "--at", want.Format(time.RFC3339), "--json", "--addr", url)
	var job makegood.Job
	if err := json.Unmarshal([]byte(out), &job); err != nil || job.StartAt == nil || !job.StartAt.Equal(want) {
		t.Errorf("got %s%s, %v, want its start at %s", out, stderr, err, want)
	}
}

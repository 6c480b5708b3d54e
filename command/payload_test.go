package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/stack"
)

func TestAReferenceIsChosenByItsPlace(t *testing.T) {
	ref := func(n int) string {
		return fmt.Sprintf(`{"$payload":{"bytes":%d,"sha256":"%064x"}}`, n, n)
	}
	job := makegood.Job{ID: "j", Input: json.RawMessage(ref(1)), Steps: []makegood.JobStep{
		{Name: "one", Activity: makegood.Activity{Output: json.RawMessage(`{"report":` + ref(2) + `,"pages":7}`)}},
		{Name: "two", Activity: makegood.Activity{Output: json.RawMessage(`{"pages":[` + ref(3) + `,` + ref(4) + `]}`)}},
		{Name: "none"},
	}}
	for _, c := range []struct {
		of, at, wrong string
		want          int64
	}{
		{of: "input", want: 1},
		{of: "one", want: 2},
		{of: "one", at: ".report", want: 2},
		{of: "two", at: ".pages[1]", want: 4},
		{of: "one", at: ".other", wrong: "refers to no large payload at .other"},
		{of: "two", wrong: "say which:\n  --at .pages[0]"},
		{of: "none", wrong: "refers to no large payload"},
		{of: "three", wrong: `has no step "three"`},
	} {
		got, err := choose(job, c.of, c.at)
		if got.Bytes != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s %s: got %v, %v, want %d bytes, %q", c.of, c.at, got, err, c.want, c.wrong)
		}
	}
}

func TestALargeFileIsCheckedToBeOneValue(t *testing.T) {
	for text, wrong := range map[string]string{
		`{"a":[1,2,{"b":null}]}` + "\n": "", `[]`: "", `7`: "", ` "x" `: "",
		``: "not JSON", `{"a":`: "not JSON", `[1,2`: "not JSON", `{} {}`: "something follows", `%PDF`: "makegood payload put takes anything",
	} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkJSON(file); (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: got %v, want %q", text, err, wrong)
		}
	}
}

// Half of a download does not take the place of a file that is whole.
func TestAFileIsReplacedAsAWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(file, brokenReader{}); err == nil {
		t.Error("half was taken for the whole")
	}
	if text, err := os.ReadFile(file); string(text) != "before" || err != nil {
		t.Errorf("got %q, %v, want before", text, err)
	}
	if err := replaceFile(file, strings.NewReader("after")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); string(text) != "after" || err != nil {
		t.Errorf("got %q, %v, want after", text, err)
	}
}

type brokenReader struct{}

func (brokenReader) Read(p []byte) (int, error) { return 1, os.ErrDeadlineExceeded }

// A file that is too large for an input goes to a running dev as a payload, and comes back as it was; anything else by put and
// get. A stack has no payload store, and says so before anything is read.
func TestALargeFileIsSubmittedAndReadBack(t *testing.T) {
	dev := startDev(t)
	t.Setenv(stack.Variable, "")
	dir := t.TempDir()
	large, back := filepath.Join(dir, "large.json"), filepath.Join(dir, "back")
	text := `["` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"]`
	if err := os.WriteFile(large, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := ask(t, "submit", "x", "--id", "l-1", "--input", "@"+large, "--addr", dev.url); code != 0 {
		t.Fatalf("submit: code %d, %s", code, stderr)
	}
	if code, _, stderr := ask(t, "payload", "get", "l-1", "input", "--to", back, "--addr", dev.url); code != 0 {
		t.Fatalf("get: code %d, %s", code, stderr)
	}
	if got, err := os.ReadFile(back); string(got) != text || err != nil {
		t.Errorf("%d bytes came back, %v, want %d", len(got), err, len(text))
	}
	code, ref, stderr := askWith(t, "anything", "payload", "put", "l-2", "-", "--type", "text/plain", "--addr", dev.url)
	if code != 0 || !strings.Contains(ref, `"bytes":8`) {
		t.Fatalf("put: code %d, %s%s", code, ref, stderr)
	}
	if code, _, stderr := ask(t, "submit", "x", "--id", "l-2", "--input", `{"a":`+ref+`}`, "--addr", dev.url); code != 0 {
		t.Fatalf("submit: code %d, %s", code, stderr)
	}
	if code, got, stderr := ask(t, "payload", "get", "l-2", "input", "--addr", dev.url); code != 0 || got != "anything" {
		t.Errorf("get: code %d, %q, %s", code, got, stderr)
	}
	if code, _, stderr := ask(t, "submit", "x", "--id", "l-3", "--input", `{"a":`+ref+`}`, "--addr", dev.url); code != codeUsage || !strings.Contains(stderr, "is not there for this job") {
		t.Errorf("another job's: code %d, %s", code, stderr)
	}
	if code, _, stderr := ask(t, "payload", "put", "l-2", large, "--stack", "shop"); code != codeUsage || !strings.Contains(stderr, "stack shop has no payload store") {
		t.Errorf("a stack: code %d, %s", code, stderr)
	}
}

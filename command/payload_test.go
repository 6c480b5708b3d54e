package command

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
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

// Where a job has large payloads, get offers the commands that read them, and not a thousand.
func TestGetOffersThePayloads(t *testing.T) {
	ref := func(n int) string { return fmt.Sprintf(`{"$payload":{"bytes":%d,"sha256":"%064x"}}`, n, n) }
	job := makegood.Job{ID: "j", Input: json.RawMessage(`{"scan":` + ref(1) + `}`), Steps: []makegood.JobStep{
		{Name: "one", Activity: makegood.Activity{Output: json.RawMessage(`{"a":` + ref(2) + `,"b'":[` + ref(3) + `]}`)}}, {Name: "none"},
	}}
	got := strings.Join(payloadLines(job, "makegood", " --addr 127.0.0.1:1"), "\n")
	for _, want := range []string{
		"makegood payload get j input --to FILE --addr 127.0.0.1:1", "makegood payload get j one --at .a --to FILE --addr",
		`makegood payload get j one --at '.b'\''[0]' --to FILE`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
	job.Input = json.RawMessage("[" + strings.Repeat(ref(1)+",", 20) + ref(1) + "]")
	if all := payloadLines(job, "makegood", ""); len(all) != maxPayloadLines+1 || all[maxPayloadLines] != "  and 13 more" {
		t.Errorf("got %d lines, %q", len(all), all)
	}
}

func TestALargeFileIsCheckedToBeOneValue(t *testing.T) {
	for text, wrong := range map[string]string{
		`{"a":[1,2,{"b":null}]}` + "\n": "", `[]`: "", `7`: "", ` "x" `: "",
		``: "not JSON", `{"a":`: "not JSON", `[1,2`: "not JSON", `{} {}`: "more text follows", `%PDF`: "makegood payload put takes anything",
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
// get.
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
	want := "makegood payload get l-2 input --to FILE --addr " + dev.url
	if code, got, _ := ask(t, "get", "l-2", "--addr", dev.url); code > codeOtherwise || !strings.Contains(got, want) {
		t.Errorf("get: code %d, %s, want %q in it", code, got, want)
	}
	if code, got, stderr := ask(t, "payload", "get", "l-2", "input", "--addr", dev.url); code != 0 || got != "anything" {
		t.Errorf("get: code %d, %q, %s", code, got, stderr)
	}
	if code, _, stderr := ask(t, "submit", "x", "--id", "l-3", "--input", `{"a":`+ref+`}`, "--addr", dev.url); code != codeUsage || !strings.Contains(stderr, "is not there for this job") {
		t.Errorf("another job's: code %d, %s", code, stderr)
	}
}

// behindDoors is an API as a stack's is, which leads to a bucket.
func behindDoors(t *testing.T, c httpapi.Config) (url string) {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	server := httptest.NewServer(httpapi.New(c))
	t.Cleanup(server.Close)
	t.Setenv(stack.Variable, "")
	return server.URL
}

// What an API cannot carry goes past it: from a file and from a pipe, once. What is refused says by whom, with its exit code, and
// never how one gets in.
func TestAPayloadIsPutPastAnAPIThatCarriesNone(t *testing.T) {
	bucket := payloadtest.NewBucket(t)
	url := behindDoors(t, httpapi.Config{Doors: bucket})
	file := filepath.Join(t.TempDir(), "scan.png")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 3<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if code, ref, stderr := ask(t, "payload", "put", "p-1", file, "--addr", url); code != 0 || !strings.Contains(ref, `"bytes":3145728`) || !strings.Contains(ref, `"type":"image/png"`) {
			t.Fatalf("put: code %d, %s%s", code, ref, stderr)
		}
	}
	if code, ref, stderr := askWith(t, "piped", "payload", "put", "p-1", "-", "--addr", url); code != 0 || !strings.Contains(ref, `"bytes":5`) {
		t.Fatalf("put: code %d, %s%s", code, ref, stderr)
	}
	if asked := len(bucket.Asked()); asked != 2 {
		t.Errorf("the bucket was asked %d times, want a PUT of each", asked)
	}
	bucket.Late(time.Hour)
	code, out, stderr := askWith(t, "late", "payload", "put", "p-1", "-", "--addr", url)
	if code != codeFailed || out != "" || !strings.Contains(stderr, "answered 403 (AccessDenied)") || strings.Contains(stderr, payloadtest.Signature) {
		t.Errorf("a bucket that refuses: code %d, %s%s", code, out, stderr)
	}
	none := behindDoors(t, httpapi.Config{})
	code, _, stderr = ask(t, "payload", "put", "p-1", file, "--addr", none)
	if code != codeUsage || !strings.Contains(stderr, "the parameter "+httpapi.PayloadParameter) {
		t.Errorf("no payload store: code %d, %s", code, stderr)
	}
}

package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pinned is a line of a workflow of GitHub that names the commit of an action, and which release that is, or a workflow that is here,
// which is of the same commit.
var pinned = regexp.MustCompile(`^(- )?uses: (\./\.github/workflows/[\w-]+\.yaml|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)

// unpinned are the lines of a workflow that name an action otherwise: a tag can be moved to other code.
func unpinned(workflow string) (lines []string) {
	for line := range strings.Lines(workflow) {
		if line = strings.TrimSpace(line); strings.Contains(line, "uses:") && !pinned.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestActionsArePinnedByTheirCommit(t *testing.T) {
	files, err := filepath.Glob(root + "/.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v, want the workflows", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range unpinned(string(text)) {
			t.Errorf("%s: %s: want OWNER/NAME@COMMIT # vX.Y.Z", filepath.Base(name), line)
		}
	}
	const good = "- uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2\n"
	for workflow, want := range map[string]int{good: 0, "- uses: actions/checkout@v4\n" + good: 1, "uses: a/b@main # v1.0.0\n": 1, "uses: ./.github/workflows/check.yaml\n": 0, "uses: a/b/.github/workflows/check.yaml@v1\n": 1, strings.Replace(good, " # v4.2.2", "", 1): 1} {
		if got := unpinned(workflow); len(got) != want {
			t.Errorf("%q: got %q, want %d", workflow, got, want)
		}
	}
}

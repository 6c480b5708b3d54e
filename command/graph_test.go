package command

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/graph"
)

// A workflow of two branches.
const branches = `name: trip
steps:
  - {name: quote, agent: fares, undo: none}
  - {name: flight, agent: air, undo: {action: cancel}}
  - {name: hotel, agent: beds, needs: [quote], undo: {action: cancel}}
  - {name: notify, agent: mail, needs: [flight, hotel]}
`

func branchesFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trip.yaml")
	must(t, os.WriteFile(file, []byte(branches), 0o600))
	return file
}

func TestAWorkflowFileIsDrawn(t *testing.T) {
	code, stdout, stderr := ask(t, "graph", branchesFile(t))
	want := `○ quote ╶┬▶ ○ flight ╶┬▶ ○ notify
         └▶ ○ hotel ╶─┘
`
	if code != 0 || stdout != want {
		t.Errorf("got %d, %s\n%s\nwant\n%s", code, stderr, stdout, want)
	}
}

func TestAGraphIsWrittenInTheFormOfItsName(t *testing.T) {
	file, dir := branchesFile(t), t.TempDir()
	for name, begins := range map[string]string{"a.svg": "<svg class=\"graph\"", "a.mmd": "flowchart LR\n  s0", "a.txt": "○ quote"} {
		to := filepath.Join(dir, name)
		wants(t, 0, "", "graph", file, "-o", to)
		text, err := os.ReadFile(to)
		must(t, err)
		if !strings.HasPrefix(string(text), begins) {
			t.Errorf("%s: got %.60s, want it to begin with %s", name, text, begins)
		}
		if filepath.Ext(name) == ".svg" {
			must(t, xml.Unmarshal(text, new(any)))
		}
	}
	code, stdout, _ := ask(t, "graph", file, "--as", "mermaid")
	if code != 0 || !strings.Contains(stdout, "s1 --> s3\n") {
		t.Errorf("got %d\n%s", code, stdout)
	}
}

func TestAGraphOfAJobSaysWhereItIs(t *testing.T) {
	_, url := waitingFor(t, "a")
	wants(t, 0, "⧖ ", "graph", "a", "--addr", url)
	wants(t, codeUsage, "there is no such job", "graph", "b", "--addr", url)
}

func TestWhatCannotBeDrawnIsSaid(t *testing.T) {
	file := branchesFile(t)
	wants(t, codeUsage, "--as \"png\": want text, svg or mermaid", "graph", file, "--as", "png")
	wants(t, codeUsage, "no such file", "graph", file+".yaml")
	wants(t, codeFailed, "write the graph", "graph", file, "-o", filepath.Join(file, "a.svg"))
	wants(t, codeUsage, "FILE or JOB", "graph")
	code, _, stderr := askWith(t, "name: x", "graph", "-")
	if code != codeUsage || !strings.Contains(stderr, "stdin:1: ") {
		t.Errorf("got %d, %s", code, stderr)
	}
}

// What is wider than a pipe is taken to be is a list.
func TestWhatDoesNotFitIsAList(t *testing.T) {
	long := "name: long\nsteps:\n"
	for i := range 20 {
		long += "  - {name: a_step_of_a_long_workflow_" + string(rune('a'+i)) + ", agent: x}\n"
	}
	code, stdout, stderr := askWith(t, long, "graph", "-")
	if code != 0 || !strings.Contains(stdout, "\na_step_of_a_long_workflow_b  after a_step_of_a_long_workflow_a\n") {
		t.Errorf("got %d, %s\n%s", code, stderr, stdout)
	}
}

// What docs/graph.md shows is what is printed, of the file that it shows; and its legend is the graph's.
func TestThePageOnGraphs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trip.yaml")
	must(t, os.WriteFile(file, []byte(docBlocks(t, "graph.md", "yaml")[0]), 0o600))
	blocks := docBlocks(t, "graph.md", "console")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks, want 2", len(blocks))
	}
	for _, block := range blocks {
		line, want, _ := strings.Cut(block, "\n")
		args := shellWords(strings.TrimPrefix(line, "$ makegood "))
		args[1] = file
		if code, stdout, stderr := ask(t, args...); code != 0 || stdout != want {
			t.Errorf("%s: got %d, %s\n%s\nwant\n%s", line, code, stderr, stdout, want)
		}
	}
	legend := strings.Join(docBlocks(t, "graph.md", "text"), "")
	for _, entry := range graph.Legend() {
		if !strings.Contains(legend, entry) {
			t.Errorf("the legend has no %q", entry)
		}
	}
}

package command

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// paused is the API of an engine that does not run: what is sent stays where it is.
func paused(t *testing.T) (url string, submit func(id string)) {
	t.Helper()
	engine := idle(t, t.TempDir())
	return serves(t, engine, "name: order\nsteps: [{name: charge, agent: deaf}]\n"), func(id string) {
		t.Helper()
		if _, _, err := engine.SubmitCurrent(t.Context(), "order", scheduler.Submission{ID: id, Input: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
}

// The commands of docs/holds.md, in their order, do what it says they do.
func TestAnOutageAsTheDocsTellIt(t *testing.T) {
	text, err := os.ReadFile("../docs/holds.md")
	if err != nil {
		t.Fatal(err)
	}
	url, submit := paused(t)
	moment := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	by := regexp.MustCompile(`by [^ :)]+`)
	column := regexp.MustCompile(`\s{2,}`)
	plain := func(line string) string {
		return column.ReplaceAllString(by.ReplaceAllString(moment.ReplaceAllString(strings.TrimSpace(line), "T"), "by WHO"), "  ")
	}
	ran := 0
	for _, block := range strings.Split(string(text), "```") {
		if !strings.HasPrefix(block, "\n$ makegood") {
			continue
		}
		for _, said := range strings.Split(block, "\n$ makegood ")[1:] {
			line, wants, _ := strings.Cut(strings.TrimRight(said, "\n"), "\n")
			line = strings.ReplaceAll(line, "payments", "deaf")
			_, stdout, stderr := ask(t, append(words(line), "--addr", url)...)
			got := plain(strings.ReplaceAll(stdout+stderr, "deaf", "payments"))
			for want := range strings.Lines(wants) {
				if strings.Contains(want, "anna  1") {
					continue // The columns of who and when are as wide as what is in them.
				}
				if want = plain(want); !strings.Contains(got, want) {
					t.Errorf("makegood %s\nsays %q\nwant %q", line, got, want)
				}
			}
			if ran++; ran == 1 {
				submit("order-17")
			}
		}
	}
	if ran < 6 {
		t.Errorf("ran %d commands of docs/holds.md", ran)
	}
}

// What pause and resume take as an agent or a workflow as a whole, and what they refuse.
func TestPauseOfAnAgentOrAWorkflowAsAWhole(t *testing.T) {
	url, submit := paused(t)
	for _, step := range []struct {
		line string
		code int
		says string
	}{
		{"holds", 0, "no agent and no workflow is paused"},
		{"pause --agent deff", codeUsage, `there is no agent "deff"; there are [deaf]`},
		{"pause --whole-agent approval", codeUsage, "no task is ever sent to it"},
		{"pause --whole-agent deaf --state Processing", codeUsage, "neither ids nor a filter"},
		{"pause order-1 --whole-agent deaf", codeUsage, "neither ids nor a filter"},
		{"pause --whole-agent deaf --whole-workflow order", codeUsage, "want one"},
		{"pause --whole-agent=", codeUsage, "want the name of the agent"},
		{"pause --workflow orders", codeUsage, `there is no workflow "orders"`},
		{"pause --agent deaf --state Processing", 0, "pause: 0 jobs"},
		{"pause order-1 --agent deaf", codeUsage, "ids or a filter, not both"},
		{"resume --agent deaf", codeUsage, "refused: agent deaf is not paused"},
		{"resume --whole-agent deaf", codeUsage, "refused: agent deaf is not paused"},
		{"pause --whole-workflow order --json", 0, `"kind":"workflow","name":"order"`},
		{"pause --workflow order --reason again", 0, "workflow order  paused since"},
		{"holds --json", 0, `"jobs":0`},
		{"resume --workflow order", 0, "workflow order  resumed: new work flows"},
		{"holds", 0, "told to go on"},
		{"pause --workflow order --state Pending --yes", 0, "1"},
		{"holds", 0, "told to go on"},
	} {
		if strings.Contains(step.line, "--state Pending") {
			submit("one")
		}
		code, stdout, stderr := ask(t, append(words(step.line), "--addr", url)...)
		if code != step.code || !strings.Contains(stdout+stderr, step.says) {
			t.Errorf("makegood %s: got %d, %q, %q, want %d and %q", step.line, code, stdout, stderr, step.code, step.says)
		}
	}
	_, stdout, _ := ask(t, "get", "one", "--json", "--addr", url)
	var job makegood.Job
	if err := json.Unmarshal([]byte(stdout), &job); err != nil || !job.Paused || job.HeldBy != "" {
		t.Errorf("got %s, %v, want a job that a person has paused", stdout, err)
	}
}

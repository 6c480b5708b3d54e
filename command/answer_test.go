package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// waitsFile is a workflow with a step that waits and asks nothing, of the same name as the approval of approvals.
const waitsFile = `
name: cooling
steps:
  - {name: approve, agent: wait, with: {for: 2h}}
`

// A person answers one question of one job at a terminal. An answer that the approval does not offer, another round, and a second answer are refused.
func TestAQuestionIsAnswered(t *testing.T) {
	_, url := waitingFor(t, "a", "b")
	at := func(args ...string) []string { return append(args, "--addr", url) }
	wants(t, 0, "makegood answer a approve approve --addr "+url+"   one of approve, reject", at("get", "a")...)
	wants(t, 0, "a  Pending: Is it so? ends the step, with this output\n", at("answer", "a", "approve", "approve", "--dry-run")...)
	wants(t, codeUsage, `refused: "perhaps" is none of its answers, which are approve, reject`, at("answer", "a", "approve", "perhaps")...)
	wants(t, codeUsage, "refused: it is of round 2", at("answer", "a", "approve", "approve", "--round", "2")...)
	wants(t, 0, "a  approvals  Processed  [approve done]", at("answer", "a", "approve", "approve", "--who", "anna", "--why", "it is spring")...)
	wants(t, 0, "a  approvals  Processed", at("answer", "a", "approve", "approve")...)
	wants(t, codeUsage, "refused: step approve was completed by anna at", at("answer", "a", "approve", "reject")...)
	wants(t, codeUsage, "there is no such job", at("answer", "nobody", "approve", "approve")...)
	wants(t, 0, "b  approvals  Processed", at("answer", "b", "approve", "reject")...)
}

// Many questions are answered by one command: a dry run shows each and what follows, a filter finds those that wait at the step, and the same
// command again changes nothing.
func TestManyQuestionsAreAnsweredByOneCommand(t *testing.T) {
	c := newCrowd(t, 4, 1)
	compiled, err := workflowfile.Parse("cooling.yaml", []byte(waitsFile))
	must(t, err)
	must(t, c.engine.Define(t.Context(), compiled))
	compiled, err = workflowfile.Parse("more.yaml", []byte(strings.NewReplacer("name: approvals", "name: more", "for: 2h}}", "for: 2h}, onAnswer: {reject: stop}}").Replace(approvals)))
	must(t, err)
	must(t, c.engine.Define(t.Context(), compiled))
	_, _, err = c.engine.SubmitCurrent(t.Context(), "cooling", scheduler.Submission{ID: "cooling-0", Input: json.RawMessage("{}")})
	must(t, err)
	at := func(args ...string) []string { return append(args, "--json", "--addr", c.url) }
	for _, s := range []struct {
		stdin string
		args  []string
		code  int
		want  []int
	}{
		{"", at("answer", "--workflow", "approvals", "approve", "approve", "--dry-run"), 0, []int{4, 4, 0, 0, 0}},
		{"", at("answer", "--workflow", "approvals", "approve", "perhaps", "--dry-run"), codeOtherwise, []int{4, 0, 0, 4, 0}},
		{"", at("answer", "--workflow", "approvals", "approve", "perhaps", "--yes"), codeOtherwise, []int{4, 0, 0, 4, 0}},
		{"", at("answer", "--workflow", "broken", "a", "approve", "--yes"), 0, []int{0, 0, 0, 0, 0}},
		{"", at("answer", "--state", "waiting", "approve", "approve", "--dry-run"), 0, []int{4, 4, 0, 0, 0}},
		{"approvals-0\nnobody\n", at("answer", "-", "approve", "reject"), codeOtherwise, []int{2, 1, 0, 1, 0}},
		{"", at("answer", "--state", "waiting", "approve", "approve", "--who", "ann", "--why", "it is spring", "--yes"), 0, []int{3, 3, 0, 0, 0}},
		{"", at("answer", "--workflow", "approvals", "approve", "approve", "--yes"), 0, []int{0, 0, 0, 0, 0}},
		{"", at("answer", "approvals-1", "approvals-2", "approve", "approve"), 0, []int{2, 0, 2, 0, 0}},
		{"", at("answer", "approvals-0", "approvals-1", "approve", "reject"), codeOtherwise, []int{2, 0, 1, 1, 0}},
	} {
		code, stdout, stderr := askWith(t, s.stdin, s.args...)
		if got := readSaid(t, stdout).summary; code != s.code || !slices.Equal(counts(got), s.want) {
			t.Errorf("%v: got %d, %v\n%s%s\nwant %d, %v", s.args, code, counts(got), stdout, stderr, s.code, s.want)
		}
	}
	wants(t, 0, "completed by ann (it is spring)", "get", "approvals-3", "--addr", c.url)
	// The step that waits and asks nothing waits still.
	wants(t, 0, "approve  waiting", "get", "cooling-0", "--addr", c.url)
	wants(t, codeUsage, "is no approval and asks no question", "answer", "cooling-0", "approve", "approve", "--addr", c.url)
	c.submit(t, "more", 1)
	wants(t, 0, "more-0  Pending: Is it so? ends the step, with this output; onAnswer: stop\n", "answer", "--workflow", "more", "approve", "reject", "--dry-run", "--addr", c.url)
	wants(t, 0, "more-0  Pending: Is it so? ends the step, with this output\n", "answer", "--workflow", "more", "approve", "approve", "--dry-run", "--addr", c.url)
	for says, args := range map[string][]string{
		"takes jobs, a STEP and an ANSWER":                                  {"answer", "approve"},
		"needs a JOB, several, - for standard input, or a filter":           {"answer", "approve", "approve"},
		"takes ids or a filter, not both":                                   {"answer", "a", "approve", "approve", "--paused"},
		"answer 1 job? Nobody can be asked here: --yes does it, --dry-run ": {"answer", "--state", "waiting", "approve", "approve"},
		"--round -1: want 1 or more":                                        {"answer", "a", "approve", "approve", "--round", "-1"},
	} {
		wants(t, codeUsage, says, append(args, "--addr", c.url)...)
	}
}

package machine_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/machine"
)

const statesFile = "../../docs/states.md"

// docs/states.md is written from the tables that the code decides by.
func TestStatesDocIsWhatTheTablesSay(t *testing.T) {
	want := statesDoc()
	if *rewrite {
		if err := os.WriteFile(statesFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the tables say: go test ./internal/machine -rewrite", statesFile)
	}
}

// Every verb has an answer in every state, and every refusal a reason.
func TestEveryVerbHasAnAnswerInEveryState(t *testing.T) {
	for _, v := range domain.Verbs() {
		for _, s := range domain.ProcessStates() {
			rule := machine.RuleFor(v, s)
			if rule.Effect == "" || rule.Effect == machine.Refuses && rule.Reason == "" {
				t.Errorf("%s in %s: got %+v, want an effect, and a reason for a refusal", v, s, rule)
			}
		}
	}
	if rule := machine.RuleFor("delete", makegood.JobPending); rule.Effect != machine.Refuses {
		t.Errorf("an unknown verb: got %+v, want a refusal", rule)
	}
}

// What is final stays final: nothing leads out of Cancelled, and only an operator leads out of the
// other ends.
func TestOnlyAnOperatorLeadsOutOfAnEnd(t *testing.T) {
	if next := machine.Transitions(makegood.JobCancelled); len(next) > 0 {
		t.Errorf("Cancelled leads to %v", next)
	}
	for s, want := range map[makegood.ProcessState][]makegood.Verb{
		makegood.JobProcessed: {makegood.VerbUndo, makegood.VerbRedo, makegood.VerbRedrive}, makegood.JobUndone: {makegood.VerbResubmit, makegood.VerbRedo},
	} {
		var verbs []makegood.Verb
		for _, v := range domain.Verbs() {
			if e := machine.RuleFor(v, s).Effect; e != machine.Refuses && e != machine.Already {
				verbs = append(verbs, v)
			}
		}
		if !slices.Equal(verbs, want) {
			t.Errorf("%v lead out of %s, want %v", verbs, s, want)
		}
	}
}

var stateMeanings = map[makegood.ProcessState]string{
	makegood.JobPending:    "The intent is stored, with its first attempts; no reply has come yet. A reply moves it on, or the Supervisor when none comes.",
	makegood.JobProcessing: "Steps are being done. Replies move it on, and the Supervisor when they fail to come.",
	makegood.JobProcessed:  "Every step is done or skipped. The end, unless an operator wants it undone.",
	makegood.JobError:      "It waits for a person, who was told why. Resubmit goes on in the direction that stopped; cancel and undo turn it round.",
	makegood.JobUndoing:    "What was done, or may have been, is being undone. Replies and the Supervisor move it on.",
	makegood.JobUndone:     "Everything that can be undone is. The end, unless an operator starts a new round.",
	makegood.JobCancelled:  "Undone because somebody asked for it. The end.",
}

func statesDoc() string {
	var b strings.Builder
	b.WriteString("# States\n\nGenerated from the tables in `internal/machine` by `go test ./internal/machine -rewrite`.\n\n")
	b.WriteString("## What each state means, and who moves a job on from it\n\n")
	for _, s := range domain.ProcessStates() {
		fmt.Fprintf(&b, "- **%s**: %s\n", s, stateMeanings[s])
	}
	b.WriteString("\nPaused is not a state but a desire that keeps the state under it: nothing new starts, what nobody\nhas claimed is taken back, what was claimed ends, and then nothing is due.\n\n")
	b.WriteString("## Which state may follow which\n\n```mermaid\nstateDiagram-v2\n    [*] --> Pending\n")
	for _, from := range domain.ProcessStates() {
		for _, to := range machine.Transitions(from) {
			fmt.Fprintf(&b, "    %s --> %s\n", from, to)
		}
	}
	b.WriteString("```\n\nOne event may lead through several states at once (a job of one step goes from Pending to Processed), so\nthe arrows are those between saved states.\n\n")
	b.WriteString("## What each verb does in each state\n\n| |")
	for _, s := range domain.ProcessStates() {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(domain.ProcessStates())) + "\n")
	var refusals []string
	for _, v := range domain.Verbs() {
		fmt.Fprintf(&b, "| **%s** |", v)
		for _, s := range domain.ProcessStates() {
			rule := machine.RuleFor(v, s)
			if rule.Effect != machine.Refuses {
				fmt.Fprintf(&b, " %s |", rule.Effect)
				continue
			}
			if !slices.Contains(refusals, rule.Reason) {
				refusals = append(refusals, rule.Reason)
			}
			fmt.Fprintf(&b, " refused (%d) |", slices.Index(refusals, rule.Reason)+1)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, r := range refusals {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r)
	}
	b.WriteString("\nPause of a paused job is so already; resume of one that is not paused is refused. Cancel, undo and\nresubmit end a pause. Undo of a Processed job is refused if no step of its workflow has an undo.\nReschedule is refused once an attempt of any step was made. The same request (by its id) twice is one request.\n")
	return b.String()
}

package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the fenced blocks of a language in a document.
func blocks(text, language string) []string {
	var all []string
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		all = append(all, block+"\n")
	}
	return all
}

func TestTheWorkflowsInTheDocsAreWorkflows(t *testing.T) {
	for _, file := range []string{"README.md", "docs/workflow-file.md", "docs/expressions.md", "docs/schedules.md", "docs/two-services.md", "docs/inline.md", "docs/children.md", "docs/maps.md"} {
		found := blocks(read(t, file), "yaml")
		if len(found) == 0 {
			t.Errorf("%s shows no workflow", file)
		}
		for _, source := range found {
			if _, err := workflowfile.Parse(file, []byte(source)); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
}

func TestTheMapOfTheDocsIsTheOneOfTheExample(t *testing.T) {
	if shown, is := blocks(read(t, "docs/maps.md"), "yaml")[0], read(t, "examples/lines/order.yaml"); shown != is {
		t.Errorf("docs/maps.md shows\n%s\nand examples/lines has\n%s", shown, is)
	}
}

// The Go code in the README and in some of docs is code that compiles: it stands in the first program, in an example of the agent kit, or in one of
// the engine or of its client, which are run.
func TestTheCodeInTheREADMECompiles(t *testing.T) {
	source := read(t, "examples/first/main.go") + read(t, "lab/docs/readme_test.go") + read(t, "engine/embed_test.go") + read(t, "client/s3_test.go")
	var found []string
	for _, file := range []string{"README.md", "docs/testing.md", "docs/start-from-s3.md"} {
		code := blocks(read(t, file), "go")
		if len(code) == 0 {
			t.Errorf("%s shows no code", file)
		}
		found = append(found, code...)
	}
	for _, block := range found {
		if !strings.Contains(source, strings.TrimSpace(block)) {
			t.Errorf("this code is in none of them:\n%s", block)
		}
	}
	if first := blocks(read(t, "README.md"), "yaml"); len(first) != 1 || first[0] != read(t, "examples/first/trip.yaml") {
		t.Errorf("the README shows %q, which is not examples/first/trip.yaml alone", first)
	}
}

func TestTheDrawingIsTheSameEverywhere(t *testing.T) {
	drawing := "submit: the intent is stored with its first attempts"
	readme, architecture := read(t, "README.md"), read(t, "docs/architecture.md")
	for _, block := range blocks(readme, "") {
		if strings.Contains(block, drawing) && !strings.Contains(architecture, block) {
			t.Error("README.md and docs/architecture.md draw the engine differently")
		}
	}
}

func TestTheLimitsInTheDocsAreTheLimits(t *testing.T) {
	text := read(t, "docs/workflow-file.md")
	for _, row := range []string{
		fmt.Sprintf("| steps | %d |", limits.MaxSteps),
		fmt.Sprintf("| attempts | %d |", limits.MaxAttempts),
		fmt.Sprintf("| rounds of `restart` | 2 to %d |", limits.MaxRounds),
		fmt.Sprintf("the job waits (%s, unless it says", "10s"),
		fmt.Sprintf("as JSON | %d bytes each |", makegood.MaxPayloadBytes),
		fmt.Sprintf("| lists and objects in one another, in each of them | %d deep |", canonical.MaxDepth),
		fmt.Sprintf("| an evaluation | %d steps of jq, %d bytes read and made |", limits.MaxEvaluationSteps, limits.MaxEvaluationBytes),
		fmt.Sprintf("| what the expressions of a step read of outputs, together | %d bytes of JSON", limits.MaxOutputsBytes),
		fmt.Sprintf("| routes of `onError`, and the output of one | %d, %d bytes |", limits.MaxRoutes, limits.MaxInlineBytes),
		fmt.Sprintf("| repetitions of a step | %d |", limits.MaxRepeats),
		fmt.Sprintf("| places for secrets in the `with` of a step; a secret | %d; %d bytes |", limits.MaxTaskSecrets, limits.MaxSecretBytes),
		fmt.Sprintf("| timeout of a step, and its heartbeat | %s |", limits.MaxTimeout),
		fmt.Sprintf("| timeout of a step that has a heartbeat | %s |", limits.MaxClaim),
		fmt.Sprintf("| startBy | %s |", limits.MaxStartBy),
		fmt.Sprintf("| timeout of a job | %s |", limits.MaxJobTimeout),
		fmt.Sprintf("| backoff, max, wait | %s |", limits.MaxBackoff),
		fmt.Sprintf("| shortest timeout, startBy and wait | %s |", limits.MinTimeout),
		fmt.Sprintf("| the workflow file | %d bytes |", workflowfile.MaxSourceBytes),
		fmt.Sprintf("1 to %d |", makegood.MaxJobIDBytes),
		fmt.Sprintf("backoff: %v, max: %v", "1s", "1m"),
	} {
		if !strings.Contains(text, row) {
			t.Errorf("docs/workflow-file.md does not say %q", row)
		}
	}
}

// maxClaimLines is how many lines an agent in another language needs to claim.
const maxClaimLines = 15

// What docs/messages.md shows is what the agent in Python does.
func TestTheClaimInTheDocsIsThatOfTheAgentInPython(t *testing.T) {
	source := read(t, "examples/python-agent/agent.py")
	shown := 0
	for _, block := range blocks(read(t, "docs/messages.md"), "python") {
		if !strings.HasPrefix(block, "def claim(") {
			continue
		}
		shown++
		if !strings.Contains(source, block) {
			t.Errorf("this code of docs/messages.md is not in agent.py:\n%s", block)
		}
		if lines := strings.Count(block, "\n"); lines > maxClaimLines {
			t.Errorf("the claim has %d lines, want %d at most", lines, maxClaimLines)
		}
	}
	if shown != 1 {
		t.Errorf("docs/messages.md shows %d claims, want one", shown)
	}
}

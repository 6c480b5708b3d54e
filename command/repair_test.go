package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// stockBankPost are the agents of docs/repair.md: the post knows no such address, the account is closed when it is to be paid
// back, and the courier takes parcel-4 and does not come back.
func stockBankPost() []agent.Handler {
	type nothing struct{}
	ok := func(context.Context, nothing) (nothing, error) { return nothing{}, nil }
	undone := func(context.Context, nothing, *nothing) error { return nil }
	return []agent.Handler{
		agent.New("stock", agent.Do("reserve", ok).Undo("release", undone), agent.Do("weigh", ok)),
		agent.New("bank", agent.Do("charge", ok).Undo("refund", func(context.Context, nothing, *nothing) error {
			return agent.Final(errors.New("the account is closed"))
		})),
		agent.New("courier", agent.Do("ship", func(ctx context.Context, _ nothing) (nothing, error) {
			if agent.TaskOf(ctx).Job == "parcel-4" {
				<-ctx.Done()
				return nothing{}, context.Cause(ctx)
			}
			return nothing{}, nil
		})),
		agent.New("post", agent.Do("ship", func(context.Context, nothing) (nothing, error) {
			return nothing{}, agent.Final(agent.NotApplied(errors.New("no such address")))
		})),
	}
}

// docBlocks are the fenced blocks of a page, by their language.
func docBlocks(t *testing.T, page, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	must(t, err)
	for _, block := range strings.Split(string(text), "```"+language+"\n")[1:] {
		body, _, _ := strings.Cut(block, "```")
		all = append(all, body)
	}
	return all
}

// shellWords splits a command as a shell does, as far as the page needs it.
func shellWords(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// What docs/repair.md shows happens as it says: each command is run, and prints the lines that stand below it, among others.
func TestThePageOnRepair(t *testing.T) {
	engine, err := embedded.Open(t.Context(), embedded.Config{Agents: stockBankPost()})
	must(t, err)
	workflows := docBlocks(t, "repair.md", "yaml")
	define := func(source string) {
		c, err := workflowfile.Parse("workflow.yaml", []byte(source))
		must(t, err)
		must(t, engine.Define(t.Context(), c))
	}
	define(workflows[0])
	define(workflows[1])
	url := runs(t, engine)
	submit := func(workflow, id string) {
		_, _, err := engine.SubmitCurrent(t.Context(), workflow, scheduler.Submission{ID: id, Input: json.RawMessage("{}")})
		must(t, err)
	}
	for id, workflow := range map[string]string{"order-17": "order", "parcel-3": "parcel"} {
		submit(workflow, id)
		if code, out, stderr := ask(t, "watch", id, "--addr", url); code != codeOtherwise || !strings.Contains(out, string(makegood.JobError)) {
			t.Fatalf("watch: %d, %s%s", code, out, stderr)
		}
	}
	define(workflows[2])
	submit("parcel", "parcel-4")
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		_, out, _ := ask(t, "get", "parcel-4", "--addr", url)
		if strings.Contains(out, "ship     claimed") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody ships parcel-4: %s", out)
		}
	}
	for _, block := range docBlocks(t, "repair.md", "console") {
		out := ""
		for line := range strings.Lines(block) {
			line = strings.TrimRight(line, "\n")
			if command, is := strings.CutPrefix(line, "$ makegood "); is {
				code, stdout, stderr := ask(t, append(shellWords(command), "--addr", url)...)
				if out = stdout + stderr; code == codeUsage || code == codeFailed {
					t.Fatalf("%s: %d, %s", line, code, out)
				}
				continue
			}
			if !strings.Contains(out, line) {
				t.Errorf("the page shows\n%s\nand there is\n%s", line, out)
			}
		}
	}
}

// What is refused says why, and changes nothing.
func TestWhatCannotBeSettledIsSaid(t *testing.T) {
	_, url := waitingFor(t, "a")
	at := func(args ...string) []string { return append(args, "--addr", url) }
	wants(t, codeUsage, "at least one of the flags in the group [done skipped not-done] is required", at("settle", "a", "approve")...)
	wants(t, codeUsage, "--skipped needs a --reason", at("settle", "a", "approve", "--skipped")...)
	wants(t, codeUsage, "--round -1: want 1 or more", at("settle", "a", "approve", "--done", "--round", "-1")...)
	wants(t, codeUsage, "takes a JOB and a STEP, got 1 arguments", at("settle", "a", "--done")...)
	wants(t, codeUsage, "one of these answers, a text: \"approve\", \"reject\"", at("settle", "a", "approve", "--done")...)
	wants(t, codeUsage, "undo of step approve: the job is P", at("settle", "a", "approve", "--done", "--undo")...)
	wants(t, 0, "approve", "__complete", "settle", "--addr", url, "a", "")
	wants(t, 0, "a  approvals  Processed  [approve skipped]", at("settle", "a", "approve", "--skipped", "--reason", "not needed")...)
	wants(t, 0, "approve  skipped, attempt 1, settled by "+userAtHost()+" at 2", at("get", "a")...)
	wants(t, 0, "a  approvals  Processed", at("settle", "a", "approve", "--skipped", "--reason", "not needed")...)
	wants(t, codeUsage, "refused: step approve was settled as skipped by "+userAtHost()+" at 2", at("settle", "a", "approve", "--done", "--output", `"approve"`)...)
	wants(t, codeUsage, "there is no step no", at("settle", "a", "no", "--done")...)
}

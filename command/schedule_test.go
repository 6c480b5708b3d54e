package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/api"
)

// scheduling is the API of an engine that does not run, and knows a workflow with a schedule in its file.
func scheduling(t *testing.T) (url string) {
	t.Helper()
	return serves(t, idle(t, t.TempDir()), "name: x\nsteps: [{name: a, agent: deaf}]\nschedules: [{name: weekly, cron: \"@weekly\"}]\n")
}

// The life of a schedule at a terminal.
func TestASchedulesVerbs(t *testing.T) {
	url := scheduling(t)
	for _, step := range []struct {
		line string
		code int
		says string // on standard output, or on standard error where it fails
	}{
		{"list", 0, "weekly  x         @weekly UTC"},
		{"create nightly --workflow x --cron '30 2 * * *' --zone Europe/Berlin", 0, "schedule nightly of workflow x: 30 2 * * * Europe/Berlin"},
		{"create nightly --workflow x --cron '30 2 * * *' --zone Europe/Berlin", 0, "missed one, overlap allow, 0 left out so far"},
		{"create nightly --workflow x --cron @daily", codeUsage, "--replace puts this one in its place"},
		{"create nightly --workflow x --every 15m --overlap skip --replace", 0, "schedule nightly of workflow x: every 15m"},
		{"create other --workflow x --cron @noon", codeUsage, `cron "@noon"`},
		{"create other --workflow nobody --cron @daily", codeUsage, `there is no workflow "nobody"`},
		{"create other --cron @daily", codeUsage, "schedule create needs --workflow"},
		{"create other --workflow x --cron @daily --input {", codeUsage, "--input"},
		{"create weekly --workflow x --cron @daily --replace", codeUsage, "it comes from the file of workflow x, so change it there"},
		{"pause nightly", 0, "next fire   paused"},
		{"get nightly", 0, "next fire   paused"},
		{"resume nightly", 0, "next fire   2"},
		{"run nightly", 0, "nightly:run:"},
		{"get weekly", 0, "from the file of workflow x: change it there"},
		{"rm nightly", 0, "schedule nightly is gone"},
		{"rm nightly", codeUsage, "there is no such schedule; `makegood schedule list --addr"},
		{"get nightly", codeUsage, "there is no such schedule"},
		{"next nightly", codeUsage, "there is no such schedule"},
		{"next weekly --count 0", codeUsage, `count is "0": want 1 to 200`},
	} {
		args := append([]string{"schedule"}, words(step.line)...)
		code, out, stderr := ask(t, append(args, "--addr", url)...)
		said := out
		if step.code != 0 {
			said = stderr
		}
		if code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("%s: got %d and\n%s%swant %d and %q", step.line, code, out, stderr, step.code, step.says)
		}
	}
	for line, says := range map[string]string{"schedule": "schedule needs a word", "schedule drop x": `schedule knows no "drop"`} {
		if code, _, stderr := ask(t, words(line)...); code != codeUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: got %d and %s", line, code, stderr)
		}
	}
}

// words splits a line as a shell would, with single quotes.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

func TestSchedulesInJSON(t *testing.T) {
	url := scheduling(t)
	var list struct{ Schedules []api.Scheduled }
	_, out, _ := ask(t, "schedule", "list", "--json", "--addr", url)
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Schedules) != 1 || list.Schedules[0].Name != "weekly" || list.Schedules[0].From != "x" {
		t.Errorf("list: got %s, %v", out, err)
	}
	var next struct{ Fires []time.Time }
	_, out, _ = ask(t, "schedule", "next", "weekly", "--json", "--addr", url)
	if err := json.Unmarshal([]byte(out), &next); err != nil || len(next.Fires) != 10 || next.Fires[9].Sub(next.Fires[0]) != 9*7*24*time.Hour {
		t.Errorf("next: got %s, %v, want ten weeks", out, err)
	}
	var run struct{ Job string }
	_, out, _ = ask(t, "schedule", "run", "weekly", "--json", "--addr", url)
	if err := json.Unmarshal([]byte(out), &run); err != nil || !strings.HasPrefix(run.Job, "weekly:run:") {
		t.Errorf("run: got %s, %v", out, err)
	}
	if code, out, _ := ask(t, "get", run.Job, "--addr", url); code != 0 && code != codeOtherwise || !strings.Contains(out, run.Job) {
		t.Errorf("the job of the run: got %d, %s", code, out)
	}
	_, out, said := ask(t, "schedule", "rm", "weekly", "--json", "--addr", url)
	if !strings.Contains(said, "the file of workflow x says it still, and brings it back when it is loaded again") {
		t.Errorf("of a schedule of a file that was removed it says %q", said)
	}
	if out != `{"removed":"weekly"}`+"\n" {
		t.Errorf("rm: got %s", out)
	}
}

package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/sizing"
)

func TestPlanSaysHowLargeAStackMustBe(t *testing.T) {
	code, out, errs := command(t, "", "plan", "--jobs-per-second", "500", "--steps", "5")
	if code != 0 || errs != "" {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, want := range []string{
		"500 jobs/s of 5 steps (queue), each message alone: 2,500 steps/s", "index CompleteBy",
		`make deploy PARAMETERS="Shards=16 EventsConcurrency=250 WarmWrites=6000", with the parameters that the stack has`, "Concurrency of each agent in the template: 250",
		"Lambda: concurrent executions (L-B99A9384)", "120,000", "$ a million steps; prices of us-east-1", "; all month at the peak: --average says otherwise\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

func TestPlanInJSONIsTheSizeOfTheLoad(t *testing.T) {
	args := []string{
		"plan", "--json", "--jobs-per-second", "20", "--average", "0.5", "--steps", "7", "--waits", "1", "--batched", "--payload", "1024", "--step-seconds", "0.5",
		"--slow-share", "0.25", "--items", "300", "--batch", "10", "--agents", "2", "--agent-memory", "512", "--retention-days", "10",
	}
	code, out, errs := command(t, "", args...)
	var got sizing.Size
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatalf("code %d, %v: %s", code, err, errs)
	}
	want := sizing.Load{
		JobsPerSecond: 20, Average: 0.5, Steps: 7, Way: sizing.Queue, Batched: true, PayloadBytes: 1024, StepSeconds: 0.5, AgentMB: 512, Agents: 2, SlowShare: 0.25, Items: 300, ItemsTogether: 10,
		Waits: 1, RetentionDays: 10,
	}
	if got.Load != want || got.Total != sizing.Of(want).Total {
		t.Errorf("got %+v", got)
	}
}

func TestPlanSaysAtWhatShareOfThePeakTheMonthIs(t *testing.T) {
	if _, out, _ := command(t, "", "plan", "--jobs-per-second", "500", "--average", "0.3"); !strings.HasSuffix(out, "; the month is at 0.3 of the peak\n") {
		t.Errorf("got %s", out)
	}
}

func TestEachWayOfAPlanIsExplained(t *testing.T) {
	for _, way := range sizing.Ways()[1:] {
		if wayUsage[way] == "" {
			t.Errorf("the flag --%s has no explanation", way)
		}
	}
}

func TestPlanOfInlineSteps(t *testing.T) {
	code, out, _ := command(t, "", "plan", "--jobs-per-second", "500", "--inline")
	if code != 0 || !strings.Contains(out, "(inline)") || strings.Contains(out, "Concurrency of each agent") {
		t.Errorf("code %d:\n%s", code, out)
	}
}

func TestPlanOfAMap(t *testing.T) {
	const asked = "plan --jobs-per-second 0.1 --steps 2 --items 1000 --batch 10"
	code, out, _ := command(t, "", strings.Fields(asked)...)
	page, err := os.ReadFile("../docs/scale.md")
	must(t, err)
	if code != 0 || !strings.Contains(string(page), "```console\n$ makegood "+asked+"\n"+out+"```\n") {
		t.Errorf("code %d, and docs/scale.md does not show\n%s", code, out)
	}
}

func TestPlanRefusesWhatNoStackHas(t *testing.T) {
	for args, want := range map[string]string{
		"":                                        `required flag(s) "jobs-per-second" not set`,
		"--jobs-per-second 0":                     "--jobs-per-second 0: want more than 0, and at most 100000",
		"--jobs-per-second 1 --steps 201":         "--steps 201: want 1 to 200",
		"--jobs-per-second 1 --steps 0":           "--steps 0: want 1 to 200",
		"--jobs-per-second 1 --items 100001":      "--items 100001: want 0 to 100000",
		"--jobs-per-second 1 --batch 51":          "--batch 51: want 1 to 50",
		"--jobs-per-second 1 --payload 300000":    "--payload 300000: want 0 to 262144 bytes",
		"--jobs-per-second 1 --agent-memory 1":    "--agent-memory 1: want 128 to 10240",
		"--jobs-per-second 1 --retention-days -1": "--retention-days -1: want 1 to 3650",
		"--jobs-per-second 1 order-17":            "plan takes flags only, got order-17",
	} {
		if code, out, errs := command(t, "", append([]string{"plan"}, strings.Fields(args)...)...); code != codeUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("plan %s: code %d, %q, want %q", args, code, errs, want)
		}
	}
	code, out, errs := command(t, "", "plan", "--jobs-per-second", "20000")
	if code != codeOtherwise || !strings.Contains(errs, "does not fit into one stack: the Scheduler needs") || !strings.Contains(out, "A MONTH") {
		t.Errorf("code %d: %s", code, errs)
	}
}

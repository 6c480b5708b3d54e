package main

import (
	"slices"
	"testing"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

func TestTheWorkflowsThatArePublishedAreGood(t *testing.T) {
	for name, text := range map[string]string{"order.yaml": orderFor("https://shop.example"), "hops.yaml": hopsFor("https://shop.example")} {
		c, err := workflowfile.Parse(name, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Workflow.Name == "hops" && len(c.Workflow.Steps) != steps {
			t.Errorf("hops has %d steps, want %d", len(c.Workflow.Steps), steps)
		}
	}
}

func TestARoleThatMayTooMuchIsFound(t *testing.T) {
	answers := make([]map[string]string, 3)
	for i := range answers {
		answers[i] = map[string]string{}
		for try, roles := range may() {
			answers[i][try] = "denied"
			if roles[i] {
				answers[i][try] = "allowed"
			}
		}
	}
	if _, wrong := compared(answers, may()); len(wrong) > 0 {
		t.Errorf("with answers as they should be: %v", wrong)
	}
	answers[1]["read a job"], answers[2]["send an event"] = "allowed", "denied"
	delete(answers[0], "claim")
	if _, wrong := compared(answers, may()); len(wrong) != 3 {
		t.Errorf("got %v, want three complaints", wrong)
	}
}

func TestWhoOwnsAStackIsInItsARN(t *testing.T) {
	partition, account, err := owner("arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/makegood-verify/1b2c")
	if partition != "aws-cn" || account != "123456789012" || err != nil {
		t.Errorf("got %s, %s, %v", partition, account, err)
	}
	if _, _, err := owner("makegood-verify"); err == nil {
		t.Error("want an error for what is no ARN")
	}
}

func TestFortunateOrdersAreAsManyAsAsked(t *testing.T) {
	if got := fortunate("chain", chains); len(got) != chains {
		t.Errorf("got %d, want %d: %v", len(got), chains, got)
	}
}

// What is verified on an account is what prod deploys: each of its parameters, as samconfig.toml has them.
func TestWhatIsDeployedIsWhatProdDeploys(t *testing.T) {
	t.Chdir("../..")
	got, err := (&world{shop: "https://shop.example"}).parameters()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DeletionProtection=yes", "RetentionDays=90", "Tracing=Active", "Shop=https://shop.example"} {
		if !slices.Contains(got, want) {
			t.Errorf("got %v, want %s among them", got, want)
		}
	}
}

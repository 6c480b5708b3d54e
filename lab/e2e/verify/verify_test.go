package main

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/e2e/verify/probed"
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
		for try, roles := range probed.May() {
			answers[i][try] = "denied"
			if roles[i] {
				answers[i][try] = "allowed"
			}
		}
	}
	if _, wrong := compared(answers, probed.May()); len(wrong) > 0 {
		t.Errorf("with answers as they should be: %v", wrong)
	}
	answers[1]["read a job"], answers[2]["send an event"] = "allowed", "denied"
	delete(answers[0], "claim")
	if _, wrong := compared(answers, probed.May()); len(wrong) != 3 {
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
	t.Chdir("../../..")
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

// statement is one of a policy, but for its resource.
type statement struct {
	Effect, Action string
	Condition      map[string]map[string]string
}

// What the knockers may is what the page tells people to grant.
func TestTheKnockersHaveThePolicyOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/doors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```json\n")
	block, _, _ = strings.Cut(block, "```")
	var policy struct{ Statement []statement }
	if err := json.Unmarshal([]byte(block), &policy); err != nil || len(policy.Statement) != 3 {
		t.Fatalf("got %+v, %v, want the three statements of the page", policy, err)
	}
	source, err := os.ReadFile("knockers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]struct {
			Properties struct {
				Policies []struct {
					Statement []struct {
						Effect    string                       `yaml:"Effect"`
						Action    string                       `yaml:"Action"`
						Resource  string                       `yaml:"Resource"`
						Condition map[string]map[string]string `yaml:"Condition"`
					} `yaml:"Statement"`
				} `yaml:"Policies"`
			} `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(source, &template); err != nil {
		t.Fatal(err)
	}
	for knocker, door := range map[string]string{"Submitter": "submit", "Reader": "read", "Operator": "operate"} {
		given := template.Resources[knocker].Properties.Policies[0].Statement
		if len(given) != 2 {
			t.Fatalf("%s has %d statements, want those on its door", knocker, len(given))
		}
		for i, s := range given {
			// The third is how a door is found; the knocker is told.
			if got := (statement{s.Effect, s.Action, s.Condition}); !reflect.DeepEqual(got, policy.Statement[i]) {
				t.Errorf("%s: got %+v, the page has %+v", knocker, got, policy.Statement[i])
			}
			if !strings.HasSuffix(s.Resource, ":function:${Stack}-"+door) {
				t.Errorf("%s may knock at %s, want %s", knocker, s.Resource, door)
			}
		}
	}
	if len(mayKnock()) != 6 {
		t.Errorf("got %d tries, want each door, and each past its URL", len(mayKnock()))
	}
}

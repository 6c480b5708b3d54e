package template

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// The policy that docs/fence.md shows allows what the fence's check asks for, and nothing else of the table; the template
// gives it to nobody.
func TestThePolicyOfTheFenceAllowsTheCheckAndNoMore(t *testing.T) {
	_, rest, _ := strings.Cut(readFile(t, "../../docs/fence.md"), "```json\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/fence.md shows no policy")
	}
	var shown struct{ Statement []map[string]any }
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Statement) == 0 || at(shown.Statement[0], "Sid") != "CheckClaim" {
		t.Fatalf("want the check first, got %v", shown.Statement)
	}
	statement := shown.Statement[0]
	check := dynamostore.HoldsCheck("jobs", store.Slot{Agent: "accounts", Job: "a", Birth: "b", Step: "book"}, 2, "me").ConditionCheck
	asked := request{
		operation: "ConditionCheckItem", ConditionExpression: aws.ToString(check.ConditionExpression),
		ExpressionAttributeNames: check.ExpressionAttributeNames, Key: map[string]map[string]string{"PK": {"S": "claim#accounts#a"}, "SK": {}},
	}
	if actions := texts(at(statement, "Action")); len(actions) != 1 || actions[0] != asked.ask().action {
		t.Errorf("the policy allows %v, want %s alone", actions, asked.ask().action)
	}
	if !asked.ask().meets(at(statement, "Condition")) {
		t.Errorf("the policy does not allow the check, which names %v", asked.attributes())
	}
	for what, other := range map[string]ask{
		"another agent's claim":           onTable("ConditionCheckItem", "claim#payments#a", "PK", "SK", "Attempt"),
		"an agent's whose name begins so": onTable("ConditionCheckItem", "claim#accounts2#a", "PK"),
		"a job":                           onTable("ConditionCheckItem", "job#a", "PK", "SK"),
		"an attribute":                    onTable("ConditionCheckItem", "claim#accounts#a", "PK", "Progress"),
		"a key missing":                   {action: "dynamodb:ConditionCheckItem", resource: "${Table.Arn}", keys: map[string][]string{}},
	} {
		if other.meets(at(statement, "Condition")) {
			t.Errorf("the policy allows a check of %s", what)
		}
	}
	whole := load(t, withAgent(t, readFile(t, templateFile), "accounts"))
	if whole.may("accountsAgentRole", asked.ask()) {
		t.Error("the template gives the check to every agent")
	}
}

// The agents of other languages write the check themselves, from the same page.
func TestTheCheckInPythonIsTheOneInGo(t *testing.T) {
	check := dynamostore.HoldsCheck("jobs", store.Slot{Agent: "accounts", Job: "a", Birth: "b", Step: "book"}, 2, "me").ConditionCheck
	condition := aws.ToString(check.ConditionExpression)
	for alias, name := range check.ExpressionAttributeNames {
		condition = strings.ReplaceAll(condition, alias, name)
	}
	page := readFile(t, "../../docs/fence.md")
	for _, want := range []string{`"ConditionExpression": "` + condition + `"`, `f"claim#{task.agent}#{task.job}"`, `f"{task.birth}#{task.step}"`} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/fence.md does not say %s", want)
		}
	}
	for value := range check.ExpressionAttributeValues {
		if !strings.Contains(page, `"`+value+`": `) {
			t.Errorf("docs/fence.md gives no value for %s", value)
		}
	}
}

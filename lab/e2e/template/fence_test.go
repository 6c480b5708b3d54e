package template

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/thief"
)

// The policy that docs/fence.md shows allows what the fence's check asks for, and nothing else of the table; the template
// gives it to nobody.
func TestThePolicyOfTheFenceAllowsTheCheckAndNoMore(t *testing.T) {
	whole := load(t, withAgent(t, readFile(t, templateFile), "accounts"))
	policies := whole.policies()
	if err := policies.Shown("fence", readFile(t, "../../../docs/fence.md"), "### The right that it needs"); err != nil {
		t.Fatal(err)
	}
	check := dynamostore.HoldsCheck(thief.World().Names["Table"], store.Slot{Agent: "accounts", Job: "a", Birth: "b", Step: "book"}, 2, "me")
	d := &table{policies: policies}
	server := httptest.NewServer(d)
	defer server.Close()
	db := dynamodb.New(dynamodb.Options{
		Region: thief.World().Region, BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	_, _ = db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{check}})
	if len(d.asked) == 0 || d.asked[0].Action != "dynamodb:ConditionCheckItem" {
		t.Fatalf("got %v, want the check", d.asked)
	}
	if !policies.May("fence", d.asked[0]) {
		t.Errorf("the policy does not allow %s", d.asked[0])
	}
	if policies.May("accountsAgentRole", d.asked[0]) {
		t.Error("the template gives the check to every agent")
	}
	for what, other := range map[string]iam.Ask{
		"another agent's claim":           onTable("ConditionCheckItem", "claim#payments#a", "PK", "SK", "Attempt"),
		"an agent's whose name begins so": onTable("ConditionCheckItem", "claim#accounts2#a", "PK"),
		"a job":                           onTable("ConditionCheckItem", "job#a", "PK", "SK"),
		"an attribute":                    onTable("ConditionCheckItem", "claim#accounts#a", "PK", "Progress"),
		"a key missing":                   onTable("ConditionCheckItem", ""),
	} {
		if other.Keys["dynamodb:LeadingKeys"][0] == "" {
			other.Keys = nil
		}
		if policies.May("fence", other) {
			t.Errorf("the policy allows a check of %s", what)
		}
	}
}

// The agents of other languages write the check themselves, from the same page.
func TestTheCheckInPythonIsTheOneInGo(t *testing.T) {
	check := dynamostore.HoldsCheck("jobs", store.Slot{Agent: "accounts", Job: "a", Birth: "b", Step: "book"}, 2, "me").ConditionCheck
	condition := aws.ToString(check.ConditionExpression)
	for alias, name := range check.ExpressionAttributeNames {
		condition = strings.ReplaceAll(condition, alias, name)
	}
	page := readFile(t, "../../../docs/fence.md")
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

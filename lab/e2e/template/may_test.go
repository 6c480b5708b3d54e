package template

import (
	"context"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
	"github.com/makegood-dev/makegood/lab/thief"
)

// policies are those of a template's roles, in the stack of thieves.
func (t *template) policies() *iam.Policies {
	p, err := iam.Load(t.Text, everything(), thief.World())
	if err != nil {
		panic(err) // It was loaded before.
	}
	return p
}

// onTable is a request for an item of the table that names these of its attributes.
func onTable(action, leadingKey string, attributes ...string) iam.Ask {
	w := thief.World()
	return iam.Ask{Action: "dynamodb:" + action, Resource: "arn:aws:dynamodb:" + w.Region + ":" + w.Account + ":table/" + w.Names["Table"], Keys: map[string][]string{
		"dynamodb:LeadingKeys": {leadingKey}, "dynamodb:Attributes": attributes,
	}}
}

// checkTries: each role may do what is said of it, and no more.
func checkTries(t *template) []string {
	return thief.Wrong(context.Background(), t.policies())
}

// What the Supervisor's role may read of all jobs is what the audit asks of them.
func TestTheSupervisorMayReadWhatItsAuditAsks(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	for _, s := range whole.Statements(supervisorRole) {
		granted := stackfile.Texts(stackfile.At(s, "Condition", "ForAllValues:StringEquals", "dynamodb:Attributes"))
		if stackfile.Texts(stackfile.At(s, "Action"))[0] == "dynamodb:Scan" && !slices.Equal(granted, dynamostore.AuditedAttributes()) {
			t.Errorf("it may read %v, want %v", granted, dynamostore.AuditedAttributes())
		}
	}
}

// What one agent may do another may do with its own name, and only that.
func TestAnAgentMayTouchItsOwnClaimsOnly(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	policies := whole.policies()
	for _, agent := range whole.agents() {
		for _, other := range whole.agents() {
			for _, action := range []string{"UpdateItem", "GetItem"} {
				if got := policies.May(agent+"AgentRole", onTable(action, "claim#"+other+"#order-1", "PK", "SK")); got != (agent == other) {
					t.Errorf("agent %s may %s a claim of %s: %v", agent, action, other, got)
				}
			}
		}
	}
}

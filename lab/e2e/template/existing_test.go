package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// Where a table is given, the stack makes none, and nothing may speak of that one: CloudFormation would refuse a
// reference to it. Functions, roles, alarms and outputs all name the one that is given.
func TestAStackWithAnExistingTableSpeaksOfThatAlone(t *testing.T) {
	parameters := everything()
	parameters["ExistingTable"] = "restored"
	whole, err := parse(readFile(t, templateFile), parameters)
	if err != nil {
		t.Fatal(err)
	}
	if made := stackfile.Text(whole.Resources["Table"].Attributes["Condition"]); made != "MakesTable" || whole.Conditions["MakesTable"] {
		t.Errorf("the table is made under the condition %q, which is %t", made, whole.Conditions["MakesTable"])
	}
	speaks := map[string]string{"the outputs": fmt.Sprint(whole.Outputs), "the globals": fmt.Sprint(whole.Globals)}
	for name, r := range whole.Resources {
		speaks[name] = fmt.Sprint(r.Properties)
	}
	for _, name := range slices.Sorted(maps.Keys(speaks)) {
		if strings.Contains(speaks[name], "${Table}") || strings.Contains(speaks[name], "${Table.") {
			t.Errorf("%s speaks of the table that is not made: %s", name, speaks[name])
		}
	}
	if got := stackfile.Text(stackfile.At(whole.Outputs, "TableName", "Value")); got != "restored" {
		t.Errorf("the output TableName is %q", got)
	}
	const arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"
	for role, on := range map[string]string{"SchedulerRole": arn, "paymentsAgentRole": arn, "SupervisorRole": arn + "/index/CompleteBy"} {
		if !strings.Contains(speaks[role], on) {
			t.Errorf("%s may not use %s", role, on)
		}
	}
}

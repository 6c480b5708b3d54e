package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
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
	if made := text(whole.resources["Table"].attributes["Condition"]); made != "MakesTable" || whole.conditions["MakesTable"] {
		t.Errorf("the table is made under the condition %q, which is %t", made, whole.conditions["MakesTable"])
	}
	speaks := map[string]string{"the outputs": fmt.Sprint(whole.outputs), "the globals": fmt.Sprint(whole.globals)}
	for name, r := range whole.resources {
		speaks[name] = fmt.Sprint(r.properties)
	}
	for _, name := range slices.Sorted(maps.Keys(speaks)) {
		if strings.Contains(speaks[name], "${Table}") || strings.Contains(speaks[name], "${Table.") {
			t.Errorf("%s speaks of the table that is not made: %s", name, speaks[name])
		}
	}
	if got := text(at(whole.outputs, "TableName", "Value")); got != "restored" {
		t.Errorf("the output TableName is %q", got)
	}
	const arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"
	for role, on := range map[string]string{"SchedulerRole": arn, "paymentsAgentRole": arn, "SupervisorRole": arn + "/index/CompleteBy"} {
		if !strings.Contains(speaks[role], on) {
			t.Errorf("%s may not use %s", role, on)
		}
	}
}

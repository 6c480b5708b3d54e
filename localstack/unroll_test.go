package localstack

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestALoopIsWrittenOutForEachName(t *testing.T) {
	const looped = `
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Metadata: {Agents: &agents [payments, http]}
Mappings: {Agents: {payments: {Time: 5}}}
Resources:
  Fn::ForEach::Agents:
    - Agent
    - *agents
    - "${Agent}Queue":
        Name: !Sub "${AWS::StackName}-${Agent}"
        Arn: {"Fn::GetAtt": [!Sub "${Agent}DeadQueue", Arn]}
        Size: !FindInMap [Agents, !Ref Agent, Size]
        Time: !FindInMap [Agents, !Ref Agent, Time, {DefaultValue: 9}]
  Table: {Type: !Ref Agent}
`
	const want = `
Transform: [AWS::Serverless-2016-10-31]
Metadata: {Agents: [payments, http]}
Mappings: {Agents: {payments: {Time: 5}}}
Resources:
  paymentsQueue:
    Name: !Sub "${AWS::StackName}-payments"
    Arn: {"Fn::GetAtt": [paymentsDeadQueue, Arn]}
    Size: !FindInMap [Agents, payments, Size]
    Time: 5
  httpQueue:
    Name: !Sub "${AWS::StackName}-http"
    Arn: {"Fn::GetAtt": [httpDeadQueue, Arn]}
    Size: !FindInMap [Agents, http, Size]
    Time: 9
  Table: {Type: !Ref Agent}
`
	got, err := Unroll([]byte(looped))
	if err != nil {
		t.Fatal(err)
	}
	if plain(t, got) != plain(t, []byte(want)) {
		t.Errorf("got\n%s\nwant\n%s", plain(t, got), plain(t, []byte(want)))
	}
}

// plain writes a template in one way, however it was written.
func plain(t *testing.T, template []byte) string {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(template, &n); err != nil {
		t.Fatal(err)
	}
	var write func(n *yaml.Node) string
	write = func(n *yaml.Node) string {
		var parts []string
		for _, child := range n.Content {
			parts = append(parts, write(child))
		}
		return n.Tag + " " + n.Value + "(" + strings.Join(parts, ", ") + ")\n"
	}
	return write(&n)
}

func TestNoLoopIsLeftInTheTemplate(t *testing.T) {
	template, err := os.ReadFile("../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unroll(template)
	if err != nil {
		t.Fatal(err)
	}
	loops := regexp.MustCompile(`Fn::ForEach|AWS::LanguageExtensions|\$\{(Agent|Queue)\}|!Ref (Agent|Queue)\b`)
	if found := loops.FindAll(template, -1); len(found) < 10 {
		t.Errorf("template.yaml has %q, and what is to be written out?", found)
	}
	for _, left := range loops.FindAll(got, -1) {
		t.Errorf("%s is left", left)
	}
	for _, name := range []string{"inventoryAgent:", "httpTasksQueue:", "EventsQueuePolicy:", "shippingDeadQueue:"} {
		if strings.Count(string(got), "\n  "+name+"\n") != 1 {
			t.Errorf("%s is there %d times, want it once", name, strings.Count(string(got), "\n  "+name+"\n"))
		}
	}
}

func TestALoopThatIsNotKnownIsRefused(t *testing.T) {
	for _, wrong := range []string{
		"R: {'Fn::ForEach::A': [x, !Ref Names, {'${x}Q': 1}]}",
		"R: {'Fn::ForEach::A': [x, [!Ref Name], {'${x}Q': 1}]}",
		"R: {'Fn::ForEach::A': [x, [a], {'Fn::ForEach::B': [y, [b], {'${y}Q': 1}]}]}",
		"R: {'Fn::ForEach::A': x}",
		"[]",
	} {
		if got, err := Unroll([]byte(wrong)); err == nil {
			t.Errorf("%s: got %s, want it refused", wrong, got)
		}
	}
}

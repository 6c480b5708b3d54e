package workflowfile

import (
	"strings"
	"testing"
)

// anAgent may be asked for anything.
type anAgent string

func (a anAgent) Name() string { return string(a) }

// warehouse knows its actions: reserve and count, and release, which undoes.
type warehouse struct{}

func (warehouse) Name() string            { return "warehouse" }
func (warehouse) Actions() []string       { return []string{"count", "release", "reserve"} }
func (warehouse) Undoes(name string) bool { return name == "release" }

func TestAnActionThatItsAgentDoesNotHaveIsRefusedWithTheNearest(t *testing.T) {
	for yaml, want := range map[string]string{
		"steps: [{name: reserve, agent: warehouse, undo: {action: release}}]":                                "",
		"steps: [{name: a, agent: warehouse, action: count, undo: {action: reserve}}]":                       "",
		"steps: [{name: a, agent: http, with: {url: 'http://x'}, action: anything}]":                         "",
		"steps: [{name: reserve, agent: warehouse, undo: {action: relaese}}]":                                `f:2: agent warehouse has no action "relaese": did you mean "release"?`,
		"steps: [{name: pay, agent: warehouse}]":                                                             `f:2: agent warehouse has no action "pay": known are count, release, reserve`,
		"steps: [{name: release, agent: warehouse}]":                                                         `f:2: action "release" of agent warehouse undoes: it cannot be a step of its own`,
		"steps: [{name: reserve, agent: warehuose}]":                                                         `f:2: no agent "warehuose": did you mean "warehouse"?`,
		"steps: [{name: a, agent: http, with: {url: 'http://x'}, undo: {agent: warehouse, action: refund}}]": `f:2: agent warehouse has no action "refund": known are count, release, reserve`,
	} {
		_, err := Parse("f", []byte("name: x\n"+yaml), WithAgents(warehouse{}))
		if got := text(err); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", yaml, got, want)
		}
	}
}

// What a program does not link it does not know.
func TestOfAnAgentThatIsNotLinkedAnyActionMayBeNamed(t *testing.T) {
	const other = "name: x\nsteps: [{name: fly, agent: airline}, {name: pay, agent: warehouse}]"
	_, err := Parse("f", []byte(other), WithActionsOf(warehouse{}))
	if got, want := text(err), `f:2: agent warehouse has no action "pay": known are count, release, reserve`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestACompiledWorkflowIsCheckedAgainstAnEnginesAgents(t *testing.T) {
	c, err := Parse("f", []byte("name: x\nsteps: [{name: reserve, agent: warehouse, undo: {action: relaese}}, {name: a, agent: http, with: {url: 'http://x'}}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := `workflow x: steps[0].undo.action: agent warehouse has no action "relaese": did you mean "release"?` + "\n" +
		`workflow x: steps[1].agent: no agent "http": known are approval, wait, warehouse, workflow`
	if got := text(c.Check(WithExactly(warehouse{}))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnAgentWithoutAQueueIsRefusedAlsoThatOfAnUndo(t *testing.T) {
	c, err := Parse("f", []byte("name: x\nsteps: [{name: a, agent: y, undo: {agent: z, action: u}}, {name: b, agent: y, undo: none}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		agents []string
		want   string
	}{
		{nil, ""},
		{[]string{"z", "y"}, ""},
		{[]string{"y"}, "workflow x, step a: the agent z has no queue here; those that have one are [y]"},
		{[]string{"z"}, "workflow x, step a: the agent y has no queue here; those that have one are [z]"},
	} {
		if got := text(c.CheckQueues(r.agents)); got != r.want {
			t.Errorf("%v: got %s, want %s", r.agents, got, r.want)
		}
	}
	if got := strings.Join(c.Agents(), " "); got != "y z" {
		t.Errorf("got the agents %s, want each once", got)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

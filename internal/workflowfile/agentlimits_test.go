package workflowfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
)

// A file of limits is right, or refused with each mistake at its line.
func TestAFileOfLimitsIsRefusedWithEachMistakeAtItsLine(t *testing.T) {
	long := strings.Repeat("x", 513)
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "a%d: {concurrency: 1}\n", i)
	}
	for source, want := range map[string]string{
		"":                                            "f:1: the file is empty: want a mapping of agents",
		"[a: b, c, d]":                                "f:1: the file must be a mapping of agents, got a list",
		"[payments]":                                  "f:1: the file must be a mapping of agents, got a list",
		"---\na: {}\n---\nb: {}":                      "f:3: a second document begins here: want one mapping of agents a file",
		"pay: {concurrency: 1":                        "f:2: not YAML: did not find expected ',' or '}'",
		"\npay:":                                      "f:2: a limit must be a mapping, got nothing",
		"pay: 20":                                     "f:1: a limit must be a mapping, got the number 20",
		"20: {concurrency: 1}":                        "f:1: a key must be text, got the number 20",
		"pay: {}":                                     "f:1: a limit of agent pay: want concurrency, 1 to 100, or rate",
		"pay: {reason: it}":                           "f:1: a limit of agent pay: want concurrency, 1 to 100, or rate",
		"pay: {concurrency: 0}":                       "f:1: concurrency 0 is out of range: 1 to 100",
		"pay: {concurrency: 101}":                     "f:1: concurrency 101 is out of range: 1 to 100",
		"pay: {concurrency: '1'}":                     `f:1: concurrency must be a whole number, got the text "1"`,
		"pay: {breaker: on, concurrency: 1}":          `f:1: a limit has no field "breaker": known are concurrency, rate, burst, key, reason`,
		"pay:\n  concurency: 1":                       `f:2: a limit has no field "concurency": did you mean "concurrency"?`,
		"pay:\n  rate: 5/h":                           `f:2: a rate of "5/h": want 1/s to 1000/s, or 1/m to 1000/m`,
		"pay:\n  rate: 5":                             "f:2: rate must be text, got the number 5: put it in quotes",
		"pay: {concurrency: 1, burst: 2}":             "f:1: a burst of 2: want a rate with it",
		"pay: {rate: 5/s, burst: 101}":                "f:1: burst 101 is out of range: 1 to 100",
		"pay: {key: '${ .input.a }'}":                 "f:1: a limit of agent pay: want concurrency, 1 to 100, or rate",
		"pay: {concurrency: 1, key: .input.a}":        `f:1: key: ".input.a": want one expression over the job's input, as ${ .input.account }`,
		"pay: {concurrency: 1, key: 7}":               `f:1: key must be an expression, such as "${ .input.express }", got the number 7`,
		"pay: {concurrency: 1, reason: " + long + "}": "f:1: the reason has 513 bytes, the limit is 512",
		"pay: {concurrency: 1}\nmail: {rate: 1/s}\npay: {rate: 2/s}": `f:3: "pay" is here already, in line 1`,
		"wait: {concurrency: 1}":      "f:1: agent wait cannot have a limit: no task is ever sent to it",
		"'no name': {concurrency: 1}": `f:1: "no name" cannot be the name of an agent: want [A-Za-z][A-Za-z0-9_-]{0,62}`,
		"mial: {concurrency: 1}":      `f:1: no agent "mial": did you mean "mail"?`,
		many.String():                 "f:1: 101 agents, the limit is 100",
		"pay:\n  rate: 5/h\n  key: x\nmail:\n  concurrency: 101\n": "f:2: a rate of \"5/h\": want 1/s to 1000/s, or 1/m to 1000/m\nf:3: key: \"x\": want one expression over the job's input, as ${ .input.account }\nf:5: concurrency 101 is out of range: 1 to 100",
	} {
		options := []Option{WithExactly(anAgent("pay"), anAgent("mail"))}
		if strings.Contains(source, "a100:") || strings.Contains(source, "no name") {
			options = nil
		}
		all, err := ParseLimits("f", []byte(source), options...)
		if got := text(err); got != want || all != nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("%.80s\ngot  %v, %s\nwant %s", source, all, got, want)
		}
	}
}

// The limits of a file are complete, as those that stand are, so the two can be compared.
func TestTheLimitsOfAFileAreCompleteAndInItsOrder(t *testing.T) {
	const source = `
pay: &all {concurrency: 20, rate: 090/m, reason: the bank}
http: {<<: *all, key: "${ .input.account }", burst: 3}
`
	all, err := ParseLimits("f", []byte(source))
	want := []AgentLimit{
		{"pay", makegood.Limit{Concurrency: 20, Rate: "90/m", Burst: 2}, "the bank"},
		{"http", makegood.Limit{Concurrency: 20, Rate: "90/m", Burst: 3, Key: "${ .input.account }"}, "the bank"},
	}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("got %+v, %v, want %+v", all, err, want)
	}
}

// A file of limits stands beside workflow files: it is none, and a mistake in it is told with theirs.
func TestAFileOfLimitsBesideWorkflowsIsCheckedAndIsNoWorkflow(t *testing.T) {
	files := fstest.MapFS{
		"order.yaml":  {Data: []byte("name: order\nsteps: [{name: pay, agent: pay}]")},
		"agents.yaml": {Data: []byte("pay: {concurrency: 1}")},
	}
	all, err := ReadAll(files, "shop")
	if err != nil || len(all) != 1 || all[0].Name != "shop/order.yaml" {
		t.Errorf("got %v, %v, want the workflow alone", all, err)
	}
	files["agents.yaml"].Data = []byte("pay: {concurrency: 0}")
	if _, err = ReadAll(files, "shop"); text(err) != "shop/agents.yaml:1: concurrency 0 is out of range: 1 to 100" {
		t.Errorf("got %v, want the mistake", err)
	}
}

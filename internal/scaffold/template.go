package scaffold

import (
	"bytes"
	_ "embed" // for template.yaml
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
)

// deployed is the template of this repository without its own parts: a test writes it, with -rewrite.
//
//go:generate go test . -run TestTheTemplateIsThatOfTheRepository -rewrite
//go:embed template.yaml
var deployed []byte

// The placeholders in deployed for the agents.
const (
	listMark = "<<agents>>"
	rowsMark = "    <<rows>>\n"
)

// row is what an agent begins with; it is the template's default, too.
const row = "    %s: {MemorySize: 256, Timeout: 60, Visibility: 360, Concurrency: 10%s}\n"

// outside follows the name of an agent that runs outside of Lambda (package onqueue): its function takes no tasks.
const outside = ":outside"

// CloudFormation's limits for a template that SAM has written out, and the template's own use and that of an agent.
const (
	maxResources, ownResources, agentResources = 500, 80, 15
	// MaxAgents is how many agents there is room for.
	MaxAgents = (maxResources - ownResources) / agentResources
)

// Template returns the template of this version for these agents, in this order, each with a row of its own.
// NAME:outside is one that runs outside of Lambda.
func Template(agents []string) ([]byte, error) {
	if len(agents) == 0 {
		return nil, errors.New("a template has one agent at least")
	}
	if n := len(agents); n > MaxAgents {
		return nil, fmt.Errorf("%d agents make %d resources, and CloudFormation takes %d in a template: name %d agents at most; what calls one service can be one agent with several actions",
			n, ownResources+n*agentResources, maxResources, MaxAgents)
	}
	var rows bytes.Buffer
	names := namesOf(agents)
	for i, name := range names {
		takes := ""
		if agents[i] != name {
			takes = ", Takes: false"
		}
		if err := limits.FunctionName.Check(name); err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("the agent %s is named twice", name)
		}
		fmt.Fprintf(&rows, row, name, takes)
	}
	text := bytes.Replace(deployed, []byte(listMark), []byte(strings.Join(names, ", ")), 1)
	return bytes.Replace(text, []byte(rowsMark), rows.Bytes(), 1), nil
}

// namesOf returns the names of agents, without the mark of those that run outside.
func namesOf(agents []string) []string {
	names := make([]string, len(agents))
	for i, agent := range agents {
		names[i] = strings.TrimSuffix(agent, outside)
	}
	return names
}

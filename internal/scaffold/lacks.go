package scaffold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	loopKey    = "Fn::ForEach::"
	agentsKey  = "Agents"
	maxElement = 100 // of the text of an element that is lacking, in bytes
)

// namedBy are the keys by which an element of a list is known.
var namedBy = []string{"Sid", "PolicyName", "AttributeName", "IndexName", "Name", "Key"}

// Comparison is what a template is, compared with that of this version. Both lists are paths into the template, in the
// order in which they stand in that of this version.
type Comparison struct {
	// Lacks names the missing parts: parameters, resources, statements, properties, agents.
	Lacks []string
	// Differs names the parts with another value, which may well be meant.
	Differs []string
}

// Compare compares a project's template with that of this version for these agents. It ignores additional parts. The
// error names the unreadable part.
func Compare(source []byte, agents []string) (Comparison, error) {
	text, err := Template(agents)
	if err != nil {
		return Comparison{}, err
	}
	want, err := root(text)
	if err != nil {
		return Comparison{}, err
	}
	has, err := root(source)
	if err != nil {
		return Comparison{}, err
	}
	var c Comparison
	c.agents(listed(has), namesOf(agents))
	for i := 0; i < len(want.Content); i += 2 {
		key := want.Content[i].Value
		if key == "Metadata" || key == "Description" {
			continue // the list of agents, compared above, and parts that a project may set freely
		}
		c.mapping(key, key, want.Content[i+1], below(has, key))
	}
	return c, nil
}

// root returns what a template consists of.
func root(source []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if document.Kind != yaml.DocumentNode || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no template: want a mapping with Resources")
	}
	return document.Content[0], nil
}

// listed are the agents that the loop of a template goes through.
func listed(template *yaml.Node) []string {
	loop := below(below(template, "Resources"), loopKey+agentsKey)
	if loop == nil || len(loop.Content) != 3 {
		return nil
	}
	var names []string
	for _, n := range aliased(loop.Content[1]).Content {
		names = append(names, n.Value)
	}
	return names
}

func (c *Comparison) agents(listed, linked []string) {
	for _, name := range linked {
		if !slices.Contains(listed, name) {
			c.Lacks = append(c.Lacks, "Metadata.Agents: the agent "+name)
		}
	}
}

// mapping compares a section. What a parameter has as its default, and the numbers in a mapping, are settings.
func (c *Comparison) mapping(section, path string, want, has *yaml.Node) {
	if has == nil {
		c.Lacks = append(c.Lacks, path)
		return
	}
	before := len(c.Differs)
	c.compare(path, want, has)
	if section == "Parameters" || section == "Mappings" {
		c.Differs = c.Differs[:before]
	}
}

func (c *Comparison) compare(path string, want, has *yaml.Node) {
	if want.Kind == yaml.AliasNode && has.Kind == yaml.AliasNode {
		return // the list of agents, which was compared where it stands
	}
	want, has = aliased(want), aliased(has)
	switch {
	case isCall(want) || isCall(has):
		c.call(path, want, has)
	case want.Kind == yaml.MappingNode:
		c.keys(path, want, has)
	case want.Kind == yaml.SequenceNode:
		c.elements(path, want, has)
	case has.Kind == yaml.SequenceNode:
		// One value where there are several now: an addition, if it is among them.
		c.elements(path, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{want}}, has)
	case !same(want, has):
		c.differs(path)
	}
}

func (c *Comparison) differs(path string) { c.Differs = append(c.Differs, path) }

// call compares what CloudFormation works out, argument by argument.
func (c *Comparison) call(path string, want, has *yaml.Node) {
	if want.Tag != has.Tag || want.Kind != has.Kind || want.Kind == yaml.ScalarNode || len(want.Content) != len(has.Content) {
		if !same(want, has) {
			c.differs(path)
		}
		return
	}
	for i := range want.Content {
		c.compare(fmt.Sprintf("%s[%d]", path, i), want.Content[i], has.Content[i])
	}
}

func (c *Comparison) keys(path string, want, has *yaml.Node) {
	for i := 0; i < len(want.Content); i += 2 {
		key := want.Content[i].Value
		inner, found := path+"."+key, below(has, key)
		switch {
		case path == "Mappings."+agentsKey:
			// A row is optional.
		case found == nil:
			c.Lacks = append(c.Lacks, inner)
		case strings.HasPrefix(key, loopKey):
			c.loop(inner, want.Content[i+1], found)
		default:
			c.compare(inner, want.Content[i+1], found)
		}
	}
}

// loop compares the list of a loop, unless it is the agents, and its body.
func (c *Comparison) loop(path string, want, has *yaml.Node) {
	if len(has.Content) != 3 {
		c.differs(path)
		return
	}
	if !strings.HasSuffix(path, loopKey+agentsKey) {
		c.compare(path, want.Content[1], has.Content[1])
	}
	c.compare(path, want.Content[2], has.Content[2])
}

// elements looks for each element, at any place: by its name, or else one that lacks none of its parts.
func (c *Comparison) elements(path string, want, has *yaml.Node) {
	candidates := has.Content
	if has.Kind != yaml.SequenceNode {
		candidates = []*yaml.Node{has}
	}
	for _, element := range want.Content {
		if key, name := nameOf(element); name != "" {
			inner := fmt.Sprintf("%s[%s %s]", path, key, name)
			if found := named(candidates, key, name); found != nil {
				c.compare(inner, element, found)
			} else {
				c.Lacks = append(c.Lacks, inner)
			}
			continue
		}
		if !slices.ContainsFunc(candidates, func(n *yaml.Node) bool { return holds(element, n) }) {
			c.Lacks = append(c.Lacks, path+": "+brief(element))
		}
	}
}

// holds reports whether has has all of want, with the same values.
func holds(want, has *yaml.Node) bool {
	var c Comparison
	c.compare("", want, has)
	return len(c.Lacks) == 0 && len(c.Differs) == 0
}

// nameOf returns the key and name that identify an element of a list; empty: none.
func nameOf(n *yaml.Node) (key, name string) {
	for _, key := range namedBy {
		if found := below(n, key); found != nil && found.Kind == yaml.ScalarNode {
			return key, found.Value
		}
	}
	return "", ""
}

func named(elements []*yaml.Node, key, name string) *yaml.Node {
	for _, n := range elements {
		if found := below(n, key); found != nil && found.Value == name {
			return n
		}
	}
	return nil
}

// same reports whether two values are the same, however they are written.
func same(a, b *yaml.Node) bool {
	a, b = aliased(a), aliased(b)
	return a.Kind == b.Kind && a.Value == b.Value && (a.Tag == b.Tag || !isCall(a) && !isCall(b)) &&
		slices.EqualFunc(a.Content, b.Content, same)
}

// isCall reports whether a value is one that CloudFormation works out, as !Sub.
func isCall(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// aliased returns what a node stands for.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// below returns the value of a key of a mapping; nil: none.
func below(n *yaml.Node, key string) *yaml.Node {
	if n == nil || aliased(n).Kind != yaml.MappingNode {
		return nil
	}
	content := aliased(n).Content
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == key {
			return content[i+1]
		}
	}
	return nil
}

// brief writes a value in one short line.
func brief(n *yaml.Node) string {
	text, err := yaml.Marshal(n)
	if err != nil {
		return n.Value
	}
	line := strings.Join(strings.Fields(string(text)), " ")
	return line[:min(len(line), maxElement)]
}

package workflowfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Source writes the workflow as a workflow file: Parse makes the same definition from it, with the same hash. Defaults
// are left out; so are comments and schedules, which are no part of a definition.
func (c *Compiled) Source() ([]byte, error) {
	if c.Workflow.Part != nil { // It is shown, and no file makes a part.
		return sourceOf(brief(c.Workflow))
	}
	whole := flat(c.Workflow)
	for _, w := range []makegood.Workflow{brief(whole), whole} {
		source, err := sourceOf(w)
		if err != nil {
			return nil, fmt.Errorf("write workflow %s as a file: %w", w.Name, err)
		}
		// A definition of before a rule came is one that Parse would refuse; it is shown all the same, whole.
		if again, err := Parse("source", source); err == nil && again.Hash == c.Hash {
			return source, nil
		}
	}
	return sourceOf(whole)
}

// flat writes the steps with a map of a workflow as a file does: the fields of an item are those of the step.
func flat(w makegood.Workflow) makegood.Workflow {
	w.Steps = slices.Clone(w.Steps)
	for i, s := range w.Steps {
		if s.Map == nil || s.Map.Item == nil || s.Map.Count > 0 {
			continue
		}
		item, m := *s.Map.Item, *s.Map
		m.Item = nil
		m.Concurrency, m.Outputs = unless(m.Concurrency, limits.PartItems), unless(m.Outputs, makegood.OutputsList)
		item.Needs, item.Any, item.Only, item.When, item.OnError, item.Map = s.Needs, s.Any, s.Only, s.When, s.OnError, &m
		w.Steps[i] = item
	}
	return w
}

// brief leaves out of a complete workflow the values that WithDefaults gives.
func brief(w makegood.Workflow) makegood.Workflow {
	if d := domain.WithDefaults((makegood.Workflow{Steps: w.Steps})); d.OnFailure == w.OnFailure {
		w.OnFailure = makegood.OnFailure{}
	}
	w.Steps = slices.Clone(w.Steps)
	for i, s := range w.Steps {
		before := []string{}
		if i > 0 {
			before = []string{w.Steps[i-1].Name}
		}
		w.Steps[i] = briefStep(s, before)
	}
	return w
}

// briefStep leaves out the defaults of a step; before are its default needs.
func briefStep(s makegood.Step, before []string) makegood.Step {
	if s.Only == makegood.OnlyOnError || !s.Any && slices.Equal(s.Needs, before) {
		s.Needs = nil
	}
	if domain.CanUndo(s) {
		u := briefUndo(*s.Undo, s)
		s.Undo = &u
	}
	if s.Action == s.Name {
		s.Action = ""
	}
	retry := s.Retry
	bare := domain.WithDefaults((makegood.Workflow{Steps: []makegood.Step{{Name: s.Name, Agent: s.Agent, Heartbeat: s.Heartbeat}}})).Steps[0]
	s.StartBy = unless(s.StartBy, bare.StartBy)
	s.Timeout = unless(s.Timeout, bare.Timeout)
	s.Retry = briefRetry(s.Retry, bare.Retry)
	if domain.CanUndo(s) {
		s.Undo.Retry = briefRetry(s.Undo.Retry, standardUndo(s))
	}
	s.OnError = slices.Clone(s.OnError)
	for i, r := range s.OnError {
		s.OnError[i].Retry = briefRetry(r.Retry, retry)
	}
	return s
}

// briefUndo leaves out the values that an undo inherits from its step.
func briefUndo(u makegood.Undo, s makegood.Step) makegood.Undo {
	u.Agent = unless(u.Agent, s.Agent)
	if bytes.Equal(u.With, s.With) {
		u.With = nil
	}
	u.StartBy = unless(u.StartBy, s.StartBy)
	if u.Timeout == s.Timeout && u.Heartbeat == s.Heartbeat {
		u.Timeout, u.Heartbeat = 0, 0
	}
	return u
}

// standardUndo is the default retry of an undo, given its step's.
func standardUndo(s makegood.Step) makegood.Retry {
	s.Undo = &makegood.Undo{Action: s.Undo.Action}
	return domain.WithDefaults((makegood.Workflow{Steps: []makegood.Step{s}})).Steps[0].Undo.Retry
}

// briefRetry leaves out the fields that equal a standard; the two that end it go together.
func briefRetry(r, standard makegood.Retry) makegood.Retry {
	if r == standard {
		return makegood.Retry{}
	}
	short := makegood.Retry{Backoff: unless(r.Backoff, standard.Backoff), Max: unless(r.Max, standard.Max)}
	if r.Attempts != standard.Attempts || r.For != standard.For {
		short.Attempts, short.For = r.Attempts, r.For
		if r.For > 0 {
			short.Attempts = unless(r.Attempts, limits.MaxAttempts)
		}
	}
	return short
}

// unless is a value, or the zero value where it equals the standard.
func unless[T comparable](value, standard T) T {
	var none T
	if value == standard {
		return none
	}
	return value
}

// sourceOf writes a workflow as YAML. Its fields are called there as in JSON, but for those that fileField translates.
func sourceOf(w makegood.Workflow) ([]byte, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	root, err := yamlOf(text)
	if err != nil {
		return nil, err
	}
	tidyMapping(root)
	for _, step := range childOf(root, "steps").Content {
		tidyStep(step)
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// free are the fields with the author's own values, which are kept whole.
var free = []string{"with", "output", "input"}

// tidyMapping leaves out empty fields: null, an empty text, a duration or a number of zero, an empty mapping.
func tidyMapping(n *yaml.Node) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains(free, key.Value) {
			tidyValue(value)
			if saysNothing(value) {
				continue
			}
		}
		kept = append(kept, key, value)
	}
	n.Content = kept
}

func tidyValue(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		tidyMapping(n)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			tidyValue(item)
		}
	}
}

func saysNothing(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode:
		return len(n.Content) == 0
	case yaml.ScalarNode:
		return slices.Contains([]string{"", "null", "0", "0s", "false"}, n.Value)
	default:
		return false
	}
}

// tidyStep rewrites the fields that a file names differently than JSON does.
func tidyStep(step *yaml.Node) {
	if childOf(step, "shared") != nil {
		rename(step, "shared", "exclusive", scalar("false"))
	}
	if childOf(step, "any") != nil {
		needs := childOf(step, "needs")
		rename(step, "needs", "needs", &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{scalar("any"), needs}})
		remove(step, "any")
	}
	if undo := childOf(step, "undo"); undo != nil && childOf(undo, "none") != nil {
		rename(step, "undo", "undo", scalar("none"))
	}
}

// childOf returns the value of a key; nil: there is none.
func childOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func rename(n *yaml.Node, from, to string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == from {
			n.Content[i], n.Content[i+1] = scalar(to), value
		}
	}
}

func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// plainText matches texts that need no quotes in a file: a name, or a duration.
var plainText = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`)

// scalar writes a text, in quotes unless it is plain.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch text {
	case "false", "true", "null":
		n.Tag = ""
	}
	return n
}

// quotedText writes a text that is the author's.
func quotedText(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	var word yaml.Node
	if !plainText.MatchString(text) || yaml.Unmarshal([]byte(text), &word) != nil || len(word.Content) != 1 || word.Content[0].Tag != "!!str" || kindOf(word.Content[0]) != kindText {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// yamlOf turns JSON into YAML, its members in their order.
func yamlOf(text []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, err := yamlValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more text follows the value: %v", err)
	}
	return n, nil
}

func yamlValue(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return yamlAll(d, token)
	case string:
		return quotedText(token), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// yamlAll reads the elements of a list or an object up to its end.
func yamlAll(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	scalars := true
	for d.More() {
		value, err := yamlValue(d)
		if err != nil {
			return nil, err
		}
		scalars = scalars && value.Kind == yaml.ScalarNode
		n.Content = append(n.Content, value)
	}
	if n.Kind == yaml.SequenceNode && scalars || len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := d.Token()
	return n, err
}

package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// decode returns the value of a node, with !X written as {Fn::X: ...}.
func decode(n *yaml.Node) any {
	var value any
	switch n.Kind {
	case yaml.AliasNode:
		return decode(n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = decode(n.Content[i+1])
		}
		value = m
	case yaml.SequenceNode:
		all := []any{}
		for _, each := range n.Content {
			all = append(all, decode(each))
		}
		value = all
	default:
		if isFunction(n.Tag) {
			value = n.Value
		} else if err := n.Decode(&value); err != nil {
			panic(fmt.Sprintf("line %d: %v", n.Line, err))
		}
	}
	switch {
	case !isFunction(n.Tag):
		return value
	case n.Tag == "!Ref" || n.Tag == "!Condition":
		return map[string]any{n.Tag[1:]: value}
	case n.Tag == "!GetAtt" && n.Kind == yaml.ScalarNode:
		name, attribute, _ := strings.Cut(n.Value, ".")
		return map[string]any{"Fn::GetAtt": []any{name, attribute}}
	}
	return map[string]any{"Fn::" + n.Tag[1:]: value}
}

func isFunction(tag string) bool { return strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") }

// absent is what Ref AWS::NoValue gives.
type absent struct{}

// resolve resolves the functions in v.
func (t *template) resolve(v any) any {
	switch v := v.(type) {
	case []any:
		all := []any{}
		for _, each := range v {
			if r := t.resolve(each); r != any(absent{}) {
				all = append(all, r)
			}
		}
		return all
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if r, known := t.call(name, argument); known {
					return r
				}
			}
		}
		all := map[string]any{}
		for key, each := range v {
			if r := t.resolve(each); r != any(absent{}) {
				all[key] = r
			}
		}
		return all
	}
	return v
}

// call returns what a function of the template returns.
func (t *template) call(name string, argument any) (value any, known bool) {
	switch name {
	case "Ref":
		return t.named(text(argument)), true
	case "Fn::Sub":
		if parts, ok := argument.([]any); ok {
			s := text(parts[0])
			for name, value := range t.resolve(parts[1]).(map[string]any) {
				s = strings.ReplaceAll(s, "${"+name+"}", text(value))
			}
			return t.substitute(s), true
		}
		return t.substitute(text(argument)), true
	case "Fn::GetAtt":
		parts := texts(t.resolve(argument))
		return "${" + strings.Join(parts, ".") + "}", true
	case "Fn::FindInMap":
		return t.find(list(t.resolve(argument))), true
	case "Fn::Join":
		parts := list(t.resolve(argument))
		return strings.Join(texts(parts[1]), text(parts[0])), true
	case "Fn::Split":
		parts := texts(t.resolve(argument))
		var all []any
		for part := range strings.SplitSeq(parts[1], parts[0]) {
			all = append(all, part)
		}
		return all, true
	case "Fn::If":
		parts := argument.([]any)
		if t.conditions[text(parts[0])] {
			return t.resolve(parts[1]), true
		}
		return t.resolve(parts[2]), true
	}
	return nil, false
}

// find returns what Fn::FindInMap gives: what the mapping has, or else the default.
func (t *template) find(arguments []any) any {
	found := at(t.mappings, texts(arguments[:3])...)
	if found == nil && len(arguments) == 4 {
		return at(arguments[3], "DefaultValue")
	}
	return found
}

// named returns what a name stands for.
func (t *template) named(name string) any {
	if value, ok := t.parameters[name]; ok {
		return value
	}
	if name == "AWS::NoValue" {
		return absent{}
	}
	return "${" + name + "}"
}

// substitute replaces what is known in the string of a Fn::Sub.
func (t *template) substitute(s string) string {
	for name, value := range t.parameters {
		s = strings.ReplaceAll(s, "${"+name+"}", text(value))
	}
	return s
}

// holds evaluates a condition.
func (t *template) holds(condition any) bool {
	m, _ := condition.(map[string]any)
	if not, ok := m["Fn::Not"].([]any); ok {
		return !t.holds(not[0])
	}
	if either, ok := m["Fn::Or"].([]any); ok {
		return slices.ContainsFunc(either, t.holds)
	}
	pair, ok := m["Fn::Equals"].([]any)
	return ok && text(t.resolve(pair[0])) == text(t.resolve(pair[1]))
}

// A small template, so that what the rules below rest on is seen to work.
func TestLoopsAndFunctionsAreResolved(t *testing.T) {
	got := load(t, `
Metadata: {List: &list [a, b]}
Parameters: {Size: {Default: 3}, Big: {Default: "yes"}}
Conditions: {IsBig: !Equals [!Ref Big, "yes"], IsSmall: !Not [!Equals [!Ref Big, "yes"]]}
Mappings: {M: {a: {N: 1}, b: {N: 2}}}
Resources:
  Fn::ForEach::Loop:
    - X
    - *list
    - "${X}Queue":
        Type: Q
        Properties:
          Name: !Sub "${AWS::StackName}-${X}-${Size}"
          N: !FindInMap [M, !Ref X, N]
          D: !FindInMap [M, !Ref X, Other, {DefaultValue: 7}]
          All: !Join [",", *list]
          Dead: {"Fn::GetAtt": [!Sub "${X}Dead", Arn]}
          If: !If [IsBig, !Ref Size, !Ref AWS::NoValue]
          Gone: !If [IsSmall, 1, !Ref AWS::NoValue]
`)
	want := "map[All:a,b D:7 Dead:${bDead.Arn} If:3 N:2 Name:${AWS::StackName}-b-3]"
	if text(got.resources["bQueue"].properties) != want || len(got.resources) != 2 {
		t.Errorf("got %v\nwant bQueue to be %s, and aQueue", got.resources, want)
	}
}

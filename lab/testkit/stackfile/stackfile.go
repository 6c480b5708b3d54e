// Package stackfile reads a template as CloudFormation does, as far as template.yaml needs it: loops written out,
// functions and conditions resolved, for the parameters of one stack. It neither deploys nor transforms as SAM does.
package stackfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/localstack"
)

// File is a template with its loops written out. References are written as Fn::Sub would take them: ${Table.Arn},
// ${Key}; those to parameters, mappings and conditions are resolved.
type File struct {
	Text   string
	Source *yaml.Node
	// Parameters are the values of the stack, the defaults among them.
	Parameters map[string]any
	Conditions map[string]bool
	Globals    map[string]any
	Resources  map[string]Resource
	Outputs    map[string]any
	mappings   map[string]any
}

// Resource is a resource, whether its condition holds or not.
type Resource struct {
	Kind       string
	Attributes map[string]any // beside Type and Properties
	Properties map[string]any
}

// Parse reads a template, with these parameters in place of its defaults.
func Parse(text string, parameters map[string]any) (*File, error) {
	f := &File{Text: text, Source: &yaml.Node{}, Parameters: map[string]any{}, Conditions: map[string]bool{}, Resources: map[string]Resource{}}
	if err := yaml.Unmarshal([]byte(text), f.Source); err != nil {
		return nil, err
	}
	written, err := localstack.Unroll([]byte(text))
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(written, &document); err != nil {
		return nil, err
	}
	all, _ := Decode(document.Content[0]).(map[string]any)
	for name, declared := range At(all, "Parameters").(map[string]any) {
		f.Parameters[name] = At(declared, "Default")
	}
	maps.Copy(f.Parameters, parameters)
	f.mappings, _ = all["Mappings"].(map[string]any)
	for name, condition := range At(all, "Conditions").(map[string]any) {
		f.Conditions[name] = f.holds(condition)
	}
	f.Globals, _ = f.resolve(all["Globals"]).(map[string]any)
	f.Outputs, _ = f.resolve(all["Outputs"]).(map[string]any)
	declared, _ := all["Resources"].(map[string]any)
	if declared == nil {
		return nil, errors.New("it has no resources")
	}
	for name, value := range declared {
		f.add(name, f.resolve(value))
	}
	return f, nil
}

func (f *File) add(name string, value any) {
	r := Resource{Attributes: map[string]any{}}
	for key, inner := range value.(map[string]any) {
		switch key {
		case "Type":
			r.Kind = Text(inner)
		case "Properties":
			r.Properties, _ = inner.(map[string]any)
		default:
			r.Attributes[key] = inner
		}
	}
	f.Resources[name] = r
}

// Of returns the names of the resources of a kind, sorted.
func (f *File) Of(kind string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.Resources)) {
		if f.Resources[name].Kind == kind {
			names = append(names, name)
		}
	}
	return names
}

// MaxResources is how many resources CloudFormation takes in a template, conditions or not.
const MaxResources = 500

// Made is how many resources CloudFormation sees: the declared ones, and those that SAM makes of events.
func (f *File) Made() int {
	all := len(f.Resources)
	for _, name := range f.Of("AWS::Serverless::Function") {
		events, _ := f.Property(name, "Events").(map[string]any)
		all += len(events)
		if f.Property(name, "EventInvokeConfig") != nil {
			all++
		}
	}
	return all
}

// Exists reports whether a resource is made: it has no condition, or one that holds.
func (f *File) Exists(name string) bool {
	condition := Text(f.Resources[name].Attributes["Condition"])
	return condition == "" || f.Conditions[condition]
}

// Property returns what is at a path of a resource's properties; nil: nothing.
func (f *File) Property(name string, path ...string) any {
	return At(f.Resources[name].Properties, path...)
}

// Statements returns the statements of a role: its own, and those of policies that are attached to it.
func (f *File) Statements(role string) []any {
	var all []any
	for _, policy := range List(f.Property(role, "Policies")) {
		all = append(all, List(At(policy, "PolicyDocument", "Statement"))...)
	}
	for _, arn := range List(f.Property(role, "ManagedPolicyArns")) {
		all = append(all, List(f.Property(Referred(arn), "PolicyDocument", "Statement"))...)
	}
	for _, name := range f.Of("AWS::IAM::Policy") {
		if f.Exists(name) && slices.Contains(Texts(f.Property(name, "Roles")), "${"+role+"}") {
			all = append(all, List(f.Property(name, "PolicyDocument", "Statement"))...)
		}
	}
	return all
}

// Referred returns the name in ${Name}.
func Referred(v any) string { return strings.TrimSuffix(strings.TrimPrefix(Text(v), "${"), "}") }

// At returns what is at a path below v; nil: nothing.
func At(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// Text writes a scalar; of nothing, it is empty.
func Text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Number returns a whole number, and zero of anything else.
func Number(v any) int {
	n, _ := v.(int)
	return n
}

// List returns the elements of a list, or the one value that stands for it.
func List(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// Texts returns the elements of a list as text.
func Texts(v any) []string {
	var all []string
	for _, each := range List(v) {
		all = append(all, Text(each))
	}
	return all
}

// Decode returns the value of a node, with !X written as {Fn::X: ...}.
func Decode(n *yaml.Node) any {
	var value any
	switch n.Kind {
	case yaml.AliasNode:
		return Decode(n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = Decode(n.Content[i+1])
		}
		value = m
	case yaml.SequenceNode:
		all := []any{}
		for _, each := range n.Content {
			all = append(all, Decode(each))
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
func (f *File) resolve(v any) any {
	switch v := v.(type) {
	case []any:
		all := []any{}
		for _, each := range v {
			if r := f.resolve(each); r != any(absent{}) {
				all = append(all, r)
			}
		}
		return all
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if r, known := f.call(name, argument); known {
					return r
				}
			}
		}
		all := map[string]any{}
		for key, each := range v {
			if r := f.resolve(each); r != any(absent{}) {
				all[key] = r
			}
		}
		return all
	}
	return v
}

// call returns what a function of the template returns.
func (f *File) call(name string, argument any) (value any, known bool) {
	switch name {
	case "Ref":
		return f.named(Text(argument)), true
	case "Fn::Sub":
		if parts, ok := argument.([]any); ok {
			s := Text(parts[0])
			for name, value := range f.resolve(parts[1]).(map[string]any) {
				s = strings.ReplaceAll(s, "${"+name+"}", Text(value))
			}
			return f.substitute(s), true
		}
		return f.substitute(Text(argument)), true
	case "Fn::GetAtt":
		parts := Texts(f.resolve(argument))
		return "${" + strings.Join(parts, ".") + "}", true
	case "Fn::FindInMap":
		return f.find(List(f.resolve(argument))), true
	case "Fn::Join":
		parts := List(f.resolve(argument))
		return strings.Join(Texts(parts[1]), Text(parts[0])), true
	case "Fn::Split":
		parts := Texts(f.resolve(argument))
		var all []any
		for part := range strings.SplitSeq(parts[1], parts[0]) {
			all = append(all, part)
		}
		return all, true
	case "Fn::If":
		parts := argument.([]any)
		if f.Conditions[Text(parts[0])] {
			return f.resolve(parts[1]), true
		}
		return f.resolve(parts[2]), true
	}
	return nil, false
}

// find returns what Fn::FindInMap gives: what the mapping has, or else the default.
func (f *File) find(arguments []any) any {
	found := At(f.mappings, Texts(arguments[:3])...)
	if found == nil && len(arguments) == 4 {
		return At(arguments[3], "DefaultValue")
	}
	return found
}

// named returns what a name stands for.
func (f *File) named(name string) any {
	if value, ok := f.Parameters[name]; ok {
		return value
	}
	if name == "AWS::NoValue" {
		return absent{}
	}
	return "${" + name + "}"
}

// substitute replaces what is known in the string of a Fn::Sub.
func (f *File) substitute(s string) string {
	for name, value := range f.Parameters {
		s = strings.ReplaceAll(s, "${"+name+"}", Text(value))
	}
	return s
}

// holds evaluates a condition.
func (f *File) holds(condition any) bool {
	m, _ := condition.(map[string]any)
	if not, ok := m["Fn::Not"].([]any); ok {
		return !f.holds(not[0])
	}
	if either, ok := m["Fn::Or"].([]any); ok {
		return slices.ContainsFunc(either, f.holds)
	}
	pair, ok := m["Fn::Equals"].([]any)
	return ok && Text(f.resolve(pair[0])) == Text(f.resolve(pair[1]))
}

// Package template holds the rules of template.yaml as tests: who may do what, what must be encrypted, kept,
// bounded and watched, and that its names are those of the code. It has tests only, deploys nothing, and
// judges the source of the template with its loops expanded and its parameters resolved; what SAM makes of it
// is cfn-lint's, in make template-check.
package template

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/localstack"
)

const templateFile = "../../template.yaml"

// template is a template with its loops expanded. References are written as Fn::Sub would take them:
// ${Table.Arn}, ${Key}; those to parameters, mappings and conditions are resolved.
type template struct {
	text       string
	source     *yaml.Node
	parameters map[string]any
	conditions map[string]bool
	mappings   map[string]any
	globals    map[string]any
	resources  map[string]resource
	outputs    map[string]any
}

type resource struct {
	kind       string
	attributes map[string]any // beside Type and Properties
	properties map[string]any
}

// everything sets the parameters so that all that can be made is made.
func everything() map[string]any {
	return map[string]any{
		"EventBus": "yes", "Changes": "bus", "CompletionLinks": "yes", "ReserveConcurrency": "yes", "AlertEmail": "a@example.com", "Tracing": "Active", "SubnetIds": "subnet-1,subnet-2",
		"SecurityGroupIds": "sg-1", "WarmWrites": 8000, "PayloadBucket": "create", "WebhookParameter": "arn:aws:ssm:eu-central-1:123456789012:parameter/webhook",
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func load(t *testing.T, text string) *template {
	t.Helper()
	loaded, err := parse(text, everything())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// parse reads a template, with these parameters in place of its defaults.
func parse(text string, parameters map[string]any) (*template, error) {
	t := &template{text: text, source: &yaml.Node{}, parameters: map[string]any{}, conditions: map[string]bool{}, resources: map[string]resource{}}
	if err := yaml.Unmarshal([]byte(text), t.source); err != nil {
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
	all, _ := decode(document.Content[0]).(map[string]any)
	for name, declared := range at(all, "Parameters").(map[string]any) {
		t.parameters[name] = at(declared, "Default")
	}
	maps.Copy(t.parameters, parameters)
	t.mappings, _ = all["Mappings"].(map[string]any)
	for name, condition := range at(all, "Conditions").(map[string]any) {
		t.conditions[name] = t.holds(condition)
	}
	t.globals, _ = t.resolve(all["Globals"]).(map[string]any)
	t.outputs, _ = t.resolve(all["Outputs"]).(map[string]any)
	declared, _ := all["Resources"].(map[string]any)
	if declared == nil {
		return nil, errors.New("it has no resources")
	}
	for name, value := range declared {
		t.add(name, t.resolve(value))
	}
	return t, nil
}

func (t *template) add(name string, value any) {
	r := resource{attributes: map[string]any{}}
	for key, inner := range value.(map[string]any) {
		switch key {
		case "Type":
			r.kind = text(inner)
		case "Properties":
			r.properties, _ = inner.(map[string]any)
		default:
			r.attributes[key] = inner
		}
	}
	t.resources[name] = r
}

// of returns the names of the resources of a kind, sorted.
func (t *template) of(kind string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.resources)) {
		if t.resources[name].kind == kind {
			names = append(names, name)
		}
	}
	return names
}

// property returns what is at a path of a resource's properties; nil: nothing.
func (t *template) property(name string, path ...string) any {
	return at(t.resources[name].properties, path...)
}

// at returns what is at a path below v; nil: nothing.
func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// text writes a scalar; of nothing, it is empty.
func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// number returns a whole number, and zero of anything else.
func number(v any) int {
	n, _ := v.(int)
	return n
}

// list returns the elements of a list, or the one value that stands for it.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

func texts(v any) []string {
	var all []string
	for _, each := range list(v) {
		all = append(all, text(each))
	}
	return all
}

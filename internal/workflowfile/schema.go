package workflowfile

import "github.com/makegood-dev/makegood"

// DurationPattern matches the durations that makegood.ParseDuration reads. It allows zero, which the reader refuses.
const DurationPattern = "^" + anyDuration + "$"

const anyDuration = `(([0-9]+d)|([0-9]+d|\+)?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)`

// Definitions is the beginning of references to the definitions of a schema.
const Definitions = "#/$defs/"

// Schema is a JSON Schema, as far as workflow files need it.
type Schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Const       string             `json:"const,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Default     any                `json:"default,omitempty"`
	Minimum     int                `json:"minimum,omitempty"`
	Maximum     int                `json:"maximum,omitempty"`
	MinItems    int                `json:"minItems,omitempty"`
	MaxItems    int                `json:"maxItems,omitempty"`
	UniqueItems bool               `json:"uniqueItems,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	// Patterned are the members of an object with names that a workflow chooses.
	Patterned map[string]*Schema `json:"patternProperties,omitempty"`
	Required  []string           `json:"required,omitempty"`
	// Closed is additionalProperties: false; every object here is.
	Closed *bool              `json:"additionalProperties,omitempty"`
	OneOf  []*Schema          `json:"oneOf,omitempty"`
	Defs   map[string]*Schema `json:"$defs,omitempty"`
}

// SchemaOfFiles is the JSON Schema of workflow files. It has no rules across fields, such as that needs name steps.
func SchemaOfFiles() *Schema {
	s := workflowKind(&file{}).schema()
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "A Makegood workflow"
	s.Defs = map[string]*Schema{}
	for _, k := range []kind{
		stepKind(0, &makegood.Step{}), undoKind(&makegood.Undo{}, &makegood.Step{}), retryKind(&makegood.Retry{}, nil),
		waitingKind(&makegood.WaitRules{}, ""), routeKind(&makegood.ErrorRoute{}, &makegood.Step{}, 0), scheduleKind(0, &makegood.Schedule{}),
		mapKind(&makegood.Map{}),
	} {
		s.Defs[k.name] = k.schema()
	}
	return s
}

// closed is the schema of an object that has these fields and no others.
func closed(fields []field) *Schema {
	others := false
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, Closed: &others}
	for _, f := range fields {
		s.Properties[f.name] = f.schema()
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

func typed(name string) func() *Schema { return func() *Schema { return &Schema{Type: name} } }

func matching(pattern string) *Schema { return &Schema{Type: "string", Pattern: pattern} }

func oneTo(most int) func() *Schema {
	return func() *Schema { return &Schema{Type: "integer", Minimum: 1, Maximum: most} }
}

// wordOr is the schema of a word, or an object.
func wordOr(word string, object func() kind) func() *Schema {
	return func() *Schema { return &Schema{OneOf: []*Schema{{Const: word}, object().place()}} }
}

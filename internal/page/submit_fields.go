package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/inputschema"
)

const (
	// maxFieldDepth is how deep objects of an input are nested fieldsets; deeper ones are written as JSON.
	maxFieldDepth = 4
	// maxFields is how many fields a form has; an input of more is written as JSON.
	maxFields = 200
	// fieldPrefix begins the names of the fields of the input, which are JSON pointers behind it.
	fieldPrefix = "in"
)

// field is a place of an input as a form asks for it: one field, or a fieldset of several.
type field struct {
	// At is the place as a JSON pointer; Name that of the field.
	At, Name string
	Title    string
	Help     string
	Required bool
	// Kind is text, number, choice, json, or group.
	Kind string
	// Type is the type of the HTML input.
	Type string
	// Attributes of the input: as HTML has them.
	Min, Max, Step, Pattern, Placeholder string
	MinLength, MaxLength                 string
	Options                              []option
	Fields                               []*field
	// Value is the value in the form; Wrong says why it was refused.
	Value string
	Wrong []string

	key     string
	integer bool
	utc     bool
}

// option is one of several values, as JSON.
type option struct {
	Value, Text string
	Chosen      bool
}

// fieldsOf returns the fields of an input; none: it is written as JSON.
func fieldsOf(schema json.RawMessage) []*field {
	if len(schema) == 0 {
		return nil
	}
	s, err := inputschema.Compile(schema)
	if err != nil || s.Root.Chooses() {
		return nil
	}
	room := maxFields
	fields := membersOf(s.Root, "", true, 1, &room)
	if room < 0 {
		return nil
	}
	return fields
}

// membersOf are the fields of the members of an object: required ones first, in the order of required. It ends when
// room is used up: a schema that refers to itself has more at each depth.
func membersOf(n *inputschema.Node, at string, needed bool, depth int, room *int) (fields []*field) {
	required := n.Required()
	names := slices.Clone(required)
	for _, name := range n.Names() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if *room < 0 {
			return fields
		}
		member, why := n.Member(name)
		if member == nil || why != "" {
			continue
		}
		f := &field{key: name, At: at + "/" + escaped(name), Required: needed && slices.Contains(required, name)}
		f.Name = fieldPrefix + f.At
		f.describe(member, name)
		f.shape(member, depth, room)
		if f.Kind != "group" {
			*room--
		}
		fields = append(fields, f)
	}
	return fields
}

func escaped(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// describe takes over the title and description of a schema.
func (f *field) describe(n *inputschema.Node, name string) {
	f.Title = name
	if title, is := n.Says("title").(string); is && title != "" {
		f.Title = title
	}
	f.Help, _ = n.Says("description").(string)
	if v := n.Says("default"); v != nil {
		f.Value = textOf(v)
	}
	if examples, is := n.Says("examples").([]any); is && len(examples) > 0 {
		f.Placeholder = textOf(examples[0])
	}
}

// shape chooses the kind of field for a place.
func (f *field) shape(n *inputschema.Node, depth int, room *int) {
	values, _ := n.Says("enum").([]any)
	if c := n.Says("const"); c != nil {
		values = []any{c}
	}
	switch kind, _ := n.Says("type").(string); {
	case n.Chooses():
		f.Kind = "json"
	case len(values) > 0:
		f.choices(values)
	case kind == "boolean":
		f.choices([]any{true, false})
	case kind == "integer" || kind == "number":
		f.number(n, kind)
	case kind == "string":
		f.text(n)
	case kind == "object" && depth < maxFieldDepth:
		f.Fields = membersOf(n, f.At, f.Required, depth+1, room)
		f.Kind = "group"
		if len(f.Fields) == 0 {
			f.Kind = "json"
		}
	default:
		f.Kind = "json"
	}
	if f.Kind == "json" {
		if v := n.Says("default"); v != nil {
			f.Value = jsonText(v)
		}
	}
}

func (f *field) choices(values []any) {
	f.Kind = "choice"
	for _, v := range values {
		o := option{Value: jsonText(v), Text: textOf(v)}
		f.Options = append(f.Options, o)
		if o.Text == f.Value {
			f.Value = o.Value
		}
	}
}

func (f *field) number(n *inputschema.Node, kind string) {
	f.Kind, f.Type, f.integer = "number", "number", kind == "integer"
	f.Min, f.Max, f.Step = limit(n, "minimum"), limit(n, "maximum"), "any"
	if f.integer {
		f.Step = "1"
	}
}

func (f *field) text(n *inputschema.Node) {
	f.Kind, f.Type = "text", "text"
	f.MinLength, f.MaxLength = limit(n, "minLength"), limit(n, "maxLength")
	f.Pattern = htmlPattern(n.Says("pattern"))
	switch n.Says("format") {
	case "date":
		f.Type = "date"
	case "date-time":
		f.Type, f.Step, f.utc = "datetime-local", "1", true
		f.Value = strings.TrimSuffix(f.Value, "Z")
	case "email":
		f.Type = "email"
	case "uri":
		f.Type = "url"
	}
}

// htmlPattern is a pattern anchored at both ends, as HTML takes it. Any other is left to the server.
func htmlPattern(v any) string {
	text, _ := v.(string)
	if !strings.HasPrefix(text, "^") || !strings.HasSuffix(text, "$") || strings.ContainsAny(text, `|\`) {
		return ""
	}
	return text[1 : len(text)-1]
}

// limit is a number that a schema says, as a text; empty: none.
func limit(n *inputschema.Node, keyword string) string {
	if v := n.Says(keyword); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// textOf is a value as a field has it: a text without its quotes.
func textOf(v any) string {
	if text, is := v.(string); is {
		return text
	}
	return jsonText(v)
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// flat are all fields that are no groups.
func flat(fields []*field) (all []*field) {
	for _, f := range fields {
		if f.Kind == "group" {
			all = append(all, flat(f.Fields)...)
			continue
		}
		all = append(all, f)
	}
	return all
}

// fill takes over the sent values.
func fill(fields []*field, sent url.Values) {
	for _, f := range flat(fields) {
		f.Value = sent.Get(f.Name)
	}
}

// inputOf returns the values of the fields as JSON. A value that does not fit its field stays a text, for the schema to
// refuse; invalid JSON is noted, and then ok is false.
func inputOf(fields []*field) (object map[string]any, ok bool) {
	object, ok = map[string]any{}, true
	for _, f := range fields {
		if f.Kind == "group" {
			inner, fine := inputOf(f.Fields)
			if ok = ok && fine; len(inner) > 0 || f.Required {
				object[f.key] = inner
			}
			continue
		}
		if strings.TrimSpace(f.Value) == "" {
			continue
		}
		v, err := f.value()
		if err != nil {
			f.Wrong, ok = []string{err.Error()}, false
			continue
		}
		object[f.key] = v
	}
	return object, ok
}

// value is the value of a field.
func (f *field) value() (any, error) {
	text := strings.TrimSpace(f.Value)
	switch {
	case f.Kind == "text" && f.utc:
		if len(text) == len("2006-01-02T15:04") {
			text += ":00" // A browser leaves out seconds of zero.
		}
		return text + "Z", nil
	case f.Kind == "text":
		return f.Value, nil
	case !json.Valid([]byte(text)) && f.Kind == "number":
		return nil, fmt.Errorf("is no number")
	case !json.Valid([]byte(text)):
		return nil, fmt.Errorf("is not JSON: %s", whyNot(text))
	default:
		return json.RawMessage(text), nil
	}
}

// spread writes an input into the fields, and reports whether they hold the whole input.
func spread(fields []*field, input string) bool {
	whole, is := decoded([]byte(input)).(map[string]any)
	if !is {
		return false
	}
	put(fields, whole)
	object, ok := inputOf(fields)
	return ok && reflect.DeepEqual(decoded([]byte(jsonText(object))), any(whole))
}

func put(fields []*field, object map[string]any) {
	for _, f := range fields {
		v, there := object[f.key]
		inner, isObject := v.(map[string]any)
		switch {
		case f.Kind == "group" && (isObject || !there):
			put(f.Fields, inner)
		case !there || f.Kind == "group":
			f.Value = ""
		case f.Kind == "text":
			f.Value = textOf(v)
			if f.utc {
				f.Value = strings.TrimSuffix(f.Value, "Z")
			}
		default:
			f.Value = jsonText(v)
		}
	}
}

// decoded reads JSON, its numbers as they are written; nil: it is none.
func decoded(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// point shows each misfit at its field, or at the one around it, and returns those that are of none.
func point(fields []*field, misfits []makegood.Misfit) (rest []makegood.Misfit) {
	all := flat(fields)
	for _, m := range misfits {
		at := slices.IndexFunc(all, func(f *field) bool { return m.At == f.At || strings.HasPrefix(m.At, f.At+"/") })
		if at < 0 {
			rest = append(rest, m)
			continue
		}
		why := m.Why
		if inner := strings.TrimPrefix(m.At, all[at].At); inner != "" {
			why = inner + " " + why
		}
		all[at].Wrong = append(all[at].Wrong, why)
	}
	return rest
}

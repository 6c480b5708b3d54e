package docs

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
)

// changesSchema is the JSON Schema of what is published of changes.
const changesSchema = "docs/changes.schema.json"

// The schema is drawn from the type and its comments.
func TestTheSchemaOfChangesIsThatOfTheCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../change.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	schema := objectOf(t, file, reflect.TypeFor[makegood.Changes]())
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "A run of changes of a Makegood job"
	want, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *rewrite {
		if err := os.WriteFile("../../"+changesSchema, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, changesSchema); got != string(want) {
		t.Errorf("%s is not what the code says: go test ./lab/docs -run SchemaOfChanges -rewrite", changesSchema)
	}
}

// objectOf draws a type. What its JSON always has is required; others may be added to it.
func objectOf(t *testing.T, file *ast.File, of reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range of.NumField() {
		f := of.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		var property map[string]any
		switch {
		case f.Type == reflect.TypeFor[time.Time]():
			property = map[string]any{"type": "string", "format": "date-time"}
		case f.Type.Kind() == reflect.Slice:
			property = map[string]any{"type": "array", "minItems": 1, "items": objectOf(t, file, f.Type.Elem())}
		case f.Type.Kind() == reflect.Int:
			property = map[string]any{"type": "integer", "minimum": 0}
		case f.Type.Kind() == reflect.Bool:
			property = map[string]any{"type": "boolean"}
		case f.Type.Kind() == reflect.String:
			property = map[string]any{"type": "string"}
		default:
			t.Fatalf("%s.%s is a %s, of which nothing is drawn", of, f.Name, f.Type)
		}
		if about := aboutField(file, of.Name(), f.Name); about != "" {
			property["description"] = about
		}
		if properties[name] = property; rest == "" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// aboutField is the comment above a field.
func aboutField(file *ast.File, of, name string) (about string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is || spec.Name.Name != of {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, id := range f.Names {
				if id.Name == name {
					about = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return about
}

// What is published, and what the docs show of it, fits the schema; what has no number does not.
func TestWhatIsPublishedFitsItsSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, changesSchema)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("changes.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("changes.json")
	if err != nil {
		t.Fatal(err)
	}
	fits := func(text string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
	_, shown, _ := strings.Cut(read(t, "docs/changes.md"), "```json\n")
	shown, _, _ = strings.Cut(shown, "\n```")
	least, err := changes.Run{Changes: makegood.Changes{Version: 1, Changes: []makegood.Change{{Number: 1}}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"that of docs/changes.md": shown, "the least": least} {
		if err := fits(text); err != nil {
			t.Errorf("%s: %v:\n%s", name, err, text)
		}
	}
	for _, wrong := range []string{strings.ReplaceAll(shown, `"number"`, `"numbers"`), strings.ReplaceAll(least, `[{`, `[7,{`), `{}`} {
		if fits(wrong) == nil {
			t.Errorf("it fits, and should not: %s", wrong)
		}
	}
}

package httpapi_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/httpapi"
)

var (
	rewrite = flag.Bool("rewrite", false, "write testdata/api.txt anew")
	dist    = flag.String("dist", "", "write the OpenAPI document into this `file`")
)

// apiFile has the whole API, a line for each parameter, body, answer and field. A line that is gone breaks a client.
const apiFile = "testdata/api.txt"

type object = map[string]any

// The document is made at release. Its outline loses nothing of it, so a change of the API is a difference that somebody reads.
func TestTheAPIIsWhatIsWrittenDown(t *testing.T) {
	if *dist != "" {
		check(t, os.WriteFile(*dist, httpapi.Document(), 0o644))
	}
	got := outline(t, httpapi.Document())
	if *rewrite {
		check(t, os.WriteFile(apiFile, []byte(got), 0o644))
	}
	text, err := os.ReadFile(apiFile)
	check(t, err)
	if got == string(text) {
		return
	}
	is, was := strings.Split(got, "\n"), strings.Split(string(text), "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Errorf("gone: %s", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("new:  %s", line)
		}
	}
	t.Error("the API has changed: if it is meant, go generate ./internal/httpapi, and read the difference")
}

// outline writes an OpenAPI document with a line for each thing in it. A part that it has no short form for stands there as JSON.
func outline(t *testing.T, document []byte) string {
	t.Helper()
	var d object
	check(t, json.Unmarshal(document, &d))
	var out strings.Builder
	paths, components := take(d, "paths").(object), take(d, "components").(object)
	schemas := take(components, "schemas").(object)
	fmt.Fprintf(&out, "%s %s\n", asJSON(d), asJSON(components))
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].(object)
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			fmt.Fprintf(&out, "\n%s %s", strings.ToUpper(method), path)
			outlineOperation(&out, operations[method].(object))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		fmt.Fprintf(&out, "\n%s", name)
		outlineType(&out, schemas[name].(object))
	}
	return out.String()
}

func outlineOperation(out *strings.Builder, o object) {
	fmt.Fprintf(out, " %s: %s\n", take(o, "operationId"), take(o, "summary"))
	parameters, _ := take(o, "parameters").([]any)
	for _, p := range parameters {
		p := p.(object)
		in, name, kind, says := take(p, "in"), take(p, "name"), schemaLine(take(p, "schema").(object)), take(p, "description")
		fmt.Fprintf(out, "  %s %s %s%s", in, name, kind, rest(p))
		if says != nil {
			fmt.Fprintf(out, ": %s", says)
		}
		fmt.Fprintln(out)
	}
	if body, is := take(o, "requestBody").(object); is {
		fmt.Fprintf(out, "  body %s%s\n", contentLine(take(body, "content").(object)), rest(body))
	}
	answers, _ := take(o, "responses").(object)
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		answer := answers[status].(object)
		says := take(answer, "description")
		fmt.Fprintf(out, "  %s %s: %s%s\n", status, says, contentLine(take(answer, "content").(object)), rest(answer))
	}
	if len(o) > 0 {
		fmt.Fprintf(out, "  %s\n", asJSON(o))
	}
}

// outlineType writes the fields of a type. Those that are always there have no mark, others a question mark.
func outlineType(out *strings.Builder, o object) {
	properties, _ := take(o, "properties").(object)
	required, _ := take(o, "required").([]any)
	fmt.Fprintf(out, "%s\n", rest(o))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, any(name)) {
			mark = ""
		}
		fmt.Fprintf(out, "  %s%s %s\n", name, mark, schemaLine(properties[name].(object)))
	}
}

// contentLine writes a body by its media types; that of JSON is not named.
func contentLine(content object) string {
	var all []string
	for _, media := range slices.Sorted(maps.Keys(content)) {
		body := content[media].(object)
		line := media
		if schema, is := take(body, "schema").(object); is {
			line += " " + schemaLine(schema)
		}
		all = append(all, strings.TrimPrefix(line, "application/json ")+rest(body))
	}
	return strings.Join(all, " or ")
}

// schemaLine writes a schema shortly: NAME of a type, []KIND, KIND|null, string(a|b), and all else as JSON behind it.
func schemaLine(o object) string {
	line := ""
	if name, is := o["$ref"].(string); is {
		take(o, "$ref")
		line = strings.TrimPrefix(name, "#/components/schemas/")
	}
	if options, is := o["oneOf"].([]any); is && len(options) == 2 && asJSON(options[1]) == `{"type":"null"}` {
		take(o, "oneOf")
		line = schemaLine(options[0].(object)) + "|null"
	}
	if kind, is := o["type"].(string); is {
		take(o, "type")
		line = kind
		if items, is := o["items"].(object); is && kind == "array" {
			take(o, "items")
			line = "[]" + schemaLine(items)
		}
	}
	if values, is := o["enum"].([]any); is {
		take(o, "enum")
		var all []string
		for _, v := range values {
			all = append(all, fmt.Sprint(v))
		}
		line += "(" + strings.Join(all, "|") + ")"
	}
	return strings.TrimSpace(line + rest(o))
}

// take removes a member of an object, and returns it.
func take(o object, name string) any {
	value := o[name]
	delete(o, name)
	return value
}

// rest writes what is left of an object; nothing where nothing is.
func rest(o object) string {
	if len(o) == 0 {
		return ""
	}
	return " " + asJSON(o)
}

func asJSON(value any) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("httpapi: what was JSON is none: %v", err))
	}
	return strings.TrimSpace(text.String())
}

// Each change of the document is one of its outline.
func TestTheOutlineLosesNothing(t *testing.T) {
	const small = `{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a","summary":"A.","parameters":[{"in":"query","name":"n","schema":{"type":"integer","minimum":1}}],` +
		`"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/T"}}},"required":true},` +
		`"responses":{"200":{"description":"OK","content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/T"}}}}}}}}},` +
		`"components":{"schemas":{"T":{"type":"object","required":["x"],"properties":{"x":{"oneOf":[{"type":"string","enum":["p","q"]},{"type":"null"}]},"y":{"type":"boolean"}}}}}}`
	was := outline(t, []byte(small))
	for _, change := range [][2]string{
		{`3.1.0`, `3.2.0`},
		{`"/a"`, `"/b"`},
		{`"get"`, `"put"`},
		{`"A."`, `"B."`},
		{`"query"`, `"header"`},
		{`"minimum":1`, `"minimum":2`},
		{`"required":true`, `"required":false`},
		{`"200"`, `"201"`},
		{`"OK"`, `"Fine"`},
		{`"type":"array","items"`, `"type":"array","contains"`},
		{`["x"]`, `["x","y"]`},
		{`"p","q"`, `"p"`},
		{`{"type":"null"}`, `{"type":"integer"}`},
		{`"y":{"type":"boolean"}`, `"y":{"type":"string"}`},
		{`"y":`, `"z":`},
		{`"schemas":`, `"more":1,"schemas":`},
		{`application/json":{"schema":{"$ref"`, `text/plain":{"schema":{"$ref"`},
	} {
		changed := strings.Replace(small, change[0], change[1], 1)
		if got := outline(t, []byte(changed)); changed == small || got == was {
			t.Errorf("%q in place of %q: got the same outline\n%s", change[1], change[0], got)
		}
	}
}

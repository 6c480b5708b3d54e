package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

//go:generate go test . -run TestTheAPIIsWhatIsWrittenDown -rewrite

// documentVersion is the version of the API, raised when the meaning of an answer changes.
const documentVersion = "1"

// object is a JSON object; encoding/json sorts its keys, so the document is always the same.
type object = map[string]any

// Document returns the OpenAPI 3.1 document of the API, made of the table of routes and the types that
// they read and write.
func Document() []byte {
	d := drawing{schemas: object{}}
	paths := map[string]object{}
	for _, r := range routes() {
		if paths[r.path] == nil {
			paths[r.path] = object{}
		}
		paths[r.path][strings.ToLower(r.method)] = d.operation(r)
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Makegood", "version": documentVersion,
			"description": "Jobs: submit, look, list, and ask for cancel, undo, resubmit, pause and resume. Each change is stored before its answer.",
		},
		"paths": paths, "components": object{"schemas": d.schemas},
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		panic(fmt.Sprintf("httpapi: the document cannot be written: %v", err))
	}
	return out.Bytes()
}

// drawing collects the schemas of the types that were met.
type drawing struct{ schemas object }

func (d drawing) operation(r route) object {
	o := object{"operationId": r.name, "summary": r.summary}
	parameters := []object{}
	if strings.Contains(r.path, "{id}") {
		parameters = append(parameters, object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string", "pattern": idPattern.String()}})
	}
	if strings.Contains(r.path, "{hash}") {
		parameters = append(parameters, object{"name": "hash", "in": "path", "required": true, "schema": object{"type": "string", "pattern": control.HashPattern.String()}})
	}
	if strings.Contains(r.path, "{sha256}") {
		parameters = append(parameters, object{"name": "sha256", "in": "path", "required": true, "schema": object{"type": "string", "pattern": "^[0-9a-f]{64}$"}})
	}
	if strings.Contains(r.path, "{agent}") {
		parameters = append(parameters, object{"name": "agent", "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	if strings.Contains(r.path, "{step}") {
		parameters = append(parameters, object{"name": "step", "in": "path", "required": true, "schema": object{"type": "string", "pattern": "^" + limits.StepName.Pattern() + "$"}})
	}
	for _, p := range r.parameters {
		drawn := object{"name": p.name, "in": "query", "description": p.says, "schema": p.schema()}
		if p.header {
			drawn["in"], drawn["required"] = "header", true
		}
		parameters = append(parameters, drawn)
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if r.body != nil {
		o["requestBody"] = object{"content": d.content(r.body), "required": r.limit > 0 && !r.optional}
		if r.limit == 0 || r.optional {
			o["requestBody"].(object)["description"] = "May be left out where every field has its default; then it needs no Content-Type either."
		}
	}
	answers := object{}
	for _, status := range slices.Sorted(maps.Keys(r.answers)) {
		answers[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": d.content(r.answers[status])}
	}
	o["responses"] = answers
	return o
}

func (p parameter) schema() object {
	s := object{"type": "string"}
	if p.number {
		s = object{"type": "integer", "minimum": 1, "maximum": MaxLimit, "default": DefaultLimit}
	}
	if p.values != nil {
		s["enum"] = p.values
	}
	if p.many {
		return object{"type": "array", "items": s}
	}
	return s
}

func (d drawing) content(value any) object {
	if _, is := value.(payloadBytes); is {
		return object{anyType: object{}}
	}
	return object{"application/json": object{"schema": d.schema(reflect.TypeOf(value))}}
}

// schema returns the schema of a type. That of a struct is kept under its name and referred to.
func (d drawing) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[makegood.Duration]():
		return object{"type": "string", "description": "such as 15m or 1h30m"}
	case reflect.TypeFor[makegood.Workflow]():
		return object{"type": "object", "description": "a workflow, complete, with every default written out. Its fields are those of a workflow file, but for needs, any, shared and undo.none, which a file says shorter."}
	case reflect.TypeFor[makegood.Payload]():
		return d.payload()
	case reflect.TypeFor[json.RawMessage]():
		return object{"description": "any JSON value"}
	case reflect.TypeFor[makegood.ProcessState]():
		return object{"type": "string", "enum": domain.ProcessStates()}
	case reflect.TypeFor[makegood.StepState]():
		return object{"type": "string", "enum": domain.StepStates()}
	case reflect.TypeFor[makegood.Applied]():
		return object{"type": "string", "enum": []makegood.Applied{makegood.AppliedUnknown, makegood.AppliedNo}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"oneOf": []object{d.schema(t.Elem()), {"type": "null"}}}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Map:
		return object{"oneOf": []object{{"type": "object", "description": "texts by their names"}, {"type": "null"}}}
	case reflect.Struct:
		return d.structure(t)
	default:
		panic(fmt.Sprintf("httpapi: no schema for %s", t))
	}
}

// payload is the schema of a reference to a large payload, which writes itself.
func (d drawing) payload() object {
	inner := object{"by": object{"type": "string"}, "bytes": object{"type": "integer"}, "sha256": object{"type": "string"}, "type": object{"type": "string"}}
	d.schemas["Payload"] = object{
		"type": "object", "required": []string{limits.PayloadMark}, "additionalProperties": false,
		"properties": object{limits.PayloadMark: object{"type": "object", "properties": inner, "required": []string{"bytes", "sha256"}, "additionalProperties": false}},
	}
	return object{"$ref": "#/components/schemas/Payload"}
}

func (d drawing) structure(t reflect.Type) object {
	reference := object{"$ref": "#/components/schemas/" + t.Name()}
	if _, done := d.schemas[t.Name()]; done {
		return reference
	}
	properties, required := object{}, []string{}
	d.schemas[t.Name()] = object{"type": "object", "properties": properties}
	for embedded := range t.Fields() {
		if embedded.Anonymous {
			of := d.fields(embedded.Type, properties)
			required = append(required, of...)
		}
	}
	required = append(required, d.fields(t, properties)...)
	slices.Sort(required)
	d.schemas[t.Name()] = object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	return reference
}

// fields draws the fields of a struct, and returns the names of those that are always there.
func (d drawing) fields(t reflect.Type, properties object) (required []string) {
	for _, f := range fieldsOf(t) {
		properties[f.name] = d.schema(f.kind)
		if f.name == "as" {
			properties[f.name] = object{"type": "string", "enum": domain.SettledAs()}
		}
		if !f.optional {
			required = append(required, f.name)
		}
	}
	return required
}

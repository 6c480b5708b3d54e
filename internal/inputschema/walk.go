package inputschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/plain"
)

// holding says what a keyword holds.
type holding int

const (
	aValue holding = iota
	aSchema
	schemas
	namedSchemas
)

// keywords are those of JSON Schema 2020-12, with their contents; definitions is the former name of $defs.
var keywords = map[string]holding{
	"$schema": aValue, "$id": aValue, "$ref": aValue, "$anchor": aValue, "$dynamicRef": aValue, "$dynamicAnchor": aValue,
	"$vocabulary": aValue, "$comment": aValue, "$defs": namedSchemas, "definitions": namedSchemas,
	"allOf": schemas, "anyOf": schemas, "oneOf": schemas, "not": aSchema, "if": aSchema, "then": aSchema, "else": aSchema,
	"dependentSchemas": namedSchemas, "prefixItems": schemas, "items": aSchema, "contains": aSchema, "properties": namedSchemas,
	"patternProperties": namedSchemas, "additionalProperties": aSchema, "propertyNames": aSchema,
	"unevaluatedItems": aSchema, "unevaluatedProperties": aSchema, "contentSchema": aSchema,
	"type": aValue, "enum": aValue, "const": aValue, "multipleOf": aValue, "maximum": aValue, "exclusiveMaximum": aValue,
	"minimum": aValue, "exclusiveMinimum": aValue, "maxLength": aValue, "minLength": aValue, "pattern": aValue, "maxItems": aValue,
	"minItems": aValue, "uniqueItems": aValue, "maxContains": aValue, "minContains": aValue, "maxProperties": aValue,
	"minProperties": aValue, "required": aValue, "dependentRequired": aValue, "format": aValue, "contentEncoding": aValue,
	"contentMediaType": aValue, "title": aValue, "description": aValue, "default": aValue, "deprecated": aValue,
	"readOnly": aValue, "writeOnly": aValue, "examples": aValue,
}

// inPlace are the keywords with schemas that look at the same value as the schema around them.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// formats are those that the compiler checks.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period", "regex",
	"relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// counting is the format of a schema that says none: it looks, and allows everything.
const counting = "makegood-looks"

// walk goes through a schema once. It makes the checks that the compiler lacks, the nodes, and a copy in which each
// schema has a format, so that each visit is counted.
type walk struct {
	problems Problems
	doubts   []Problem
	// far: there are numbers in it that cost too much to be looked at.
	far bool
	// nodes are all schemas, by their JSON pointers.
	nodes map[string]*Node
	// anchors lead to schemas by name.
	anchors map[string]*Node
}

func (w *walk) problem(at, format string, args ...any) {
	w.problems = append(w.problems, Problem{at, fmt.Sprintf(format, args...)})
}

// also adds the compiler's objections to a schema, except at places that already have a problem.
func (w *walk) also(err error) {
	said := len(w.problems)
	for _, p := range problemsOf(err) {
		known := slices.ContainsFunc(w.problems[:said], func(q Problem) bool { return q.At == p.At || p.At == "" })
		if !known {
			w.problems = append(w.problems, p)
		}
	}
}

func (w *walk) doubt(at, format string, args ...any) {
	w.doubts = append(w.doubts, Problem{at, fmt.Sprintf(format, args...)})
}

// schema walks one schema that stands at a place.
func (w *walk) schema(at string, value any, depth int) (*Node, any) {
	n := &Node{at: at}
	w.nodes[at] = n
	doc, is := value.(map[string]any)
	if !is {
		// true, false, or what the compiler refuses.
		n.never = value == false
		return n, value
	}
	if depth > limits.MaxInputSchemaDepth {
		w.problem(at, "nested deeper than %d", limits.MaxInputSchemaDepth)
		return n, value
	}
	n.Doc = doc
	counted := make(map[string]any, len(doc)+1)
	for _, keyword := range slices.Sorted(maps.Keys(doc)) {
		place, value := join(at, keyword), doc[keyword]
		holds, known := keywords[keyword]
		switch {
		case !known && !strings.HasPrefix(keyword, "x-"):
			w.doubt(place, "%q is no keyword of JSON Schema 2020-12: it is ignored", keyword)
		case holds == aSchema:
			value = w.child(n, keyword, place, value, depth)
		case holds == schemas:
			value = w.list(n, keyword, place, value, depth)
		case holds == namedSchemas:
			value = w.named(n, keyword, place, value, depth)
		default:
			w.value(n, keyword, place, value)
		}
		counted[keyword] = value
	}
	return n, count(counted)
}

// count gives a schema the counting format. Its own format moves to the end of allOf.
func count(schema map[string]any) map[string]any {
	own, says := schema["format"]
	all, isList := schema["allOf"].([]any)
	switch _, isText := own.(string); {
	case !says:
	case !isText || !isList && schema["allOf"] != nil:
		return schema // which the compiler refuses
	default:
		schema["allOf"] = append(slices.Clip(all), map[string]any{"format": own})
	}
	schema["format"] = counting
	return schema
}

// child walks a schema of a schema, and notes it.
func (w *walk) child(of *Node, keyword, at string, value any, depth int) any {
	n, counted := w.schema(at, value, depth+1)
	of.children = append(of.children, child{keyword: keyword, node: n})
	return counted
}

func (w *walk) list(of *Node, keyword, at string, value any, depth int) any {
	items, is := value.([]any)
	if !is {
		return value
	}
	counted := make([]any, len(items))
	for i, item := range items {
		counted[i] = w.child(of, keyword, fmt.Sprintf("%s[%d]", at, i), item, depth+1)
	}
	return counted
}

func (w *walk) named(of *Node, keyword, at string, value any, depth int) any {
	members, is := value.(map[string]any)
	if !is {
		return value
	}
	counted := make(map[string]any, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		n, c := w.schema(join(at, name), members[name], depth+2)
		of.children = append(of.children, child{keyword: keyword, name: name, node: n})
		counted[name] = c
	}
	return counted
}

// value looks at a keyword that holds no schema.
func (w *walk) value(n *Node, keyword, at string, value any) {
	text, _ := value.(string)
	switch keyword {
	case "$schema":
		if strings.TrimSuffix(text, "#") != Draft {
			w.problem(at, "want %s, or leave it out", Draft)
		}
	case "$id":
		if n.at != "" {
			w.problem(at, "only the schema as a whole may have an $id")
		}
	case "$vocabulary":
		w.problem(at, "it stands in a schema of schemas only")
	case "$anchor", "$dynamicAnchor":
		w.anchors[text] = n
	case "format":
		if text != "" && !slices.Contains(formats, text) {
			w.doubt(at, "the format %.60q is not known: it is ignored", text)
		}
	case "pattern":
		w.pattern(at, text)
	}
	farNumbers(value, nil, func([]string) { w.far = true; w.problem(at, "%s", tooFar) })
}

// pattern refuses a pattern above the size limit, and one that package regexp does not read, with its words.
func (w *walk) pattern(at, text string) {
	_, err := plain.SizeOf(text)
	if err == nil {
		_, err = regexp.Compile(text)
	}
	if err != nil {
		w.problem(at, "%v (patterns are those of Go's package regexp)", err)
	}
}

// refs finds what each $ref leads to.
func (w *walk) refs() {
	places := slices.Sorted(maps.Keys(w.nodes))
	for _, at := range places {
		n := w.nodes[at]
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			if ref, is := n.Doc[keyword].(string); is {
				to := w.target(join(at, keyword), ref)
				n.refs = append(n.refs, to)
			}
		}
		for _, c := range n.children {
			if c.keyword == "patternProperties" {
				w.pattern(join(join(at, c.keyword), c.name), c.name)
			}
		}
	}
	if len(w.problems) > 0 {
		return
	}
	seen := map[*Node]bool{}
	for _, at := range places {
		if w.nodes[at].comesBack(seen) {
			w.problem(at, "it refers to itself and goes no deeper, so it would never end")
			return
		}
	}
}

// target returns the schema that a $ref leads to.
func (w *walk) target(at, ref string) *Node {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		w.problem(at, "%.200q leads out of the schema, and no schema is fetched: copy it to $defs, and refer to it as #/$defs/NAME", ref)
		return nil
	}
	name, err := url.PathUnescape(fragment)
	if err != nil {
		name = fragment
	}
	n := w.anchors[name]
	if name == "" || strings.HasPrefix(name, "/") {
		n = w.nodes[w.placeOf(name)]
	}
	if n == nil {
		w.problem(at, "there is no schema at %.200q", ref)
	}
	return n
}

// placeOf turns a JSON pointer into a place of the schema.
func (w *walk) placeOf(pointer string) (at string) {
	if pointer == "" {
		return ""
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = unescape(token)
		if _, err := strconv.Atoi(token); err == nil && w.nodes[at+"["+token+"]"] != nil {
			at += "[" + token + "]"
			continue
		}
		at = join(at, token)
	}
	return at
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// farthest bounds the power of ten of a checked number, and the length of its text: so its memory is bounded.
const farthest = 400

var tooFar = fmt.Sprintf("has more than %d digits, or a power of ten beyond %d, and cannot be checked", farthest, farthest)

// farNumbers names the places of numbers beyond farthest within a value.
func farNumbers(v any, at []string, found func(at []string)) {
	switch v := v.(type) {
	case json.Number:
		if isFar(v.String()) {
			found(at)
		}
	case []any:
		for i, item := range v {
			farNumbers(item, append(at, strconv.Itoa(i)), found)
		}
	case map[string]any:
		for name, item := range v {
			farNumbers(item, append(at, name), found)
		}
	}
}

func isFar(number string) bool {
	if len(number) > farthest {
		return true
	}
	e := strings.IndexAny(number, "eE")
	if e < 0 {
		return false
	}
	power, err := strconv.Atoi(number[e+1:])
	return err != nil || power > farthest || power < -farthest
}

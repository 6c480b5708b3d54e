package asl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxDepth is how deep values of a definition may be nested.
const MaxDepth = 100

// kind is what a JSON value is.
type kind int

const (
	isNull kind = iota
	isBool
	isNumber
	isText
	isList
	isObject
)

// node is a JSON value as it was written: members in their order, numbers by their digits.
type node struct {
	kind kind
	// text is the value of a text, the digits of a number, true or false.
	text    string
	items   []*node
	members []member
}

type member struct {
	name  string
	value *node
}

// Error says what is wrong with a definition, and where, as a JSON pointer.
type Error struct {
	Pointer string
	Message string
}

func (e Error) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// Errors are all that was found wrong with a definition.
type Errors []Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// below is the JSON pointer of a member or an element.
func below(pointer, name string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// textOf returns the member of that name if it is a text; else empty.
func (n *node) textOf(name string) string {
	if v := n.get(name); v != nil && v.kind == isText {
		return v.text
	}
	return ""
}

// json writes the value as compact JSON.
func (n *node) json() string {
	if n == nil {
		return ""
	}
	switch n.kind {
	case isNull:
		return "null"
	case isText:
		return quoted(n.text)
	case isList:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.json()
		}
		return "[" + strings.Join(parts, ",") + "]"
	case isObject:
		parts := make([]string, len(n.members))
		for i, m := range n.members {
			parts[i] = quoted(m.name) + ":" + m.value.json()
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return n.text
	}
}

// quoted writes a text as JSON, with < > and & as they are.
func quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic("asl: write a text as JSON: " + err.Error())
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// decodeJSON reads one JSON value, and refuses a member that is there twice and what is nested too deep.
func decodeJSON(source []byte) (*node, error) {
	d := decoder{json.NewDecoder(bytes.NewReader(source))}
	d.json.UseNumber()
	n, err := d.value("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return nil, Error{"", fmt.Sprintf("something follows the JSON value, at byte %d", d.json.InputOffset())}
	}
	return n, nil
}

type decoder struct{ json *json.Decoder }

func (d decoder) value(pointer string, depth int) (*node, error) {
	token, err := d.json.Token()
	if err != nil {
		return nil, d.fault(pointer, err)
	}
	if depth > MaxDepth {
		return nil, Error{clip(pointer), fmt.Sprintf("nested deeper than %d", MaxDepth)}
	}
	switch v := token.(type) {
	case nil:
		return &node{kind: isNull}, nil
	case bool:
		return &node{kind: isBool, text: strconv.FormatBool(v)}, nil
	case json.Number:
		return &node{kind: isNumber, text: v.String()}, nil
	case string:
		return &node{kind: isText, text: v}, nil
	case json.Delim:
		if v == '[' {
			return d.list(pointer, depth)
		}
		return d.object(pointer, depth)
	default:
		panic(fmt.Sprintf("asl: a token of JSON is a %T", token))
	}
}

func (d decoder) fault(pointer string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return Error{clip(pointer), fmt.Sprintf("not JSON, at byte %d: %v", d.json.InputOffset(), err)}
}

func (d decoder) list(pointer string, depth int) (*node, error) {
	n := &node{kind: isList}
	for d.json.More() {
		item, err := d.value(below(pointer, strconv.Itoa(len(n.items))), depth+1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	return n, d.end(pointer)
}

func (d decoder) object(pointer string, depth int) (*node, error) {
	n := &node{kind: isObject}
	seen := map[string]bool{}
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return nil, d.fault(pointer, err)
		}
		name, _ := token.(string) // JSON has no other names
		if seen[name] {
			return nil, Error{clip(below(pointer, name)), "is there twice"}
		}
		seen[name] = true
		value, err := d.value(below(pointer, name), depth+1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{name, value})
	}
	return n, d.end(pointer)
}

// end takes the bracket that ends a list or an object.
func (d decoder) end(pointer string) error {
	if _, err := d.json.Token(); err != nil {
		return d.fault(pointer, err)
	}
	return nil
}

// decodeYAML reads one YAML document. Tags of CloudFormation (!Sub, !GetAtt) become what their values say.
func decodeYAML(source []byte) (*node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, Error{"", "neither JSON nor YAML: " + err.Error()}
	}
	if len(document.Content) == 0 {
		return nil, Error{"", "there is nothing in it"}
	}
	return fromYAML(document.Content[0], "", 0)
}

func fromYAML(y *yaml.Node, pointer string, depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, Error{clip(pointer), fmt.Sprintf("nested deeper than %d", MaxDepth)}
	}
	switch y.Kind {
	case yaml.SequenceNode:
		n := &node{kind: isList}
		for i, c := range y.Content {
			item, err := fromYAML(c, below(pointer, strconv.Itoa(i)), depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	case yaml.MappingNode:
		return mappingOf(y, pointer, depth)
	case yaml.ScalarNode:
		return scalarOf(y), nil
	default:
		return nil, Error{clip(pointer), fmt.Sprintf("line %d: an alias is not taken here: write it out", y.Line)}
	}
}

func mappingOf(y *yaml.Node, pointer string, depth int) (*node, error) {
	n := &node{kind: isObject}
	for i := 0; i+1 < len(y.Content); i += 2 {
		name := y.Content[i].Value
		if n.get(name) != nil {
			return nil, Error{clip(below(pointer, name)), fmt.Sprintf("line %d: is there twice", y.Content[i].Line)}
		}
		value, err := fromYAML(y.Content[i+1], below(pointer, name), depth+1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{name, value})
	}
	return n, nil
}

func scalarOf(y *yaml.Node) *node {
	switch y.ShortTag() {
	case "!!null":
		return &node{kind: isNull}
	case "!!bool":
		return &node{kind: isBool, text: strconv.FormatBool(slices.Contains([]string{"true", "True", "TRUE"}, y.Value))}
	case "!!int", "!!float":
		if json.Valid([]byte(y.Value)) {
			return &node{kind: isNumber, text: y.Value}
		}
	}
	return &node{kind: isText, text: y.Value}
}

// clip shortens what is said of a definition.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

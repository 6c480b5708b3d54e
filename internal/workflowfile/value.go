package workflowfile

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/limits"
)

// nodeKind is the kind of a YAML node by the core schema of YAML 1.2. The parser's own opinion is not asked:
// it takes 1_000 for a number and 2024-01-01 for a time, as YAML 1.1 did.
type nodeKind int

const (
	kindText nodeKind = iota
	kindNull
	kindBool
	kindNumber
	// kindOdd is a scalar that readers of YAML disagree about, or that JSON cannot hold.
	kindOdd
	kindMapping
	kindList
)

func kindOf(n *yaml.Node) nodeKind {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	switch {
	case n.Kind == yaml.MappingNode:
		return kindMapping
	case n.Kind == yaml.SequenceNode:
		return kindList
	case n.Style&quoted != 0:
		return kindText
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return kindNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return kindBool
	}
	return kindOfNumber(n.Value)
}

// kindOfNumber distinguishes numbers from text.
func kindOfNumber(text string) nodeKind {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 {
		return kindText
	}
	switch strings.ToLower(digits) {
	case ".inf", ".nan":
		return kindOdd
	}
	if prefix := digits[:min(2, len(digits))]; prefix == "0x" || prefix == "0o" {
		if _, ok := new(big.Int).SetString(digits, 0); ok && digits == text && !strings.Contains(text, "_") {
			return kindNumber
		}
		return kindText
	}
	whole, rest, exponent := digits, "", ""
	if i := strings.IndexAny(whole, "eE"); i >= 0 {
		whole, exponent = whole[:i], whole[i+1:]
		if !allDigits(strings.TrimPrefix(strings.TrimPrefix(exponent, "-"), "+")) || strings.HasPrefix(exponent, "-+") {
			return kindText
		}
	}
	whole, rest, _ = strings.Cut(whole, ".")
	switch {
	case whole+rest == "" || strings.Trim(whole+rest, "0123456789") != "":
		return kindText
	case len(whole) > 1 && whole[0] == '0':
		return kindOdd
	default:
		return kindNumber
	}
}

func allDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// describe names the kind of a node, for a message.
func describe(n *yaml.Node) string {
	switch kindOf(n) {
	case kindMapping:
		return "a mapping"
	case kindList:
		return "a list"
	case kindNull:
		return "nothing"
	case kindBool:
		return "the boolean " + n.Value
	case kindNumber, kindOdd:
		return "the number " + clip(n.Value)
	default:
		return fmt.Sprintf("the text %q", clip(n.Value))
	}
}

func clip(text string) string { return limits.Shorten(text, 60) }

// with reads any value as JSON.
func (r reader) with(n *yaml.Node, path string) json.RawMessage {
	if n.Kind == yaml.ScalarNode && kindOf(n) == kindNull {
		r.wrong(path, "with has no value: leave it out for the job's input")
		return nil
	}
	return r.output(n, path)
}

// value appends n to out as JSON, and notes the lines of its parts.
func (r reader) value(out []byte, n *yaml.Node, path string, depth int) []byte {
	r.at(path, n)
	switch {
	case depth > canonical.MaxDepth:
		r.add(path, "nested deeper than %d", canonical.MaxDepth)
	case !r.plain(n, path):
	default:
		switch kindOf(n) {
		case kindMapping:
			return r.object(out, n, path, depth)
		case kindList:
			return r.array(out, n, path, depth)
		default:
			return r.scalar(out, n, path)
		}
	}
	return out
}

func (r reader) object(out []byte, n *yaml.Node, path string, depth int) []byte {
	out = append(out, '{')
	for i, m := range r.members(n, path) {
		if i > 0 {
			out = append(out, ',')
		}
		if strings.Contains(m.key, "${") {
			r.add(m.path, "an expression cannot stand in a key: make the object with jq")
		}
		r.lines[m.path] = m.line
		out = append(canonical.AppendString(out, m.key), ':')
		out = r.value(out, m.value, m.path, depth+1)
	}
	return append(out, '}')
}

func (r reader) array(out []byte, n *yaml.Node, path string, depth int) []byte {
	out = append(out, '[')
	for i, item := range n.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = r.value(out, item, fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
	return append(out, ']')
}

func (r reader) scalar(out []byte, n *yaml.Node, path string) []byte {
	switch kindOf(n) {
	case kindNull:
		return append(out, "null"...)
	case kindBool:
		return append(out, strings.ToLower(n.Value)...)
	case kindNumber:
		return append(out, number(n.Value)...)
	case kindOdd:
		if strings.ContainsAny(n.Value, "nN") {
			r.add(path, "%s cannot be written as JSON: put it in quotes if it is meant as text", n.Value)
		} else {
			r.add(path, "%s is a different number to different readers of YAML: put it in quotes, or leave out the zero in front", n.Value)
		}
		return out
	default:
		return canonical.AppendString(out, n.Value)
	}
}

// number writes a number of YAML as JSON: without +, and with digits on both sides of a point.
func number(text string) string {
	if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0o") {
		n, _ := new(big.Int).SetString(text, 0)
		return n.String()
	}
	text = strings.TrimPrefix(text, "+")
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	if i := strings.IndexByte(text, '.'); i >= 0 && (i+1 == len(text) || text[i+1] == 'e' || text[i+1] == 'E') {
		text = text[:i] + text[i+1:]
	}
	return sign + text
}

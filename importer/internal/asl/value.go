package asl

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A value is what a state machine would have somewhere, said by what a job of ours has: its input and the outputs of
// steps. It is followed through the states, so that a path of a later state is read where it comes from.
type value struct {
	form form
	// text is jq, or JSON of a constant.
	text string
	// parts are the elements of a list, the pieces of a text, or what an update is made of.
	parts []*value
	// names are those of fields, in the order of parts.
	names []string
	// pick says which value it is where that depends on which way was gone.
	pick *diagram
	// id is the same for equal values.
	id int
}

type form int

const (
	// formPath: text is a jq path, to which more can be added.
	formPath form = iota
	// formJQ: text is any other jq, whole in itself only between parentheses.
	formJQ
	// formConstant: text is JSON.
	formConstant
	// formObject has names and parts; formList has parts.
	formObject
	formList
	// formUpdate is parts[0] with members of these names set to the other parts.
	formUpdate
	// formText is a text of several parts: constants that are texts as they are, and others put in.
	formText
	// formPick is one of several values.
	formPick
	// formKind is the kind of an error: parts[0], which stands where the machine has the error's name.
	formKind
	// formSecret is a secret of the name text; it stands for a whole text of a with, and nowhere else.
	formSecret
	// formArrival is the input of a state with its variables: names has "$" and the variables.
	formArrival
)

// maxJQ is how long one expression may be. What would be longer nobody could read.
const maxJQ = 16 << 10

// pool makes values, the same one for the same content.
type pool struct {
	values   map[string]*value
	diagrams map[string]*diagram
	// long: an expression was longer than maxJQ, so what was made of it is of no use.
	long bool
	// written is what values and diagrams were written as: what many ways share is written once.
	written map[any]writing
}

// writing is jq; long: it would have been longer than maxJQ.
type writing struct {
	text        string
	whole, long bool
}

func newPool() *pool {
	return &pool{values: map[string]*value{}, diagrams: map[string]*diagram{}, written: map[any]writing{}}
}

// once writes what is of this key, unless that was written before.
func (p *pool) once(key any, write func() (text string, whole bool)) writing {
	done, known := p.written[key]
	if !known {
		before := p.long
		p.long = false
		done.text, done.whole = write()
		if len(done.text) > maxJQ {
			p.long, done.text, done.whole = true, "null", true
		}
		done.long, p.long = p.long, before
		p.written[key] = done
	}
	p.long = p.long || done.long
	return done
}

func (p *pool) make(v value) *value {
	var key strings.Builder
	fmt.Fprintf(&key, "%d %q", v.form, v.text)
	for i, part := range v.parts {
		name := ""
		if len(v.names) > 0 && len(v.names) == len(v.parts) {
			name = v.names[i]
		}
		fmt.Fprintf(&key, " %q:%d", name, part.id)
	}
	if v.form == formUpdate {
		fmt.Fprintf(&key, " %q", v.names)
	}
	if v.pick != nil {
		fmt.Fprintf(&key, " d%d", v.pick.id)
	}
	if known := p.values[key.String()]; known != nil {
		return known
	}
	v.id = len(p.values) + 1
	p.values[key.String()] = &v
	return &v
}

func (p *pool) path(text string) *value { return p.make(value{form: formPath, text: text}) }

// jq makes a value of any jq.
func (p *pool) jq(format string, args ...any) *value {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxJQ {
		p.long, text = true, "null"
	}
	return p.make(value{form: formJQ, text: text})
}

func (p *pool) constant(json string) *value { return p.make(value{form: formConstant, text: json}) }

func (p *pool) text(text string) *value { return p.constant(quoted(text)) }

func (p *pool) object(names []string, parts []*value) *value {
	return p.make(value{form: formObject, names: names, parts: parts})
}

func (p *pool) list(parts []*value) *value { return p.make(value{form: formList, parts: parts}) }

// node makes a constant of JSON, with its members to be found.
func (p *pool) node(n *node) *value {
	if n == nil {
		return p.constant("null")
	}
	switch n.kind {
	case isObject:
		var names []string
		var parts []*value
		for _, m := range n.members {
			names, parts = append(names, m.name), append(parts, p.node(m.value))
		}
		return p.object(names, parts)
	case isList:
		var parts []*value
		for _, item := range n.items {
			parts = append(parts, p.node(item))
		}
		return p.list(parts)
	default:
		return p.constant(n.json())
	}
}

// each applies f to a value, or to each of those that it may be.
func (p *pool) each(v *value, f func(*value) *value) *value {
	if v.form != formPick {
		return f(v)
	}
	return p.choose(p.mapLeaves(v.pick, f))
}

// choose makes a value of a diagram of values.
func (p *pool) choose(d *diagram) *value {
	if only := onlyLeaf(d); only != nil {
		return only
	}
	if len(leaves(d)) == 0 {
		return p.constant("null") // nobody comes here to read it
	}
	return p.make(value{form: formPick, pick: d})
}

// member returns v's member of a name.
func (p *pool) member(v *value, name string) *value {
	return p.each(v, func(v *value) *value {
		switch v.form {
		case formObject:
			if i := slices.Index(v.names, name); i >= 0 {
				return v.parts[i]
			}
			return p.constant("null")
		case formUpdate:
			if i := slices.Index(v.names, name); i >= 0 {
				return v.parts[i+1]
			}
			return p.member(v.parts[0], name)
		case formConstant, formList, formText:
			return p.constant("null")
		default:
			return p.path(p.operand(v) + dotted(name))
		}
	})
}

// index returns v's element at i, from the end where i is below 0.
func (p *pool) index(v *value, i int) *value {
	return p.each(v, func(v *value) *value {
		if v.form == formList && i >= 0 {
			if i < len(v.parts) {
				return v.parts[i]
			}
			return p.constant("null")
		}
		return p.path(fmt.Sprintf("%s[%d]", p.operand(v), i))
	})
}

// set returns v with the member at the end of a path set.
func (p *pool) set(v *value, path []string, to *value) *value {
	if len(path) == 0 {
		return to
	}
	return p.each(v, func(v *value) *value {
		inner := p.set(p.member(v, path[0]), path[1:], to)
		switch v.form {
		case formObject:
			names, parts := slices.Clone(v.names), slices.Clone(v.parts)
			if i := slices.Index(names, path[0]); i >= 0 {
				parts[i] = inner
				return p.object(names, parts)
			}
			return p.object(append(names, path[0]), append(parts, inner))
		case formUpdate:
			names, parts := slices.Clone(v.names), slices.Clone(v.parts)
			if i := slices.Index(names, path[0]); i >= 0 {
				parts[i+1] = inner
			} else {
				names, parts = append(names, path[0]), append(parts, inner)
			}
			return p.make(value{form: formUpdate, names: names, parts: parts})
		default:
			return p.make(value{form: formUpdate, names: []string{path[0]}, parts: []*value{v, inner}})
		}
	})
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// jqWords cannot stand as a name without quotes.
var jqWords = []string{
	"and", "as", "def", "elif", "else", "end", "foreach", "if", "import", "include", "label", "module", "not", "or", "reduce", "then", "try", "catch",
}

func isPlain(name string) bool { return plainName.MatchString(name) && !slices.Contains(jqWords, name) }

// dotted is how jq names a member behind a value.
func dotted(name string) string {
	if isPlain(name) {
		return "." + name
	}
	return "[" + quoted(name) + "]"
}

// operand writes a value as jq that can stand anywhere.
func (p *pool) operand(v *value) string {
	text, whole := p.write(v)
	if whole {
		return text
	}
	return "(" + text + ")"
}

// expression writes a value as jq that stands alone.
func (p *pool) expression(v *value) string {
	text, _ := p.write(v)
	return text
}

// write writes a value as jq, and reports whether it can stand anywhere without parentheses.
func (p *pool) write(v *value) (text string, whole bool) {
	done := p.once(v, func() (string, bool) { return p.writeForm(v) })
	return done.text, done.whole
}

func (p *pool) writeForm(v *value) (text string, whole bool) {
	switch v.form {
	case formPath:
		text, whole = v.text, true
	case formJQ:
		text = v.text
	case formConstant:
		text, whole = v.text, !strings.HasPrefix(v.text, "-")
	case formObject:
		text, whole = p.writeObject(v.names, v.parts), true
	case formList:
		parts := make([]string, len(v.parts))
		for i, part := range v.parts {
			parts[i] = p.operand(part)
		}
		text, whole = "["+strings.Join(parts, ", ")+"]", true
	case formUpdate:
		text = p.operand(v.parts[0]) + " + " + p.writeObject(v.names, v.parts[1:])
	case formText:
		text, whole = p.writeText(v.parts), true
	case formKind:
		text, whole = p.write(v.parts[0])
	case formPick:
		text = p.writeChoice(v.pick)
	case formSecret:
		text, whole = "null", true // an expression never has a secret
	default:
		panic(fmt.Sprintf("asl: a value of form %d is written", v.form))
	}
	return text, whole
}

func (p *pool) writeObject(names []string, parts []*value) string {
	fields := make([]string, len(parts))
	for i, part := range parts {
		name := names[i]
		if !isPlain(name) {
			name = quoted(name)
		}
		fields[i] = name + ": " + p.operand(part)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// writeText writes a text with values put in, as a string of jq.
func (p *pool) writeText(parts []*value) string {
	var out strings.Builder
	for _, part := range parts {
		if literal, is := literalText(part); is {
			text := quoted(literal)
			out.WriteString(text[1 : len(text)-1])
			continue
		}
		out.WriteString(`\(` + p.expression(part) + ")")
	}
	return `"` + out.String() + `"`
}

// literalText returns the text that a value surely is.
func literalText(v *value) (string, bool) {
	if v.form != formConstant || !strings.HasPrefix(v.text, `"`) {
		return "", false
	}
	n, err := decodeJSON([]byte(v.text))
	if err != nil || n.kind != isText {
		return "", false
	}
	return n.text, true
}

// literalInt returns the whole number that a value surely is.
func literalInt(v *value) (int, bool) {
	if v == nil || v.form != formConstant {
		return 0, false
	}
	n, err := strconv.Atoi(v.text)
	return n, err == nil
}

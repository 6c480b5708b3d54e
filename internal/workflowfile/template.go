package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

// expression is a compiled ${ ... }.
type expression struct {
	program *jq.Program
	reads   reads
}

// value returns the expression's one value.
func (e *expression) value(ctx context.Context, root any) (any, error) {
	return e.within(ctx, root, nil)
}

// within is value, charged to a budget.
func (e *expression) within(ctx context.Context, root any, budget *jq.Budget) (any, error) {
	value, err := e.program.RunWithin(ctx, root, budget)
	if err != nil {
		return nil, e.fault(err)
	}
	return value, nil
}

func (e *expression) fault(err error) error {
	return fmt.Errorf("${%s}: %w", clip(oneLine(e.program.Source())), err)
}

// template is JSON with expressions in its strings, compiled: exactly one of its fields is set.
type template struct {
	// constant is JSON without expressions.
	constant []byte
	// whole is a string that is one expression.
	whole *expression
	// texts is a string with expressions in it.
	texts []piece
	// fields are the members of an object, by key.
	fields []namedTemplate
	items  []*template
}

// piece is a literal, an expression, or the place of a secret, with the secret's name.
type piece struct {
	literal    string
	expression *expression
	secret     string
}

type namedTemplate struct {
	key   string
	value *template
}

// compiler makes templates of the values of one step, or its undo.
type compiler struct {
	*check
	view view
}

// template compiles a value at path.
func (c compiler) template(path string, value any) *template {
	switch v := value.(type) {
	case string:
		return c.text(path, v)
	case []any:
		return c.list(path, v)
	case map[string]any:
		return c.object(path, v)
	default:
		return &template{constant: constant(v)}
	}
}

// constant writes a value that jq.Decode read.
func constant(v any) []byte {
	out, err := jq.Append(nil, v, MaxSourceBytes)
	if err != nil {
		panic(fmt.Sprintf("workflowfile: write a constant: %v", err))
	}
	return out
}

func (c compiler) list(path string, values []any) *template {
	t := &template{items: make([]*template, len(values))}
	allConstant := true
	for i, v := range values {
		t.items[i] = c.template(fmt.Sprintf("%s[%d]", path, i), v)
		allConstant = allConstant && t.items[i].constant != nil
	}
	if allConstant {
		return t.fold()
	}
	return t
}

func (c compiler) object(path string, members map[string]any) *template {
	t := &template{fields: []namedTemplate{}}
	allConstant := true
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if strings.Contains(key, "${") {
			c.add(join(path, key), "an expression cannot stand in a key: make the object with jq")
		}
		value := c.template(join(path, key), members[key])
		t.fields = append(t.fields, namedTemplate{key, value})
		allConstant = allConstant && value.constant != nil
	}
	if allConstant {
		return t.fold()
	}
	return t
}

// fold makes a constant of a template with constant parts.
func (t *template) fold() *template {
	out, err := t.append(nil, &filling{value: func(*expression) (any, error) { panic("workflowfile: an expression in a constant") }})
	if err != nil {
		panic(fmt.Sprintf("workflowfile: fold a constant: %v", err))
	}
	return &template{constant: out}
}

func (c compiler) text(path, text string) *template {
	parts, err := split(text)
	if err != nil {
		c.add(path, "%q: %v", clip(text), err)
	}
	t := &template{texts: []piece{}}
	for _, p := range parts {
		secret, is := secretIn(p)
		switch {
		case is:
			c.secret(path, secret)
			t.texts = append(t.texts, piece{secret: secret})
		case p.expression && len(parts) == 1:
			return &template{whole: c.expression(path, p.text)}
		case p.expression:
			t.texts = append(t.texts, piece{expression: c.expression(path, p.text)})
		default:
			c.otherNotation(path, p.text)
			t.texts = append(t.texts, piece{literal: p.text})
		}
	}
	if !slices.ContainsFunc(t.texts, func(p piece) bool { return p.expression != nil || p.secret != "" }) {
		return t.fold()
	}
	return t
}

// otherNotation is the notation of expressions in other tools.
var otherNotation = regexp.MustCompile(`\{\{\s*\$?\.?(?:input|steps|job)\b[^}]*\}\}|\$\.(?:input|steps|job)\b[A-Za-z0-9_.\[\]]*`)

// otherNotation warns of text in the notation of other tools, and shows the notation here.
func (c compiler) otherNotation(path, text string) {
	if found := otherNotation.FindString(text); found != "" {
		meant := "." + strings.TrimLeft(strings.TrimSpace(strings.Trim(found, "{}")), "$.")
		c.doubt(path, "%q is plain text here: an expression stands between ${ and }: ${ %s }", clip(found), clip(meant))
	}
}

// expression compiles jq at path, and adds its errors; with errors the result is unusable, but not nil.
func (c compiler) expression(path, source string) *expression {
	fail := func(err error) *expression {
		c.add(path, "${%s}: %v", clip(oneLine(source)), err)
		return &expression{}
	}
	query, err := jq.Parse(source)
	if errors.Is(err, jq.UnknownFunction(secretFunction)) {
		return fail(errSecret)
	}
	if err != nil {
		return fail(err)
	}
	program, err := jq.Compile(source)
	if err != nil {
		return fail(err)
	}
	reads, problems := scanQuery(query, c.view)
	for _, problem := range problems {
		c.add(path, "%s", problem)
	}
	c.level = max(c.level, reads.level())
	return &expression{program: program, reads: reads}
}

// reads is the data that all expressions of a template read.
func (t *template) reads() (all reads) {
	switch {
	case t.whole != nil:
		all.add(t.whole.reads)
	default:
		for _, p := range t.texts {
			if p.expression != nil {
				all.add(p.expression.reads)
			}
		}
		for _, f := range t.fields {
			all.add(f.value.reads())
		}
		for _, item := range t.items {
			all.add(item.reads())
		}
	}
	return all
}

// filling is a template being filled: the results of its expressions, and the places of secrets.
type filling struct {
	value   func(*expression) (any, error)
	secrets []makegood.TaskSecret
	// path leads to the value under construction.
	path []string
}

// within goes into a member or an element, as long as do takes.
func (f *filling) within(key string, do func() error) error {
	f.path = append(f.path, key)
	defer func() { f.path = f.path[:len(f.path)-1] }()
	return do()
}

// append appends the template to out as JSON, with the values of its expressions; secrets are left out, and noted.
func (t *template) append(out []byte, f *filling) (_ []byte, err error) {
	switch {
	case t.constant != nil:
		return append(out, t.constant...), nil
	case t.whole != nil:
		return t.whole.append(out, f.value)
	case t.texts != nil:
		return appendTexts(out, t.texts, f)
	case t.fields != nil:
		out = append(out, '{')
		for i, field := range t.fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(canonical.AppendString(out, field.key), ':')
			if err := f.within(field.key, func() error { out, err = field.value.append(out, f); return err }); err != nil {
				return nil, at(field.key, err)
			}
		}
		return append(out, '}'), nil
	default:
		out = append(out, '[')
		for i, item := range t.items {
			if i > 0 {
				out = append(out, ',')
			}
			if err := f.within(strconv.Itoa(i), func() error { out, err = item.append(out, f); return err }); err != nil {
				return nil, at(fmt.Sprintf("[%d]", i), err)
			}
		}
		return append(out, ']'), nil
	}
}

// append appends the expression's value as JSON.
func (e *expression) append(out []byte, value func(*expression) (any, error)) ([]byte, error) {
	v, err := value(e)
	if err != nil {
		return nil, err
	}
	out, err = jq.Append(out, v, makegood.MaxPayloadBytes)
	if err != nil {
		return nil, e.fault(err)
	}
	return out, nil
}

// appendTexts splices values into a text: strings as they are, others as compact JSON.
func appendTexts(out []byte, texts []piece, f *filling) ([]byte, error) {
	var text []byte
	for _, p := range texts {
		text = append(text, p.literal...)
		if p.secret != "" {
			f.secrets = append(f.secrets, makegood.TaskSecret{Path: pointer(f.path), At: utf8.RuneCount(text), Name: p.secret})
		}
		if p.expression == nil {
			continue
		}
		v, err := f.value(p.expression)
		if err != nil {
			return nil, err
		}
		if s, isString := v.(string); isString && len(text)+len(s) <= makegood.MaxPayloadBytes {
			text = append(text, s...)
		} else if text, err = jq.Append(text, v, makegood.MaxPayloadBytes); err != nil {
			return nil, p.expression.fault(err)
		}
	}
	return canonical.AppendString(out, string(text)), nil
}

// placeError is an error of an expression, with the place in with where that stands.
type placeError struct {
	place string
	err   error
}

func (e *placeError) Error() string { return e.place + ": " + e.err.Error() }
func (e *placeError) Unwrap() error { return e.err }

// at puts an outer place before an error.
func at(place string, err error) error {
	inner, ok := err.(*placeError)
	switch {
	case !ok:
		return &placeError{place, err}
	case strings.HasPrefix(inner.place, "["):
		return &placeError{place + inner.place, inner.err}
	default:
		return &placeError{place + "." + inner.place, inner.err}
	}
}

// decodeWith reads a with that is canonical JSON.
func decodeWith(with json.RawMessage) any {
	v, err := jq.Decode(with)
	if err != nil {
		panic(fmt.Sprintf("workflowfile: read canonical JSON: %v", err))
	}
	return v
}

package workflowfile

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// field is a row of the table: a field of an object of a workflow file.
type field struct {
	name string
	is   kind
	// about is the sentence in the JSON Schema and the reference; %v in it is the limit.
	about string
	// standard is the default, if the schema names it.
	standard any
	required bool
}

// row is a field without a default; about may be empty.
func row(name string, is kind, about string) field { return field{name: name, is: is, about: about} }

// or sets the default.
func (f field) or(standard any) field {
	f.standard = standard
	return f
}

// must makes the field required.
func (f field) must() field {
	f.required = true
	return f
}

// schema describes the field.
func (f field) schema() *Schema {
	s := f.is.place()
	if f.about != "" {
		s.Description = strings.ReplaceAll(f.about, "%v", fmt.Sprint(f.is.most))
	}
	s.Default = f.standard
	return s
}

// kind is the kind of a value of a workflow file, bound to its place in a Go value. unless and refuse look at the value
// when the kind is bound, so a value that was read is bound anew for its check.
type kind struct {
	// read reads the value into its place.
	read func(r reader, n *yaml.Node, path string)
	// check checks the value; nil: other code does.
	check func(r rules, path string)
	// schema describes the value.
	schema func() *Schema
	// name is the name of its definition in the JSON Schema. Empty: the schema describes it in every place.
	name string
	// most is the limit that a sentence about a field names.
	most any
}

// place is the schema in the place of a value: a reference if the kind has a name.
func (k kind) place() *Schema {
	if k.name != "" {
		return &Schema{Ref: Definitions + k.name}
	}
	return k.schema()
}

// as sets the schema.
func (k kind) as(schema func() *Schema) kind {
	k.schema = schema
	return k
}

// atMost sets the limit that a sentence names.
func (k kind) atMost(most any) kind {
	k.most = most
	return k
}

// and adds a rule.
func (k kind) and(rule func(r rules, path string)) kind {
	if first := k.check; first != nil {
		k.check = func(r rules, path string) { first(r, path); rule(r, path) }
	} else {
		k.check = rule
	}
	return k
}

// unless removes the rules where they do not apply.
func (k kind) unless(not bool) kind {
	if not {
		k.check = nil
	}
	return k
}

// refuse adds a rule that refuses a value if it is wrong.
func (k kind) refuse(wrong bool, format string, args ...any) kind {
	if !wrong {
		return k
	}
	return k.and(func(r rules, path string) { r.add(path, format, args...) })
}

// of binds a rule to the value that it checks.
func of[T any](t *T, rule func(r rules, path string, t T)) func(r rules, path string) {
	return func(r rules, path string) { rule(r, path, *t) }
}

// into is a kind that the reader has a method for. It has no rules, and its schema allows any value.
func into[T any](at *T, read func(r reader, n *yaml.Node, path string) T) kind {
	return kind{read: func(r reader, n *yaml.Node, path string) { *at = read(r, n, path) }, schema: typed("")}
}

func textOf[T ~string](at *T) kind {
	return into(at, func(r reader, n *yaml.Node, path string) T { return T(r.text(n, path)) }).as(typed("string"))
}

// word is one of several words.
func word[T ~string](at *T, words ...T) kind {
	return textOf(at).as(func() *Schema {
		all := ""
		for _, w := range words {
			all += "|" + string(w)
		}
		return matching("^(" + all[1:] + ")$")
	})
}

// phrase is a text that the Go value parses; the pattern describes it.
func phrase(at encoding.TextUnmarshaler, pattern string) kind {
	return kind{read: func(r reader, n *yaml.Node, path string) {
		text := r.text(n, path)
		if text == "" {
			return
		}
		if err := at.UnmarshalText([]byte(text)); err != nil {
			r.wrong(path, "%s: %v", last(path), err)
		}
	}, schema: func() *Schema { return matching("^(" + pattern + ")$") }}
}

func nameOf(at *string, of limits.NameOf) kind {
	return textOf(at).as(func() *Schema { return matching("^" + of.Pattern() + "$") }).and(func(r rules, path string) {
		if err := of.Check(*at); err != nil {
			r.add(path, "%v", err)
		}
	})
}

func expressionOf(at *string) kind { return into(at, reader.expressionText).as(typed("string")) }

func duration(at *makegood.Duration, least, most time.Duration) kind {
	return into(at, reader.duration).as(func() *Schema { return matching(DurationPattern) }).atMost(most).and(func(r rules, path string) {
		name, _, _ := strings.Cut(last(path), "[")
		r.duration(path, name, *at, least, most)
	})
}

// count is a number from 1 on.
func count(at *int, most int) kind {
	return into(at, func(r reader, n *yaml.Node, path string) int { return r.count(n, path, most) }).
		as(oneTo(most)).
		and(func(r rules, path string) { r.count(path, *at, fmt.Sprint(*at), most) })
}

// fixed is any value of at most so many bytes as JSON; refusal refuses one with an expression.
func fixed(at *json.RawMessage, most int, refusal string) kind {
	return into(at, reader.output).atMost(most).and(func(r rules, path string) {
		if len(*at) > most {
			r.add(path, "%d bytes as JSON, the limit is %d", len(*at), most)
		} else if bytes.Contains(*at, []byte("${")) {
			r.add(path, "%s", refusal)
		}
	})
}

// opposite is a boolean that the Go value has the opposite of.
func opposite(at *bool) kind {
	return into(at, func(r reader, n *yaml.Node, path string) bool { return !r.boolean(n, path) }).as(typed("boolean"))
}

// object is a mapping with these fields. what names it in messages, name in the JSON Schema.
func object(what, name string, fields ...field) kind {
	return kind{
		name: name,
		read: func(r reader, n *yaml.Node, path string) { r.mapping(n, path, what, fields) },
		check: func(r rules, path string) {
			for _, f := range fields {
				if f.is.check != nil {
					f.is.check(r, join(path, f.name))
				}
			}
		},
		schema: func() *Schema { return closed(fields) },
	}
}

// optional is an object that the Go value points to; nil: the file has none.
func optional[T any](at **T, to func(*T) kind) kind {
	return kind{
		read: func(r reader, n *yaml.Node, path string) {
			*at = new(T)
			to(*at).read(r, n, path)
		},
		check: func(r rules, path string) {
			if *at != nil {
				to(*at).check(r, path)
			}
		},
		schema: func() *Schema { return to(new(T)).place() },
	}
}

// items is a list: what and many name it and its items in messages.
type items struct {
	what, many  string
	least, most int
	distinct    bool
	// orOne: one item may stand in the place of a list.
	orOne bool
}

// list is a list of items.
func list[T any](at *[]T, is items, item func(i int, t *T) kind) kind {
	return kind{
		most: is.most,
		read: func(r reader, n *yaml.Node, path string) {
			*at = []T{}
			one := func(n *yaml.Node, path string) {
				var t T // An item that cannot be read stays in its place, so that the paths of the others are right.
				item(len(*at), &t).read(r, n, path)
				*at = append(*at, t)
			}
			if is.orOne && kindOf(n) == kindText {
				one(n, path)
			} else {
				r.list(n, path, is.what, one)
			}
		},
		check: func(r rules, path string) {
			if len(*at) > is.most {
				r.add(path, "%d %s, the limit is %d", len(*at), is.many, is.most)
				return
			}
			for i := range *at {
				item(i, &(*at)[i]).check(r, fmt.Sprintf("%s[%d]", path, i))
			}
		},
		schema: func() *Schema {
			one := item(0, new(T)).place()
			s := &Schema{Type: "array", MinItems: is.least, MaxItems: is.most, UniqueItems: is.distinct, Items: one}
			if is.orOne {
				return &Schema{OneOf: []*Schema{one, s}}
			}
			return s
		},
	}
}

// Package inputschema validates an input of a job against the JSON Schema (draft 2020-12) of its workflow. It knows
// the schema and the input, and no jobs.
//
// A schema is self-contained: no other document is fetched, and a $ref leads to a place within it. Its cost is
// bounded: its size and depth, the range of numbers, the looks at one input, and the number of reported misfits.
// Patterns are those of package regexp: a match costs the text times the pattern's states, and counts as so many
// looks. No message repeats a value of the input, since messages are logged and inputs are not.
package inputschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// MaxLooks bounds the looks at one input: each visit of a value by a schema counts, with its members or its length, and
// each match of a pattern. A schema that looks at each value once takes half for makegood.MaxPayloadBytes of input.
const MaxLooks = 500_000

// Draft is the dialect that a schema may name as its $schema.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// resource is the compiler's name for the schema. It is never read from there.
const resource = "makegood:input"

// Schema is the compiled schema of an input. It may be used by many goroutines.
type Schema struct {
	// Root is the schema for the whole input.
	Root *Node
	// Doubts are parts of the schema that are allowed, but probably not meant.
	Doubts []Problem

	// counted is the schema as compiled for each checker, and patterns are its patterns, which all checkers share.
	counted  any
	patterns sync.Map
	// idle are unused checkers.
	idle sync.Pool
}

// Problem is a fault of a schema.
type Problem struct {
	// At is the place within the schema: properties.total.minimum, allOf[0]; empty: the whole schema.
	At      string
	Message string
}

// Problems is all that was found wrong with a schema, in the order of its places.
type Problems []Problem

// Error is the first problem.
func (p Problems) Error() string {
	if p[0].At == "" {
		return p[0].Message
	}
	return p[0].At + ": " + p[0].Message
}

// Compile compiles a schema, which is JSON. The error is a Problems.
func Compile(text json.RawMessage) (*Schema, error) {
	if len(text) > limits.MaxInputSchemaBytes {
		return nil, Problems{{Message: fmt.Sprintf("%d bytes as JSON, the limit is %d", len(text), limits.MaxInputSchemaBytes)}}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, Problems{{Message: fmt.Sprintf("not JSON: %v", err)}}
	}
	root, is := doc.(map[string]any)
	if !is {
		return nil, Problems{{Message: "want a mapping: a JSON Schema"}}
	}
	w := &walk{nodes: map[string]*Node{}, anchors: map[string]*Node{}}
	node, counted := w.schema("", root, 1)
	w.refs()
	s := &Schema{Root: node, Doubts: w.doubts, counted: counted}
	if !w.far {
		first, err := s.checker()
		s.idle.Put(first)
		w.also(err)
	}
	if len(w.problems) > 0 {
		return nil, w.problems
	}
	return s, nil
}

type nowhere struct{}

func (nowhere) Load(string) (any, error) {
	return nil, errors.New("no schema is fetched: it must be whole in itself")
}

// Check returns the misfits of an input, which is JSON: by place, at most limits.MaxMisfits. None: it fits.
func (s *Schema) Check(input []byte) (misfits []makegood.Misfit) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return []makegood.Misfit{{Why: "is not JSON"}}
	}
	var far []makegood.Misfit
	if farNumbers(v, nil, func(at []string) {
		far = append(far, makegood.Misfit{At: pointer(at), Why: tooFar})
	}); len(far) > 0 {
		return sorted(far)
	}
	c, err := s.begin()
	if err != nil {
		return []makegood.Misfit{{Why: "cannot be checked"}}
	}
	defer s.idle.Put(c)
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case tooMuch:
			misfits = []makegood.Misfit{{Why: fmt.Sprintf("takes more than %d looks to check, which is the limit: the schema refers to itself in too many ways, or the input is too large for it, or for its patterns", MaxLooks)}}
		default:
			panic(r)
		}
	}()
	err = c.check(v)
	if err == nil {
		return nil
	}
	invalid := new(jsonschema.ValidationError)
	if !errors.As(err, &invalid) {
		return []makegood.Misfit{{Why: "cannot be checked"}}
	}
	return sorted(misfitsOf(invalid))
}

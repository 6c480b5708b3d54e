package inputschema

import (
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/makegood-dev/makegood/internal/plain"
)

// checker is a compiled schema with its count: it looks at one input at a time.
type checker struct {
	looks    int
	counts   bool
	compiled *jsonschema.Schema
}

// begin returns an unused checker.
func (s *Schema) begin() (*checker, error) {
	if c, ok := s.idle.Get().(*checker); ok {
		return c, nil
	}
	return s.checker()
}

// checker compiles the schema with a count of the looks of each part.
func (s *Schema) checker() (c *checker, err error) {
	c = &checker{}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(nowhere{})
	compiler.AssertFormat()
	compiler.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) { return s.pattern(c, source) })
	compiler.RegisterFormat(&jsonschema.Format{Name: counting, Validate: func(v any) error { c.look(v); return nil }})
	if err := compiler.AddResource(resource, s.counted); err != nil {
		return c, err
	}
	c.compiled, err = compiler.Compile(resource)
	return c, err
}

// check looks at an input.
func (c *checker) check(v any) error {
	c.looks, c.counts = 0, true
	defer func() { c.counts = false }()
	return c.compiled.Validate(v)
}

// tooMuch is thrown where an input takes more than MaxLooks.
type tooMuch struct{}

// count counts looks, while an input is looked at: a schema is checked by a schema, too.
func (c *checker) count(looks int) {
	if !c.counts {
		return
	}
	if c.looks += looks; c.looks > MaxLooks {
		panic(tooMuch{})
	}
}

// look counts a visit of a value.
func (c *checker) look(v any) {
	const textOfOneLook = 64
	switch v := v.(type) {
	case map[string]any:
		c.count(1 + len(v))
	case []any:
		c.count(1 + len(v))
	case string:
		c.count(1 + len(v)/textOfOneLook)
	default:
		c.count(1)
	}
}

// sized is a pattern with its size.
type sized struct {
	*regexp.Regexp
	states int
}

// matcher is a pattern that counts the text it reads.
type matcher struct {
	sized
	c *checker
}

// MatchString counts what matching takes at most, and matches.
func (m matcher) MatchString(text string) bool {
	const stepsOfOneLook = 128
	m.c.count(1 + (len(text)+1)*(1+m.states)/stepsOfOneLook)
	return m.Regexp.MatchString(text)
}

// pattern compiles a pattern. Those of the schema were compiled with it; another is a text of the input that must be
// a pattern, and no larger than one that an expression brings.
func (s *Schema) pattern(c *checker, source string) (jsonschema.Regexp, error) {
	if known, ok := s.patterns.Load(source); ok {
		return matcher{known.(sized), c}, nil
	}
	const looksAtAByte = 16
	c.count(looksAtAByte * len(source))
	size, err := plain.SizeOf(source)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	if !c.counts {
		s.patterns.Store(source, sized{re, size.States})
	}
	return matcher{sized{re, size.States}, c}, nil
}

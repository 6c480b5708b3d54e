package workflowfile

import (
	"strings"

	"github.com/itchyny/gojq"
)

func (s *scan) term(t *gojq.Term, in shape, sc *scope) shape {
	v := s.head(t, in, sc)
	for _, suffix := range t.SuffixList {
		switch {
		case suffix.Index != nil:
			v = s.index(suffix.Index, v, in, sc)
		case suffix.Iter:
			s.use(v)
			v = shape{}
		}
	}
	return v
}

// head returns the shape of a term without its suffixes.
func (s *scan) head(t *gojq.Term, in shape, sc *scope) shape {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeIndex:
		return s.index(t.Index, in, in, sc)
	case gojq.TermTypeFunc:
		return s.call(t.Func, in, sc)
	case gojq.TermTypeQuery:
		return s.query(t.Query, in, sc)
	case gojq.TermTypeLabel:
		return s.query(t.Label.Body, in, sc)
	case gojq.TermTypeIf:
		return s.branches(t.If, in, sc)
	case gojq.TermTypeTry:
		body := s.query(t.Try.Body, in, sc)
		if t.Try.Catch == nil {
			return body
		}
		return s.either(body, s.query(t.Try.Catch, shape{}, sc))
	case gojq.TermTypeRecurse:
		s.use(in)
	case gojq.TermTypeUnary:
		s.use(s.term(t.Unary.Term, in, sc))
	case gojq.TermTypeArray:
		s.use(s.query(t.Array.Query, in, sc))
	case gojq.TermTypeObject:
		s.object(t.Object, in, sc)
	case gojq.TermTypeString:
		s.text(t.Str, in, sc)
	case gojq.TermTypeFormat:
		if t.Str == nil {
			s.use(in)
		}
		s.text(t.Str, in, sc)
	case gojq.TermTypeReduce:
		e := t.Reduce
		s.loop(e.Query, e.Patterns, e.Start, []*gojq.Query{e.Update}, in, sc)
	case gojq.TermTypeForeach:
		e := t.Foreach
		s.loop(e.Query, e.Patterns, e.Start, []*gojq.Query{e.Update, e.Extract}, in, sc)
	}
	return shape{}
}

func (s *scan) branches(e *gojq.If, in shape, sc *scope) shape {
	s.use(s.query(e.Cond, in, sc))
	v := s.query(e.Then, in, sc)
	for _, elif := range e.Elif {
		s.use(s.query(elif.Cond, in, sc))
		v = s.either(v, s.query(elif.Then, in, sc))
	}
	if e.Else == nil {
		return s.either(v, in)
	}
	return s.either(v, s.query(e.Else, in, sc))
}

func (s *scan) object(e *gojq.Object, in shape, sc *scope) {
	for _, member := range e.KeyVals {
		switch {
		case strings.HasPrefix(member.Key, "$"):
			s.use(s.variable(member.Key, sc))
		case member.Val == nil:
			s.use(s.key(member.Key, member.KeyString, member.KeyQuery, in, in, sc))
		default:
			s.text(member.KeyString, in, sc)
			s.use(s.query(member.KeyQuery, in, sc))
		}
		s.use(s.query(member.Val, in, sc))
	}
}

// loop is reduce or foreach: its result, made from start on, may be any value.
func (s *scan) loop(source *gojq.Query, patterns []*gojq.Pattern, start *gojq.Query, bodies []*gojq.Query, in shape, sc *scope) {
	s.use(s.query(start, in, sc))
	inner := s.bind(patterns, s.query(source, in, sc), in, sc)
	for _, body := range bodies {
		s.use(s.query(body, shape{}, inner))
	}
}

func (s *scan) variable(name string, sc *scope) shape {
	for ; sc != nil; sc = sc.outer {
		if sc.name == name {
			return sc.value
		}
	}
	return shape{}
}

func (s *scan) call(f *gojq.Func, in shape, sc *scope) shape {
	if strings.HasPrefix(f.Name, "$") {
		return s.variable(f.Name, sc)
	}
	for at := sc; at != nil; at = at.outer {
		if at.name == f.Name && at.arity == len(f.Args) {
			return s.own(at, f, in, sc)
		}
	}
	return s.builtin(f, in, sc)
}

// own is a call of a function that the expression defines, or of one of its parameters. A function without parameters
// is followed; the result of one with parameters is unknown.
func (s *scan) own(at *scope, f *gojq.Func, in shape, sc *scope) shape {
	if at.def == nil || len(f.Args) > 0 {
		s.use(in)
		in = shape{}
	}
	for _, arg := range f.Args {
		s.use(s.query(arg, in, sc))
	}
	if at.def == nil {
		return shape{}
	}
	key := seenKey{at, in}
	if v, seen := s.seen[key]; seen {
		return v
	}
	s.seen[key] = shape{} // of a call of itself
	inner := at
	for _, name := range at.def.Args {
		inner = &scope{outer: inner, name: name}
		inner = &scope{outer: inner, name: strings.TrimPrefix(name, "$")}
	}
	v := s.query(at.def.Body, in, inner)
	s.seen[key] = v
	return v
}

// builtin is a call of a function of jq.
func (s *scan) builtin(f *gojq.Func, in shape, sc *scope) shape {
	switch f.Name {
	case "select":
		s.args(f.Args, in, sc)
		return in
	case "values", "objects":
		return in
	case "empty", "range", "isempty", "path", "infinite", "nan":
		// They do not look at their input, their arguments do.
		s.args(f.Args, in, sc)
		return shape{}
	case "error":
		if len(f.Args) > 0 {
			// A catch gets the value.
			s.args(f.Args, in, sc)
			return shape{}
		}
	case "first", "last", "limit", "skip", "nth", "add":
		if n := len(f.Args); n > 0 && (n == 2 || f.Name != "nth") {
			s.args(f.Args[:n-1], in, sc)
			return s.query(f.Args[n-1], in, sc)
		}
	}
	s.use(in)
	s.args(f.Args, shape{}, sc)
	return shape{}
}

func (s *scan) args(args []*gojq.Query, in shape, sc *scope) {
	for _, arg := range args {
		s.use(s.query(arg, in, sc))
	}
}

package jq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// rewriter goes through a query, refuses forbidden parts, and puts a check of the arguments before every function that
// a small expression could make large or slow.
type rewriter struct {
	// own are the names of functions and parameters that the query defines.
	own map[string]bool
	// patterns: a regular expression is matched.
	patterns bool
	// err is the first thing that is refused.
	err error
}

func newRewriter(query *gojq.Query) *rewriter {
	r := &rewriter{own: map[string]bool{}}
	if query.Meta != nil || len(query.Imports) > 0 {
		r.refuse("import, include and module are not allowed: an expression reads no files")
	}
	return r
}

func (r *rewriter) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// call makes name(args) and pipe makes left | right.
func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func pipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func group(query *gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: query}}
}

// looked returns query with a look at its values. Constants are as long as the source at most.
func looked(look string, query *gojq.Query) *gojq.Query {
	if isConstant(query) {
		return query
	}
	return group(pipe(query, call(look)))
}

func isConstant(q *gojq.Query) bool {
	if q.Term == nil || len(q.Term.SuffixList) > 0 || len(q.FuncDefs) > 0 {
		return false
	}
	switch q.Term.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString:
		return q.Term.Str.Queries == nil
	default:
		return false
	}
}

func (r *rewriter) query(q *gojq.Query) *gojq.Query {
	if q == nil {
		return nil
	}
	for _, def := range q.FuncDefs {
		r.define(def)
	}
	if q.Term != nil {
		r.term(q.Term)
		return q
	}
	if q.Left == nil || q.Right == nil {
		r.refuse("an expression must not be empty: try .")
		return q
	}
	r.patternsOf(q.Patterns)
	q.Left, q.Right = r.query(q.Left), r.query(q.Right)
	return r.operator(q)
}

func (r *rewriter) define(def *gojq.FuncDef) {
	for _, name := range append([]string{def.Name}, def.Args...) {
		switch _, isRefused := refused[name]; {
		case builtins[name] != 0 || isRefused:
			r.refuse("def %s: the name is that of a builtin function", name)
		case strings.HasPrefix(strings.TrimPrefix(name, "$"), "_"):
			r.refuse("%s: a name may not begin with _", name)
		}
		// A parameter $x is the function x as well.
		r.own[strings.TrimPrefix(name, "$")] = true
	}
	def.Body = r.query(def.Body)
}

func (r *rewriter) patternsOf(patterns []*gojq.Pattern) {
	for _, p := range patterns {
		if strings.HasPrefix(p.Name, "$_") {
			r.refuse("%s: a name may not begin with _", p.Name)
		}
		r.patternsOf(p.Array)
		for _, member := range p.Object {
			r.text(member.KeyString)
			member.KeyQuery = r.query(member.KeyQuery)
			if strings.HasPrefix(member.Key, "$_") {
				r.refuse("%s: a name may not begin with _", member.Key)
			}
			if member.Val != nil {
				r.patternsOf([]*gojq.Pattern{member.Val})
			}
		}
	}
}

// operator rewrites a query with operands that are rewritten already.
func (r *rewriter) operator(q *gojq.Query) *gojq.Query {
	switch q.Op {
	case gojq.OpAdd, gojq.OpMod:
		q.Left, q.Right = looked(lookShallow, q.Left), looked(lookShallow, q.Right)
	case gojq.OpDiv:
		q.Left, q.Right = looked(lookSplit, q.Left), looked(lookShallow, q.Right)
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAlt:
		q.Left = assigned(q.Left)
	case gojq.OpEq, gojq.OpNe, gojq.OpLt, gojq.OpLe, gojq.OpGt, gojq.OpGe:
		q.Left, q.Right = looked(lookDeep, q.Left), looked(lookDeep, q.Right)
	case gojq.OpMul:
		return withDefs(q, call(multiply, q.Left, q.Right))
	case gojq.OpSub:
		return withDefs(q, call(subtract, q.Left, q.Right))
	case gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod:
		return withDefs(q, r.update(q))
	}
	return q
}

// withDefs returns instead with the definitions of q.
func withDefs(q, instead *gojq.Query) *gojq.Query {
	instead.FuncDefs = q.FuncDefs
	return instead
}

// update writes a += b in full, b as $x | a |= . + $x, so that the sum is checked.
func (r *rewriter) update(q *gojq.Query) *gojq.Query {
	operators := map[gojq.Operator]gojq.Operator{
		gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul,
		gojq.OpUpdateDiv: gojq.OpDiv, gojq.OpUpdateMod: gojq.OpMod,
	}
	sum := r.operator(&gojq.Query{Left: identity(), Op: operators[q.Op], Right: call(operand)})
	modify := &gojq.Query{Left: assigned(q.Left), Op: gojq.OpModify, Right: sum}
	return bind(q.Right, operand, modify)
}

// assigned returns the left side of an assignment so that copies for it are counted: the paths of left, each after a
// check of the values along it.
func assigned(left *gojq.Query) *gojq.Query {
	paths := pipe(call("path", left), call(copied, call(copiesMade)))
	return group(bind(call(copying), copiesMade, call("getpath", paths)))
}

// The variables that the rewriter binds. No expression can name them.
const (
	operand      = "$_operand"
	copiesMade   = "$_copies"
	patternGiven = "$_pattern"
	flagsGiven   = "$_flags"
)

// bind makes value as NAME | body.
func bind(value *gojq.Query, name string, body *gojq.Query) *gojq.Query {
	whole := pipe(group(value), body)
	whole.Patterns = []*gojq.Pattern{{Name: name}}
	return whole
}

// defined makes def _f: f; def _g: g; body, where body is jq.
func defined(body string, f, g *gojq.Query) *gojq.Query {
	whole, err := gojq.Parse(body)
	if err != nil {
		panic(fmt.Sprintf("jq: %s: %v", body, err))
	}
	whole.FuncDefs = []*gojq.FuncDef{{Name: "_f", Body: f}, {Name: "_g", Body: g}}
	return whole
}

func identity() *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}}
}

func (r *rewriter) term(t *gojq.Term) {
	switch t.Type {
	case gojq.TermTypeIndex:
		r.head(t)
	case gojq.TermTypeFunc:
		r.function(t)
	case gojq.TermTypeObject:
		r.object(t.Object)
	case gojq.TermTypeArray:
		t.Array.Query = r.query(t.Array.Query)
	case gojq.TermTypeUnary:
		r.term(t.Unary.Term)
	case gojq.TermTypeFormat:
		r.format(t)
	case gojq.TermTypeString:
		r.text(t.Str)
		made(t)
	case gojq.TermTypeRecurse:
		before(t, countDeep, &gojq.Term{Type: gojq.TermTypeRecurse})
	case gojq.TermTypeIf:
		r.branches(t.If)
	case gojq.TermTypeTry:
		t.Try.Body, t.Try.Catch = r.query(t.Try.Body), r.query(t.Try.Catch)
	case gojq.TermTypeReduce:
		e := t.Reduce
		r.patternsOf(e.Patterns)
		e.Query, e.Start, e.Update = r.query(e.Query), r.query(e.Start), r.query(e.Update)
	case gojq.TermTypeForeach:
		e := t.Foreach
		r.patternsOf(e.Patterns)
		e.Query, e.Start, e.Update, e.Extract = r.query(e.Query), r.query(e.Start), r.query(e.Update), r.query(e.Extract)
	case gojq.TermTypeLabel:
		t.Label.Body = r.query(t.Label.Body)
	case gojq.TermTypeQuery:
		t.Query = r.query(t.Query)
	}
	r.suffixes(t)
}

// head makes .[i] of t, where i is computed or a slice, a suffix like any other.
func (r *rewriter) head(t *gojq.Term) {
	if t.Index.Start == nil && t.Index.End == nil {
		r.index(t.Index)
		return
	}
	suffixes := append([]*gojq.Suffix{{Index: t.Index}}, t.SuffixList...)
	*t = gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: suffixes}
}

// suffixes checks the computed values in the suffixes of t, and counts the work: .[] makes a list of the elements, and
// finding a part of a text goes through the text.
func (r *rewriter) suffixes(t *gojq.Term) {
	list := t.SuffixList
	t.SuffixList = nil
	for _, suffix := range list {
		r.index(suffix.Index)
		switch {
		case suffix.Iter:
			*t = countedTerm(t, countParts)
		case suffix.Index != nil && suffix.Index.Start != nil || suffix.Index != nil && suffix.Index.End != nil:
			*t = countedTerm(t, countText)
		}
		t.SuffixList = append(t.SuffixList, suffix)
	}
}

// countedTerm returns t with its results counted.
func countedTerm(t *gojq.Term, count string) gojq.Term {
	inner := *t
	return gojq.Term{Type: gojq.TermTypeQuery, Query: pipe(&gojq.Query{Term: &inner}, call(count))}
}

func (r *rewriter) branches(e *gojq.If) {
	e.Cond, e.Then, e.Else = r.query(e.Cond), r.query(e.Then), r.query(e.Else)
	for _, elif := range e.Elif {
		elif.Cond, elif.Then = r.query(elif.Cond), r.query(elif.Then)
	}
}

// index looks at an index that is computed: .[500000000] = 1 would make a list of that length.
func (r *rewriter) index(e *gojq.Index) {
	if e == nil {
		return
	}
	r.text(e.Str)
	e.Start, e.End = r.query(e.Start), r.query(e.End)
	if e.Start != nil && !e.IsSlice && (!isConstant(e.Start) || len(e.Start.Term.Number) > smallIndexDigits) {
		e.Start = group(pipe(e.Start, call(lookIndex)))
	}
}

// smallIndexDigits is how long a number may be and not be over maxIndex, 1e9 and the like aside.
const smallIndexDigits = 2

func (r *rewriter) object(e *gojq.Object) {
	for _, member := range e.KeyVals {
		if strings.HasPrefix(member.Key, "$") {
			r.variable(member.Key)
		}
		r.text(member.KeyString)
		member.KeyQuery, member.Val = r.query(member.KeyQuery), r.query(member.Val)
	}
}

func (r *rewriter) text(e *gojq.String) {
	if e == nil {
		return
	}
	for _, part := range e.Queries {
		if part.Term.Str != nil {
			continue
		}
		part.Term.Query = pipe(r.query(part.Term.Query), call(lookDeep))
	}
}

func (r *rewriter) format(t *gojq.Term) {
	if t.Str != nil {
		r.text(t.Str)
		made(t)
		return
	}
	around(t, lookDeep, &gojq.Term{Type: gojq.TermTypeFormat, Format: t.Format})
}

// atOnce is how many parts of a text are put together at once: gojq copies the text so far for each.
const atOnce = 4

// made counts the text that t makes of its values. Many parts are put together in groups, each counted.
func made(t *gojq.Term) {
	parts := t.Str.Queries
	if parts == nil {
		return
	}
	suffixes := t.SuffixList
	t.SuffixList = nil
	for len(parts) > atOnce {
		var texts []*gojq.Query
		for some := range slices.Chunk(parts, atOnce) {
			text := &gojq.Term{Type: t.Type, Format: t.Format, Str: &gojq.String{Queries: some}}
			texts = append(texts, group(pipe(&gojq.Query{Term: text}, call(countShallow))))
		}
		// The grouped parts are texts of texts, in any format.
		parts, *t = texts, gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Queries: texts}}
	}
	*t = countedTerm(t, countShallow)
	t.SuffixList = suffixes
}

// before makes look | then of t, and leaves t its suffixes.
func before(t *gojq.Term, look string, then *gojq.Term) {
	instead(t, pipe(call(look), &gojq.Query{Term: then}))
}

// around makes look | then of t, and counts the result.
func around(t *gojq.Term, look string, then *gojq.Term) {
	instead(t, pipe(call(look), pipe(&gojq.Query{Term: then}, call(countShallow))))
}

// instead makes body of t, and leaves t its suffixes.
func instead(t *gojq.Term, body *gojq.Query) {
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: body, SuffixList: t.SuffixList}
}

func (r *rewriter) variable(name string) {
	switch reason, isRefused := refused[name]; {
	case isRefused:
		r.refuse("%s is refused: %s", name, reason)
	case strings.HasPrefix(name, "$_"):
		r.refuse("%s: a name may not begin with _", name)
	}
}

func (r *rewriter) function(t *gojq.Term) {
	f := t.Func
	for i, arg := range f.Args {
		f.Args[i] = r.query(arg)
	}
	if strings.HasPrefix(f.Name, "$") {
		r.variable(f.Name)
		return
	}
	care, known := builtins[f.Name]
	switch reason, isRefused := refused[f.Name]; {
	case r.own[f.Name]:
	case isRefused:
		r.refuse("%s is refused: %s", f.Name, reason)
	case !known:
		r.refuse("%w", UnknownFunction(f.Name))
	default:
		r.builtin(t, care)
	}
}

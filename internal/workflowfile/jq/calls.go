package jq

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// builtin puts the check that care names before a builtin function.
func (r *rewriter) builtin(t *gojq.Term, care care) {
	f := t.Func
	if f.Name == "split" && len(f.Args) == 1 {
		care = split // of one argument, it takes a plain text
	}
	if f.Name == "strptime" && !withoutZoneName(f.Args) {
		r.refuse("strptime is refused unless its format is written out and has no %%Z: names of time zones depend on the local one")
	}
	then := &gojq.Term{Type: gojq.TermTypeFunc, Func: f}
	switch care {
	case free:
	case textual:
		before(t, countText, then)
	case counted:
		before(t, countParts, then)
	case through:
		before(t, countDeep, then)
	case shallow:
		around(t, lookShallow, then)
	case split:
		around(t, lookSplit, then)
	case deep:
		r.deep(t, then)
	case deepArg:
		r.deepArg(t, then)
	case pair:
		r.pair(t, then)
	case seek:
		r.seek(t, then)
	case matching:
		r.matching(t, then)
	case replacing:
		r.replacing(t, then)
	case picking, indexing, combining:
		r.anew(t, then, care)
	case path, set:
		f.Args[0] = group(pipe(f.Args[0], call(lookPath)))
		if care == set {
			f.Name = setPath
		}
	case index:
		if len(f.Args) == 1 {
			before(t, countText, then)
		}
		f.Args[0] = group(pipe(f.Args[0], call(lookIndex)))
	default:
		panic(fmt.Sprintf("jq: no care %d", care))
	}
}

func (r *rewriter) deepArg(t, then *gojq.Term) {
	f := then.Func
	if f.Name == "add" && len(f.Args) == 1 {
		// add(f) is [f] | add, and the list must be looked at.
		list := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: f.Args[0]}}}
		instead(t, pipe(list, pipe(call(lookDeep), pipe(call("add"), call(countShallow)))))
		return
	}
	for i, arg := range f.Args {
		f.Args[i] = looked(lookDeep, arg)
	}
	around(t, lookDeep, then)
}

// seek writes f(arg) as arg as $x | _f_bounded($x), which is quick for texts.
func (r *rewriter) seek(t, then *gojq.Term) {
	f := then.Func
	if len(f.Args) == 1 {
		instead(t, bind(f.Args[0], operand, call(seekers[f.Name], call(operand))))
	}
}

// matching writes f(pattern; flags) as pattern as $x | flags as $y | look($x; $y) | f($x; $y).
func (r *rewriter) matching(t, then *gojq.Term) {
	f := then.Func
	look, known := lookMatching[f.Name]
	if !known || len(f.Args) == 0 || len(f.Args) > 2 {
		return
	}
	r.patterns = true
	given := f.Args
	f.Args = variables(len(given))
	instead(t, bindAll(given, pipe(call(look, variables(2)...), &gojq.Query{Term: then})))
}

// replacing writes sub(pattern; text; flags) and gsub as jq defines them, except that the replaced text is put together
// at once, and counted before. A match is [OFFSET, LENGTH, [TEXT, ...]].
func (r *rewriter) replacing(t, then *gojq.Term) {
	f := then.Func
	if len(f.Args) < 2 || len(f.Args) > 3 {
		return
	}
	r.patterns = true
	const replace = "_look_each($_pattern; $_flags) | . as $_text |" +
		" [match($_pattern; $_flags) | [.offset, .length, [.captures | _captures | _f]]] | _replaced_bounded($_text) | .[]"
	given, flags := []*gojq.Query{f.Args[0]}, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNull}}
	if len(f.Args) == 3 {
		flags = f.Args[2]
	}
	if f.Name == "gsub" {
		g := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: "g"}}}
		flags = &gojq.Query{Left: group(flags), Op: gojq.OpAdd, Right: g}
	}
	instead(t, bindAll(append(given, flags), defined(replace, f.Args[1], identity())))
}

// bindAll makes first as $_pattern | second as $_flags | body; where there is no second, $_flags is null.
func bindAll(values []*gojq.Query, body *gojq.Query) *gojq.Query {
	if len(values) == 1 {
		values = append(values, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNull}})
	}
	return bind(values[0], patternGiven, bind(values[1], flagsGiven, body))
}

// variables are n times $_pattern and $_flags.
func variables(n int) []*gojq.Query {
	return []*gojq.Query{call(patternGiven), call(flagsGiven)}[:n]
}

// anew writes out jq's own definition, where the copies inside could not be checked otherwise.
func (r *rewriter) anew(t, then *gojq.Term, care care) {
	f := t.Func
	const pick = ". as $_v | reduce path(_f) as $_p (null; " + setPath + "($_p | " + lookPath + "; $_v | getpath($_p)))"
	const toIndex = "[_f as $_v | {($_v | _g | " + lookDeep + " | tostring): $_v}] | " + lookDeep + " | add // {}"
	each := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Iter: true}}}}
	const combine = "[limit(_f; repeat(.))] | " + countDeep + " | combinations"
	switch {
	case care == combining && len(f.Args) == 0:
		before(t, countDeep, then)
	case care == combining && len(f.Args) == 1:
		instead(t, defined(combine, f.Args[0], identity()))
	case care == picking && len(f.Args) == 1:
		instead(t, defined(pick, f.Args[0], identity()))
	case care == indexing && len(f.Args) == 1:
		instead(t, pipe(call(countParts), defined(toIndex, each, f.Args[0])))
	case care == indexing && len(f.Args) == 2:
		instead(t, defined(toIndex, f.Args[0], f.Args[1]))
	}
}

func (r *rewriter) deep(t, then *gojq.Term) {
	if t.Func.Name == "transpose" {
		before(t, lookTable, then)
		return
	}
	around(t, lookDeep, then)
}

// pair writes f(arg) as arg as $x | look($x) | f($x).
func (r *rewriter) pair(t, then *gojq.Term) {
	if len(then.Func.Args) != 1 {
		return
	}
	arg := then.Func.Args[0]
	then.Func.Args[0] = call(operand)
	instead(t, bind(arg, operand, pipe(call(lookPair, call(operand)), pipe(&gojq.Query{Term: then}, call(countShallow)))))
}

// withoutZoneName reports whether the format of strptime is a constant without %Z.
func withoutZoneName(args []*gojq.Query) bool {
	if len(args) != 1 || !isConstant(args[0]) || args[0].Term.Str == nil {
		return false
	}
	_, rest, found := strings.Cut(args[0].Term.Str.Str, "%")
	for ; found; _, rest, found = strings.Cut(rest, "%") {
		// Flags and a width may stand between % and its verb.
		rest = strings.TrimLeft(rest, "-_0123456789^#:+")
		if strings.HasPrefix(rest, "Z") {
			return false
		}
		if rest != "" {
			rest = rest[1:]
		}
	}
	return true
}

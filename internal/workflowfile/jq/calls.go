package jq

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// builtin puts a look at what it is given before a builtin function, as much as care asks for.
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
	case pattern:
		r.pattern(t, then)
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

// pattern writes f(pattern) as . as $x | f(pattern | look($x)).
func (r *rewriter) pattern(t, then *gojq.Term) {
	r.patterns = true
	f := then.Func
	look := call(lookPattern, call(operand))
	if f.Name == "test" {
		look = call(lookPattern, call(operand), identity())
	}
	f.Args[0] = group(pipe(f.Args[0], look))
	instead(t, bind(identity(), operand, &gojq.Query{Term: then}))
}

// anew writes out what jq defines, where nobody could look at what is copied and gone through within.
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

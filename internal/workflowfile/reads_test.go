package workflowfile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

func TestReadsNamesTheStepsWhoseOutputsAreLookedAt(t *testing.T) {
	for _, c := range []struct{ with, when, undo, forward, back string }{
		{``, ``, ``, ``, ``},
		{`${ .input.a }`, `${ .job.id == "x" }`, ``, ``, ``},
		{`${ .steps.a.output }`, ``, ``, `a`, `a`},
		{`x ${ .steps.c.output } ${ .steps.a.output.x.y }`, ``, `${ .steps.d.output }`, `a c`, `d`},
		{``, `${ .steps.c.output }`, ``, `c`, ``},
		{`${ .steps.a.output }`, `${ .steps.c.output }`, `1`, `a c`, ``},
		{`${ .steps["a"].output }`, ``, ``, `a`, `a`},
		{`${ .["steps"]."c".output }`, ``, ``, `c`, `c`},
		{`${ . as $r | .input | $r.steps.a.output }`, ``, ``, `a`, `a`},
		{`${ . as {steps: {c: {output: $o}}} | $o }`, ``, ``, `c`, `c`},
		{`${ .input as $i | .steps | .a | .output[$i.n] }`, ``, ``, `a`, `a`},
		{`${ .input | map(.steps) }`, ``, ``, ``, ``},
		{`${ {steps} | .steps.a.output }`, ``, ``, `a c`, `a c d`},
		{`${ .steps[.input.name].output }`, ``, ``, `a c`, `a c d`},
		{`${ .steps | keys }`, ``, ``, `a c`, `a c d`},
		{`${ [.steps[].output] }`, ``, ``, `a c`, `a c d`},
		{`${ . }`, ``, ``, `a c`, `a c d`},
		{`${ [..] | length }`, ``, ``, `a c`, `a c d`},
		{`${ getpath(["steps", "a"]) }`, ``, ``, `a c`, `a c d`},
		{`${ def f: .steps.a.output; f }`, ``, ``, `a`, `a`},
		{`${ def f: if .input.x then f else . end; f | .steps.a.output }`, ``, ``, `a c`, `a c d`},
		{`${ def f: . as $x | def g: $x | .steps.a.output; 1 | g; (.input | f), f }`, ``, ``, `a`, `a`},
		{`${ def f(g): g; f(.steps.a.output) }`, ``, ``, `a c`, `a c d`},
		{`${ first(.steps.a.output, .steps.c.output) }`, ``, ``, `a c`, `a c`},
		{`${ .steps.a.output // .input.x }`, ``, ``, `a`, `a`},
		{`${ if .input.x then .steps.a else .steps.c end | .output }`, ``, ``, `a c`, `a c`},
		{`${ try error(.) catch .steps.a.output }`, ``, ``, `a c`, `a c d`},
		{`${ reduce .input.list[] as $x (.; .input.n += $x) | .steps.a.output }`, ``, ``, `a c`, `a c d`},
		{`${ .input.x = .steps.c.output | .input }`, ``, ``, `a c`, `a c d`},
		{`${ select(.input.x) | .steps.a.output }`, ``, ``, `a`, `a`},
		{`${ "\(.steps.a.output)" + @base64 "\(.steps.c.output)" }`, ``, ``, `a c`, `a c`},
		{`${ [.input, .steps.a.output] | add }`, ``, ``, `a`, `a`},
		{`${ label $f | .steps.a.output, break $f }`, ``, ``, `a`, `a`},
		{`${ [limit(1; .steps.c.output)] }`, ``, ``, `c`, `c`},
	} {
		with, undo := c.with, c.undo
		if with != "" {
			with = quoted(with)
		}
		if undo != "" {
			undo = quoted(undo)
		}
		compiled := one(t, with, c.when, undo)
		forward := strings.Join(compiled.Reads("d", false), " ")
		back := strings.Join(compiled.Reads("d", true), " ")
		if forward != c.forward || back != c.back {
			t.Errorf("with %s, when %s, undo %s reads %q and %q, want %q and %q", c.with, c.when, c.undo, forward, back, c.forward, c.back)
		}
	}
	compiled := one(t, "", "", "")
	if got := slices.Concat(compiled.Reads("z", false), compiled.Reads("b", true)); got != nil {
		t.Errorf("a step or an undo that is not there reads %v, want nothing", got)
	}
}

// Each function here is followed once for each input, and so is the one within it, each time anew: two
// to the power of 40 times, if nobody counted.
func TestFunctionsWithinFunctionsAreNotFollowedForEver(t *testing.T) {
	source := ".steps.a.output"
	for i := range 40 {
		source = fmt.Sprintf("def f%d: %s; ($all | f%d), (1 | f%d)", i, source, i, i)
	}
	query, err := jq.Parse(". as $all | " + source)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := scanQuery(query, view{owner: "d", readable: []string{"a", "c"}, known: []string{"a", "c", "d"}})
	if !r.all || !r.input || !r.job {
		t.Errorf("reads %+v, want everything: it was not looked through", r)
	}
}

// What Reads leaves out must make no difference, or a job would run on other data than it should.
func FuzzWhatIsNotReadMakesNoDifference(f *testing.F) {
	for _, seed := range []string{
		`.input.n`, `.steps.a.output`, `. as $x | $x.steps.c`, `.steps[.input.name]`, `[..]`, `{steps} | .steps`,
		`def f(g): g; f(.steps)`, `def f: .; f | .steps.c.output`, `try error(.) catch .`, `.input |= 1 | .steps`,
		`. as [$a] ?// {job: $a} | $a`, `reduce . as $x (0; $x)`, `path(.steps.a)`, `to_entries`, `. as {$job, "input": $i} | [$i, $job]`,
		`first(., 1) | .steps`, `label $x | ., break $x`, `if . then . else 1 end | .job`, `"\(.)"`, `@json`, `-(.input.n)`,
		`.steps.a | keys`, `[.[]]`, `.["ste" + "ps"]`, `.steps | .a, .c`, `foreach .input.list[] as $x (.; .; .steps.a.output)`,
		`def f: def g: .steps; g; f | .a`, `[.input.list[] as $x | .job.id]`, `isempty(.steps)`, `$__loc__`, `.. |= .`, `getpath(["job"])`,
		`[limit(2; .input, .steps, .job)]`, `nth(1; .input, .steps)`, `(.input, .steps) as $x | $x`, `add(.input.list[], .steps)`,
	} {
		f.Add(seed)
	}
	names := []string{"a", "c"}
	everything, err := sample.root(reads{input: true, job: true, all: true}, names)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		query, err := jq.Parse(source)
		if err != nil {
			return
		}
		program, err := jq.Compile(source)
		if err != nil {
			return
		}
		r, problems := scanQuery(query, view{owner: "d", readable: names, known: []string{"a", "b", "c", "d"}})
		if len(problems) > 0 {
			return
		}
		p := plan{step: "d", readable: names}
		little, err := sample.root(r, p.names(r, false))
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := program.Run(context.Background(), everything)
		got, gotErr := program.Run(context.Background(), little)
		if message(wantErr) != message(gotErr) || fmt.Sprint(want) != fmt.Sprint(got) {
			t.Fatalf("%s reads %+v, but gives\n%v, %v on all data and\n%v, %v on what it reads", source, r, want, wantErr, got, gotErr)
		}
	})
}

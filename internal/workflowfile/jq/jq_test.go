package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/itchyny/gojq"
)

// run evaluates source on input and returns the value as JSON.
func run(source, input string) (string, error) {
	program, err := Compile(source)
	if err != nil {
		return "", err
	}
	v, err := Decode(json.RawMessage(input))
	if err != nil {
		return "", err
	}
	value, err := program.Run(context.Background(), v)
	if err != nil {
		return "", err
	}
	out, err := Append(nil, value, 256<<10)
	return string(out), err
}

func TestWhatLooksIsPutInDoesNotChangeWhatAnExpressionGives(t *testing.T) {
	const input = `{"a":{"b":[3,1,2,{"c":"x,y"}],"s":"Hello, World"},"n":12345678901234567890,"f":1.50,"z":null}`
	for _, source := range []string{
		`.`, `.a.b[0] + 1`, `.a.b[-1].c`, `.n`, `.f`, `.a.s * 2`, `.a.b[0] * 3 - 1`, `2 * .a.s`,
		`[.a.b[] | numbers] | sort`, `.a.b - [1]`, `.a * {b: 1}`, `.a.s | test("l+"; "g")`,
		`.a.s | gsub("o"; "0")`, `.a.s | [match("o"; "g").offset]`, `.a.s / ", "`, `.a.s | split(", ")`,
		`.a.s | split("o"; null)`, `[.a.s | splits("o")]`, `.a.b[3].c | split(",") | join("-")`,
		`.a.b[0] += 4 | .a.b`, `.a.b[0:2] |= map(. * 2) | .a.b`, `.a.b[1] *= 3 | .a.b[1]`, `.a.b[0] -= 1 | .a.b[0]`,
		`.a.s /= ", " | .a.s`, `.z //= 5 | .z`, `.a.b[0] %= 2 | .a.b`, `[.a.b[:3][] += (1, 2)] | length`,
		`del(.a.b[0], .z)`, `[paths]`, `[paths(type == "number")]`, `path(.a.b[0])`, `[.. | numbers]`,
		`path(.. | select(. == 3))`, `(.. | select(type == "string")) |= ascii_upcase`, `pick(.a.b[1])`,
		`getpath(["a", "b", 1])`, `setpath(["a", "q"]; 1) | .a.q`, `to_entries | map(.key)`, `with_entries(.value |= tojson)`,
		`.a.b | add(.[0:3][])`, `.a.b[0:3] | add`, `group_by(.) ? // "no"`, `[.a.b[0:3][] | {k: .}] | sort_by(.k) | map(.k)`,
		`[1, 2, 1] | unique`, `[[1, 2], [3]] | transpose`, `[1, [2, [3]]] | flatten`, `[1, 2] | contains([1])`,
		`"b" | inside("abc")`, `"abcb" | [indices("b"), index("b"), rindex("b")]`, `@base64 "x\(.a.s)y"`, `.a.s | @base64 | @base64d`,
		`"\(.a.b[0]) and \(.n)"`, `[limit(3; .a.b[])]`, `first(.a.b[])`, `reduce .a.b[0:3][] as $x (0; . + $x)`,
		`[foreach .a.b[0:3][] as $x (0; . + $x; [$x, .])]`, `. as {a: {b: [$x, $y]}} | $x - $y`, `label $f | 1, break $f`,
		`def f(x): x * 2; f(.a.b[0])`, `def f($x): $x + 1; f(1)`, `def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 20 | fac`,
		`def f: 2; f * 3`, `def f: 2; f - 3`, `def f: 2; .f += f | .f`, `try error("x") catch .`, `try error({a: 1}) catch .a`, `.a.b[3]?.c`, `.a.b as [$x] ?// $x | $x`, `[range(5)] | .[2:4]`,
		`if .a.b[0] > 2 then "big" elif .z then "z" else "small" end`, `.a["s"]`, `."a"."s"`, `{a: .z, "b": 1, (.a.s): 2, @base64 "x": 3}`,
		`. as $x | {$x} | .x.f`, `0 | todate`, `"2015-03-05T23:51:47Z" | fromdate`, `1425599621 | strftime("%Y")`,
		`"2015-03-05" | strptime("%Y-%m-%d") | mktime`, `"2015Z" | strptime("%YZ") | mktime`, `"%Z" | strptime("%%Z")`, `-.a.b[0]`, `+.a.b[0]`, `[.a.b[0:3][] | -.]`, `1 as $x | 2 as $y | [$x, $y]`,
		`[1, 2] | IN(.[]; 1, 2)`, `any(. > 1) ? // 7`, `INDEX(.a.b[0:2][]; .)`, `[.a.b[0:3][] | tostring] | add`, `ltrimstr("x")`,
		`[splits("a")?]`, `[1, 2, 3] | nth(1)`, `nth(1; 5, 6, 7)`, `[combinations] ? // 1`, `[[1, 2], [3]] | [combinations]`,
		`isvalid(1)? // 1`, `(1, 2) as $x | $x`, `empty`, `1, 2`, `.a.s[1:3]`, `.[]`, `[.[] | type]`, `@json`, `.a | @json "v=\(.)"`,
		`[1, 2] * 2`, `{} - 1`, `1 / 0`, `"a" - 1`, `null + 1`, `"x" * 0`, `"x" * -1`, `"x" * 0.5`, `[.[]?]`, `..`, `.a.b[1e0]`,
		`"añbñ€b" | [indices("ñ"), index("b"), rindex("b"), indices("€b"), index("c"), rindex("c"), indices("")]`, `"aaaa" | indices("aa")`,
		`"" | [index(""), rindex(""), indices("x")]`, `[.a.b | index(1), rindex(2), indices([1, 2]), indices(9)]`, `null | [index("a"), indices(1)]`, `.a.b[[1, 2]]`,
		`1 | indices("a")`, `"abc" | index("a", "c")`, `"a" | indices(1)`, `.a.s | [sub("(?<x>[A-Z])"; "<\(.x)>"), sub("(?<x>[A-Z])"; "<\(.x)>"; "g")]`,
		`.a.s | [gsub("(?<x>l+)(?<y>o)?"; .y, "-")]`, `[.a.s | sub("(?<x>l)"; .x + "1", .x + "2", "3")]`, `.a.s | gsub("L"; "1"; "i")`, `.a.s | gsub("q"; "1")`, `"añaña" | gsub("ñ"; "€")`,
		`"ñañ" | gsub(""; "-")`, `"ab" | gsub("b*"; "-")`, `"a\nb" | gsub("a.b"; "-"; "s")`, `"a\nb" | [match("a.b"; "s", "n", null).string]`, `.a.s | gsub("^."; "")`, `.a.s | gsub("\\bW"; "w")`,
		`[.a.s | gsub("l", "o"; "0")]`, `.a.s | gsub("l"; 1)`, `.a.s | gsub("l"; null)`, `.a.s | gsub("l"; empty)`, `.a.s | gsub(1; "x")`, `.a.s | gsub("("; "x")`, `.a.s | gsub("l"; "x"; "q")`,
		`.a.s | gsub("l"; "x"; 1)`, `1 | gsub("l"; "x")`, `.a.s | sub("l"; ["x"])`, `.a.s | [test("L"; "i"), test(["L", "i"]), test(["l"])]`, `[.a.s | match(["L", "gi"]).offset]`,
		`.a.s | capture("(?<x>l+)")`, `[.a.s | capture("(?<x>l)"; "g")]`, `[.a.s | scan("(l)(.)")]`, `[.a.s | scan("L"; "i")]`, `.a.s | split("L"; "gi")`, `[.a.s | splits("L"; "i")]`,
		`.a.s | test("l", "q")`, `[.a.s | test("l", "q")]`, `.a.s | test("x{1001}")`, `"\(1)\(2)\(3)\(4)\(5)\(6)\(7)"`, `["\(1, 2)\(3, 4)a\(5, 6)b\(7)\(8, 9)"]`, `@base64 "\(1)a\(2)b\(3)c\(.a.s)d\(5)e"`,
		`@sh "\(1)a\("x")b\("y z")c\(4)"`, `"a\(1)b\(2)c\(3)d\(4)e\(5)"[2:5]`, `limit(2; 1, 2, 3) as $x | $x`, `[.a.b[] as $x | $x] | length`, `walk(if type == "number" then . + 1 else . end) | .a.b[0]`,
	} {
		want, wantErr := asItIs(source, input)
		got, gotErr := run(source, input)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s\n got %s, %v\nwant %s, %v", source, got, gotErr, want, wantErr)
		}
	}
}

// asItIs evaluates source by gojq as it is.
func asItIs(source, input string) (string, error) {
	query, err := gojq.Parse(source)
	if err != nil {
		return "", err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return "", err
	}
	v, err := Decode(json.RawMessage(input))
	if err != nil {
		return "", err
	}
	results := code.Run(v)
	value, ok := results.Next()
	if err, failed := value.(error); failed || !ok {
		return "", fmt.Errorf("no value: %v", err)
	}
	if _, more := results.Next(); more {
		return "", errors.New("two values")
	}
	out, err := gojq.Marshal(value)
	return string(out), err
}

func TestAnExpressionGivesExactlyOneValue(t *testing.T) {
	for _, c := range []struct{ source, want, err string }{
		{`.a`, `1`, ``},
		{`empty`, ``, `gives no value, want one`},
		{`1, 2`, ``, `gives more than one value, want one`},
		{`.a, error("x")`, ``, `error: x`},
		{`.a | error`, ``, `error: 1`},
		{`nan`, ``, `gives NaN, which JSON cannot hold`},
		{`[infinite]`, ``, `gives +Inf, which JSON cannot hold`},
		{`reduce range(600) as $i (0; [.])`, ``, `a value nested deeper than 500`},
		{`("x" * 1000000)`, ``, `gives more than 262144 bytes of JSON`},
		{`reduce range(40) as $i (0; [., .])`, ``, `gives more than 262144 bytes of JSON`},
	} {
		got, err := run(c.source, `{"a":1}`)
		if got != c.want || text(err) != c.err {
			t.Errorf("%s gives %.80s, %v; want %s, %s", c.source, got, err, c.want, c.err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhatIsNotDeterministicOrReadsTheOutsideIsRefused(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`now`, `now is refused: it reads the clock`},
		{`[.a | now]`, `now is refused: it reads the clock`},
		{`env`, `env is refused: it reads the environment`},
		{`env.HOME`, `env is refused: it reads the environment`},
		{`$ENV.HOME`, `$ENV is refused: it reads the environment`},
		{`{$ENV}`, `$ENV is refused: it reads the environment`},
		{`input`, `input is refused: there is no other input; the job's is .input`},
		{`[inputs]`, `inputs is refused: there is no other input; the job's is .input`},
		{`debug`, `debug is refused: it writes to the outside`},
		{`debug("x")`, `debug is refused: it writes to the outside`},
		{`stderr`, `stderr is refused: it writes to the outside`},
		{`input_filename`, `input_filename is refused: there is no other input; the job's is .input`},
		{`input_line_number`, `input_line_number is refused: there is no other input; the job's is .input`},
		{`halt`, `halt is refused: it ends the program`},
		{`"x" | halt_error(1)`, `halt_error is refused: it ends the program`},
		{`0 | localtime`, `localtime is refused: it reads the local time zone`},
		{`0 | strflocaltime("%H")`, `strflocaltime is refused: it reads the local time zone`},
		{`"CET" | strptime("%Z")`, `strptime is refused unless its format is written out and has no %Z: names of time zones depend on the local one`},
		{`"CET" | strptime("%Y%-5Z")`, `strptime is refused unless its format is written out and has no %Z: names of time zones depend on the local one`},
		{`"1" | strptime(.f)`, `strptime is refused unless its format is written out and has no %Z: names of time zones depend on the local one`},
		{`$__prog_args`, `$__prog_args is refused: it reads the command line`},
		{`get_search_list`, `get_search_list is refused: it reads files`},
		{`"a" | modulemeta`, `modulemeta is refused: it reads files`},
		{`builtins`, `builtins is refused: it depends on the version of gojq`},
		{`import "a" as a; 1`, `import, include and module are not allowed: an expression reads no files`},
		{`include "a"; 1`, `import, include and module are not allowed: an expression reads no files`},
		{`module {}; 1`, `import, include and module are not allowed: an expression reads no files`},
		{`fromstream(1)`, `fromstream is refused: its memory cannot be bounded`},
		{`def now: 1; now`, `def now: the name is that of a builtin function`},
		{`def f(input): input; f(1)`, `def input: the name is that of a builtin function`},
		{`def _f: 1; _f`, `_f: a name may not begin with _`},
		{`1 as $_operand | 1`, `$_operand: a name may not begin with _`},
		{`. as {$_x} | 1`, `$_x: a name may not begin with _`},
		{`.a += $_operand`, `$_operand: a name may not begin with _`},
		{`_add(1; 2)`, `there is no function _add`},
		{`nosuch(1)`, `there is no function nosuch`},
		{`map`, `function not defined: map/0`},
		{`$x`, `variable not defined: $x`},
		{`.a |`, `not jq: unexpected EOF`},
		{``, `an expression must not be empty: try .`},
		{`# nothing`, `an expression must not be empty: try .`},
		{strings.Repeat(" ", MaxSourceBytes) + `1`, `an expression of 16385 bytes, the limit is 16384`},
	} {
		if _, err := Compile(c.source); text(err) != c.want {
			t.Errorf("Compile(%.60s): %v; want %s", c.source, err, c.want)
		}
	}
}

// A new version of gojq must not bring a function that nobody has judged.
func TestEveryFunctionOfGojqIsJudged(t *testing.T) {
	query, err := gojq.Parse("builtins")
	if err != nil {
		t.Fatal(err)
	}
	names, _ := query.Run(nil).Next()
	judged := map[string]bool{}
	for _, entry := range names.([]any) {
		name, _, _ := strings.Cut(entry.(string), "/")
		_, isRefused := refused[name]
		if isRefused == (builtins[name] != 0) {
			t.Errorf("gojq has %s: want it in builtins or in refused, and not in both", entry)
		}
		judged[name] = true
	}
	for name := range builtins {
		if !judged[name] {
			t.Errorf("builtins has %s, which gojq does not have", name)
		}
	}
}

func TestHostileExpressionsEndSoonAndSmall(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 200_000) + `","b":[` + strings.Repeat("0,", 100_000) + `0]}`
	for _, source := range []string{
		`[range(1e9)]`, `"x" * 1e9`, `def f: f; f`, `def f: 1 + f; f`, `def f: [f]; f`, `last(repeat(1))`,
		`reduce range(1e9) as $i (0; . + $i)`, `reduce range(1e9) as $i (0; [.])`, `[range(1e9) | {a: .}]`,
		`null | .[500000000] = 1`, `null | .[5e8] = 1`, `null | setpath([500000000]; 1)`, `null | nth(500000000) = 1`,
		`null | getpath([500000000]) = 1`, `null | pick(getpath([500000000]))`, `null | pick(.[500000000])`,
		`null | .[500000 * 1000] |= 1`, `reduce range(60) as $i ("x"; . + .)`, `reduce range(60) as $i ("x"; . += .)`,
		`reduce range(60) as $i ("x"; "\(.)\(.)")`, `reduce range(60) as $i ("x"; [., .] | add)`, `reduce range(60) as $i ("x"; add(., .))`,
		`reduce range(60) as $i ("x"; [., .] | join(""))`, `reduce range(60) as $i ([1]; . + .)`, `reduce range(60) as $i ("\""; tojson)`,
		`reduce range(60) as $i ("\""; @json)`, `reduce range(99) as $i ("x" * 1000; @base64)`, `reduce range(60) as $i (10; . * .)`,
		`reduce range(60) as $i ([1]; [., .]) | flatten`, `reduce range(60) as $i ([1]; [., .]) | tojson`, `reduce range(60) as $i ([1]; [., .]) | . == .`,
		`reduce range(60) as $i ([1]; [., .]) | error`, `reduce range(60) as $i ([1]; [., .]) | [.] | sort`, `reduce range(60) as $i ({a: 1}; {a: ., b: .}) | . * .`,
		`reduce range(60) as $i ([1]; [., .]) | [..] | length`, `reduce range(60) as $i ([1]; [., .]) | [.] | unique_by(.)`,
		`reduce range(60) as $i ([1]; [., .]) | @text "\(.)"`, `reduce range(60) as $i ([1]; [., .]) | IN(.)`, `reduce range(60) as $i ([1]; [., .]) | contains(.)`,
		`setpath(.b; 1)`, `.a | [splits("")]`, `.a | gsub("x"; "y")`, `.a | [match("x"; "g")] | length`, `.a[:16000] as $t | .a | indices($t[:10000]) | length`, `.b - .b`, `.b | indices([0, 0])`,
		`. as $r | .b | join($r.a)`, `.b | contains([1])`, `[.b, []] | transpose`, `[.b] + [range(9000) | []] | transpose`,
		`reduce range(1e9) as $i ({}; .[$i | tostring] = $i)`, `.a * 1e6`, `[limit(1e9; repeat("x"))] | add`, `[.b, .b] | combinations`,
		`. as $r | .a | index($r.a[1:100000])`, `.a | ascii_downcase | explode | implode | length`, `[.b[] | tostring] | join(",")`,
		`def f(x): f(x | x); f(1)`, `[recurse(. + 1; true)]`, `until(false; [.])`, `[paths] | length`, `tojson | fromjson | tojson`,
		strings.Repeat("(", 8000) + "1" + strings.Repeat(")", 8000), strings.Repeat("[", 8000) + strings.Repeat("]", 8000),
		strings.Repeat("-", 16000) + "1",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		got, err := run(source, long)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapSys) - int64(before.HeapSys); took > 2*time.Minute || grown > 300<<20 {
			t.Errorf("%.80s took %s and %d MB (%.40s, %.80v); want less than two minutes and 300 MB", source, took, grown>>20, got, err)
		}
		if testing.Verbose() {
			t.Logf("%6d ms %5d MB %.70s -> %.20s %.90v", took.Milliseconds(), (after.TotalAlloc-before.TotalAlloc)>>20, source, got, err)
		}
		runtime.GC()
	}
}

// gojq does these in one step, which takes minutes for what fits into a job's input.
func TestWhatComparesEachWithEachIsLimited(t *testing.T) {
	const want = "two values of 20001 and 20001 elements together, the limit is 67108864 comparisons"
	for _, source := range []string{`. - .`, `.[0] = 1 | . as $x | . - $x`, `contains(.)`, `inside(.)`, `. as $x | .[0] = -1 | . -= $x`} {
		if _, err := run(`[range(20000)] | `+source, `null`); text(err) != want {
			t.Errorf("%s of 20000 elements: %v, want %s", source, err, want)
		}
		if _, err := run(`[range(2000)] | `+source, `null`); err != nil {
			t.Errorf("%s of 2000 elements: %v, want no error", source, err)
		}
	}
}

// gojq keeps every regular expression that a program ever made. Those of a submitter must not pile up.
func TestAProgramKeepsNoRegularExpressions(t *testing.T) {
	for source, want := range map[string]bool{`.a | test(.b)`: true, `gsub("a"; "b")`: true, `split("a")`: false, `.a`: false} {
		program, err := Compile(source)
		if err != nil || program.patterns != want {
			t.Errorf("%s is compiled afresh: %t, %v; want %t", source, program.patterns, err, want)
		}
	}
}

// Steps are counted, but some are long: each here copies an object of 20,000 members.
func TestAnEvaluationEndsWhenItsBytesAreUsedUp(t *testing.T) {
	program, err := Compile(`reduce range(1e9) as $i (.; .a = $i)`)
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]any{}
	for i := range 20_000 {
		input[fmt.Sprint(i)] = i
	}
	const want = "reads and makes more than 134217728 bytes"
	if _, err := program.Run(context.Background(), input); text(err) != want {
		t.Errorf("Run: %v, want %s", err, want)
	}
	// A catch does not catch it.
	program, err = Compile(`[range(1e9) as $i | try (.a = $i) catch 0] | length`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Run(context.Background(), input); text(err) != want {
		t.Errorf("Run of what catches it: %v, want %s", err, want)
	}
}

// A caller that gives up must not be told that the expression is wrong: its step would be failed.
func TestTheEndOfTheCallersContextIsItsOwnError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	program, err := Compile(`last(repeat(1))`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a cancelled context: %v, want context.Canceled", err)
	}
	if _, err := program.Run(context.Background(), nil); err == nil || err.Error() != "takes more than 1000000 steps" {
		t.Errorf("Run: %v, want takes more than 1000000 steps", err)
	}
}

func TestAProgramMayBeRunByManyAtOnce(t *testing.T) {
	for _, source := range []string{
		`[.b[] | . * 2] | add`, `.s | gsub("(?<x>[a-z])"; .x + "-")`, `.b |= map(. + 1) | .b | add`,
		`.s | test(.)`, `reduce .b[] as $x ({}; .[$x | tostring] += 1) | keys | length`,
	} {
		program, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		results := make([]string, 8)
		for i := range results {
			group.Go(func() {
				for range 50 {
					input, _ := Decode(json.RawMessage(`{"b":[1,2,3],"s":"abc"}`))
					value, err := program.Run(context.Background(), input)
					results[i] = fmt.Sprint(value, err)
				}
			})
		}
		group.Wait()
		if len(slices.Compact(results)) != 1 || strings.Contains(results[0], "jq") {
			t.Errorf("%s gives %v, want one result", source, results)
		}
	}
}

func TestNumbersLoseNothingOnTheirWayThrough(t *testing.T) {
	for _, number := range []string{"12345678901234567890", "0.10", "1e3", "-0", "1E400", "3.141592653589793238462643383"} {
		for _, source := range []string{`.`, `.n`, `[.n][0]`, `{a: .n} | .a`, `.n as $n | $n`} {
			input, want := `{"n":`+number+`}`, number
			if source == `.` {
				want = input
			}
			if got, err := run(source, input); got != want || err != nil {
				t.Errorf("%s of %s = %s, %v; want it unchanged", source, number, got, err)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	program, err := Compile(`{sku: .input.sku, quantity: (.input.quantity * 2)}`)
	if err != nil {
		b.Fatal(err)
	}
	input, _ := Decode(json.RawMessage(`{"input":{"sku":"apple","quantity":3}}`))
	for b.Loop() {
		if _, err := program.Run(context.Background(), input); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(`.input.sku`); err != nil {
			b.Fatal(err)
		}
	}
}

package jq

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 200_000) + `","y":"` + strings.Repeat("x", 16_000) + `y","b":[` + strings.Repeat("0,", 20_000) + `0],"s":"` + strings.Repeat("x", 16_000) + `","w":"` + strings.Repeat("ab ", 5_000) + `"}`
	for _, source := range []string{
		`. as $r | .a | indices($r.y) | length`, `. as $r | .a | index($r.y)`, `. as $r | .a | rindex($r.y)`, `. as $r | .a | indices($r.y[:10000]) | length`, `. as $r | .a | indices($r.y[:1000]+"y") | length`,
		`. as $r | .b[:8000] | indices($r.b[:8000]) | length`, `. as $r | .b | indices($r.b[:3000] + [1]) | length`, `.b | .[[0,0]] | length`, `. as $r | .b | .[$r.b[:500]+[1]] | length`,`. as $r | .b | .[$r.b[:10000]+[1]] | length`, `.a | indices("x") | length`,
		`.b[:8000] - .b[:8000] | length`, `(.b[:8000] | map(1)) as $x | .b[:8000] - $x | length`, `(.b[:8000] | map(1)) as $x | .b[:8000] | contains($x)`,
		`(.b[:8100] | map([1])) as $x | .b[:8000] | map([0]) | contains($x)`,`(.b[:4000] | map({a:1})) as $x | .b[:2000] | map({a:0}) | contains($x)`,
		`.s | gsub("x"; "y") | length`, `.s | gsub("(?<c>x)"; .c + "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy") | length`, `.s | [match("x"; "g")] | length`, `.s | [match("(x)(x)(x)"; "g")] | length`, `.s | [match("((((((((((x))))))))))"; "g")] | length`, `.s | [splits("x")] | length`, `.s | [scan("x")] | length`, `.w | gsub("[a-z]+"; "word") | length`,
		`.s[:8000] | gsub("((((((((((x))))))))))"; "y") | length`, `("x"*1000000) as $b | .s[:1000] | gsub("x"; $b) | length`, `("x"*10000) as $b | .s | gsub("x"; $b) | length`, `.s | gsub("x"; "y", "z") | length`, `.s[:1000] | gsub(""; "y") | length`, `.s[:8000] | gsub("(?<c>x)"; .c * 100) | length`,
		`.s | gsub("x*y|x"; "z") | length`, `.s[:5000] | gsub("x*y|x"; "z") | length`, `.s[:2000] | gsub("(x+x+)+y|x"; "z") | length`, `[range(100000) | try ("x" | test("\\pL" * 5000)) catch 0] | length`, `[range(100000) as $i | try ("x" | test("x{1000}" + ($i|tostring))) catch 0] | length`, `[range(100000) as $i | try ("x" | test("ab" + ($i|tostring))) catch 0] | length`,
		`.s | split("x"; null) | length`, `"` + strings.Repeat(`\(.s)`, 3000) + `" | length`, `@json "` + strings.Repeat(`\(.s)`, 3000) + `" | length`, `@base64 "` + strings.Repeat(`\(.s)`, 3000) + `" | length`, `"` + strings.Repeat(`\(.a)`, 300) + `" | length`, `"` + strings.Repeat(`a\(.y)`, 2000) + `" | length`,
		`(reduce range(9990) as $i (1; . * 10)) as $n | reduce range(20000) as $i (0; $n % ($n/3|floor))`, `(reduce range(4990) as $i (1; . * 10)) as $n | reduce range(20000) as $i (0; $n * $n)`,`(reduce range(9990) as $i (1; . * 10)) as $n | [range(20000) | $n|tostring] | length`,`(reduce range(9990) as $i (1; . * 10)) as $n | (reduce range(5000) as $i (1; . * 7)) as $m | reduce range(20000) as $i (0; $n % $m) | 1`,`(reduce range(9990) as $i (1; . * 10)) as $n | (reduce range(5000) as $i (1; . * 7)) as $m | reduce range(20000) as $i (0; $n / $m) | 1`,
		`.a | [match("x{900}x{900}"; "g")] | length`, `.s | test("x{0,500}y")`, `.s[:8000] | test("(x?){1000}y")`, `[.s | ltrimstr("x")] | length`, `reduce range(100000) as $i (.; getpath(["b", [0]]) | $i) `,
		`. as $r | [limit(1000; repeat($r)) | .y as $y | .a | index($y)] | length`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		got, err := run(source, long)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		ms, mb := took.Milliseconds(), (after.TotalAlloc-before.TotalAlloc)>>20
		t.Logf("%6d ms %6d MB %.75s -> %.12s %.80v", ms, mb, source, got, err)
	}
}

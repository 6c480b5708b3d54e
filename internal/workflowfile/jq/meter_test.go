package jq

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// fewer bytes than MaxBytes do for tests that use them up.
const fewer = 4 << 20

// measured evaluates source on input and returns what was counted.
func measured(t *testing.T, source string, input any) (value any, steps, bytes int, err error) {
	t.Helper()
	program, err := Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	r, err := program.begin()
	if err != nil {
		t.Fatal(err)
	}
	r.meter.reset(context.Background())
	r.meter.most = fewer
	value, err = one(r.code.RunWithContext(r.meter, input))
	return value, r.meter.steps, r.meter.bytes, err
}

// large is what fits into a job's input: a text, a list and an object.
func large(t *testing.T) any {
	t.Helper()
	members := make([]string, 10_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	v, err := Decode(json.RawMessage(`{"a":"` + strings.Repeat("x", 100_000) + `","b":[` + strings.Repeat("0,", 50_000) + `0],"c":{` + strings.Join(members, ",") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What is one step of gojq's machine may go through a large value. Asked for without end, each of these ends
// by what was counted, at the same place every time; nothing here knows what time it is.
func TestWhatIsDoneWithoutEndEndsByCountAlone(t *testing.T) {
	input := large(t)
	for _, each := range []string{
		`.a = 1`, `.c.k1 = 1`, `.b[0] = 1`, `.c.k1 |= . + 1`, `.c.k1 += 1`, `.b[0] //= 1`, `.b[0:2] = [1]`, `.c |= with_entries(.)`,
		`del(.c.k1)`, `delpaths([["c", "k1"]])`, `setpath(["c", "k1"]; 1)`, `pick(.c.k1)`, `pick(.b[])`, `.c | map_values(error)`,
		`.b[]`, `.c[]`, `.c[]?`, `.b | any(. == 0; .)`, `.b | any`, `.b | all`, `.b | map(error)`, `..`, `nth(1; ..)`, `.c | recurse`, `paths`, `tostream`,
		`.b + [1]`, `.c + {a: 1}`, `.a + "x"`, `.a * 2`, `.a / "x"`, `.a - "x"`, `.b - [1]`, `.b == .b`, `.c < .c`, `"\(.b)"`, `"\(.a)"`, `@json "\(.b)"`,
		`.a[1:]`, `.a[-1:]`, `.a[50000]`, `.a | length`, `.a | first`, `.a | nth(60000)`, `.b[1:] | reverse`, `.b | reverse`, `.c | keys`, `.c | to_entries`,
		`.c | tojson`, `.a | @base64`, `.a | ascii_downcase`, `.a | explode`, `"[" + (.b | join(",")) + "]" | fromjson`, `.a | split("x")`, `.a | ltrimstr("x")`,
		`.b | sort`, `.b | group_by(.)`, `.b | unique`, `.b | min`, `.b | max_by(.)`, `.b | add`, `add(.b[])`, `.b | flatten`, `[.b] | transpose`, `.b | bsearch(1)`,
		`.b | index(0)`, `.b | contains([1])`, `.b | inside([0])`, `.b | IN([1])`, `INDEX(.b[]; .)`, `.b | INDEX(.)`, `.c | from_entries`, `walk(.)`,
		`.a[:16000] | test("(x+x+)+y")`, `.a[:16000] | gsub("y"; "")`, `.a[:16000] | [match("xxx"; "g")]`, `.a[:9000] | test("x{900}x{900}y")`,
		`.a[:2000] | [splits("x")]`, `.a[:100] | sub("x"; "y")`, `.a | tonumber`, `[.b, .b] | combinations`, `.b | combinations(9)`, `try error(.b) catch .`, `.b | @csv`, `limit(1; .b[])`,
	} {
		source := `. as $r | reduce range(1e9) as $i ([]; try first($r | ` + each + `) catch "")`
		_, steps, bytes, err := measured(t, source, input)
		_, again, bytesAgain, _ := measured(t, source, input)
		if text(err) != "takes more than 1000000 steps" && text(err) != "reads and makes more than 4194304 bytes" {
			t.Errorf("%s, without end: %v, want an end by steps or bytes", each, err)
		}
		if steps != again || bytes != bytesAgain {
			t.Errorf("%s, without end: %d steps and %d bytes, the next time %d and %d", each, steps, bytes, again, bytesAgain)
		}
	}
}

// What is one step of gojq's machine may compare and match for seconds: what it reads is counted, each time that it is read. An index of a
// text took 9.8 s, and a pattern that fails late is tried anew at each character.
func TestWhatIsFoundAndMatchedIsCountedByWhatIsRead(t *testing.T) {
	input := large(t)
	const more = fewer + 1 // ends the evaluation
	for source, least := range map[string]int{
		`.a | index("y")`:                                           100_000,
		`.a as $a | .a | indices($a[:1000] + "y")`:                  100_000 * 1000 / 64,
		`.a as $a | .a | rindex($a[:10000] + "y")`:                  more,
		`.b as $b | .b[:1000] | indices($b[:1000])`:                 2 * 1000 * 1000,
		`.b as $b | .b | .[$b[:1000]]`:                              more,
		`.a[:1000] | test("y")`:                                     1000 * 16,
		`.a[:1000] | test("x{0,500}y")`:                             1000 * 2 * 500,
		`.a[:1000] | [scan("x")]`:                                   1000 * 1000 / 8,
		`.a[:1000] | [splits("x")]`:                                 1000 * 1000 / 8,
		`.a[:1000] | [match("x*y|x")]`:                              1000 * 16,
		`.a[:1000] | [match("x*y|x"; "g")]`:                         more, // reads the rest of the text for each match
		`.a[:1000] | gsub("x*y|x"; "z")`:                            more,
		`.a[:1000] | [match(["x*y|x", "g"])]`:                       more,
		`.a as $a | "x" | sub("x"; $a)`:                             100_000,
		`"x" | test("x{1000}y{1000}")`:                              2000 * 256,
		`.a as $a | "x" | try test($a[:16000]) catch 0`:             more,
		`.a as $a | "x" | try test("(" + $a[:1000]) catch 0`:        1000 * 512,
		`reduce range(3000) as $i (1; . * 10) | . % 7 | . + 1`:      3000 * 3000,
		`.a as $a | "` + strings.Repeat(`\(1)`, 40) + `\($a)\($a)"`: 2 * 100_000,
	} {
		if _, _, bytes, err := measured(t, source, input); bytes < min(least, more) || bytes > 100*least || err != nil && least < more {
			t.Errorf("%s counts for %d bytes (%v), want %d at least", source, bytes, err, least)
		}
	}
}

// A pattern is compiled once in an evaluation, and counts so.
func TestAPatternIsCompiledOnceInAnEvaluation(t *testing.T) {
	_, _, once, err := measured(t, `"x" | test("x{1000}")`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, often, err := measured(t, `reduce range(10) as $i (false; "x" | test("x{1000}"))`, nil); err != nil || often > 2*once {
		t.Errorf("a pattern counts for %d bytes, and for %d where it is matched ten times (%v)", once, often, err)
	}
}

// What is kept is made, and so counted.
func TestAnEvaluationKeepsLittleMoreThanIsCounted(t *testing.T) {
	input := large(t)
	for _, each := range []string{
		`.b + [1]`, `.c + {a: 1}`, `.c.k1 = 1`, `.b[0] = 1`, `.a + "x"`, `"x" * 500000`, `.a | explode`, `[.b[]]`, `.c | keys`, `.b | reverse`, `.a / "x"`,
		`.b | tojson | fromjson`, `.c | to_entries`, `@json "\(.a)"`, `.b | sort`, `setpath(["b", 0]; 1)`, `.a | @base64`,
		`.a[:4000] | gsub("x"; "0123456789" * 10)`, `.a[:4000] | gsub("(?<c>x)"; .c * 100)`, `.a[:1000] | [match("((((x))))"; "g")]`, `try test("\\pL" * 5000) catch 0`,
		`.a[:1000] as $a | "` + strings.Repeat(`\($a)`, 1500) + `"`, `.a[:1000] as $a | @base64 "` + strings.Repeat(`\($a)`, 1500) + `"`,
	} {
		// Under the race detector twice as much is made as without it.
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err := measured(t, `. as $r | [range(1e9) | $r | `+each+`]`, input)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > 50*fewer {
			t.Errorf("%s, kept without end: made %d MB (%v), want at most %d", each, made>>20, err, 50*fewer>>20)
		}
	}
}

// slow is a context that lets an hour pass at each look: a computer that does everything but this.
type slow struct {
	context.Context
	now *time.Time
}

func (s slow) Err() error {
	*s.now = s.now.Add(time.Hour)
	return s.Context.Err()
}

// A burst of good evaluations on a starved computer: the limit on their time undid 60 good jobs of 300.
func TestNoGoodEvaluationFailsHoweverBusyTheComputerIs(t *testing.T) {
	const source = `.b[:20000] | map(tonumber + 1) | add`
	program, err := Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	input := large(t)
	ctx, cancel := context.WithCancel(t.Context())
	var load, burst sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		load.Go(func() {
			for ctx.Err() == nil {
				_ = strings.Repeat("x", 10_000)
			}
		})
	}
	for range 60 {
		burst.Go(func() {
			var now time.Time
			if got, err := program.Run(slow{context.Background(), &now}, input); err != nil || got != 20_000 {
				t.Errorf("%s: %v, %v, want 20000", source, got, err)
			}
			if now.Sub(time.Time{}) < time.Hour {
				t.Errorf("%s: the caller's context was looked at for %s, want hours", source, now.Sub(time.Time{}))
			}
		})
	}
	burst.Wait()
	cancel()
	load.Wait()
}

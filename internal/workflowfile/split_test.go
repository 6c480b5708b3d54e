package workflowfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
)

// show writes parts with expressions in angle brackets.
func show(parts []part) string {
	var text strings.Builder
	for _, p := range parts {
		if p.expression {
			fmt.Fprintf(&text, "<%s>", p.text)
		} else {
			fmt.Fprintf(&text, "[%s]", p.text)
		}
	}
	return text.String()
}

func TestAnExpressionEndsAtItsMatchingBrace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, ``},
		{`plain`, `[plain]`},
		{`${ .a }`, `< .a >`},
		{`a ${.b} c ${.d}`, `[a ]<.b>[ c ]<.d>`},
		{`${.a}${.b}`, `<.a><.b>`},
		{`${ {a: {b: 1}} }}`, `< {a: {b: 1}} >[}]`},
		{`${ "}" }`, `< "}" >`},
		{`${ "\"}" }`, `< "\"}" >`},
		{`${ "\\" }"}`, `< "\\" >["}]`},
		{`${ "a\(.b)}" }`, `< "a\(.b)}" >`},
		{`${ "\({a: "}"} | "\(.a)}")}" }x`, `< "\({a: "}"} | "\(.a)}")}" >[x]`},
		{`${ "\( (1) )}" }`, `< "\( (1) )}" >`},
		{`${ "\(1}" }`, `!`},
		{`${ (.a }`, `< (.a >`},
		{`${ {a: (1 }}`, `< {a: (1 }>`},
		{`${ .a) }`, `< .a) >`},
		{"${ .a # }\n}", "< .a # }\n>"},
		{"${ .a # \\\n }\n}", "< .a # \\\n }\n>"},
		{"${ .a # \\\\\n}", "< .a # \\\\\n>"},
		{"${ # x\r}", "< # x\r>"},
		{"${ # \\\r\n}\n}", "< # \\\r\n}\n>"},
		{`${ "#" }`, `< "#" >`},
		{`${ "\(1 # )` + "\n" + `)" }`, `< "\(1 # )` + "\n" + `)" >`},
		{`$${ .a }`, `[${ .a }]`},
		{`a $${ ${.b} $$ $ {`, `[a ${ ]<.b>[ $$ $ {]`},
		{`$$${ .a }`, `[$${ .a }]`},
		{`$`, `[$]`},
		{`$$`, `[$$]`},
		{`5$ or $x`, `[5$ or $x]`},
		{`${}`, `<>`},
		{`${`, `!`},
		{`${ "}`, `!`},
		{`${ # }`, `!`},
		{`a ${.b} ${ .c`, `!`},
		{`ä${.ö}ü`, `[ä]<.ö>[ü]`},
	} {
		parts, err := split(c.text)
		got := show(parts)
		if errors.Is(err, errOpen) {
			got = "!"
		}
		if got != c.want {
			t.Errorf("split(%q) = %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

// Whatever gojq takes for a whole expression, split must take for one too, wherever it stands. A
// comment at its end is closed by a line end, of which a backslash may take the first.
func FuzzSplitAgreesWithGojq(f *testing.F) {
	for _, seed := range []string{
		`.a`, `{a: "}"}`, `"\("}" + "\(1)")"`, "1 # }\n", `"\\" | "}"`, `@base64 "x\({a:1}|.a)}"`, "# \\\n}\n.",
		`reduce .[] as {a: $x} (0; . + $x)`, `"\u007d"`, `if . then "}" else {} end`,
	} {
		f.Add(seed, "before ", " after")
	}
	f.Fuzz(func(t *testing.T, source, before, after string) {
		if _, err := gojq.Parse(source); err != nil || strings.Contains(source, "\x00") {
			return
		}
		if strings.Contains(before+after, "$") {
			return
		}
		source += "\n\n"
		var want []part
		for _, p := range []part{{text: before}, {source, true}, {text: after}} {
			if p.text != "" {
				want = append(want, p)
			}
		}
		got, err := split(before + "${" + source + "}" + after)
		if err != nil || show(got) != show(want) {
			t.Fatalf("split of %q between %q and %q = %q, %v", source, before, after, show(got), err)
		}
	})
}

// Literal text comes back as it was, whatever it is.
func FuzzSplitKeepsText(f *testing.F) {
	f.Add("a $${ b } $")
	f.Add("${ .a } $$${")
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := split(strings.ReplaceAll(text, "${", "$${"))
		if err != nil || len(parts) > 1 || len(parts) == 1 && parts[0] != (part{text: text}) || len(parts) == 0 && text != "" {
			t.Fatalf("split of the literal %q = %q, %v", text, show(parts), err)
		}
		again, err := split(text)
		if err == nil && text != "" && len(again) == 0 {
			t.Fatalf("split(%q) gives nothing", text)
		}
	})
}

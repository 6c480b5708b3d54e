package batch

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/makegood-dev/makegood"
)

var rewrite = flag.Bool("rewrite", false, "write the expected texts anew; read the diff before you commit it")

// Each file of testdata/bad is refused with the text beside it, and each of testdata/good is read as
// the text beside it says.
func TestFilesGiveTheTextBesideThem(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.jsonl")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v; want at least 40", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := readInputs(filepath.Base(file), bytes.NewReader(source), "")
			if isBad := strings.HasPrefix(file, "testdata/bad"); (err != nil) != isBad {
				t.Errorf("error %v, want one: %t", err, isBad)
			}
			compare(t, strings.TrimSuffix(file, ".jsonl")+".txt", describe(lines, err))
		})
	}
}

func readInputs(name string, from io.Reader, id string) ([]Line, error) {
	in, err := NewInputs(name, io.NopCloser(from), id)
	if err != nil {
		return nil, err
	}
	return in.Lines()
}

func describe(lines []Line, err error) string {
	var text strings.Builder
	if err != nil {
		fmt.Fprintln(&text, err)
	}
	for _, l := range lines {
		fmt.Fprintf(&text, "%d %s %s %s\n", l.Number, l.ID, l.Hash, l.Input)
	}
	return text.String()
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%swant (%s)\n%s", got, golden, want)
	}
}

func TestIDExpressionGivesTheIDs(t *testing.T) {
	const file = `{"order":{"no":7},"who":"ann"}` + "\n" + `{"order":{"no":8},"who":"bob"}` + "\n"
	for _, c := range []struct{ id, want string }{
		{`.who`, "ann bob"},
		{`.order.no`, "7 8"},
		{`"\(.who)-\(.order.no)"`, "ann-7 bob-8"},
		{`.nothing`, "line-1-6426074240bc line-2-deb51e702e23"},
		{`.order`, "in:1: --id .order is neither a text nor a number\nin:2: --id .order is neither a text nor a number"},
		{`.order.no > 7`, "in:1: --id .order.no > 7 is neither a text nor a number\nin:2: --id .order.no > 7 is neither a text nor a number"},
		{`.who | explode[]`, "in:1: --id .who | explode[]: gives more than one value, want one\nin:2: --id .who | explode[]: gives more than one value, want one"},
		{`empty`, "in:1: --id empty: gives no value, want one\nin:2: --id empty: gives no value, want one"},
		{`.who.x`, "in:1: --id .who.x: expected an object but got: string (\"ann\")\nin:2: --id .who.x: expected an object but got: string (\"bob\")"},
		{`nan`, "in:1: --id nan gives NaN, which JSON cannot hold\nin:2: --id nan gives NaN, which JSON cannot hold"},
		{`"same"`, "in:2: the id \"same\" is that of line 1 already, with other content"},
		{`.who +`, "--id .who +: not jq: unexpected EOF"},
		{`now`, "--id now: now is refused: it reads the clock"},
		{`$ENV.HOME`, "--id $ENV.HOME: $ENV is refused: it reads the environment"},
	} {
		lines, err := readInputs("in", strings.NewReader(file), c.id)
		var ids []string
		for _, l := range lines {
			ids = append(ids, l.ID)
		}
		got := strings.Join(ids, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("--id %s\n got %s\nwant %s", c.id, got, c.want)
		}
	}
}

func TestALineMayBeAsLargeAsAJobsInput(t *testing.T) {
	largest := `{"id":"a","x":"` + strings.Repeat("x", makegood.MaxPayloadBytes-len(`{"id":"a","x":""}`)) + `"}`
	for _, c := range []struct {
		file string
		ok   bool
	}{
		{largest, true},
		{"\uFEFF" + largest + "\r\n", true},
		{strings.Replace(largest, "xx", "xxx", 1), false},
		{strings.Repeat("x", 3<<20), false},
	} {
		lines, err := readInputs("in", strings.NewReader(c.file), "")
		if (err == nil) != c.ok || len(lines) != 1 && c.ok {
			t.Errorf("a line of %d bytes: %d lines, %v; want it taken: %t", len(c.file), len(lines), err, c.ok)
		}
	}
}

func TestAFileThatCannotBeReadToItsEndGivesNoLines(t *testing.T) {
	torn := io.MultiReader(strings.NewReader(`{"id":"a"}`+"\n"), iotest.ErrReader(os.ErrDeadlineExceeded))
	lines, err := readInputs("in", torn, "")
	if lines != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read = %v, %v; want no lines and the error of reading", lines, err)
	}
}

// A hundred thousand lines take half a second here, and hours if each line costs as much as all before it; the limit
// leaves room for a slow machine.
func TestAHundredThousandLinesAreReadFast(t *testing.T) {
	var file bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&file, `{"id":"order-%d","sku":"apple","quantity":%d,"customer":{"name":"Ann","email":"ann@example.com"}}`+"\n", i, i%10)
	}
	start := time.Now()
	lines, err := readInputs("in", &file, "")
	if took := time.Since(start); len(lines) != 100_000 || err != nil || took > 5*time.Minute {
		t.Errorf("%d lines, %v, in %s; want 100000 in less than five minutes", len(lines), err, took)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"{\"id\":\"a\"}\n", "\r\n\n{}\n{\"id\":1}", "[1]\n[1]\n", "\uFEFFnull"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		lines, err := readInputs("in", strings.NewReader(file), "")
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, l := range lines {
			if checkID("id", l.ID) != nil || seen[l.ID] || l.Number < 1 {
				t.Fatalf("%q gives line %+v after %v", file, l, seen)
			}
			seen[l.ID] = true
		}
	})
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const wholesome = `package p

import "log"

const limit = 3 * 4

type logger struct{ Logger, logger *log.Logger }

func f(x logger, a, b int, ok bool) (n int) {
	x.Logger.Print("f")
	if b++; a > b {
		x.logger.Print("larger")
	}
	if a < b && !ok {
		n++
	}
	switch {
	case ok:
		n = max(a, b)
	case a == -1, b == 2:
		n += 3
	}
	switch a {
	case 1, 2:
		g(pair{A: a, B: true})
	default:
		panic("a")
	}
	for range 3 {
		continue
	}
	if h() {
		return n - 1
	}
	return n
}

func e(err error) (bool, error) {
	return true, err
}
`

// Each small change is listed once, and what only logs or panics is left as it is.
func TestWhatCanBeMadeWrongIsListed(t *testing.T) {
	found, err := mutantsIn("p/p.go", []byte(wholesome))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, strings.TrimPrefix(strings.TrimPrefix(m.key(), "p/p.go "), "f: "))
	}
	want := []string{
		"limit: 3 * 4 => 3 / 4",
		"a < b && !ok => a < b", "a < b && !ok => !ok", "a < b => a <= b", "a < b => a >= b", "!ok => ok",
		"b++ => b--", "b++ => (nothing)", "n++ => n--", "n++ => (nothing)",
		"ok => false && (ok)", "a == -1 => false && (a == -1)", "b == 2 => false && (b == 2)",
		"n = max(a, b) => _ = max(a, b)", "max(a, b) => min(a, b)",
		"a == -1 => a != -1", "-1 => +1", "b == 2 => b != 2",
		"n += 3 => n -= 3", "n += 3 => n = 3", "n += 3 => _ = 3",
		"case 1 => (nothing)", "case 2 => (nothing)", "g(pair{A: a, B: true}) => (nothing)",
		"A: a => (nothing)", "B: true => (nothing)", "true => false",
		"continue => break", "h() => !(h())", "n - 1 => n + 1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Two that read the same in one function have different names, so that one can be said to be equivalent.
func TestTheSameChangeTwiceInAFunctionHasTwoNames(t *testing.T) {
	found, err := mutantsIn("p.go", []byte("package p\n\nfunc f() {\n\tg()\n\tg()\n}\n"))
	if err != nil || len(found) != 2 {
		t.Fatalf("got %+v, %v, want two", found, err)
	}
	if a, b := found[0].key(), found[1].key(); a != "p.go f: g() => (nothing)" || b != a+" (2)" {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestADiffShowsTheLinesThatAreWrong(t *testing.T) {
	text := []byte("package p\n\nfunc f(a, b int) bool {\n\treturn a < b\n}\n")
	found, err := mutantsIn("p.go", text)
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	if got, want := found[0].diff(text), "  -\treturn a < b\n  +\treturn a <= b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// small is a module with a mutant that its test sees, one that it does not see, and one that does not compile.
func small(t *testing.T) (root string, found []mutant) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.org/small\n\ngo 1.26\n",
		"p/p.go":        "package p\n\nimport \"strings\"\n\nfunc f(a, b int) int {\n\tn := a + b\n\tif a < 0 {\n\t\tprintln(strings.ToUpper(\"a\"))\n\t}\n\treturn n\n}\n",
		"p/p_test.go":   "package p\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tif f(1, 2) != 3 {\n\t\tt.Error(\"no\")\n\t}\n}\n",
		"up/up_test.go": "package up\n\nimport \"testing\"\n\nfunc TestUp(*testing.T) {}\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := mutantsOf(root, "p")
	if err != nil {
		t.Fatal(err)
	}
	return root, found
}

// A mutant is asked layer by layer until one sees it; one that does not compile is none; the tree stays as it is.
func TestTheFirstLayerThatSeesAMutantIsNamed(t *testing.T) {
	root, found := small(t)
	before, err := os.ReadFile(filepath.Join(root, "p/p.go"))
	if err != nil {
		t.Fatal(err)
	}
	proofs := map[string][]layer{"p": {{"up", [][]string{{"./up"}}}, {"own", [][]string{{"./p"}}}}}
	x := &trial{root: root, proofs: proofs, took: map[string]time.Duration{}}
	outcomes, err := x.tryAll(t.Context(), found, len(found), 2, func(outcome) {})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range outcomes {
		became := strings.Join(o.KilledBy, ",")
		if o.Broken {
			became = "broken"
		}
		got[o.Old+" => "+o.New] = became
	}
	for name, want := range map[string]string{
		"a + b => a - b":  "own",
		"a < 0 => a <= 0": "",
		`println(strings.ToUpper("a")) => (nothing)`: "broken",
	} {
		if became, ok := got[name]; !ok || became != want {
			t.Errorf("%s: got %q, want %q", name, became, want)
		}
	}
	for _, o := range outcomes {
		if len(o.KilledBy) > 0 && o.Seen != "TestF" {
			t.Errorf("%s was seen by %q, want the test that failed", o.key(), o.Seen)
		}
	}
	after, err := os.ReadFile(filepath.Join(root, "p/p.go"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the tree was touched: %v\n%s", err, after)
	}
}

// What fails without a mutant says nothing of mutants.
func TestALayerThatFailsByItselfIsAnError(t *testing.T) {
	root, found := small(t)
	proofs := map[string][]layer{"p": {{"nothing", [][]string{{"./nowhere"}}}}}
	x := &trial{root: root, proofs: proofs, took: map[string]time.Duration{}}
	if _, err := x.tryAll(t.Context(), found, 1, 1, func(outcome) {}); err == nil || !strings.Contains(err.Error(), "fails without a mutant") {
		t.Errorf("got %v, want that it fails without a mutant", err)
	}
}

// A mutant that no test fails for within the limit is told from one that a test saw: a busy machine may be the reason.
func TestAMutantThatTakesTooLongIsSaidToHaveTakenTooLong(t *testing.T) {
	root, _ := small(t)
	x := &trial{root: root, took: map[string]time.Duration{"./p": (time.Nanosecond - grace) / patience}}
	if seen, _, err := x.ask(t.Context(), layer{"own", [][]string{{"./p"}}}, ""); seen != tookTooLong || err != nil {
		t.Errorf("got %q, %v, want %q", seen, err, tookTooLong)
	}
}

// Survivors count against the tests, those that are equivalent do not, and one that was killed is not equivalent.
func TestASurvivorCountsUnlessItIsEquivalent(t *testing.T) {
	killed := outcome{mutant: mutant{File: "a"}, Asked: []string{"own"}, KilledBy: []string{"own"}}
	lives := outcome{mutant: mutant{File: "b"}, Asked: []string{"own", "above"}}
	broken := outcome{mutant: mutant{File: "c"}, Broken: true}
	later := outcome{mutant: mutant{File: "d"}, Asked: []string{"own", "above"}, KilledBy: []string{"above"}}
	all := []outcome{killed, lives, broken, later}
	s := sum(options{}, 4, all, nil, 0)
	if s.Tried != 3 || s.Killed != 2 || len(s.Survivors) != 1 || s.failed() == nil {
		t.Errorf("got %+v, %v, want 2 of 3 killed, and that this is too few", s, s.failed())
	}
	if len(s.Layers) != 2 || s.Layers[1] != (tally{Layer: "above", Asked: 2, Killed: 1, Alone: 1}) {
		t.Errorf("got the layers %+v, want the second to have killed one of two", s.Layers)
	}
	s = sum(options{}, 4, all, map[string]string{lives.key(): "it is the same"}, 0)
	if s.Equivalent != 1 || s.Percent != 100 || s.failed() != nil {
		t.Errorf("got %+v, %v, want one equivalent and all others killed", s, s.failed())
	}
	s = sum(options{}, 4, all, map[string]string{killed.key(): "it is not"}, 0)
	if len(s.Wrong) != 1 || s.failed() == nil {
		t.Errorf("got %+v, %v, want that one was said to be equivalent, and is not", s, s.failed())
	}
}

// An entry says why, once, and names a mutant that there is.
func TestEveryEquivalentIsAMutantAndSaysWhy(t *testing.T) {
	why, err := readEquivalents(filepath.Join("../..", equivalents))
	if err != nil {
		t.Fatal(err)
	}
	all, err := listed("../..", covered())
	if err != nil {
		t.Fatal(err)
	}
	if names := unknown(why, all); names != nil {
		t.Errorf("%s names what is no mutant (any more): %q", equivalents, names)
	}
	if names := unknown(map[string]string{"p.go f: a => b": "x"}, all); len(names) != 1 {
		t.Errorf("got %q, want the one that is not there", names)
	}
	for _, wrong := range []string{"p.go f: a => b\n", "  why\n", "a\n  why\n\na\n  why\n"} {
		file := filepath.Join(t.TempDir(), "equivalent.txt")
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readEquivalents(file); err == nil {
			t.Errorf("%q is read without an error", wrong)
		}
	}
}

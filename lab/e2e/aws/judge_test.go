package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// events returns what go test -json prints for tests with these ends, as "name action output".
func events(lines ...string) []byte {
	var out strings.Builder
	for _, line := range lines {
		part := strings.SplitN(line, " ", 3)
		if len(part) == 3 {
			fmt.Fprintf(&out, "{\"Action\":\"output\",\"Test\":%q,\"Output\":%q}\n", part[0], part[2]+"\n")
		}
		fmt.Fprintf(&out, "{\"Action\":%q,\"Test\":%q}\n", part[1], part[0])
	}
	return []byte(out.String())
}

func TestOnlyWhatIsListedMayFail(t *testing.T) {
	known := map[string]string{"TestA/known": "it does so"}
	for name, c := range map[string]struct {
		events             []byte
		wrong              string
		passed, deviations int
	}{
		"all passed":                {events("TestA/known fail", "TestA fail", "TestB pass"), "", 1, 1},
		"a failure":                 {events("TestA/known fail", "TestB fail why"), "TestB failed:\nwhy", 0, 1},
		"a test that did not end":   {events("TestA/known fail", "TestB run"), "TestB failed", 0, 1},
		"a skipped test":            {events("TestA/known fail", "TestB skip"), "TestB was skipped", 0, 1},
		"a listed one passes":       {events("TestA/known pass"), "take it off the list", 0, 0},
		"a listed one does not run": {events("TestB pass"), "did not run", 1, 0},
		"a test that says so":       {events("TestA/known fail", "TestB pass x_test.go:1: deviates: why"), "", 0, 2},
		"nothing":                   {nil, "no test ran", 0, 0},
	} {
		r := result{deviations: map[string]string{}}
		wrong := errors.Join(judge(read(c.events), known, &r)...)
		if c.wrong == "" && wrong != nil || c.wrong != "" && (wrong == nil || !strings.Contains(wrong.Error(), c.wrong)) {
			t.Errorf("%s: got error %v, want %q", name, wrong, c.wrong)
		}
		if r.passed != c.passed || len(r.deviations) != c.deviations {
			t.Errorf("%s: got %d passed and %v, want %d and %d", name, r.passed, r.deviations, c.passed, c.deviations)
		}
	}
}

func TestASecondTryIsForAnswersThatWereCutOffAlone(t *testing.T) {
	for name, c := range map[string]struct {
		events []byte
		want   bool
	}{
		"all passed":                  {events("TestA pass"), false},
		"a failure":                   {events("TestA fail why"), false},
		"answers were cut off":        {events("TestA fail "+standin.CutOff+": 2 of 90", "TestB pass"), true},
		"and something else is wrong": {events("TestA fail "+standin.CutOff+": 2 of 90", "TestB fail why"), false},
		"cut off, and passed":         {events("TestA pass " + standin.CutOff), false},
	} {
		if got := excused(read(c.events)); got != c.want {
			t.Errorf("%s: got a second try: %v, want %v", name, got, c.want)
		}
	}
}

func TestTheReportNamesEveryDeviation(t *testing.T) {
	on := stacks()[:1]
	got := report(on, []result{{stack: on[0].String(), folder: "internal/x", passed: 7, deviations: map[string]string{"TestA/a_rule": "why"}}})
	for _, want := range []string{"| " + on[0].String() + " | `internal/x` | 7 | 0 | 1 |", "- `TestA/a rule` in `internal/x`: why"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

func TestOnlyFilesUnderTheTagAreSuites(t *testing.T) {
	for text, want := range map[string]bool{
		"//go:build aws\n\npackage p":          true,
		"//go:build aws && linux\n\npackage p": true,
		"//go:build linux\n\npackage p":        false,
		"//go:build !aws\n\npackage p":         false,
		"package p\n\n//go:build aws":          false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p_test.go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := tagged(file); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// Every suite runs on a stack that can show all of it, each once, and those that wait run side by side; of one MiniStack runs what it
// alone can show.
func TestEverySuiteRunsOnceOnEveryStackButOne(t *testing.T) {
	var all []suite
	for _, folder := range []string{"lab/e2e/lambda", "lab/e2e/functions", "lab/testkit/lambdahost", "internal/queue/sqsqueue"} {
		all = append(all, suite{folder: folder})
	}
	var got []string
	for _, on := range stacks() {
		text := on.String() + ":"
		for _, group := range together(on.unasked(all)) {
			text += " "
			for _, s := range group {
				text += "+" + s.folder + strings.Join(s.tests, ",")
			}
		}
		got = append(got, text)
	}
	want := []string{
		"MiniStack 1.5.33: +lab/e2e/lambdaTestTheBusBringsEveryChangeOfAJob,TestALimitHoldsOverProcessesThatAreKilled,TestALimitForEachAccountHoldsOverProcessesThatAreKilled,TestAnOutagePausesAnAgentOfAStack +lab/e2e/functions +lab/testkit/lambdahost+internal/queue/sqsqueue",
		"DynamoDB Local 3.1.0 and ElasticMQ 1.7.1 and moto 5.2.5: +lab/e2e/lambda +lab/e2e/functions +lab/testkit/lambdahost+internal/queue/sqsqueue",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A job of CI names a set by one of its stand-ins: each set has names of its own, and a name that is none is told which there are.
func TestASetIsNamedByEachOfItsStandIns(t *testing.T) {
	for i, want := range stacks() {
		for _, p := range want.products {
			if got, err := stacksWith(p.name); err != nil || len(got) != 1 || got[0].String() != want.String() {
				t.Errorf("%s: got %v, %v, want set %d alone, %s", p.name, got, err, i, want)
			}
		}
	}
	if got, err := stacksWith("LocalStack"); err == nil || !strings.Contains(err.Error(), "there are MiniStack, DynamoDB Local, ElasticMQ, moto") {
		t.Errorf("got %v, %v, want the names that there are", got, err)
	}
}

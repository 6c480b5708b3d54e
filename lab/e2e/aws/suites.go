package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// tag is the build tag of the tests that need a stand-in.
const tag = "aws"

// suite is the tests of a package that need a stand-in.
type suite struct {
	folder string // from the root, with slashes
	tests  []string
}

// idle are suites that mostly wait until messages are visible again: they run side by side.
var idle = []string{"lab/testkit/lambdahost", "internal/queue/sqsqueue"}

// together returns the suites in the order in which they run, those that run at the same time together.
func together(suites []suite) (groups [][]suite) {
	var waiting []suite
	for _, s := range suites {
		if slices.Contains(idle, s.folder) {
			waiting = append(waiting, s)
			continue
		}
		groups = append(groups, []suite{s})
	}
	if len(waiting) > 0 {
		groups = append(groups, waiting)
	}
	return groups
}

// miniStackTests are the tests of lab/e2e/lambda that MiniStack runs, too: the one that needs a bus of EventBridge, and
// those of limits and breakers.
var miniStackTests = []string{
	"TestTheBusBringsEveryChangeOfAJob", "TestALimitHoldsOverProcessesThatAreKilled", "TestALimitForEachAccountHoldsOverProcessesThatAreKilled",
	"TestAnOutagePausesAnAgentOfAStack",
}

// unasked returns the suites that a stack runs when none is named: all but, on MiniStack, the functions under kills. It
// is too slow for the 2,000 orders and breaks no loop, so that in two minutes it shows a part of what the other stack
// shows.
func (s stack) unasked(suites []suite) []suite {
	suites = slices.Clone(suites)
	for i := range suites {
		if suites[i].folder == "lab/e2e/lambda" && s.has("MiniStack") {
			suites[i].tests = miniStackTests
		}
	}
	return suites
}

// findSuites returns the suites of the folders named; of all, when none is.
func findSuites(folders []string) ([]suite, error) {
	tests := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		found, err := testsIn(path)
		if folder := filepath.ToSlash(filepath.Dir(path)); len(found) > 0 {
			tests[folder] = append(tests[folder], found...)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for tests: %w", err)
	}
	var suites []suite
	for _, folder := range slices.Sorted(maps.Keys(tests)) {
		if len(folders) == 0 || slices.Contains(folders, folder) {
			suites = append(suites, suite{folder: folder, tests: tests[folder]})
		}
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("no tests carry the build tag %s in %v", tag, folders)
	}
	return suites, nil
}

// testsIn returns the tests of a file that is built only under the tag.
func testsIn(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if !tagged(file) {
		return nil, nil
	}
	var names []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}

func tagged(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expression, err := constraint.Parse(c.Text)
			with := func(name string) bool { return name == tag || name == "linux" || name == "unix" }
			without := func(name string) bool { return with(name) && name != tag }
			return err == nil && expression.Eval(with) && !expression.Eval(without)
		}
	}
	return false
}

// result is what a suite said of a stack.
type result struct {
	stack, folder  string
	passed, failed int
	// deviations are the tests that failed as they were known to, or that said that they deviate, with
	// the reason.
	deviations map[string]string
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// run runs the suite against a stack. The error says what was not as it should be.
func (s suite) run(ctx context.Context, on stack, environment []string) (result, error) {
	return s.try(ctx, on, environment, true)
}

// excused reports whether tests failed, and each of them because the stand-in cut answers off.
func excused(tests map[string]*test) bool {
	failed := 0
	for name, t := range tests {
		if name == "" || t.parent || t.action != "fail" {
			continue
		}
		if !strings.Contains(t.output.String(), standin.CutOff) {
			return false
		}
		failed++
	}
	return failed > 0
}

// try runs the suite; again says that it may have a second try.
func (s suite) try(ctx context.Context, on stack, environment []string, again bool) (result, error) {
	pattern := "^(" + strings.Join(s.tests, "|") + ")$"
	command := exec.CommandContext(ctx, "go", "test", "-tags", tag, "-count=1", "-timeout=20m", "-json", "-run", pattern, "./"+s.folder)
	python := filepath.Join(miniStack().folder(), "venv/bin/python")
	command.Env = append(os.Environ(), standin.PythonVariable+"="+python, "AWS_EC2_METADATA_DISABLED=true")
	command.Env = append(command.Env, environment...)
	command.Stderr = os.Stderr
	began := time.Now()
	out, runErr := command.Output()
	took := time.Since(began).Round(time.Second)

	tests := read(out)
	if again && excused(tests) {
		fmt.Printf("%-34s %s: once more, because %s\n", s.folder, on, standin.CutOff)
		return s.try(ctx, on, environment, false)
	}
	r := result{stack: on.String(), folder: s.folder, deviations: map[string]string{}}
	wrong := judge(tests, s.known(on), &r)
	fmt.Printf("%-34s %s: %d passed, %d failed, %d deviations, %v\n", s.folder, on, r.passed, r.failed, len(r.deviations), took)
	if runErr != nil && r.failed == 0 && len(r.deviations) == 0 {
		wrong = append(wrong, fmt.Errorf("go test: %w\n%s", runErr, output(out)))
	}
	if len(wrong) > 0 {
		return r, fmt.Errorf("%s against %s: %w", s.folder, on, errors.Join(wrong...))
	}
	return r, nil
}

// known are the deviations of this suite on a stack.
func (s suite) known(on stack) map[string]string {
	known := map[string]string{}
	for _, d := range standin.Deviations() {
		if on.has(d.Product) && d.Package == s.folder {
			known[d.Test] = d.Reason
		}
	}
	return known
}

// test is one test that ran.
type test struct {
	action string // pass, fail or skip; empty: it did not come to its end
	output strings.Builder
	parent bool
}

// read collects the events by test. What go test says of no test is under the empty name.
func read(out []byte) map[string]*test {
	tests := map[string]*test{"": {}}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		t := tests[e.Test]
		if t == nil {
			t = &test{}
			tests[e.Test] = t
		}
		switch e.Action {
		case "output":
			t.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			t.action = e.Action
		}
	}
	for name := range tests {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if parent := tests[name[:at]]; parent != nil {
				parent.parent = true
			}
		}
	}
	return tests
}

// deviates is what a test prints that found a stand-in to differ and allows for it, with the reason.
const deviates = "deviates: "

// judge counts the tests and says what is not as it should be.
func judge(tests map[string]*test, known map[string]string, r *result) (wrong []error) {
	for name := range known {
		if tests[name] == nil {
			wrong = append(wrong, fmt.Errorf("%s is listed as a deviation and did not run", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t := tests[name]
		reason, expected := known[name]
		_, said, saysSo := strings.Cut(t.output.String(), deviates)
		switch {
		case name == "" || t.parent:
		case t.action == "pass" && expected:
			wrong = append(wrong, fmt.Errorf("%s is listed as a deviation (%s) and passes: take it off the list", name, reason))
		case t.action == "pass" && saysSo:
			said, _, _ = strings.Cut(said, "\n")
			r.deviations[name] = said
		case t.action == "pass":
			r.passed++
		case t.action == "skip":
			wrong = append(wrong, fmt.Errorf("%s was skipped; nothing may be, here", name))
		case expected:
			r.deviations[name] = reason
		default:
			r.failed++
			wrong = append(wrong, fmt.Errorf("%s failed:\n%s", name, t.output.String()))
		}
	}
	if r.passed+r.failed+len(r.deviations) == 0 {
		wrong = append(wrong, errors.New("no test ran"))
	}
	return wrong
}

// output is what go test said, without the wrapping.
func output(out []byte) string {
	var text strings.Builder
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			text.Write(line)
		}
		text.WriteString(e.Output)
	}
	return text.String()
}

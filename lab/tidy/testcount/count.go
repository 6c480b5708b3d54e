package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is what go test -json prints, a line each; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// tally counts tests. A test that only runs subtests is not counted beside them.
type tally struct{ passed, failed, skipped int }

// String is the last line.
func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// running is a package whose tests are running.
type running struct {
	results map[string]string   // by test: pass, fail or skip
	parents map[string]bool     // tests that have subtests
	output  map[string][]string // by test; "" is the package's own
}

// counter reads events.
type counter struct {
	out      io.Writer
	total    tally
	packages map[string]*running
	builds   map[string][]string // what the compiler said, by import path
}

// count reads the events of go test until they end, writes a line to out for each package that
// ended, and returns the sum. What is not an event is passed on as it is.
func count(events io.Reader, out io.Writer) (tally, error) {
	c := counter{out: out, packages: map[string]*running{}, builds: map[string][]string{}}
	reader := bufio.NewReader(events)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(out, "%s", line)
			} else {
				c.take(e)
			}
		}
		if err == io.EOF {
			return c.total, nil
		}
		if err != nil {
			return c.total, err
		}
	}
}

func (c *counter) take(e event) {
	if e.Action == "build-output" {
		c.builds[e.ImportPath] = append(c.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := c.packages[e.Package]
	if p == nil {
		p = &running{results: map[string]string{}, parents: map[string]bool{}, output: map[string][]string{}}
		c.packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.output[e.Test] = append(p.output[e.Test], e.Output)
	case "run":
		p.start(e.Test)
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.results[e.Test] = e.Action
			return
		}
		c.end(e, p)
		delete(c.packages, e.Package)
	}
}

// start notes a test that began. Should it never end, because the process died, it has failed.
func (p *running) start(test string) {
	p.results[test] = "fail"
	for {
		slash := strings.LastIndexByte(test, '/')
		if slash < 0 {
			return
		}
		test = test[:slash]
		p.parents[test] = true
	}
}

// end prints what became of a package, and adds its tests up.
func (c *counter) end(e event, p *running) {
	t := p.tally()
	if e.Action == "fail" && t.failed == 0 {
		// It did not build, or its process died outside of any test.
		t.failed = 1
	}
	c.total = tally{c.total.passed + t.passed, c.total.failed + t.failed, c.total.skipped + t.skipped}
	switch {
	case e.Action == "fail":
		c.explain(e, p)
		fmt.Fprintf(c.out, "FAIL  %s  %.1fs  %s\n", e.Package, e.Elapsed, t)
	case len(p.results) == 0:
		fmt.Fprintf(c.out, "-     %s  no tests\n", e.Package)
	default:
		fmt.Fprintf(c.out, "ok    %s  %.1fs  %s\n", e.Package, e.Elapsed, t)
	}
}

func (p *running) tally() tally {
	var t tally
	for test, result := range p.results {
		if p.parents[test] && (result != "fail" || p.failedBelow(test)) {
			continue
		}
		switch result {
		case "pass":
			t.passed++
		case "skip":
			t.skipped++
		default:
			t.failed++
		}
	}
	return t
}

func (p *running) failedBelow(test string) bool {
	for other, result := range p.results {
		if result == "fail" && strings.HasPrefix(other, test+"/") {
			return true
		}
	}
	return false
}

// explain prints what the compiler, the package and its failed tests said.
func (c *counter) explain(e event, p *running) {
	said := c.builds[e.FailedBuild]
	var failed []string
	for test, result := range p.results {
		if result == "fail" {
			failed = append(failed, test)
		}
	}
	slices.Sort(failed)
	for _, test := range failed {
		said = append(said, p.output[test]...)
	}
	said = append(said, p.output[""]...)
	for _, text := range said {
		fmt.Fprint(c.out, text)
	}
}

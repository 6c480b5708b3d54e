package workflowfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/inputschema"
)

// check collects the errors in one workflow.
type check struct {
	// agents are the agents that may be named; nil: any.
	agents []string
	// offers are the agents that know their actions, by name.
	offers map[string]offering
	// stored: jobs run by this workflow already, so everything accepted once is accepted again.
	stored bool
	// level is the lowest that can run the workflow; see knownLevel.
	level int
	// input is the workflow's input schema, where it is known during the check.
	input *inputschema.Schema
	// schedules are the schedules of a file.
	schedules []makegood.Schedule
	// lines says where the paths of a workflow file stand; nil for a workflow that was built in Go.
	lines map[string]int
	// spoiled are unreadable paths, for which no further errors are reported.
	spoiled map[string]bool
	found   []finding
	// doubts are findings that are no errors, but probably mistakes.
	doubts []finding
}

type finding struct{ path, message string }

func newCheck(options []Option) *check {
	c := &check{spoiled: map[string]bool{}}
	for _, option := range options {
		option(c)
	}
	return c
}

// add adds an error at path, unless the path was unreadable anyway.
func (c *check) add(path, format string, args ...any) {
	for outer := path; outer != ""; outer = around(outer) {
		if c.spoiled[outer] {
			return
		}
	}
	c.found = append(c.found, finding{path, oneLine(fmt.Sprintf(format, args...))})
}

// doubt adds a probable mistake at path.
func (c *check) doubt(path, format string, args ...any) {
	c.doubts = append(c.doubts, finding{path, oneLine(fmt.Sprintf(format, args...))})
}

// spoil silences errors that follow from an unreadable path.
func (c *check) spoil(path string) { c.spoiled[path] = true }

// around is the parent of a path; "" is the workflow.
func around(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, '['), 0)]
}

// oneLine writes a message on one line: there is one message a line.
func oneLine(message string) string {
	if strings.ContainsAny(message, "\n\r") {
		return strings.Join(strings.Fields(message), " ")
	}
	return message
}

// errors returns all errors.
func (c *check) errors(file string) Errors { return c.byLine(file, c.found) }

// byLine returns findings by line; within a line they stay in the order in which they were made.
func (c *check) byLine(file string, findings []finding) Errors {
	var errs Errors
	said := map[Error]bool{}
	for _, f := range findings {
		e := Error{File: file, Line: c.line(f.path), Message: f.message}
		if e.Line == 0 && f.path != "" {
			e.Message = f.path + ": " + f.message
		}
		if !said[e] {
			errs = append(errs, e)
		}
		said[e] = true
	}
	slices.SortStableFunc(errs, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	return errs
}

// line is where path stands, or the nearest thing around it that stands somewhere.
func (c *check) line(path string) int {
	if c.lines == nil {
		return 0
	}
	for ; path != ""; path = around(path) {
		if line, known := c.lines[path]; known {
			return line
		}
	}
	return max(c.lines[""], 1)
}

package workflowfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/makegood-dev/makegood/internal/inputschema"
)

// reads is the data that an expression may read. It may name too much, never too little.
type reads struct {
	input, job bool
	// inputs is the read part of the input; the input is decoded as a whole all the same.
	inputs *branch
	// steps has the read part of each step's output, by name; all: .steps is used as a whole, which reads every readable
	// output in full.
	steps map[string]*branch
	all   bool
	// errors are the steps with .steps.NAME.error in an expression; startedAt: .job.startedAt is. Only paths that name
	// these see them: .steps and .job as a whole stay as they were before these fields existed.
	errors    map[string]bool
	startedAt bool
	// own: the output of the step itself is read, which until may.
	own bool
}

func (r *reads) add(other reads) {
	r.input, r.job, r.all = r.input || other.input, r.job || other.job, r.all || other.all
	r.startedAt, r.own = r.startedAt || other.startedAt, r.own || other.own
	if other.inputs != nil {
		r.inputBranch().add(other.inputs)
	}
	for name := range other.errors {
		r.readError(name)
	}
	for name, output := range other.steps {
		r.step(name).add(output)
	}
}

// inputBranch returns the read part of the input, and adds it if it is new.
func (r *reads) inputBranch() *branch {
	if r.inputs == nil {
		r.inputs = &branch{}
	}
	return r.inputs
}

// step returns the read part of a step's output, and adds the step if it is new.
func (r *reads) step(name string) *branch {
	if r.steps == nil {
		r.steps = map[string]*branch{}
	}
	if r.steps[name] == nil {
		r.steps[name] = &branch{}
	}
	return r.steps[name]
}

// readError notes that the error of a step is read.
func (r *reads) readError(name string) {
	if r.errors == nil {
		r.errors = map[string]bool{}
	}
	r.errors[name] = true
}

// level is the lowest level that knows all fields in use; see knownLevel.
func (r *reads) level() int {
	if r.startedAt || len(r.errors) > 0 {
		return levelExpressions
	}
	return 0
}

// output is the read part of a step's output.
func (r *reads) output(name string) *branch {
	if b := r.steps[name]; b != nil && !r.all {
		return b
	}
	return &branch{all: true}
}

// view is the data that an expression sees: its step, and the outputs that it may read.
type view struct {
	owner string
	// fields, if any, are all that there is, as of a schedule: no job.
	fields []string
	// readable are the steps before it, and for an undo its own; known are all of the workflow.
	readable, known []string
	// repeated: it is the until of a step that is repeated, and sees the output of its owner as .output.
	repeated bool
	// mapped: it is the with of a map, and sees .item and .index.
	mapped bool
	// input is the schema of the job's input; nil: unknown.
	input *inputschema.Node
}

// shape describes a value before it exists: the data as a whole, a part with known fields, or any other value.
type shape struct {
	part area
	step string
	// output is the place in an output, or in the input.
	output *branch
	// input is the schema of the place at in the input.
	input *inputschema.Node
	at    string
}

type area int

const (
	anyValue area = iota
	wholeData
	allSteps
	oneStep
	inOutput
	theJob
	inInput
)

// scan follows the data through an expression, as far as it is plain where it goes. Where it is not,
// it takes everything there as read.
type scan struct {
	view
	reads
	problems []string
	// seen keeps the shapes that the expression's functions give, by function and input.
	seen map[seenKey]shape
	// left is how many more queries are looked at.
	left int
}

// maxScanned is how many queries of one expression are scanned. Nested functions can visit each many times; a scan that
// exceeds this is taken to read everything.
const maxScanned = 100_000

// seenKey names a function by its scope: the same text defined again, within a function that is
// followed with another input, may see other variables.
type seenKey struct {
	function *scope
	input    shape
}

// scope is a chain of definitions around a query: variables, functions and their parameters.
type scope struct {
	outer *scope
	name  string
	arity int
	value shape
	// def is nil for variables and parameters.
	def *gojq.FuncDef
}

// scanQuery returns the paths that query reads, and the errors in them.
func scanQuery(query *gojq.Query, v view) (reads, []string) {
	s := scan{view: v, seen: map[seenKey]shape{}, left: maxScanned}
	s.use(s.query(query, shape{part: wholeData}, nil))
	return s.reads, s.problems
}

func (s *scan) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.problems, text) {
		s.problems = append(s.problems, text)
	}
}

// use marks everything that v stands for as read.
func (s *scan) use(v shape) {
	switch v.part {
	case wholeData:
		s.reads.input, s.job, s.all = true, true, true
		s.inputBranch().all = true
		s.reads.own = s.reads.own || s.repeated
	case allSteps:
		s.all = true
	case oneStep:
		s.reads.step(v.step).all = true
	case inOutput, inInput:
		v.output.all = true
	}
}

// either returns the shape of a value that is a or b.
func (s *scan) either(a, b shape) shape {
	if a == b {
		return a
	}
	s.use(a)
	s.use(b)
	return shape{}
}

// field returns the shape of v.name, and checks that it exists.
func (s *scan) field(v shape, name string) shape {
	switch v.part {
	case wholeData:
		return s.top(name)
	case allSteps:
		return s.output(name)
	case oneStep:
		if name == "output" {
			return shape{part: inOutput, output: s.reads.step(v.step)}
		}
		if name == "error" {
			s.readError(v.step)
			return shape{}
		}
		s.problem(".steps.%s.%s is unknown: known are .steps.%s.output and .steps.%s.error", v.step, name, v.step, v.step)
	case inOutput:
		if v.output.depth < maxBranch {
			return shape{part: inOutput, output: v.output.member(name)}
		}
		s.use(v)
	case inInput:
		return s.ofInput(v, name)
	case theJob:
		switch name {
		case "id":
		case "startedAt":
			s.startedAt = true
		default:
			s.problem(".job.%s is unknown: known are .job.id and .job.startedAt", name)
		}
	}
	return shape{}
}

// ofInput returns a member of a place of the input, and checks that its schema allows one.
func (s *scan) ofInput(v shape, name string) shape {
	member, why := v.input.Member(name)
	if why != "" {
		s.problem("%s.%s: %s%s", v.at, name, why, near(name, v.input.Names()))
		return shape{}
	}
	return shape{part: inInput, input: member, at: v.at + "." + name, output: s.deeper(v.output, name)}
}

// deeper returns the place of a member; one that lies too deep counts as its parent.
func (s *scan) deeper(b *branch, name string) *branch {
	if b.depth < maxBranch {
		return b.member(name)
	}
	b.all = true
	return b
}

func (s *scan) top(name string) shape {
	if s.fields != nil {
		if !slices.Contains(s.fields, name) {
			s.problem(".%s is unknown: known are .%s", name, strings.Join(s.fields, " and ."))
		}
		return shape{}
	}
	switch name {
	case "input":
		s.reads.input = true
		return shape{part: inInput, input: s.view.input, at: ".input", output: s.inputBranch()}
	case "steps":
		return shape{part: allSteps}
	case "output":
		if s.repeated {
			s.reads.own = true
			return shape{part: inOutput, output: s.reads.step(s.owner)}
		}
	case "item", "index":
		if s.mapped {
			return shape{}
		}
	case "job":
		s.job = true
		return shape{part: theJob}
	}
	s.problem(".%s is unknown: known are .input, .steps and .job", name)
	return shape{}
}

func (s *scan) output(name string) shape {
	switch {
	case slices.Contains(s.readable, name):
		s.reads.step(name)
	case name == s.owner:
		s.problem(".steps.%s: a step cannot read its own output", name)
	case slices.Contains(s.known, name):
		s.problem(".steps.%s: step %q does not come before step %q: add it to what %q needs", name, name, s.owner, s.owner)
	default:
		s.problem(".steps.%s: no step is called %q", name, name)
	}
	return shape{part: oneStep, step: name}
}

func (s *scan) query(q *gojq.Query, in shape, sc *scope) shape {
	if q == nil {
		return shape{}
	}
	if s.left--; s.left < 0 {
		s.use(shape{part: wholeData})
		return shape{}
	}
	for _, def := range q.FuncDefs {
		sc = &scope{outer: sc, name: def.Name, arity: len(def.Args), def: def}
	}
	if q.Term != nil {
		return s.term(q.Term, in, sc)
	}
	switch q.Op {
	case gojq.OpPipe:
		left := s.query(q.Left, in, sc)
		if len(q.Patterns) > 0 {
			return s.query(q.Right, in, s.bind(q.Patterns, left, in, sc))
		}
		return s.query(q.Right, left, sc)
	case gojq.OpComma, gojq.OpAlt:
		return s.either(s.query(q.Left, in, sc), s.query(q.Right, in, sc))
	case gojq.OpModify:
		s.use(in)
		s.use(s.query(q.Right, s.query(q.Left, in, sc), sc))
		return shape{}
	case gojq.OpAssign, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv,
		gojq.OpUpdateMod, gojq.OpUpdateAlt:
		s.use(in)
		s.use(s.query(q.Left, in, sc))
		s.use(s.query(q.Right, in, sc))
		return shape{}
	default:
		s.use(s.query(q.Left, in, sc))
		s.use(s.query(q.Right, in, sc))
		return shape{}
	}
}

func (s *scan) bind(patterns []*gojq.Pattern, v, in shape, sc *scope) *scope {
	if len(patterns) > 1 {
		s.use(v)
		v = shape{}
	}
	for _, p := range patterns {
		sc = s.bindOne(p, v, in, sc)
	}
	return sc
}

func (s *scan) bindOne(p *gojq.Pattern, v, in shape, sc *scope) *scope {
	if p.Name != "" {
		return &scope{outer: sc, name: p.Name, value: v}
	}
	if len(p.Array) > 0 {
		s.use(v)
	}
	for _, item := range p.Array {
		sc = s.bindOne(item, shape{}, in, sc)
	}
	for _, member := range p.Object {
		value := s.key(strings.TrimPrefix(member.Key, "$"), member.KeyString, member.KeyQuery, v, in, sc)
		if strings.HasPrefix(member.Key, "$") {
			sc = &scope{outer: sc, name: member.Key, value: value}
		}
		if member.Val != nil {
			sc = s.bindOne(member.Val, value, in, sc)
		}
	}
	return sc
}

// key returns v's member of a name that is written out, in quotes, or computed.
func (s *scan) key(name string, text *gojq.String, query *gojq.Query, v, in shape, sc *scope) shape {
	switch {
	case name != "":
		return s.field(v, name)
	case text != nil && text.Queries == nil:
		return s.field(v, text.Str)
	case text != nil:
		s.text(text, in, sc)
	default:
		s.use(s.query(query, in, sc))
	}
	s.use(v)
	return shape{}
}

// index returns v[...]; the index is evaluated on in.
func (s *scan) index(e *gojq.Index, v, in shape, sc *scope) shape {
	if e.Name != "" || e.Str != nil {
		return s.key(e.Name, e.Str, nil, v, in, sc)
	}
	if t := constantText(e); t != nil {
		return s.field(v, t.Str)
	}
	s.use(v)
	s.use(s.query(e.Start, in, sc))
	s.use(s.query(e.End, in, sc))
	return shape{}
}

// constantText returns the text of ["text"].
func constantText(e *gojq.Index) *gojq.String {
	if e.IsSlice || e.Start == nil || e.Start.Term == nil || len(e.Start.FuncDefs) > 0 {
		return nil
	}
	t := e.Start.Term
	if t.Type != gojq.TermTypeString || t.Str.Queries != nil || len(t.SuffixList) > 0 {
		return nil
	}
	return t.Str
}

func (s *scan) text(e *gojq.String, in shape, sc *scope) {
	if e == nil {
		return
	}
	for _, part := range e.Queries {
		s.use(s.query(part, in, sc))
	}
}

// Package workflowfile turns a workflow, written as YAML or built in Go, into a checked and complete one, and evaluates
// its expressions for a job. It decides nothing about jobs and reads no files: callers pass sources and values.
//
// A workflow is either right or refused as a whole, with all its errors. All rules are here: those of one field in the
// table of fields (fields.go), those between fields (rules.go), of expressions (plan.go, template.go, undo.go), and of
// agents (agents.go). The limits of names, amounts and requests of the agent http are in limits.NameOf, makegood's
// limits and internal/httpagent/httprules.
package workflowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/inputschema"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// MaxSourceBytes is how large a workflow file may be.
	MaxSourceBytes = 1 << 20
	// MaxDefinitionBytes is how large a definition may be: DynamoDB takes an item of 400 KB.
	MaxDefinitionBytes = 256 << 10
)

// ErrInvalid: the workflow is wrong. Every error of Parse and FromWorkflow is one.
var ErrInvalid = errors.New("invalid workflow")

// ErrNewer: a newer release wrote the definition, and this one cannot run it as intended.
var ErrNewer = errors.New("definition of a newer release")

// knownLevel is the highest level of definition that this release knows. A definition that needs more than its fields
// to be understood, such as a new value or kind, names a higher level as needs. One without such needs names none, so
// that its hash stays the same.
const knownLevel = 3

// The features of each level.
const (
	// levelExpressions: secrets, .steps.NAME.error and .job.startedAt.
	levelExpressions = 1
	// levelWaits: agents that wait by themselves. A release before would send their tasks to a queue.
	levelWaits = 1
	// levelRounds: rounds that begin by themselves, by onFailure: restart.
	levelRounds = 1
	// levelChildren: steps that are done by a job of their own.
	levelChildren = 2
	// levelMaps: steps that are done once for each item of a list.
	levelMaps = 3
)

// Compiled is a workflow that can be run. It is never changed and may be used by many goroutines.
type Compiled struct {
	// Workflow is complete: it came through WithDefaults, and its values are canonical JSON.
	Workflow makegood.Workflow
	// Definition is the workflow as canonical JSON, as the store keeps it.
	Definition []byte
	// Hash names the definition: 32 hex digits.
	Hash string
	// Schedules are the schedules of the file, complete. They are no part of the definition, so a job does not keep them,
	// and changing one changes no hash.
	Schedules []makegood.Schedule
	// Warnings are probable mistakes in a valid workflow, by line.
	Warnings []Error

	plans map[string]*plan
	// input returns the schema of the input; nil: the workflow has none.
	input func() (*inputschema.Schema, error)
}

// Error is an error in a workflow.
type Error struct {
	// File is the name that was given to Parse, or "workflow NAME" for one that was built in Go.
	File string
	// Line counts from 1; it is 0 for a workflow that was built in Go: its Message begins with the path instead, such as
	// "steps[2].needs[0]".
	Line    int
	Message string
}

// Error writes FILE:LINE: message.
func (e Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Errors is all that is wrong with a workflow, by line. It is an ErrInvalid.
type Errors []Error

// Error writes one error a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Is reports whether target is ErrInvalid.
func (e Errors) Is(target error) bool { return target == ErrInvalid }

// Option changes the requirements of Parse and FromWorkflow.
type Option func(*check)

// Parse reads a workflow file. file only names it in errors, which are of type Errors.
func Parse(file string, source []byte, options ...Option) (*Compiled, error) {
	c := newCheck(options)
	w, ok := readYAML(c, source)
	if !ok {
		return nil, c.errors(file)
	}
	c.checkSchedules(w.Name)
	return c.compile(file, w)
}

// FromWorkflow completes and compiles a workflow that was built in Go. Errors are of type Errors.
func FromWorkflow(w makegood.Workflow, options ...Option) (*Compiled, error) {
	c := newCheck(options)
	if w.Part != nil {
		c.add("part", "part follows from a map: leave it out")
	}
	return c.compile("workflow "+w.Name, w)
}

// Load compiles a definition, which is the Definition of a Compiled, and keeps it and so its Hash as
// they are. Code wrote it, so a field that is not known is no mistake of a person: ErrNewer. Other errors are of type
// Errors.
func Load(definition []byte) (*Compiled, error) {
	const file = "definition"
	w, err := decodeDefinition(definition)
	if errors.Is(err, ErrNewer) {
		return nil, err
	}
	if err != nil {
		return nil, Errors{{File: file, Message: err.Error()}}
	}
	c := newCheck(nil)
	c.stored = true
	name := w.Name
	w.Name = domain.WorkflowOf(name)
	compiled, err := c.compile(file, w)
	if err != nil {
		return nil, err
	}
	compiled.Workflow.Name = name
	compiled.Definition = bytes.Clone(definition)
	compiled.Hash = canonical.Hash(definition)
	return compiled, nil
}

// decodeDefinition reads a stored workflow. It fails with ErrNewer if the only errors are fields that this release does
// not know, or if the definition needs a higher level.
func decodeDefinition(definition []byte) (w makegood.Workflow, err error) {
	var level struct {
		Needs int `json:"needs"`
	}
	if json.Unmarshal(definition, &level) == nil && level.Needs > knownLevel {
		return w, fmt.Errorf("%w: it needs level %d, and %d is known", ErrNewer, level.Needs, knownLevel)
	}
	d := json.NewDecoder(bytes.NewReader(definition))
	d.DisallowUnknownFields()
	var s stored
	if err := d.Decode(&s); err != nil {
		if json.Unmarshal(definition, &makegood.Workflow{}) == nil {
			return w, fmt.Errorf("%w: %w", ErrNewer, err)
		}
		return w, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return w, errors.New("more text follows the workflow")
	}
	return s.Workflow, nil
}

// stored is a workflow as its definition has it.
type stored struct {
	makegood.Workflow
	// Needs is the lowest level that can run it; see knownLevel.
	Needs int `json:"needs,omitempty"`
}

// compile completes, checks and compiles a workflow as it was read.
func (c *check) compile(file string, w makegood.Workflow) (*Compiled, error) {
	c.idleTimes(w)
	w = c.complete(domain.WithDefaults(w))
	c.rules(w)
	compiled := &Compiled{input: c.inputSchema(w.Input)}
	c.scheduleMisfits()
	if len(w.Steps) <= limits.MaxSteps {
		c.linked(w)
		compiled.plans = c.plans(w)
	}
	if len(c.found) == 0 && !c.stored {
		c.undosWithoutOutput(w, compiled.plans)
	}
	definition, err := define(w, c.level)
	switch {
	case err != nil:
		c.add("", "%v", err)
	case len(c.found) == 0 && len(definition) > MaxDefinitionBytes && w.Part == nil: // That of a part is not stored.
		c.add("", "the definition has %d bytes as JSON, the limit is %d", len(definition), MaxDefinitionBytes)
	}
	if len(c.found) > 0 {
		return nil, c.errors(file)
	}
	compiled.Warnings, compiled.Schedules = c.byLine(file, c.doubts), c.schedules
	// Read back, so that the workflow shares no memory with the caller, and is the one that Load returns.
	if err := json.Unmarshal(definition, &compiled.Workflow); err != nil {
		return nil, Errors{{File: file, Message: fmt.Sprintf("read the definition: %v", err)}}
	}
	compiled.Definition, compiled.Hash = definition, canonical.Hash(definition)
	return compiled, nil
}

// define writes a complete workflow as its definition, which needs a level.
func define(w makegood.Workflow, level int) ([]byte, error) {
	definition, err := json.Marshal(stored{w, level})
	if err != nil {
		return nil, fmt.Errorf("write the definition: %w", err)
	}
	definition, err = canonical.JSON(definition)
	if err != nil {
		return nil, fmt.Errorf("write the definition: %w", err)
	}
	return definition, nil
}

// complete adds to w the values that WithDefaults leaves to the agents: canonical values, and an action for the undo of
// an http step, which otherwise has no name for its action.
func (c *check) complete(w makegood.Workflow) makegood.Workflow {
	w.Input = c.canonical("input", w.Input)
	for i := range w.Steps {
		s := &w.Steps[i]
		path := stepPath(i)
		same := s.Undo != nil && bytes.Equal(s.Undo.With, s.With)
		s.With = c.canonical(path+".with", s.With)
		if !domain.CanUndo(*s) {
			continue
		}
		u := *s.Undo
		if u.Agent == makegood.HTTPAgent && u.Action == "" {
			u.Action = "undo"
		}
		if same {
			u.With = s.With
		} else {
			u.With = c.canonical(path+".undo.with", u.With)
		}
		s.Undo = &u
	}
	return w
}

func (c *check) canonical(path string, with json.RawMessage) json.RawMessage {
	if len(with) == 0 {
		return nil
	}
	value, err := canonical.JSON(with)
	if err != nil {
		c.add(path, "not JSON: %v", err)
		c.spoil(path)
		return nil
	}
	return value
}

func stepPath(i int) string { return fmt.Sprintf("steps[%d]", i) }

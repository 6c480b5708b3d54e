package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/inputschema"
)

// inputSchema reads the schema of the input, as JSON.
func (r reader) inputSchema(n *yaml.Node, path string) json.RawMessage {
	if !r.plain(n, path) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(path, "input must be a mapping, a JSON Schema such as {type: object, required: [total]}, got %s", describe(n))
		return nil
	}
	return r.output(n, path)
}

// inputSchema compiles a workflow's input schema, adds its errors, and returns a function that gets it; nil: it has
// none. The schema of a stored definition is compiled on first use: jobs that only go on do not need it.
func (c *check) inputSchema(text json.RawMessage) func() (*inputschema.Schema, error) {
	if len(text) == 0 {
		return nil
	}
	if c.stored {
		return sync.OnceValues(func() (*inputschema.Schema, error) { return inputschema.Compile(text) })
	}
	schema, err := inputschema.Compile(text)
	if problems := inputschema.Problems(nil); errors.As(err, &problems) {
		for _, p := range problems {
			c.add(inside("input", p.At), "%s", besideIts(p))
		}
		return nil
	}
	for _, d := range schema.Doubts {
		c.doubt(inside("input", d.At), "input: %s", d.Message)
	}
	c.input = schema
	return func() (*inputschema.Schema, error) { return schema, nil }
}

// besideIts is the message about a problem of a schema, with its place.
func besideIts(p inputschema.Problem) string {
	if p.At == "" {
		return "input: " + p.Message
	}
	return fmt.Sprintf("input: %s: %s", p.At, strings.TrimSpace(p.Message))
}

// inputRoot is the schema of the whole input; nil: unknown.
func (c *check) inputRoot() *inputschema.Node {
	if c.input == nil {
		return nil
	}
	return c.input.Root
}

// scheduleMisfits says which schedules of a file would make no job, because their input does not fit.
func (c *check) scheduleMisfits() {
	if c.input == nil {
		return
	}
	for i, s := range c.schedules {
		inputs, err := CompileInputs(s.Input)
		if err != nil {
			continue // It was said where the schedule was checked.
		}
		path := fmt.Sprintf("schedules[%d].input", i)
		if inputs.template.constant != nil {
			for _, m := range c.input.Check(inputs.template.constant) {
				c.add(path, "it does not fit the input of the workflow: %s", m)
			}
			continue
		}
		sample := time.Unix(0, 0)
		input, err := inputs.At(context.Background(), s.Name, sample)
		if err != nil {
			continue // It may be of this time alone.
		}
		for _, m := range c.input.Check(input) {
			c.doubt(path, "schedule %s: a fire at %s would make no job, since its input does not fit: %s", s.Name, sample.UTC().Format(time.RFC3339), m)
		}
	}
}

// Misfits returns where a JSON input does not fit the workflow's schema; none: it fits, or there is no schema. An error
// means that this release cannot read the stored schema.
func (c *Compiled) Misfits(input []byte) ([]makegood.Misfit, error) {
	if c.input == nil {
		return nil, nil
	}
	schema, err := c.input()
	if err != nil {
		return nil, fmt.Errorf("schema of the input of workflow %s: %w", c.Workflow.Name, err)
	}
	misfits := schema.Check(input)
	if bytes := referred(input); bytes > 0 && len(misfits) > 0 {
		why := fmt.Sprintf("is a reference to a payload of %d bytes, and the schema is held against the reference, not the bytes: %s", bytes, misfits[0])
		return []makegood.Misfit{{Why: why}}, nil
	}
	return misfits, nil
}

// referred returns the size in bytes of the payload that an input refers to; zero: the input is not just a reference.
func referred(input []byte) int64 {
	var p makegood.Payload
	if err := json.Unmarshal(input, &p); err != nil {
		return 0
	}
	return p.Bytes
}

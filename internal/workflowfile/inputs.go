package workflowfile

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
)

// Inputs makes the inputs of the jobs of a schedule.
type Inputs struct{ template *template }

// What the expressions of a schedule see.
const (
	fireTime     = "time"
	fireSchedule = "schedule"
)

// CompileInputs compiles the input of a schedule: JSON with strings that may hold expressions over .time, the time of
// the fire in RFC 3339 and UTC, and .schedule, the name. The error describes the mistakes in it.
func CompileInputs(input json.RawMessage) (*Inputs, error) {
	c := newCheck(nil)
	t := c.scheduleInput("input", input)
	if len(c.found) > 0 {
		return nil, fmt.Errorf("%s: %s", c.found[0].path, c.found[0].message)
	}
	return &Inputs{t}, nil
}

// scheduleInput compiles the input of a schedule at path, and adds its errors.
func (c *check) scheduleInput(path string, input json.RawMessage) *template {
	text, err := canonical.JSON(input)
	if err != nil {
		c.add(path, "%v", err)
		return nil
	}
	k := compiler{c, view{fields: []string{fireTime, fireSchedule}}}
	t := k.template(path, decodeWith(text))
	if t.secrets() > 0 {
		c.add(path, "a secret cannot stand in the input of a job, which is stored")
	}
	return t
}

// At returns the input of the job of a fire: compact JSON of at most makegood.MaxPayloadBytes. Any error but that of
// ctx comes again with the same fire.
func (i *Inputs) At(ctx context.Context, schedule string, fire time.Time) (json.RawMessage, error) {
	root := map[string]any{fireTime: fire.UTC().Format(time.RFC3339), fireSchedule: schedule}
	out, err := i.template.append(nil, &filling{value: func(e *expression) (any, error) { return e.value(ctx, root) }})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("input: %w", err)
	case len(out) > makegood.MaxPayloadBytes:
		return nil, fmt.Errorf("input: %d bytes as JSON, the limit is %d", len(out), makegood.MaxPayloadBytes)
	}
	return out, nil
}

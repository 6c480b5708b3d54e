package workflowfile

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// TestTheErrorAndTheStartAreThereWhereTheyAreNamed: and nowhere else, so that what .steps.a and .job are as a whole, in
// workflows of before, stays as it was.
func TestTheErrorAndTheStartAreThereWhereTheyAreNamed(t *testing.T) {
	data := sample
	data.StartedAt = time.Date(2026, 11, 22, 10, 0, 0, 999e6, time.FixedZone("", 3600))
	data.Errors = map[string]makegood.StepError{"a": {Message: "no", Kind: "card_declined", Applied: makegood.AppliedNo}}
	for _, c := range []struct {
		expression, want string
		level            bool
	}{
		{`${ .steps.a.error }`, `{"applied":"no","kind":"card_declined","message":"no","retryable":false}`, true},
		{`${ .steps.a.error.kind }`, `"card_declined"`, true},
		{`${ .steps.c.error }`, `null`, true},
		{`${ .steps.c.error.kind // "none" }`, `"none"`, true},
		{`${ [.steps.a | .error.kind, .output.id] }`, `["card_declined",7]`, true},
		{`${ .job.startedAt }`, `"2026-11-22T09:00:00Z"`, true},
		{`${ .job.startedAt | fromdate + 3600 | todate }`, `"2026-11-22T10:00:00Z"`, true},
		{`${ .steps.a }`, `{"output":{"id":7}}`, false},
		{`${ .steps[.input.name] }`, `{"output":{"id":7}}`, false},
		{`${ .job }`, `{"id":"job-1"}`, false},
	} {
		compiled := one(t, quoted(c.expression), "", "")
		got, err := inputOf(context.Background(), compiled, "d", false, data)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.expression, got, err, c.want)
		}
		if says := strings.Contains(string(compiled.Definition), `"needs":1,`); says != c.level {
			t.Errorf("%s: the definition says a level: %v, want %v", c.expression, says, c.level)
		}
	}
}

// An undo sees why its own step failed, and is tried with none when the file is read.
func TestAnUndoSeesTheErrorOfItsStep(t *testing.T) {
	data := Data{Errors: map[string]makegood.StepError{"d": {Kind: "timeout"}}}
	compiled := one(t, "", "", quoted(`${ .steps.d.error.kind }`))
	for want, data := range map[string]Data{`"timeout"`: data, `null`: {}} {
		got, err := inputOf(context.Background(), compiled, "d", true, data)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	_, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{
		{Name: "a", Agent: "x", Undo: &makegood.Undo{Action: "u", With: json.RawMessage(quoted(`${ .steps.a.error.message | test("x") }`))}},
	}})
	if err == nil || !strings.Contains(err.Error(), "must work with a null output") {
		t.Errorf("an undo that fails where there is no error: %v, want it refused", err)
	}
}

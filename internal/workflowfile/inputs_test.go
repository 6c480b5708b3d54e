package workflowfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

func TestTheInputOfAScheduleIsMadeOfTheTimeOfItsFire(t *testing.T) {
	fire := time.Date(2026, 11, 22, 14, 0, 0, 0, time.FixedZone("", 3600))
	for input, want := range map[string]string{
		`null`:                      `null`,
		`{"b":1,"a":["x"]}`:         `{"a":["x"],"b":1}`,
		`"${ .time }"`:              `"2026-11-22T13:00:00Z"`,
		`{"day":"${ .time[:10] }"}`: `{"day":"2026-11-22"}`,
		`"of ${ .schedule } at ${ .time | fromdate }"`: `"of nightly at 1795352400"`,
		`"${ . }"`: `{"schedule":"nightly","time":"2026-11-22T13:00:00Z"}`,
		`{"yesterday":"${ .time | fromdate - 86400 | todate }"}`: `{"yesterday":"2026-11-21T13:00:00Z"}`,
	} {
		inputs, err := workflowfile.CompileInputs(json.RawMessage(input))
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		got, err := inputs.At(t.Context(), "nightly", fire)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", input, got, err, want)
		}
	}
}

func TestAnInputThatNoScheduleCanHaveIsRefused(t *testing.T) {
	for input, says := range map[string]string{
		`{`:                              "input: ",
		`{"a":"${ .input.id }"}`:         "input.a: .input is unknown: known are .time and .schedule",
		`["${ .job.id }"]`:               "input[0]: .job is unknown",
		`"${ now }"`:                     "now is refused",
		`"${ .time"`:                     "input: ",
		`{"key":"${ secret(\"key\") }"}`: "a secret cannot stand in the input of a job",
	} {
		if _, err := workflowfile.CompileInputs(json.RawMessage(input)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", input, err, says)
		}
	}
}

// An expression may fail at every fire; that somebody's time has ended says nothing of it.
func TestAnInputThatCannotBeMadeSaysWhy(t *testing.T) {
	inputs, err := workflowfile.CompileInputs(json.RawMessage(`{"n":"${ .time | tonumber }"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inputs.At(t.Context(), "nightly", time.Now()); err == nil || !strings.Contains(err.Error(), "tonumber") {
		t.Errorf("got %v, want what jq says", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inputs.At(ended, "nightly", time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of the context", err)
	}
}

// Who submits a large input hears that the schema saw its reference, and not that something is missing that is there.
func TestAReferenceThatDoesNotFitIsSaidToBeOne(t *testing.T) {
	c, err := workflowfile.Parse("f", []byte("name: x\ninput: {type: object, required: [id]}\nsteps: [{name: a, agent: y}]"))
	if err != nil {
		t.Fatal(err)
	}
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for input, want := range map[string]string{
		`{"$payload":{"bytes":500000,"sha256":"` + sum + `"}}`:     "it is a reference to a payload of 500000 bytes, and the schema is held against the reference, not the bytes: /id is missing",
		`{"scan":{"$payload":{"bytes":5,"sha256":"` + sum + `"}}}`: "/id is missing",
	} {
		got, err := c.Misfits([]byte(input))
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%s: got %v, %v, want %q", input, got, err, want)
		}
	}
}

package workflowfile

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const (
	reference = `{"$payload":{"bytes":20971520,"sha256":"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"}}`
	insideOf  = "lies inside of a large payload"
)

// A large payload passes through as a whole, wherever it stands; what is inside of it is refused by name, and never null.
func TestAnExpressionPassesALargePayloadOnAndDoesNotReadInIt(t *testing.T) {
	for _, c := range []struct{ with, input, output, want, wrong string }{
		{with: `${ .steps.a.output }`, output: reference, want: reference},
		{with: `${ .steps.a.output.report }`, output: `{"report":` + reference + `,"pages":3}`, want: reference},
		{with: `${ .steps.a.output.pages }`, output: `{"report":` + reference + `,"pages":3}`, want: `3`},
		{with: `${ .steps.a.output["report"]["$payload"].bytes }`, output: `{"report":` + reference + `}`, want: `20971520`},
		{with: `${ .input }`, input: reference, want: reference},
		{with: `${ .input.doc }`, input: `{"doc":` + reference + `}`, want: reference},
		{with: `${ [.input, .input.doc] | length }`, input: `{"doc":` + reference + `}`, want: `2`},
		{with: `${ .input.doc.title }`, input: `{"doc":{"title":"x"},"other":` + reference + `}`, want: `"x"`},
		{with: `${ .steps.a.output.total }`, output: reference, wrong: ".steps.a.output.total " + insideOf},
		{with: `${ .steps.a.output.report.total.net }`, output: `{"report":` + reference + `}`, wrong: ".steps.a.output.report.total " + insideOf},
		{with: `${ .steps.a.output.total }`, output: strings.Replace(reference, "$", `\u0024`, 1), wrong: insideOf},
		{with: `${ .input.order }`, input: reference, wrong: ".input.order " + insideOf},
		{with: `${ .input | .doc | .title }`, input: `{"doc":` + reference + `}`, wrong: ".input.doc.title " + insideOf},
	} {
		compiled := one(t, quoted(c.with), "", "")
		data := Data{JobID: "j", Input: json.RawMessage(c.input)}
		input := TaskInput{}
		err := error(nil)
		for _, name := range compiled.Reads("d", false) {
			err = errors.Join(err, compiled.Gather(&data, "d", false, name, json.RawMessage(c.output)))
		}
		if err == nil {
			input, err = compiled.Input(t.Context(), "d", false, data)
		}
		evaluation := new(EvalError)
		switch {
		case c.wrong == "" && (err != nil || string(input.Value) != c.want):
			t.Errorf("%s of %s%s: got %s, %v, want %s", c.with, c.input, c.output, input.Value, err, c.want)
		case c.wrong != "" && (!errors.As(err, &evaluation) || !strings.Contains(evaluation.Reason, c.wrong) || !strings.Contains(evaluation.Reason, `step "d"`)):
			t.Errorf("%s of %s%s: got %s, %v, want %q", c.with, c.input, c.output, input.Value, err, c.wrong)
		}
	}
}

package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// tangle draws a definition that is one, however little sense it makes: its states lead anywhere, round and round, or nowhere.
func tangle(t *rapid.T, depth int, name string) map[string]any {
	n := rapid.IntRange(1, 9).Draw(t, name+" states")
	anyState := func(what string) string {
		return fmt.Sprintf("%s%d", name, rapid.IntRange(0, n-1).Draw(t, what))
	}
	states := map[string]any{}
	for i := range n {
		s := map[string]any{"Type": rapid.SampledFrom([]string{"Pass", "Task", "Task", "Choice", "Choice", "Wait", "Parallel", "Map", "Succeed", "Fail"}).Draw(t, "type")}
		kind := s["Type"]
		if kind == "Parallel" && depth == 0 {
			kind = "Pass"
			s["Type"] = kind
		}
		if kind != "Choice" && kind != "Succeed" && kind != "Fail" {
			if rapid.IntRange(0, 4).Draw(t, "end") == 0 {
				s["End"] = true
			} else {
				s["Next"] = anyState("next")
			}
		}
		if kind == "Task" || kind == "Parallel" || kind == "Map" {
			var catch []any
			for range rapid.IntRange(0, 2).Draw(t, "catches") {
				caught := rapid.SampledFrom([]string{"States.ALL", "States.TaskFailed", "Mine"}).Draw(t, "error")
				catch = append(catch, map[string]any{"ErrorEquals": []string{caught}, "Next": anyState("caught"), "ResultPath": "$.error"})
			}
			if catch != nil {
				s["Catch"] = catch
			}
		}
		if (kind == "Task" || kind == "Pass") && rapid.Bool().Draw(t, "result") {
			s["ResultPath"] = rapid.SampledFrom([]string{"$", "$.a", "$.a.b", "$.c"}).Draw(t, "path")
		}
		switch kind {
		case "Task":
			s["Resource"] = "arn:aws:lambda:eu-west-1:123456789012:function:Do"
		case "Wait":
			s["Seconds"] = 5
		case "Choice":
			var rules []any
			for range rapid.IntRange(1, 3).Draw(t, "rules") {
				rules = append(rules, map[string]any{"Variable": rapid.SampledFrom([]string{"$.a", "$.a.b", "$.error.Cause"}).Draw(t, "variable"), "NumericEquals": 1, "Next": anyState("rule")})
			}
			s["Choices"] = rules
			if rapid.Bool().Draw(t, "default") {
				s["Default"] = anyState("otherwise")
			}
		case "Parallel":
			s["Branches"] = []any{tangle(t, depth-1, fmt.Sprintf("%s%dx", name, i)), tangle(t, depth-1, fmt.Sprintf("%s%dy", name, i))}
		case "Map":
			s["ItemProcessor"] = map[string]any{"StartAt": "M", "States": map[string]any{"M": map[string]any{"Type": "Pass", "End": true}}}
		}
		states[fmt.Sprintf("%s%d", name, i)] = s
	}
	return map[string]any{"StartAt": name + "0", "States": states}
}

// Whatever leads where: it ends, in a file that is valid, or in errors that say where.
func TestATangleIsImportedOrRefused(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		source, err := json.Marshal(tangle(t, 1, "s"))
		if err != nil {
			t.Fatal(err)
		}
		imported, err := Import(source, Options{From: "tangle"})
		var refused Errors
		switch {
		case errors.As(err, &refused):
		case err != nil:
			t.Fatalf("%v: %s", err, source)
		default:
			if _, err := workflowfile.Parse("tangle.yaml", imported.YAML); err != nil {
				t.Fatalf("%v: %s\n%s", err, source, imported.YAML)
			}
		}
	})
}

// What goes round without end, and what forks and meets thirty times, is looked at once.
func TestRoundsAndForksEnd(t *testing.T) {
	if _, err := Import([]byte(one(`"Type":"Pass","Next":"S"`)), Options{From: "round"}); err != nil {
		t.Error(err)
	}
	round := `{"StartAt":"A","States":{
		"A":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:123456789012:function:Do","Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}],"End":true},
		"B":{"Type":"Pass","Next":"C"},"C":{"Type":"Pass","Next":"B"}}}`
	if _, err := Import([]byte(round), Options{From: "caught"}); err != nil {
		t.Error(err)
	}
	const forks = 30
	states := map[string]any{fmt.Sprintf("c%d", forks): map[string]any{"Type": "Succeed"}}
	for i := range forks {
		step := map[string]any{"Type": "Task", "Resource": "arn:aws:lambda:eu-west-1:123456789012:function:Do", "Next": fmt.Sprintf("c%d", i+1)}
		states[fmt.Sprintf("a%d", i)], states[fmt.Sprintf("b%d", i)] = step, step
		states[fmt.Sprintf("c%d", i)] = map[string]any{
			"Type": "Choice", "Choices": []any{map[string]any{"Variable": "$.x", "NumericEquals": i, "Next": fmt.Sprintf("a%d", i)}}, "Default": fmt.Sprintf("b%d", i),
		}
	}
	source, err := json.Marshal(map[string]any{"StartAt": "c0", "States": states})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := Import(source, Options{From: "forks"})
	if err != nil || imported.Report.Taken != 3*forks+1 {
		t.Errorf("got %v, want each of %d states taken over", err, 3*forks+1)
	}
}

package template

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// The policy that docs/long-steps.md shows for an agent outside of Lambda is that of its function's role, without logs,
// traces and secrets.
func TestThePolicyOfAnAgentOutsideIsThatOfItsFunction(t *testing.T) {
	_, rest, _ := strings.Cut(readFile(t, "../../../docs/long-steps.md"), "```json\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/long-steps.md shows no policy")
	}
	var shown struct {
		Statement []struct {
			Sid       string
			Action    []string
			Condition map[string]map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	var names []string
	template := load(t, withAgent(t, readFile(t, templateFile), "studio"))
	for _, statement := range template.Statements("studioAgentRole") {
		sid, _ := stackfile.At(statement, "Sid").(string)
		i := slices.IndexFunc(shown.Statement, func(s struct {
			Sid       string
			Action    []string
			Condition map[string]map[string]any
		},
		) bool {
			return s.Sid == sid
		})
		if i < 0 {
			continue
		}
		names = append(names, sid)
		if got, want := shown.Statement[i].Action, stackfile.Texts(stackfile.At(statement, "Action")); !slices.Equal(got, want) {
			t.Errorf("%s allows %v, and the template %v", sid, got, want)
		}
		if sid != "Claim" {
			continue
		}
		for _, path := range [][2]string{{"ForAllValues:StringEquals", "dynamodb:Attributes"}, {"ForAllValues:StringLike", "dynamodb:LeadingKeys"}} {
			want := stackfile.Texts(stackfile.At(statement, "Condition", path[0], path[1]))
			var got []string
			for _, v := range shown.Statement[i].Condition[path[0]][path[1]].([]any) {
				got = append(got, v.(string))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s holds if %s is like %v, and in the template %v", sid, path[1], got, want)
			}
		}
	}
	if len(names) != len(shown.Statement) {
		t.Errorf("of the %d statements shown the template has %v", len(shown.Statement), names)
	}
}

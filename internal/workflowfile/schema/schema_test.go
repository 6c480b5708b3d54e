package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

func TestTheSchemaInTheDocsIsTheOneOfTheCode(t *testing.T) {
	want, err := write(workflowfile.SchemaOfFiles())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/workflow.schema.json is not what the code says (%v): run go generate ./internal/workflowfile/schema", err)
	}
}

func TestThePageInTheDocsIsTheOneOfTheCode(t *testing.T) {
	got, err := os.ReadFile(referenceFile)
	if want := reference(workflowfile.SchemaOfFiles()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/reference/workflow-file.md is not what the code says (%v): run go generate ./internal/workflowfile/schema", err)
	}
}

// check says what is wrong with a value, by the keywords that the schema uses.
func check(s, root *workflowfile.Schema, at string, value any) []string {
	if s.Ref != "" {
		return check(root.Defs[strings.TrimPrefix(s.Ref, workflowfile.Definitions)], root, at, value)
	}
	if len(s.OneOf) > 0 {
		fits := 0
		for _, one := range s.OneOf {
			if len(check(one, root, at, value)) == 0 {
				fits++
			}
		}
		if fits != 1 {
			return []string{fmt.Sprintf("%s fits %d of %d", at, fits, len(s.OneOf))}
		}
		return nil
	}
	if s.Const != "" && value != s.Const {
		return []string{at + " is not " + s.Const}
	}
	if is := kind(value); s.Type != "" && is != s.Type {
		return []string{at + " is " + is + ", want " + s.Type}
	}
	switch value := value.(type) {
	case string:
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value) {
			return []string{fmt.Sprintf("%s is %q, want %s", at, value, s.Pattern)}
		}
	case int:
		if s.Maximum > 0 && (value < s.Minimum || value > s.Maximum) {
			return []string{fmt.Sprintf("%s is %d", at, value)}
		}
	case []any:
		return checkList(s, root, at, value)
	case map[string]any:
		return checkObject(s, root, at, value)
	}
	return nil
}

func checkList(s, root *workflowfile.Schema, at string, list []any) []string {
	var wrong []string
	if len(list) < s.MinItems || s.MaxItems > 0 && len(list) > s.MaxItems {
		wrong = append(wrong, fmt.Sprintf("%s has %d items", at, len(list)))
	}
	seen := map[string]bool{}
	for i, item := range list {
		if key := fmt.Sprint(item); s.UniqueItems && seen[key] {
			wrong = append(wrong, at+" has an item twice")
		} else {
			seen[key] = true
		}
		if s.Items != nil {
			wrong = append(wrong, check(s.Items, root, fmt.Sprintf("%s[%d]", at, i), item)...)
		}
	}
	return wrong
}

func checkObject(s, root *workflowfile.Schema, at string, object map[string]any) []string {
	var wrong []string
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			wrong = append(wrong, at+" has no "+name)
		}
	}
	for name, value := range object {
		if p := s.Properties[name]; p != nil {
			wrong = append(wrong, check(p, root, at+"."+name, value)...)
		} else if s.Closed != nil && !*s.Closed {
			wrong = append(wrong, at+" may not have "+name)
		}
	}
	return wrong
}

// kind is the type of a value by the words of JSON Schema.
func kind(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return reflect.TypeOf(value).String()
	}
}

func problems(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	root := workflowfile.SchemaOfFiles()
	return check(root, root, filepath.Base(name), value)
}

func TestEveryGoodWorkflowFitsTheSchema(t *testing.T) {
	good, err := filepath.Glob("../testdata/good/*.yaml")
	if err != nil || len(good) < 10 {
		t.Fatalf("found %d good files, %v", len(good), err)
	}
	for _, name := range append(good, "../../../workflows/order/order.yaml") {
		if wrong := problems(t, name); len(wrong) > 0 {
			t.Errorf("%s: got %q, want nothing", name, wrong)
		}
	}
}

// These are wrong in a way that a schema can say; the others are the reader's alone.
func TestWhatASchemaCanSayOfBadWorkflowsItSays(t *testing.T) {
	for _, name := range []string{
		"agent_bad", "agent_missing", "action_dot", "attempts_fraction", "attempts_negative", "attempts_over", "attempts_text",
		"attempts_zero", "duration_bad", "duration_negative", "duration_no_unit", "fields_null", "fields_wrong_type", "list_at_top",
		"name_digit_first", "name_too_long", "name_underscore", "name_unicode", "name_upper", "needs_of_wrong_type", "needs_text",
		"needs_twice", "no_name", "no_steps", "null_at_top", "on_failure_unknown", "on_failure_wait_bad", "on_failure_wait_without",
		"step_name_dash", "step_name_missing", "step_name_number", "step_name_upper", "step_text", "steps_empty", "steps_mapping",
		"steps_null", "text_at_top", "texts_empty", "too_many_steps", "undo_list", "undo_word", "unknown_field",
		"unknown_field_nearly", "unknown_in_retry", "unknown_in_undo",
		"schedules_text", "schedule_unknown_field", "schedule_no_name", "schedule_name_bad", "schedule_missed_bad", "schedule_at_most_bad",
		"schedule_at_most_text", "schedule_overlap_bad",
	} {
		if wrong := problems(t, "../testdata/bad/"+name+".yaml"); len(wrong) == 0 {
			t.Errorf("%s: got nothing, want something wrong", name)
		}
	}
}

// The pattern of durations is written twice, here and in makegood.ParseDuration; those of names come from
// limits.NameOf.
func TestTheSchemaTakesTheNamesAndDurationsThatAreTaken(t *testing.T) {
	root := workflowfile.SchemaOfFiles()
	long := strings.Repeat("a", limits.MaxNameBytes)
	for _, text := range []string{"a", "A", "a-b", "a_b", "a.b", "-a", "_a", "1a", "a1", "", "ä", long, long + "a"} {
		w := makegood.Workflow{Name: "a", Steps: []makegood.Step{{Name: "a", Agent: "x"}}}
		values := map[string]any{"name": "a", "steps": []any{map[string]any{"name": "a", "agent": "x"}}}
		step := values["steps"].([]any)[0].(map[string]any)
		for what, set := range map[string]func(*makegood.Workflow){
			"workflow": func(w *makegood.Workflow) { w.Name, values["name"] = text, text },
			"step":     func(w *makegood.Workflow) { w.Steps[0].Name, step["name"], w.Steps[0].Action = text, text, "b" },
			"agent":    func(w *makegood.Workflow) { w.Steps[0].Agent, step["agent"] = text, text },
		} {
			changed := w
			changed.Steps = append([]makegood.Step(nil), w.Steps...)
			values["name"], step["name"], step["agent"] = "a", "a", "x"
			set(&changed)
			_, err := workflowfile.FromWorkflow(changed)
			if wrong := check(root, root, what, values); (len(wrong) == 0) != (err == nil) {
				t.Errorf("%s %q: the schema says %q, the code %v", what, text, wrong, err)
			}
		}
	}
	pattern := regexp.MustCompile(workflowfile.DurationPattern)
	for _, text := range []string{"1s", "1h30m", "1.5s", ".5s", "1.s", "+1s", "500ms", "3000us", "-1s", "1", "s", "1d", "1 s", "", "1h 30m", "5000000ns"} {
		if _, err := makegood.ParseDuration(text); pattern.MatchString(text) != (err == nil) {
			t.Errorf("%q: the pattern says %v, the code %v", text, pattern.MatchString(text), err)
		}
	}
}

package command

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// evil is text that turns round what stands beside it, and moves a terminal's cursor: by C0 and by C1.
const evil = "a\u202eb\u009b2Jc\x1b[2Jd\ne"

// onlyNames are fields whose text no door takes unless it is a name.
var onlyNames = map[string]bool{"ID": true, "Workflow": true, "Definition": true, "Name": true, "Step": true, "Agent": true, "HeldBy": true, "Tenant": true}

// poison puts evil text into whatever is free text below v.
func poison(v reflect.Value, field string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(`"a` + "\u202eb\u009b2J" + `c\u001b[2J\u202ed"`)))
	case v.Type() == reflect.TypeFor[string]():
		v.SetString(evil)
		if onlyNames[field] {
			v.SetString("name")
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		poison(v.Elem(), field)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i), v.Type().Field(i).Name)
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		poison(v.Index(0), field)
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.String:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name").Convert(v.Type().Key()), reflect.ValueOf(evil).Convert(v.Type().Elem()))
	case v.CanInt():
		v.SetInt(2)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	}
}

func poisoned[T any]() (of T) {
	poison(reflect.ValueOf(&of).Elem(), "")
	return of
}

// Whatever free text a job, a pause, an agent or a change brings from others, printed it neither draws on a terminal nor turns round
// what stands beside it; as JSON neither, and JSON means the same.
func TestTextOfOthersDrawsNothingOnATerminal(t *testing.T) {
	job := poisoned[makegood.Job]()
	var get, agents, holds, asJSON strings.Builder
	printJob(&get, job)
	printAgents(&agents, []api.Agent{poisoned[api.Agent]()}, time.Now())
	printHolds(&holds, []makegood.Hold{poisoned[makegood.Hold]()})
	printPermits(&holds, []makegood.Permit{poisoned[makegood.Permit]()}, time.Now())
	if err := printJSON(&asJSON, job); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{
		"get": get.String(), "agents": agents.String(), "holds": holds.String(), "get --json": asJSON.String(),
		"headline": headline(job), "watch": strings.Join(append(stepLines(job), newEntries(job, 10)...), "\n"),
		"hold": holdLine(poisoned[makegood.Hold](), time.Now()), "changes": changeLine("j", poisoned[makegood.Change](), func(id string) string { return id }),
		"errors": func() string {
			var stderr strings.Builder
			root := newRoot("makegood", nil, nil)
			root.SetArgs([]string{"get", evil, "--data", t.TempDir()})
			execute(t.Context(), root, &stderr)
			return stderr.String()
		}(),
	}
	for name, text := range said {
		if text == "" {
			t.Errorf("%s: nothing was printed", name)
		}
		for _, r := range text {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%s draws by %s:\n%q", name, fmt.Sprintf("%U", r), text)
				break
			}
		}
	}
	var same makegood.Job
	if err := json.Unmarshal([]byte(asJSON.String()), &same); err != nil || same.Reason != evil {
		t.Errorf("as JSON: got %q, %v, want what it was", same.Reason, err)
	}
}

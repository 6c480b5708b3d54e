package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// one makes a workflow of steps a, b (which needs nothing), c (which needs a) and d (which needs c);
// d, which is asked about, has this with and when and an undo with its own.
func one(t testing.TB, with, when, undoWith string) *Compiled {
	t.Helper()
	raw := func(text string) json.RawMessage {
		if text == "" {
			return nil
		}
		return json.RawMessage(text)
	}
	none := &makegood.Undo{None: true}
	compiled, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{
		{Name: "a", Agent: "x", Undo: none},
		{Name: "b", Agent: "x", Needs: []string{}},
		{Name: "c", Agent: "x", Needs: []string{"a"}, Undo: none},
		{Name: "d", Agent: "x", With: raw(with), When: when, Undo: &makegood.Undo{Action: "u", With: raw(undoWith)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func quoted(expression string) string {
	text, _ := json.Marshal(expression)
	return string(text)
}

var sample = Data{
	JobID: "job-1",
	Input: json.RawMessage(`{"n": 12345678901234567890, "s": "text", "f": 1.50, "list": [1, 2], "no": null, "yes": true, "name": "a"}`),
	Outputs: map[string]json.RawMessage{
		"a": json.RawMessage(`{"id": 7}`), "c": json.RawMessage(`"done"`), "d": json.RawMessage(`[3]`),
	},
}

func TestAWholeExpressionTakesTheTypeOfItsValue(t *testing.T) {
	for _, c := range []struct{ with, want string }{
		{`${ .input.n }`, `12345678901234567890`},
		{`${ .input.f }`, `1.50`},
		{`${ .input.s }`, `"text"`},
		{`${ .input.list }`, `[1,2]`},
		{`${ .input.no }`, `null`},
		{`${ .input.nothing }`, `null`},
		{`${ .input.yes }`, `true`},
		{`${ {b: 1, a: .input.n} }`, `{"a":12345678901234567890,"b":1}`},
		{`${ .input }`, `{"f":1.50,"list":[1,2],"n":12345678901234567890,"name":"a","no":null,"s":"text","yes":true}`},
		{`${ .job.id }`, `"job-1"`},
		{`${ .steps.a.output.id }`, `7`},
		{`${ .steps.c.output }`, `"done"`},
		{`${ .steps[.input.name].output.id }`, `7`},
		{`${ .steps | keys }`, `["a","c"]`},
		{`${ .steps.c.output + "<&>" }`, `"done<&>"`},
		// A text around it, be it a space, makes a text of it.
		{`${ .input.n } `, `"12345678901234567890 "`},
		{"${ .input.n }\n", `"12345678901234567890\n"`},
		{`n=${ .input.n }, s=${ .input.s }, l=${ .input.list }, no=${ .input.no }`, `"n=12345678901234567890, s=text, l=[1,2], no=null"`},
		{`${ .input.s }${ .input.s }`, `"texttext"`},
		{`"${ .input.s }"`, `"\"text\""`},
		{`$${ .input.s }`, `"${ .input.s }"`},
		{`$${ ${ .input.s } }`, `"${ text }"`},
		{`$$${ .input.s } 5$`, `"$${ .input.s } 5$"`},
		{``, `""`},
	} {
		got, err := inputOf(context.Background(), one(t, quoted(c.with), "", ""), "d", false, sample)
		if string(got) != c.want || err != nil {
			t.Errorf("with %s gives %s, %v; want %s", c.with, got, err, c.want)
		}
	}
}

func TestExpressionsStandAnywhereInAWith(t *testing.T) {
	const with = `{"z": [1.0, "${ .input.n }", {"k": "x${ .job.id }"}], "a": {"b": {"c": "plain"}}, "e": {}, "f": []}`
	const want = `{"a":{"b":{"c":"plain"}},"e":{},"f":[],"z":[1.0,12345678901234567890,{"k":"xjob-1"}]}`
	got, err := inputOf(context.Background(), one(t, with, "", ""), "d", false, sample)
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestDefaultsOfWith(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name       string
		with, undo string
		isUndo     bool
		data       Data
		want       string
	}{
		{"without a with, the job's input as it was written", ``, ``, false, sample, string(sample.Input)},
		{"no input is null", ``, ``, false, Data{}, `null`},
		{"an undo has the step's with", `{"a": "${ .input.s }"}`, ``, true, sample, `{"a":"text"}`},
		{"an undo of a step without one has the job's input", ``, ``, true, sample, string(sample.Input)},
		{"an undo with its own", `{"a": 1}`, `{"b": "${ .steps.d.output }", "c": "${ .steps.a.output.id }"}`, true, sample, `{"b":[3],"c":7}`},
		{"an undo of unknown outcome has null for the output", ``, `"${ .steps.d.output }"`, true, Data{}, `null`},
		{"a missing output is null", `"${ .steps.a.output.id }"`, ``, false, Data{}, `null`},
	} {
		got, err := inputOf(ctx, one(t, c.with, "", c.undo), "d", c.isUndo, c.data)
		if string(got) != c.want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	if got, _ := inputOf(ctx, one(t, "", "", ""), "d", false, sample); &got[0] != &sample.Input[0] {
		t.Error("without a with, Input copies the job's input; want the same bytes")
	}
}

func TestWhenGivesTrueOrFalse(t *testing.T) {
	for _, c := range []struct {
		when, err string
		want      bool
	}{
		{``, ``, true},
		{`${ .input.yes }`, ``, true},
		{"  ${ .input.s == \"other\" }\n", ``, false},
		{`${ .steps.a.output.id > 5 and .job.id == "job-1" }`, ``, true},
		{`${ .input.s }`, `step "d": when: ${ .input.s }: gives "text", want true or false`, false},
		{`${ .input.no }`, `step "d": when: ${ .input.no }: gives null, want true or false`, false},
		{`${ .input.n }`, `step "d": when: ${ .input.n }: gives 12345678901234567890, want true or false`, false},
		{`${ "x" * 5000 }`, `step "d": when: ${ "x" * 5000 }: gives a large value, want true or false`, false},
		{`${ true, true }`, `step "d": when: ${ true, true }: gives more than one value, want one`, false},
		{`${ .input.s.x }`, `step "d": when: ${ .input.s.x }: expected an object but got: string ("text")`, false},
	} {
		got, err := one(t, "", c.when, "").When(context.Background(), "d", sample)
		if got != c.want || message(err) != c.err {
			t.Errorf("when %s gives %t, %v; want %t, %s", c.when, got, err, c.want, c.err)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAnEvaluationErrorSaysWhichExpressionWhereAndWhy(t *testing.T) {
	type object map[string]any
	type list []any
	for _, c := range []struct {
		with any
		want string
	}{
		{`${ .input.s + 1 }`, `step "d": with: ${ .input.s + 1 }: cannot add: string ("text") and number (1)`},
		{object{"a": list{0, object{"b c": `x ${ empty }`}}}, `step "d": with.a[1].b c: ${ empty }: gives no value, want one`},
		{object{"a": `${ 1, 2 }`}, `step "d": with.a: ${ 1, 2 }: gives more than one value, want one`},
		{list{`${ nan }`}, `step "d": with[0]: ${ nan }: gives NaN, which JSON cannot hold`},
		{object{"a": `x${ infinite }`}, `step "d": with.a: ${ infinite }: gives +Inf, which JSON cannot hold`},
		{object{"a": `${ error("no such sku") }`}, `step "d": with.a: ${ error("no such sku") }: error: no such sku`},
		{"${ \n.input\n| error(\"a\") }", `step "d": with: ${.input | error("a")}: error: a`},
		{`${ def f: f; f }`, `step "d": with: ${ def f: f; f }: takes more than 1000000 steps`},
		{`${ "x" * 300000 }`, `step "d": with: ${ "x" * 300000 }: gives more than 262144 bytes of JSON`},
		{`${ "x" * 200000 }${ "x" * 200000 }`, `step "d": with: ${ "x" * 200000 }: gives more than 262144 bytes of JSON`},
		{list{`${ "x" * 200000 }`, `${ "y" * 200000 }`}, `step "d": with[1]: ${ "y" * 200000 }: gives more than 262144 bytes of JSON`},
		{list{`${ "x" * 262000 }`, strings.Repeat("y", 200)}, `step "d": with: 262207 bytes as JSON, the limit is 262144`},
	} {
		with, err := json.Marshal(c.with)
		if err != nil {
			t.Fatal(err)
		}
		got, err := inputOf(context.Background(), one(t, string(with), "", ""), "d", false, sample)
		var eval *EvalError
		if got != nil || !errors.As(err, &eval) || eval.Reason != c.want || eval.Step != "d" || eval.Undo {
			t.Errorf("with %.80s gives %.40s, %v\nwant %s", with, got, err, c.want)
		}
	}
}

func TestAReasonIsKeptShortAndWhole(t *testing.T) {
	compiled := one(t, quoted(`${ error("ä" * 5000) }`), "", "")
	_, err := inputOf(context.Background(), compiled, "d", false, sample)
	reason := message(err)
	if len(reason) > limits.MaxReasonBytes || !strings.HasSuffix(reason, "ä...") {
		t.Errorf("a reason of %d bytes that ends in %q; want at most %d, with whole characters", len(reason), reason[len(reason)-8:], limits.MaxReasonBytes)
	}
}

func TestErrorsOfAnUndoAndOfDataAreTold(t *testing.T) {
	ctx := context.Background()
	compiled := one(t, quoted(`${ .input }`), "", quoted(`${ .steps.a.output | error }`))
	for _, c := range []struct {
		name string
		step string
		undo bool
		data Data
		want string
	}{
		{"undo", "d", true, sample, `step "d": undo.with: ${ .steps.a.output | error }: error: {"id":7}`},
		{"input that is not JSON", "d", false, Data{Input: json.RawMessage(`{`)}, `step "d": with: the job's input: not JSON: unexpected EOF`},
		{"output that is not JSON", "d", true, Data{Outputs: map[string]json.RawMessage{"a": json.RawMessage(`1 2`)}}, `step "d": undo.with: the output of step "a": not JSON: more text follows the value`},
		{"no such step", "z", false, sample, `the workflow has no step "z"`},
		{"no undo", "b", true, sample, `step "b" has no undo`},
	} {
		_, err := inputOf(ctx, compiled, c.step, c.undo, c.data)
		var eval *EvalError
		if !errors.As(err, &eval) || eval.Reason != c.want || eval.Undo != c.undo || eval.Step != c.step {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// The caller's time ending is not the expression's fault: the step must not be failed for it.
func TestTheEndOfTheCallersContextIsNoEvaluationError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	compiled := one(t, quoted(`${ last(repeat(1)) }`), `${ last(repeat(true)) }`, "")
	_, inputErr := inputOf(ctx, compiled, "d", false, sample)
	_, whenErr := compiled.When(ctx, "d", sample)
	for _, err := range []error{inputErr, whenErr} {
		var eval *EvalError
		if errors.As(err, &eval) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled and no EvalError", err)
		}
	}
}

func TestAnHTTPStepGetsACompleteRequest(t *testing.T) {
	data := Data{JobID: "j", Input: json.RawMessage(`{"id": 5, "m": "PUT", "u": "https://b.example", "h": {"X-A": "1"}}`)}
	for _, c := range []struct{ with, want string }{
		{`{"url": "https://a.example"}`, `{"body":{"id": 5, "m": "PUT", "u": "https://b.example", "h": {"X-A": "1"}},"headers":{},"method":"POST","url":"https://a.example"}`},
		{`{"url": "https://a.example/${ .input.id }", "method": "GET"}`, `{"headers":{},"method":"GET","url":"https://a.example/5"}`},
		{`{"url": "https://a.example", "method": "HEAD", "body": 1}`, `{"body":1,"headers":{},"method":"HEAD","url":"https://a.example"}`},
		{`{"url": "https://a.example", "method": "DELETE"}`, `{"body":{"id": 5, "m": "PUT", "u": "https://b.example", "h": {"X-A": "1"}},"headers":{},"method":"DELETE","url":"https://a.example"}`},
		{`{"url": "https://a.example", "body": null}`, `{"body":null,"headers":{},"method":"POST","url":"https://a.example"}`},
		{`{"url": "${ .input.u }", "method": "${ .input.m }", "headers": "${ .input.h }", "body": {"k": "${ .input.id }"}}`, `{"body":{"k":5},"headers":{"X-A":"1"},"method":"PUT","url":"https://b.example"}`},
		{`{"url": "https://a.example", "headers": {"X-A": "a${ .input.id }"}, "body": 0}`, `{"body":0,"headers":{"X-A":"a5"},"method":"POST","url":"https://a.example"}`},
		{`{"url": "${ .input.id }"}`, `step "a": with.url: a url must be a string that is not empty`},
		{`{"url": "${ \"\" }"}`, `step "a": with.url: a url must be a string that is not empty`},
		{`{"url": "${ .input.u }", "method": "${ .input.h }"}`, `step "a": with.method: a method must be one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{"url": "${ .input.u }", "headers": {"X-A": "${ .input.id }"}}`, `step "a": with.headers: headers must be an object of strings`},
		{`{"url": "${ .input.u }", "headers": "${ .input.id }"}`, `step "a": with.headers: headers must be an object of strings`},
		{`{"url": "${ .input.u }", "headers": "${ null }"}`, `step "a": with.headers: headers must be an object of strings`},
		{`{"url": "${ .input.u | error }"}`, `step "a": with.url: ${ .input.u | error }: error: https://b.example`},
	} {
		compiled, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{
			{Name: "a", Agent: "http", With: json.RawMessage(c.with)},
		}})
		if err != nil {
			t.Errorf("with %s: %v", c.with, err)
			continue
		}
		input, err := inputOf(context.Background(), compiled, "a", false, data)
		got := string(input)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("with %s\n got %s\nwant %s", c.with, got, c.want)
		}
	}
}

func TestACompiledWorkflowIsUsedByManyAtOnce(t *testing.T) {
	compiled := one(t, `{"a": "${ .input.list | map(. + 1) | add }", "b": "x${ .steps.a.output.id }", "c": "${ .input.s | gsub(\"t\"; \"T\") }"}`, `${ .input.n > 1 }`, "")
	want, err := inputOf(context.Background(), compiled, "d", false, sample)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				got, err := inputOf(context.Background(), compiled, "d", false, sample)
				run, whenErr := compiled.When(context.Background(), "d", sample)
				if string(got) != string(want) || err != nil || !run || whenErr != nil {
					t.Errorf("got %s, %v, %t, %v; want %s, true", got, err, run, whenErr, want)
				}
			}
		})
	}
	group.Wait()
}

func TestLoadRefusesWhatIsNoDefinition(t *testing.T) {
	for _, c := range []struct{ definition, want string }{
		{``, `definition: EOF`},
		{`{`, `definition: unexpected EOF`},
		{`{"name":"a","steps":[]} x`, `definition: more text follows the workflow`},
		{`{"name":"a","steps":[]}`, `definition: steps: a workflow must have at least one step`},
		{`{"name":"a","steps":[{"name":"a","agent":"x","when":"no"}]}`, `definition: steps[0].when: when must be one expression, such as "${ .input.express }": got "no"`},
	} {
		compiled, err := Load([]byte(c.definition))
		if compiled != nil || message(err) != c.want || !errors.Is(err, ErrInvalid) {
			t.Errorf("Load(%s) = %v, %v; want %s", c.definition, compiled, err, c.want)
		}
	}
}

// Code wrote it, so what is not known is a newer release's: no mistake to refuse, and nothing to leave out.
func TestADefinitionWithMoreThanIsKnownIsOfANewerRelease(t *testing.T) {
	for name, definition := range map[string]string{
		"a field":           `{"name":"a","steps":[{"name":"a","agent":"x"}],"from":"the future"}`,
		"a field of a step": `{"name":"a","steps":[{"name":"a","agent":"x","bow":"${ .input }"}]}`,
		"a level":           `{"name":"a","steps":[{"name":"a","agent":"x"}],"needs":4}`,
		"another kind":      `{"name":"a","steps":{"a":{"agent":"x"}},"needs":4}`,
	} {
		compiled, err := Load([]byte(definition))
		if compiled != nil || !errors.Is(err, ErrNewer) || errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, %v; want that a newer release wrote it", name, compiled, err)
		}
	}
	if _, err := Parse("a.yaml", []byte("name: a\nmood: good\nsteps: [{name: a, agent: x}]")); !errors.Is(err, ErrInvalid) {
		t.Errorf("a workflow file with an unknown field: got %v, want it refused", err)
	}
}

// A definition that an older version wrote keeps its bytes and its hash, though this one would write
// it otherwise: jobs name it by that hash.
func TestLoadKeepsADefinitionAsItIs(t *testing.T) {
	old := []byte(`{"steps":[{"agent":"x","name":"a"}],"name":"old"}`)
	compiled, err := Load(old)
	if err != nil || string(compiled.Definition) != string(old) || compiled.Workflow.Steps[0].Timeout != domain.DefaultTimeout {
		t.Fatalf("Load = %+v, %v; want the same definition, and defaults in the workflow", compiled, err)
	}
}

func TestAWorkflowBuiltInGoIsRefusedByPath(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{
		{Name: "a", Agent: "x", With: json.RawMessage(`{"k": 1, "k": 2}`)},
		{Name: "b", Agent: "y", Needs: []string{"a", "q"}, With: json.RawMessage(`{"${ .x }": 1, "e": ["${ .x }"]}`)},
	}}
	_, err := FromWorkflow(w, WithAgents(anAgent("x")))
	want := `workflow w: steps[0].with: not JSON: the key "k" twice in one object (byte 10)
workflow w: steps[1].needs[1]: no step is called "q": known are a, b
workflow w: steps[1].agent: no agent "y": known are approval, http, wait, workflow, x
workflow w: steps[1].with.${ .x }: an expression cannot stand in a key: make the object with jq
workflow w: steps[1].with.e[0]: .x is unknown: known are .input, .steps and .job`
	if message(err) != want || !errors.Is(err, ErrInvalid) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestACompiledWorkflowSharesNothingWithItsMaker(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{
		{Name: "a", Agent: "x", Undo: &makegood.Undo{None: true}},
		{Name: "b", Agent: "x", Needs: []string{"a"}, With: json.RawMessage(`{"k":1}`), Undo: &makegood.Undo{Action: "u"}},
	}}
	compiled, err := FromWorkflow(w)
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v", compiled.Workflow)
	w.Steps[1].Needs[0], w.Steps[1].With[2], w.Steps[1].Undo.Action = "z", 'z', "z"
	if after := fmt.Sprintf("%+v", compiled.Workflow); after != before {
		t.Errorf("changing what it was made of changed it to %s", after)
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"bad", "good"} {
		for _, file := range corpus(f, folder, 10) {
			if source := read(f, file); len(source) < 4<<10 {
				f.Add(source)
			}
		}
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		compiled, err := Parse("f", source)
		var wrong Errors
		if err != nil && (!errors.As(err, &wrong) || len(wrong) == 0) {
			t.Fatalf("error %v, want Errors", err)
		}
		for _, e := range wrong {
			if e.Line < 1 || strings.ContainsAny(e.Message, "\r\n") {
				t.Fatalf("error %#v: want a line, and one line", e)
			}
		}
		if err != nil {
			return
		}
		loaded, err := Load(compiled.Definition)
		if err != nil || loaded.Hash != compiled.Hash {
			t.Fatalf("Load gives %v, %v; want the hash %s", loaded, err, compiled.Hash)
		}
		for _, s := range compiled.Workflow.Steps {
			for _, undo := range []bool{false, true} {
				input, err := inputOf(context.Background(), compiled, s.Name, undo, Data{})
				if err == nil && !json.Valid(input) {
					t.Fatalf("the input of %s is %q, want JSON", s.Name, input)
				}
			}
		}
	})
}

func BenchmarkInput(b *testing.B) {
	compiled := one(b, `{"sku": "${ .input.s }", "quantity": "${ .input.n }", "note": "for ${ .job.id }"}`, "", "")
	for b.Loop() {
		if _, err := inputOf(context.Background(), compiled, "d", false, sample); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	source := read(b, "testdata/good/order.yaml")
	for b.Loop() {
		if _, err := Parse("order.yaml", source); err != nil {
			b.Fatal(err)
		}
	}
}

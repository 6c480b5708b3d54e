package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// one is a machine of one state, which is called S, with these fields.
func one(fields string) string {
	return `{"StartAt":"S","States":{"S":{` + fields + `}}}`
}

func task(fields string) string {
	return one(`"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:123456789012:function:Do","End":true` + fields)
}

// child are the fields of a task that starts another machine with these parameters, and waits for its end.
func child(parameters, fields string) string {
	return `"Type":"Task","Resource":"arn:aws:states:::states:startExecution.sync:2","Parameters":{` + parameters + `},"End":true` + fields
}

// What is no definition is refused with the place and the reason.
func TestWhatIsNoDefinitionIsRefusedWithItsPlace(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+2) + strings.Repeat("]", MaxDepth+2)
	many := make([]string, MaxStates+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"s%d":{"Type":"Succeed"}`, i)
	}
	for _, c := range []struct{ source, want string }{
		{"", "not JSON"},
		{"{", "not JSON, at byte 1"},
		{`{"a":1}`, "want StartAt and States"},
		{"[]", "want an object"},
		{"\xff", "not UTF-8"},
		{strings.Repeat(" ", MaxBytes+1), fmt.Sprintf("%d bytes, the limit is %d", MaxBytes+1, MaxBytes)},
		{`{"StartAt":"S","States":{}}`, "/States: want an object with one state at least"},
		{`{"StartAt":"S","StartAt":"S"}`, "/StartAt: is there twice"},
		{`{"StartAt":"X","States":{"S":{"Type":"Succeed"}}}`, `/StartAt: no state of this machine is called "X"`},
		{one(`"Type":"Loop"`), `/States/S/Type: "Loop" is no type of state`},
		{one(`"Type":"Succeed","Colour":1`), `/States/S/Colour: a Succeed has no field "Colour"`},
		{one(`"Type":"Pass"`), `/States/S: a Pass must say either Next or "End": true`},
		{one(`"Type":"Pass","Next":"S","End":true`), `must say either Next or "End": true`},
		{one(`"Type":"Task","End":true`), "/States/S/Resource: a Task must say its Resource"},
		{one(`"Type":"Choice","Choices":[]`), "/States/S/Choices: want a list of one rule at least"},
		{one(`"Type":"Choice","Choices":[{"Variable":"$.a","IsNull":true,"Next":"T"}]`), `/States/S/Choices/0/Next: no state of this machine is called "T"`},
		{one(`"Type":"Parallel","End":true,"Branches":[{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"S"}}}]`), `/States/S/Branches/0/States/A/Next: no state of this machine is called "S"`},
		{task(`,"Catch":[{"ErrorEquals":[],"Next":"S"}]`), "/States/S/Catch/0/ErrorEquals: want a list of one error at least"},
		{task(`,"QueryLanguage":"SQL"`), `/States/S/QueryLanguage: "SQL" is no query language`},
		{`{"StartAt":"S","States":{"S":{"Type":"Pass","End":true,"Result":` + deep + `}}}`, fmt.Sprintf("nested deeper than %d", MaxDepth)},
		{`{"StartAt":"s0","States":{` + strings.Join(many, ",") + `}}`, fmt.Sprintf("more than %d states", MaxStates)},
		{`{"StartAt":"S","States":{"` + strings.Repeat("x", 81) + `":{"Type":"Succeed"}}}`, "has 81 characters: want 1 to 80"},
		{"Resources:\n  A: {Type: 'AWS::Serverless::Function'}\n", "/Resources: none of them is a state machine"},
	} {
		_, err := Import([]byte(c.source), Options{From: "machine"})
		var wrong Errors
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: got %v, want %q", c.source, err, c.want)
		}
	}
}

// A definition is found where others put it.
func TestADefinitionIsFoundInWhatHoldsIt(t *testing.T) {
	inner := one(`"Type":"Succeed"`)
	text := strings.ReplaceAll(inner, `"`, `\"`)
	for _, c := range []struct{ source, machine, want string }{
		{inner, "", "file"},
		{"StartAt: S\nStates:\n  S: {Type: Succeed}\n", "", "file"},
		{`{"stateMachineArn":"arn","name":"Order-Machine","definition":"` + text + `"}`, "", "order-machine"},
		{`{"Resources":{"OrderMachine":{"Type":"AWS::Serverless::StateMachine","Properties":{"Definition":` + inner + `}}}}`, "", "order-machine"},
		{`{"Resources":{"M":{"Type":"AWS::StepFunctions::StateMachine","Properties":{"DefinitionString":{"Fn::Sub":["` + text + `",{}]}}}}}`, "", "m"},
		{`{"Resources":{"M":{"Type":"AWS::StepFunctions::StateMachine","Properties":{"DefinitionString":{"Fn::Join":["",["` + text[:8] + `","` + text[8:] + `"]]}}}}}`, "", "m"},
		{"Resources:\n  A: {Type: 'AWS::Serverless::StateMachine', Properties: {Definition: {StartAt: S, States: {S: {Type: Succeed}}}}}\n" +
			"  B: {Type: 'AWS::Serverless::StateMachine', Properties: {Definition: {StartAt: S, States: {S: {Type: Succeed}}}}}\n", "B", "b"},
	} {
		imported, err := Import([]byte(c.source), Options{From: "file", Machine: c.machine})
		if err != nil || imported.Workflow != c.want {
			t.Errorf("%s: got %v, %v, want %s", c.source, imported, err, c.want)
		}
	}
}

// What is not taken over, or otherwise, is said at its state, and the workflow is valid all the same.
func TestWhatIsNotTakenOverIsSaidAtItsState(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{one(`"Type":"Map","End":true,"Iterator":{}`), "not taken over: a Map"},
		{one(`"Type":"Pass","End":true,"Parameters":{"a.$":"$..b"}`), "jq has no match for .."},
		{one(`"Type":"Pass","End":true,"Parameters":{"a.$":"$.b[?(@.c==1)]"}`), "a filter [?(...)] is not translated"},
		{`{"StartAt":"C","States":{"C":{"Type":"Choice","Choices":[{"Variable":"$.n(","IsNull":true,"Next":"S"},{"And":[{"Variable":"$.n(","IsNull":true},{"Variable":"$.m","IsNull":true}],"Next":"R"}],"Default":"T"},"R":{"Type":"Task","Resource":"r","End":true},"S":{"Type":"Task","Resource":"r","End":true},"T":{"Type":"Task","Resource":"r","End":true}}}`, "the path $.n( cannot be read"},
		{one(`"Type":"Pass","End":true,"Parameters":{"a.$":"States.UUID()"}`), "States.UUID differs each time"},
		{one(`"Type":"Pass","End":true,"Parameters":{"a.$":"States.Hash($.a, 'MD5')"}`), "States.Hash with 2 arguments has no match"},
		{one(`"Type":"Pass","End":true,"Parameters":{"a.$":"$$.State.EnteredTime"}`), "is not known to an expression here"},
		{one(`"Type":"Pass","End":true,"ResultPath":"$.a[0]"`), "only members can be set here"},
		{task(`,"TimeoutSecondsPath":"$.t"`), "TimeoutSecondsPath: a timeout is written out here"},
		{task(`,"Credentials":{"RoleArn":"r"}`), "the agent's own role"},
		{task(`,"HeartbeatSeconds":10,"TimeoutSeconds":100`), "a difference: HeartbeatSeconds: the agent sends its heartbeats"},
		{task(`,"TimeoutSeconds":7200`), "a difference: an attempt of more than an hour"},
		{task(`,"TimeoutSeconds":99999999`), "a difference: TimeoutSeconds 99999999 is cut to 30 days"},
		{task(`,"Retry":[{"ErrorEquals":["States.ALL"],"BackoffRate":1.5}]`), "a difference: BackoffRate 1.5"},
		{task(`,"Retry":[{"ErrorEquals":["States.ALL"],"MaxAttempts":1000}]`), "a difference: MaxAttempts 1000 is cut"},
		{task(`,"Retry":[{"ErrorEquals":["Busy"]}]`), "a difference: the error Busy is the kind busy"},
		{one(`"Type":"Task","Resource":"arn:aws:states:::glue:startJobRun.sync","End":true`), "a difference: it waited until the service was done"},
		{one(child(`"StateMachineArn":"arn:aws:states:eu-west-1:1:stateMachine:ReserveLine"`, "")), "step s, which a job of workflow reserve-line does"},
		{one(child(`"StateMachineArn":"${ReserveLineArn}","Input":{"a":1}`, `,"Retry":[{"ErrorEquals":["States.ALL"]}]`)), "not taken over: Retry: the workflow of the job says"},
		{one(child(`"StateMachineArn":"${ReserveLineArn}"`, `,"TimeoutSeconds":60`)), "not taken over: TimeoutSeconds: say it as the timeout of that workflow"},
		{one(child(`"StateMachineArn.$":"$.machine"`, "")), "it is no step that a job of its own does (docs/children.md): which machine it starts is not written out"},
		{one(`"Type":"Task","Resource":"arn:aws:states:::sqs:sendMessage.waitForTaskToken","End":true`), "a difference: the task token"},
		{one(`"Type":"Wait","Seconds":99999999,"End":true`), "a wait of 99999999 s"},
		{one(`"Type":"Fail"`), "a difference: a job that fails stops in front of a person"},
		{`{"StartAt":"S","States":{"S":{"Type":"Task","Resource":"r","Next":"T"},"T":{"Type":"Task","Resource":"r","Next":"S"}}}`, `the way back to "S"`},
		{`{"StartAt":"S","States":{"S":{"Type":"Succeed"},"T":{"Type":"Succeed"}}}`, "no way leads here"},
		{`{"StartAt":"S","States":{"S":{"Type":"Parallel","Retry":[{"ErrorEquals":["States.ALL"]}],"End":true,"Branches":[{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}]}}}`, "Retry of a Parallel"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":"{% $now() %}"`)[1:], "$now differs each time"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":"{% $map($states.input.a, function($v) { $v }) %}"`)[1:], "a function of one's own is not translated"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":"{% $states.input.a[b=1] %}"`)[1:], "a filter is not translated"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":"{% b %}"`)[1:], "stands for a member of nothing: say $states.input.b"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":"{% $states.context.State.EnteredTime %}"`)[1:], "$$.State.EnteredTime of the context object is not known"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":{"token":"{% $states.context.Task.Token %}"}`)[1:], "as Completion of agent.TaskOf(ctx); token is left out"},
		{`{"QueryLanguage":"JSONata",` + one(`"Type":"Pass","End":true,"Output":"{% $states.context.Execution.Name %}"`)[1:], "$$.Execution.Name is the job's id here"},
	} {
		imported, err := Import([]byte(c.source), Options{From: "machine"})
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if text := imported.Report.Text(); !strings.Contains(text, c.want) {
			t.Errorf("%s: got\n%s\nwant %q in it", c.source, text, c.want)
		}
	}
}

// A step whose input could not be taken over does not run with less: its job stops there, and says why.
func TestAStepWithoutItsInputStopsTheJob(t *testing.T) {
	for _, source := range []string{
		task(`,"Parameters":{"id.$":"States.UUID()","name.$":"$.name"}`),
		`{"StartAt":"P","States":{"P":{"Type":"Pass","Parameters":{"id.$":"$..id"},"Next":"S"},"S":{"Type":"Task","Resource":"do","End":true}}}`,
		`{"StartAt":"C","States":{"C":{"Type":"Choice","Choices":[{"Variable":"$..id","IsNull":true,"Next":"S"}],"Default":"S2"},
			"S":{"Type":"Task","Resource":"do","End":true},"S2":{"Type":"Task","Resource":"do","End":true}}}`,
	} {
		imported, err := Import([]byte(source), Options{From: "machine"})
		if err != nil {
			t.Fatal(err)
		}
		f := &functions{answers: map[string][]json.RawMessage{"do": {json.RawMessage("1")}}}
		job := makegoodtest.Run(t, makegoodtest.Case{
			YAML: imported.YAML, Input: map[string]any{"name": "Ada"},
			Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{f}} },
		})
		if job.ProcessState != makegood.JobError || len(f.calls) != 0 || !strings.Contains(job.Reason, "makegood-import has not taken over") {
			t.Errorf("%s: got %s (%s) after %d calls, want Error and none", source, job.ProcessState, job.Reason, len(f.calls))
		}
	}
}

// An undo that cannot do without the output of its step is left to be written by hand, and stops the job until then.
func TestAnUndoThatNeedsItsStepsOutputIsLeft(t *testing.T) {
	source := strings.ReplaceAll(string(readFile(t, "testdata/machines/saga.asl.json")), `"trip.$": "$.id"`, `"trip.$": "States.StringToJson($.car)"`)
	imported, err := Import([]byte(source), Options{From: "machine"})
	if err != nil || imported.Report.Whole() || !strings.Contains(string(imported.YAML), "agent: byhand") {
		t.Fatalf("got %+v, %v, want an undo by hand", imported, err)
	}
	if code, err := imported.Code("machine"); err != nil || strings.Count(string(code), "return missing(") == 0 {
		t.Errorf("got %v and\n%s", err, code)
	}
}

// Whatever names a machine uses, its steps have names of their own that the workflow takes.
func TestNamesBecomeNamesOfOurs(t *testing.T) {
	names := []string{"Ünïcödé 名前", "名前", "a b", "a-b", "A B", "if", "end", "1st", strings.Repeat("long ", 16)[:80], "'quotes' \"and\" `ticks` ${x}", "# */ //", "\n"}
	var states []string
	for i, name := range names {
		next := `"End":true`
		if i+1 < len(names) {
			next = `"Next":` + quoted(names[i+1])
		}
		states = append(states, fmt.Sprintf(`%s:{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:%s",%s,"ResultPath":%s}`, quoted(name), "f", next, quoted("$['"+strings.ReplaceAll(name, "'", "")+"']")))
	}
	imported, err := Import([]byte(`{"StartAt":`+quoted(names[0])+`,"States":{`+strings.Join(states, ",")+`}}`), Options{From: "machine"})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := workflowfile.Parse("machine.yaml", imported.YAML)
	if err != nil || len(compiled.Workflow.Steps) != len(names) {
		t.Errorf("got %v, %v, want %d steps", compiled, err, len(names))
	}
	if _, err := imported.Code("machine"); err != nil {
		t.Error(err)
	}
}

// However a definition is spoilt, it is refused, or becomes a workflow that is valid and agents that are Go.
func TestASpoiltDefinitionIsRefusedOrBecomesAValidWorkflow(t *testing.T) {
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	var sources []string
	for _, file := range machines(t) {
		sources = append(sources, string(readFile(t, file)))
	}
	refused := 0
	const tries = 800
	for range tries {
		source := spoilt(random, sources)
		imported, err := Import([]byte(source), Options{From: "machine"})
		var wrong Errors
		switch {
		case errors.As(err, &wrong):
			refused++
		case err != nil:
			t.Fatalf("%v of\n%s", err, source)
		default:
			if _, err := imported.Code("machine"); err != nil {
				t.Fatalf("%v of\n%s", err, source)
			}
		}
	}
	if refused == 0 || refused == tries {
		t.Errorf("%d of %d were refused: nothing was tried", refused, tries)
	}
}

// spoilt is a definition with some of its words put in the place of others, or cut off.
func spoilt(random *rand.Rand, sources []string) string {
	source := sources[random.IntN(len(sources))]
	words := strings.Split(source, `"`)
	other := strings.Split(sources[random.IntN(len(sources))], `"`)
	for range 1 + random.IntN(3) {
		i := 1 + 2*random.IntN(len(words)/2)
		switch random.IntN(4) {
		case 0:
			words[i] = other[1+2*random.IntN(len(other)/2)]
		case 1:
			words[i] = words[1+2*random.IntN(len(words)/2)]
		case 2:
			words[i] += string(rune('!' + random.IntN(90)))
		default:
			if words[i] != "" {
				words[i] = words[i][:random.IntN(len(words[i]))]
			}
		}
	}
	if random.IntN(20) == 0 {
		return strings.Join(words, `"`)[:random.IntN(len(source)/2)]
	}
	return strings.Join(words, `"`)
}

// The agents of all machines compile, beside each other.
func TestTheStubsCompile(t *testing.T) {
	// In the module, so that the code finds it, and in a folder that nothing else looks into.
	const build = "../../.build"
	if err := os.MkdirAll(build, 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(build, "stubs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	for i, file := range machines(t) {
		imported, err := Import(readFile(t, file), Options{From: "machine"})
		if err != nil {
			t.Fatal(err)
		}
		files, err := imported.Files("machine")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Join(folder, fmt.Sprintf("p%d", i), f.Name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, f.Text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said, err := exec.Command("go", "vet", folder+"/...").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// The example is what the importer writes of its definition.
func TestTheExampleIsWhatIsWritten(t *testing.T) {
	const folder = "../../../examples/from-step-functions"
	imported, err := Import(readFile(t, folder+"/order.asl.json"), Options{From: "order"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := imported.Files("order")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Join(folder, filepath.FromSlash(f.Name))
		if *rewrite {
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Text, 0o644)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got := readFile(t, name); string(got) != string(f.Text) {
			t.Errorf("%s is not what is written: go test ./importer/internal/asl -rewrite, and read the difference", name)
		}
	}
}

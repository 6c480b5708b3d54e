package asl

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// The importer turns a Map state with one Task an item into a step with a map. The step keeps the ItemSelector, in JSONPath
// and JSONata, and the limits of the state, and later states see the same results.
func TestAMapOfOneTaskIsAStepWithAMap(t *testing.T) {
	for name, c := range map[string]struct{ source, yaml, said string }{
		"inline": {
			`{"StartAt":"Each","States":{"Each":{"Type":"Map","ItemsPath":"$.lines","MaxConcurrency":20,"ItemSelector":{"sku.$":"$$.Map.Item.Value.sku","place.$":"$$.Map.Item.Index","order.$":"$.id"},
			"ItemProcessor":{"ProcessorConfig":{"Mode":"INLINE"},"StartAt":"Reserve","States":{"Reserve":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Reserve","Retry":[{"ErrorEquals":["States.ALL"],"MaxAttempts":2}],"End":true}}},
			"ResultPath":"$.reserved","Next":"Count"},
			"Count":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Count","Parameters":{"reserved.$":"$.reserved"},"End":true}}}`,
			"    map:\n      over: ${ .input.lines }\n      concurrency: 20\n    agent: functions\n    action: reserve\n", "step each, which is done once for each item, by functions",
		},
		"distributed, JSONata": {
			`{"QueryLanguage":"JSONata","StartAt":"Each","States":{"Each":{"Type":"Map","Items":"{% $states.input.lines %}","ToleratedFailurePercentage":5,"ToleratedFailureCount":3,
			"ItemSelector":{"sku":"{% $states.context.Map.Item.Value.sku %}","place":"{% $states.context.Map.Item.Index %}","order":"{% $states.input.id %}"},
			"ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},"StartAt":"Reserve","States":{"Reserve":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Arguments":{"FunctionName":"Reserve","Payload":"{% $states.input %}"},"Output":"{% $states.result.Payload %}","End":true}}},
			"Label":"Each","Next":"Count"},
			"Count":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Count","Arguments":{"reserved":"{% $states.input %}"},"End":true}}}`,
			"tolerate: {items: 3, share: 0.05, after: 20}\n", "a difference: the percentage is of the items that have ended",
		},
	} {
		t.Run(name, func(t *testing.T) {
			imported, err := Import([]byte(c.source), Options{From: "order"})
			if err != nil {
				t.Fatal(err)
			}
			if text := imported.Report.Text(); !strings.Contains(string(imported.YAML), c.yaml) || !strings.Contains(text, c.said) || strings.Contains(text, "not taken over:") {
				t.Errorf("got\n%s\n%s", imported.YAML, text)
			}
			f := &functions{answers: map[string][]json.RawMessage{"reserve": {json.RawMessage(`"yes"`)}, "count": {json.RawMessage("1")}}}
			job := makegoodtest.Run(t, makegoodtest.Case{
				YAML: imported.YAML, Input: json.RawMessage(`{"id":"o-1","lines":[{"sku":"tea"},{"sku":"ham"}]}`),
				Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{f}} },
			})
			var got []string
			for _, call := range f.calls {
				got = append(got, call.Function+" "+string(call.Input))
			}
			slices.Sort(got)
			want := []string{`count {"reserved":["yes","yes"]}`, `reserve {"order":"o-1","place":0,"sku":"tea"}`, `reserve {"order":"o-1","place":1,"sku":"ham"}`}
			if job.ProcessState != makegood.JobProcessed || !slices.Equal(got, want) {
				t.Errorf("%s: %s, got %q, want %q\n%s", job.ProcessState, job.Reason, got, want, imported.YAML)
			}
		})
	}
}

// eachOf is a machine of one Map with these fields, whose items have these states, and a Task that gets its result.
func eachOf(fields, states string) string {
	return `{"StartAt":"Each","States":{"Each":{"Type":"Map","ItemsPath":"$.lines","Next":"Count"` + fields + `,"ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},"StartAt":"A","States":{` + states + `}}},
		"Count":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Count","End":true}}}`
}

const (
	taskA    = `"A":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:A","End":true}`
	twoTasks = `"A":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:A","Next":"B"},"B":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:B","End":true}`
)

// A Map goes on where as many of its items fail as it tolerates, with null for each, and not where one more does.
// The interpreter of the reference knows no tolerance: these are the words of Step Functions' documentation.
func TestAMapGoesOnWithinItsToleranceAlone(t *testing.T) {
	const bad = `{"error":"Bad"}`
	for _, c := range []struct {
		fields, states string
		answers        string
		want           string
	}{
		{`,"ToleratedFailureCount":1`, taskA, `"x",` + bad + `,"y"`, `["x",null,"y"]`},
		{`,"ToleratedFailureCount":1`, taskA, `"x",` + bad + `,` + bad, ""},
		{`,"ToleratedFailureCount":1`, twoTasks, `"x",` + bad + `,"y"`, `["b",null,"b"]`},
		{`,"ToleratedFailureCount":1`, twoTasks, bad + `,` + bad + `,"y"`, ""},
		{`,"ToleratedFailurePercentage":50`, twoTasks, `"x",` + bad + `,"y"`, `["b",null,"b"]`},
		{`,"ToleratedFailurePercentage":50`, twoTasks, `"x",` + bad + `,` + bad, ""},
		{`,"ToleratedFailurePercentage":100`, twoTasks, bad, `[null,null,null]`},
		{`,"ToleratedFailureCount":1,"Catch":[{"ErrorEquals":["States.ExceedToleratedFailureThreshold"],"ResultPath":null,"Next":"Count"}]`, twoTasks, bad, `{"lines":[1,2,3]}`},
	} {
		imported, err := Import([]byte(eachOf(`,"MaxConcurrency":1`+c.fields, c.states)), Options{From: "order"})
		if err != nil {
			t.Fatal(err)
		}
		var script []json.RawMessage
		if err := json.Unmarshal([]byte("["+c.answers+"]"), &script); err != nil {
			t.Fatal(err)
		}
		f := &functions{answers: map[string][]json.RawMessage{"a": script, "b": {json.RawMessage(`"b"`)}, "count": {json.RawMessage("1")}}}
		job := ended(t, makegoodtest.Case{
			YAML: imported.YAML, Children: imported.itemFiles(), Input: json.RawMessage(`{"lines":[1,2,3]}`),
			Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{f, outcomes()}} },
		})
		last := f.calls[len(f.calls)-1]
		if got := job.ProcessState == makegood.JobProcessed && last.Function == "count"; got != (c.want != "") || got && string(last.Input) != c.want {
			t.Errorf("%s after %s: %s, the last call is %s %s, want %q for count\n%s", c.fields, c.answers, job.ProcessState, last.Function, last.Input, c.want, imported.YAML)
		}
	}
}

// batching is the action a_batch, as the stub does it: it answers for all items of a batch with what the batch was.
type batching struct {
	mu  sync.Mutex
	got []string
}

func (b *batching) agent() agent.Handler {
	type batched struct{ Item, BatchInput json.RawMessage }
	return agent.New(agentFunctions, agent.Do("count", func(_ context.Context, in json.RawMessage) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got = append(b.got, "count "+string(in))
		return "counted", nil
	}), agent.DoBatch("b_batch", func(_ context.Context, items []*agent.Item[batched, string]) error {
		for _, i := range items {
			i.Done("b")
		}
		return nil
	}), agent.DoBatch("a_batch", func(_ context.Context, items []*agent.Item[batched, string]) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		said := "a"
		for _, i := range items {
			said += " " + string(i.In.Item)
		}
		b.got = append(b.got, said+" of "+string(items[0].In.BatchInput))
		if strings.Contains(said, ":-1}") {
			return agent.Final(errors.New("unlucky"))
		}
		for _, i := range items {
			i.Done(said)
		}
		return nil
	}))
}

// A Map with an ItemBatcher hands whole batches to its agent, and its result has an output for each batch. The items of
// a batch that fails count as failed.
func TestABatchIsOneTaskAndHasOneResult(t *testing.T) {
	imported, err := Import(readFile(t, "testdata/machines/map-batches.asl.json"), Options{From: "order"})
	if err != nil || imported.Report.NotTaken > 0 || !strings.Contains(string(imported.YAML), "concurrency: 3\n      batch: 3\n") {
		t.Fatalf("%v\n%s\n%s", err, imported.YAML, imported.Report.Text())
	}
	lines := make([]int, 102) // a part of 100 items, and one of 2
	for i := range lines {
		lines[i] = 1000 + i
	}
	lines[5] = -1
	b := &batching{}
	job := ended(t, makegoodtest.Case{
		YAML: imported.YAML, Input: map[string]any{"lines": lines, "by": "Ada"},
		Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{b.agent()}} },
	})
	last := b.got[len(b.got)-1]
	first := `a {"n":1000} {"n":1001} {"n":1002} of {"by":"Ada"}`
	begins := `count ["a {\"n\":1000} {\"n\":1001} {\"n\":1002}",null,"a {\"n\":1006}`
	ends := `,"a {\"n\":1099}","a {\"n\":1100} {\"n\":1101}"]`
	if job.ProcessState != makegood.JobProcessed || b.got[0] != first || !strings.HasPrefix(last, begins) || !strings.HasSuffix(last, ends) || len(b.got) != 34+1+1 {
		t.Errorf("%s after %d calls: %s ... %s\nwant %s ... %s ... %s", job.ProcessState, len(b.got), b.got[0], last, first, begins, ends)
	}
}

// The states of an item read the item and its place where the Map around does, and in a Map in a Map their own.
func TestTheStatesOfAnItemReadTheItem(t *testing.T) {
	source := strings.ReplaceAll(eachOf(`,"MaxConcurrency":1,"ItemSelector":{"id.$":"$.id"}`,
		`"A":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:A","Parameters":{"sku.$":"$$.Map.Item.Value.sku","place.$":"$$.Map.Item.Index","id.$":"$.id"},"ResultPath":"$.boxes","Next":"B"},
		"B":{"Type":"Map","ItemsPath":"$.boxes","MaxConcurrency":1,"ItemSelector":{"box.$":"$$.Map.Item.Value","of.$":"$.id"},"End":true,"Iterator":{"StartAt":"C","States":{"C":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:C","End":true}}}}`), "DISTRIBUTED", "INLINE")
	imported, err := Import([]byte(source), Options{From: "order"})
	if err != nil || imported.Report.NotTaken > 0 {
		t.Fatalf("%v\n%s", err, imported.Report.Text())
	}
	f := &functions{answers: map[string][]json.RawMessage{"a": {json.RawMessage(`["b1","b2"]`), json.RawMessage(`[]`)}, "c": {json.RawMessage(`1`), json.RawMessage(`2`)}, "count": {json.RawMessage("1")}}}
	job := ended(t, makegoodtest.Case{
		YAML: imported.YAML, Children: imported.itemFiles(), Input: json.RawMessage(`{"id":"o-1","lines":[{"sku":"tea"},{"sku":"ham"}]}`),
		Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{f, outcomes()}} },
	})
	var got []string
	for _, call := range f.calls {
		got = append(got, call.Function+" "+string(call.Input))
	}
	want := []string{
		`a {"id":"o-1","place":0,"sku":"tea"}`, `c {"box":"b1","of":"o-1"}`, `c {"box":"b2","of":"o-1"}`, `a {"id":"o-1","place":1,"sku":"ham"}`, `count [[1,2],[]]`,
	}
	if job.ProcessState != makegood.JobProcessed || !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q\n%s", job.ProcessState, got, want, imported.itemFiles())
	}
}

// The files of a project have the workflow of the items, code for the agents of all workflows, and one report.
func TestAProjectHasTheWorkflowsOfItsItems(t *testing.T) {
	imported, err := Import(readFile(t, "testdata/machines/map-states.asl.json"), Options{From: "order"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := imported.Files("order")
	if err != nil || len(files) != 6 || files[5].Name != "workflows/order-each.yaml" || !slices.Equal(imported.Agents, []string{"functions", "outcome"}) || len(imported.children()) > 0 {
		t.Fatalf("got %v, %v, agents %v, children %v", files, err, imported.Agents, imported.children())
	}
	for name, want := range map[int]string{0: `agent.Do("give", give)`, 2: `workflow(t, "order-each")`, 3: "| Back order | Task |"} {
		if text := string(files[name].Text); !strings.Contains(text, want) {
			t.Errorf("%s: got\n%s\nwant %q", files[name].Name, text, want)
		}
	}
}

// A Map of another kind stops the job at its place, and the report says why.
func TestAMapThatIsNotTakenOverSaysWhy(t *testing.T) {
	of := func(more, states string) string {
		return one(`"Type":"Map","End":true` + more + `,"ItemProcessor":{"StartAt":"a","States":{` + states + `}}`)
	}
	task := func(resource, more string) string {
		return `"a":{"Type":"Task","Resource":"` + resource + `"` + more + `,"End":true}`
	}
	const function = "arn:aws:lambda:eu-west-1:1:function:A"
	for source, want := range map[string]string{
		of(`,"ItemReader":{"Resource":"arn:aws:states:::s3:listObjectsV2"}`, task(function, "")):                                               "not taken over: a Map: ItemReader of a list of objects: let a step before it list them",
		of(`,"ItemReader":{"Resource":"arn:aws:states:::s3:getObject","ReaderConfig":{"InputType":"CSV"}}`, task(function, "")):                "not taken over: a Map: ItemReader of CSV: let a step before it make a large payload of JSON lines of it",
		of(`,"ItemReader":{"Resource":"arn:aws:states:::s3:getObject","ReaderConfig":{"InputType":"JSONL","MaxItems":9}}`, task(function, "")): "not taken over: MaxItems: let step s_items give no more",
		of(`,"ItemBatcher":{"MaxInputBytesPerBatch":100}`, task(function, "")):                                                                 "not taken over: a Map: ItemBatcher: MaxItemsPerBatch is to be a number of 1 to 50 here",
		of(`,"ItemBatcher":{"MaxItemsPerBatch":51}`, task(function, "")):                                                                       "not taken over: a Map: ItemBatcher: MaxItemsPerBatch is to be a number of 1 to 50 here",
		of(`,"ItemBatcher":{"MaxItemsPerBatch":10,"MaxInputBytesPerBatch":100}`, task(function, "")):                                           "not taken over: MaxInputBytesPerBatch: a batch has so many items",
		of(`,"ItemBatcher":{"MaxItemsPerBatch":40}`, task(function, "")):                                                                       "a difference: a batch ends at each 100 items of the list, too",
		of(`,"ItemBatcher":{"MaxItemsPerBatch":10}`, `"a":{"Type":"Pass","End":true}`):                                                         "not taken over: a Map: ItemBatcher: only an agent does batches",
		of(`,"ItemBatcher":{"MaxItemsPerBatch":10}`, task(function, `,"Parameters":{"all.$":"$.Items"}`)):                                      "not taken over: a Map: ItemBatcher: its Task calls with something else than its input",
		of(``, `"a":{"Type":"Map","End":true,"Iterator":{"StartAt":"b","States":{"b":{"Type":"Pass","End":true}}}}`):                           "not taken over: a Map: its items need jobs of their own, and those of the Map around have them",
		of(``, task("arn:aws:states:::http:invoke", "")):                                                                                       "step a of agent http",
		of(``, task("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "")):                                                                  "a difference: the task token is the step's completion token",
		of(`,"ResultWriter":{}`, task(function, "")):                                                                                           "a difference: ResultWriter: the outputs stay in the jobs of the items",
		strings.ReplaceAll(eachOf(`,"ResultWriter":{}`, taskA), "Count", "Read"):                                                               "not taken over: ResultWriter: the outputs stay in the jobs of the items",
		of(`,"MaxConcurrencyPath":"$.n"`, task(function, "")):                                                                                  "not taken over: MaxConcurrencyPath: it is written out here",
		of(`,"Retry":[{"ErrorEquals":["States.ALL"]}]`, task(function, "")):                                                                    "not taken over: Retry: here each item is tried again by itself",
		of(``, task("arn:aws:states:::states:startExecution.sync:2", `,"Parameters":{"StateMachineArn":"${B}"}`)):                              "step s, which is done once for each item, by workflow",
	} {
		imported, err := Import([]byte(source), Options{From: "order"})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if text := imported.Report.Text(); !strings.Contains(text, want) {
			t.Errorf("%s: got\n%s\nwant %q", source, text, want)
		}
	}
}

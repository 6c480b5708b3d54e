package asl

import (
	"encoding/json"
	"slices"
	"strings"
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
		of(`,"ItemReader":{}`, task(function, "")):                                                                "not taken over: a Map: ItemReader: let a step before it give the list",
		of(`,"ItemBatcher":{}`, task(function, "")):                                                               "not taken over: a Map: ItemBatcher: an agent gets one item",
		of(``, `"a":{"Type":"Pass","Next":"b"},"b":{"Type":"Pass","End":true}`):                                   "not taken over: a Map: its items take several states",
		of(``, `"a":{"Type":"Map","End":true,"Iterator":{}}`):                                                     "not taken over: a Map: its items are done by a Map, and not by a Task",
		of(``, task("arn:aws:states:::http:invoke", "")):                                                          "not taken over: a Map: the agent http does no items",
		of(``, task("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "")):                                     "not taken over: a Map: its items are completed from outside",
		of(`,"ResultWriter":{}`, task(function, "")):                                                              "not taken over: ResultWriter: the outputs stay in the jobs of the items",
		of(`,"MaxConcurrencyPath":"$.n"`, task(function, "")):                                                     "not taken over: MaxConcurrencyPath: it is written out here",
		of(``, task(function, `,"ResultSelector":{"b.$":"$.c"}`)):                                                 "not taken over: ResultSelector: the output of an item is what its agent answers",
		of(``, task(function, `,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"a"}]`)):                            "not taken over: Catch: an item that is given up has failed",
		of(``, task("arn:aws:states:::states:startExecution.sync:2", `,"Parameters":{"StateMachineArn":"${B}"}`)): "step s, which is done once for each item, by workflow",
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

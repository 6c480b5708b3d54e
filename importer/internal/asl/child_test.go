package asl

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// parcel is a machine that starts another and waits for its end, by an integration that ends so; what the other gave is
// read as this path.
func parcel(end, output string) string {
	return `{"StartAt":"Pay","States":{
		"Pay":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Pay","ResultPath":"$.paid","Next":"Pack"},
		"Pack":{"Type":"Task","Resource":"arn:aws:states:::states:startExecution` + end + `","Parameters":{
			"StateMachineArn":"arn:aws:states:eu-west-1:1:stateMachine:PackBox","Input":{"paid.$":"$.paid","AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID.$":"$$.Execution.Name"}},
			"Catch":[{"ErrorEquals":["States.TaskFailed"],"ResultPath":"$.why","Next":"Tell"}],"ResultPath":"$.packed","Next":"Send"},
		"Send":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Send","Parameters":{"box.$":"` + output + `","status.$":"$.packed.Status"},"End":true},
		"Tell":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:1:function:Tell","Parameters":{"text":"no box"},"End":true}}}`
}

const packBox = "name: pack-box\nsteps:\n  - {name: pick, agent: functions, undo: {action: put_back}}\n  - {name: close, agent: functions, undo: none, retry: {attempts: 1}, with: {paid: \"${ .input.paid }\"}}\n"

// A machine that starts another and waits for it is a workflow with a step that a job of the other does, with its input,
// output and status; where that fails, what catches it goes on.
func TestAMachineThatStartsAnotherIsAWorkflowWithAChild(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		fails  bool
		want   []string
	}{
		"sync:2":  {parcel(".sync:2", "$.packed.Output.box"), false, []string{"pay", "pick", "close", "send"}},
		"sync":    {parcel(".sync", "States.StringToJson($.packed.Output)"), false, []string{"pay", "pick", "close", "send"}},
		"a Catch": {parcel(".sync:2", "$.packed.Output.box"), true, []string{"pay", "pick", "close", "put_back", "tell"}},
	} {
		t.Run(name, func(t *testing.T) {
			imported, err := Import([]byte(c.source), Options{From: "parcel"})
			if err != nil {
				t.Fatal(err)
			}
			if imported.Report.NotTaken > 0 || !slices.Equal(imported.children(), []string{"pack-box"}) || slices.Contains(imported.Agents, makegood.AgentWorkflow) {
				t.Errorf("got children %v, agents %v\n%s", imported.children(), imported.Agents, imported.Report.Text())
			}
			f := &functions{answers: map[string][]json.RawMessage{
				"pay": {json.RawMessage(`17`)}, "pick": {json.RawMessage(`1`)}, "close": {json.RawMessage(`{"box":"b-1"}`)},
				"send": {json.RawMessage(`1`)}, "tell": {json.RawMessage(`1`)}, "put_back": {json.RawMessage(`1`)},
			}}
			if c.fails {
				f.answers["close"] = []json.RawMessage{json.RawMessage(`{"error":"Empty"}`)}
			}
			job := makegoodtest.Run(t, makegoodtest.Case{
				YAML: imported.YAML, Children: [][]byte{[]byte(packBox)}, Input: map[string]any{},
				Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{f}} },
			})
			var did []string
			for _, call := range f.calls {
				did = append(did, call.Function)
			}
			if job.ProcessState != makegood.JobProcessed || !slices.Equal(did, c.want) {
				t.Errorf("the job is %s after %v, want %v: %s\n%s", job.ProcessState, did, c.want, job.Reason, imported.YAML)
			}
			if last, want := f.calls[len(f.calls)-1].Input, `{"box":"b-1","status":"SUCCEEDED"}`; name == "sync:2" && string(last) != want {
				t.Errorf("the last function got %s, want %s", last, want)
			}
			if close := f.calls[2].Input; !c.fails && string(close) != `{"paid":17}` {
				t.Errorf("the job that packs got %s", close)
			}
		})
	}
}

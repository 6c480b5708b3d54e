package asl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
	"github.com/makegood-dev/makegood/makegoodtest"
)

var rewrite = flag.Bool("rewrite", false, "write the workflows of testdata/machines anew; read the difference")

// machineRun is one execution of a machine of testdata/machines: what its functions answer, and what it did in an interpreter
// that is not ours (reference.py).
type machineRun struct {
	Name    string                       `json:"name"`
	Input   json.RawMessage              `json:"input"`
	Answers map[string][]json.RawMessage `json:"answers"`
	// Objects are those in S3, by bucket/key.
	Objects map[string]json.RawMessage `json:"objects"`
	Want    struct {
		Status string          `json:"status"`
		Calls  []functionCall  `json:"calls"`
		Output json.RawMessage `json:"output"`
	} `json:"want"`
}

type functionCall struct {
	Function string          `json:"function"`
	Input    json.RawMessage `json:"input"`
}

// known are the runs that end otherwise here, on purpose, with why.
var known = map[string]string{
	"saga: no car":    "the undo runs from the last to the first, as the machine did, and the job ends Undone",
	"saga: no flight": "the same",
}

// functions answers as a run says, and keeps what it was asked.
type functions struct {
	answers map[string][]json.RawMessage
	mu      sync.Mutex
	calls   []functionCall
}

func (f *functions) Name() string      { return "functions" }
func (f *functions) Actions() []string { return nil }

func (f *functions) Handle(_ context.Context, task makegood.Task) (json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := 0
	for _, c := range f.calls {
		if c.Function == task.Action {
			done++
		}
	}
	if strings.HasSuffix(task.Action, "_undo") {
		return nil, nil // a stub
	}
	f.calls = append(f.calls, functionCall{task.Action, task.Input})
	script := f.answers[task.Action]
	if len(script) == 0 {
		return nil, agent.Final(errors.New("nobody asked for " + task.Action))
	}
	answer := script[min(done, len(script)-1)]
	var failed struct{ Error string }
	if json.Unmarshal(answer, &failed) == nil && failed.Error != "" {
		return nil, agent.Kind(kindOf(failed.Error), errors.New(failed.Error))
	}
	return answer, nil
}

// outcomes is the agent outcome as the importer writes it.
func outcomes() agent.Handler {
	type failure struct{ Kind, Message string }
	return agent.New(agentOutcome, agent.Do("fail", func(_ context.Context, in failure) (json.RawMessage, error) {
		return nil, agent.Final(agent.NotApplied(agent.Kind(in.Kind, errors.New(in.Message))))
	}), agent.Do("give", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		return in, nil
	}), agent.Undo("give_undo", func(context.Context, json.RawMessage, *json.RawMessage) error { return nil }))
}

// objects is the agent s3 with what a run has there.
func objects(all map[string]json.RawMessage) agent.Handler {
	type object struct{ Bucket, Key string }
	return agent.New("s3", agent.Do("get_object", func(_ context.Context, in object) (json.RawMessage, error) {
		return all[in.Bucket+"/"+in.Key], nil
	}))
}

func machines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/machines/*.asl.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no machines: %v", err)
	}
	return files
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What a machine becomes is as it was last read by somebody: the workflow, and the report.
func TestAMachineBecomesTheWorkflowThatSomebodyRead(t *testing.T) {
	for _, file := range machines(t) {
		imported, err := Import(readFile(t, file), Options{From: strings.TrimSuffix(filepath.Base(file), ".asl.json")})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got := bytes.Clone(imported.YAML)
		for _, of := range imported.itemFiles() {
			got = append(append(got, "---\n"...), of...)
		}
		got = append(got, []byte("---\n"+imported.Report.Text())...)
		golden := strings.TrimSuffix(file, ".asl.json") + ".imported.txt"
		if *rewrite {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := readFile(t, golden); !bytes.Equal(got, want) {
			t.Errorf("%s: what it becomes has changed; run go test ./importer/internal/asl -rewrite and read the difference. Got:\n%s", file, got)
		}
	}
}

// An imported workflow calls the same functions with the same input, in the same order, as its machine did in moto's
// interpreter, ends as it ended, and gives what it gave.
func TestAnImportedWorkflowDoesWhatItsMachineDid(t *testing.T) {
	for _, file := range machines(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".asl.json")
		imported, err := Import(readFile(t, file), Options{From: name})
		if err != nil {
			t.Fatal(err)
		}
		if runs := strings.Replace(file, ".asl.", ".runs.", 1); fileThere(runs) {
			var all []machineRun
			if err := json.Unmarshal(readFile(t, runs), &all); err != nil {
				t.Fatalf("%s: %v", runs, err)
			}
			for _, run := range all {
				t.Run(name+"/"+run.Name, func(t *testing.T) { compare(t, name, imported, run) })
			}
		}
	}
}

func fileThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func compare(t *testing.T, name string, imported *Imported, run machineRun) {
	f := &functions{answers: map[string][]json.RawMessage{}}
	for function, script := range run.Answers {
		f.answers[snake(function)] = script
	}
	job := ended(t, makegoodtest.Case{
		YAML: imported.YAML, Children: imported.itemFiles(), Input: run.Input,
		Services: func() makegoodtest.Services {
			return makegoodtest.Services{Agents: []agent.Handler{f, outcomes(), objects(run.Objects)}}
		},
	})
	want := run.Want.Calls
	for i := range want {
		want[i].Function = snake(want[i].Function)
	}
	if got := ordered(name, f.calls); !reflect.DeepEqual(plain(t, got), plain(t, ordered(name, want))) {
		t.Errorf("called\n%s\nwant\n%s", plain(t, got), plain(t, want))
	}
	ends := map[string]makegood.ProcessState{"SUCCEEDED": makegood.JobProcessed, "FAILED": makegood.JobError}
	state := ends[run.Want.Status]
	if known[name+": "+run.Name] != "" {
		state = makegood.JobUndone
	}
	if job.ProcessState == makegood.JobProcessing && slices.ContainsFunc(job.Children, func(child makegood.Job) bool { return child.ProcessState == makegood.JobError }) {
		job.ProcessState = makegood.JobError // a job of items waits for a person, and this one with it
	}
	if job.ProcessState != state {
		t.Errorf("the job is %s (%s), the execution %s", job.ProcessState, job.Reason, run.Want.Status)
	}
	if run.Want.Output == nil {
		return
	}
	got := given(t, imported.Report.Output, run.Input, job)
	var wanted any
	if err := json.Unmarshal(run.Want.Output, &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("the job gives %v, the execution gave %v", got, wanted)
	}
}

// ended runs a job until it has ended, or stands still, in a day.
func ended(t *testing.T, c makegoodtest.Case) (job makegoodtest.Job) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := makegoodtest.Start(t, c)
		for range 24 * 60 {
			if job = r.Job(); job.ProcessState.Finished() {
				return
			}
			r.AdvanceTime(time.Minute)
		}
	})
	return job
}

func (i *Imported) itemFiles() (all [][]byte) {
	for _, of := range i.items {
		all = append(all, of.YAML)
	}
	return all
}

// ordered puts calls of branches, which no order holds between, into the order of their names.
func ordered(machine string, calls []functionCall) []functionCall {
	calls = slices.Clone(calls)
	if strings.Contains(machine, "branches") {
		slices.SortStableFunc(calls, func(a, b functionCall) int { return cmp.Compare(a.Function, b.Function) })
	}
	return calls
}

// plain is a value as JSON has it, whatever it was written like.
func plain(t *testing.T, calls []functionCall) string {
	t.Helper()
	text, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	text, err = json.MarshalIndent(withoutCauses(value), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutCauses makes kinds of the names of errors, and leaves out what an agent says of them: that is a difference which the
// report tells.
func withoutCauses(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = withoutCauses(v[i])
		}
	case map[string]any:
		if name, is := v["Error"].(string); is && v["Cause"] != nil {
			return map[string]any{"Error": kindOf(name)}
		}
		for name := range v {
			v[name] = withoutCauses(v[name])
		}
	}
	return value
}

// given evaluates what the report says an execution gave at its end.
func given(t *testing.T, output string, input json.RawMessage, job makegoodtest.Job) any {
	t.Helper()
	program, err := jq.Compile(output)
	if err != nil {
		t.Fatalf("%s: %v", output, err)
	}
	steps := map[string]any{}
	for _, s := range job.Steps {
		one := map[string]any{"output": nil, "error": nil}
		if s.Output != nil {
			one["output"] = decoded(t, s.Output)
		}
		if s.Error != nil && s.State == makegood.StepSkipped {
			one["error"] = map[string]any{"kind": s.Error.Kind, "message": s.Error.Message}
		}
		steps[s.Name] = one
	}
	value, err := program.Run(t.Context(), map[string]any{"input": decoded(t, input), "steps": steps, "job": map[string]any{"id": job.ID}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := jq.Append(nil, value, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var result any
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func decoded(t *testing.T, text json.RawMessage) any {
	t.Helper()
	value, err := jq.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

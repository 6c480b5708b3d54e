package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// fanIn is a workflow of n branches whose join reads a path of each output.
func (w *world) fanIn(n int, path string) *workflowfile.Compiled {
	var steps, reads []string
	for i := range n {
		steps = append(steps, fmt.Sprintf("  - {name: s%d, agent: a, needs: []}\n", i))
		reads = append(reads, fmt.Sprintf(".steps.s%d.output%s", i, path))
	}
	return w.define("name: fan\nsteps:\n" + strings.Join(steps, "") +
		"  - name: join\n    agent: b\n    with: \"${ [" + strings.Join(reads, ", ") + "] | length }\"\n" +
		"    needs: [" + strings.Join(names(n), ", ") + "]\n")
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("s%d", i))
	}
	return all
}

// branches lets all branches of a job but the last be done, and returns the reply of that one.
func (w *world) branches(id string, n int, output json.RawMessage) record {
	w.t.Helper()
	var last record
	for i, name := range names(n) {
		c := w.claim(id, name)
		if last = w.says(id, name, c, output); i < n-1 {
			w.handle(last)
		}
	}
	return last
}

// list is a JSON object of so many bytes, of values that take much memory, with an id.
func list(bytes int) json.RawMessage {
	return json.RawMessage(`{"id":1,"list":[` + strings.Repeat("0,", bytes/2-10) + `0]}`)
}

// A fan-in that is legal must not kill a function of 256 MB, again and again, with its batch: 100 outputs of
// 256 KB took 780 MB. What is asked for is read one by one, and only what is named of each is kept.
func TestALargeFanInIsDoneInLittleMemory(t *testing.T) {
	const branches, size = 100, makegood.MaxPayloadBytes
	w := newWorld(t)
	w.submit(w.fanIn(branches, ".id"), "j")
	last := w.branches("j", branches, list(size))
	var input string
	w.deny = func(_ string, m queue.Message) error {
		task, err := wire.DecodeTask(m.Body)
		input = string(task.Input)
		return err
	}
	w.forget()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	failed := w.handle(last)
	runtime.ReadMemStats(&after)
	if failed != nil || input != "100" {
		t.Errorf("wants again %v, and join's input is %q, want none and 100", failed, input)
	}
	w.checkCalls(map[string]int{"Payload": branches - 1})
	// Each output is read twice over by the store; as a whole, decoded, they are 780 MB.
	if made := after.TotalAlloc - before.TotalAlloc; made > 4*branches*size {
		t.Errorf("%d MB were allocated, want at most %d", made>>20, 4*branches*size>>20)
	}
}

// Beyond the limit the step fails for good, and says why; nothing is tried again for it.
func TestAFanInThatReadsTooMuchFailsItsStepWithTheReason(t *testing.T) {
	const branches = 40
	w := newWorld(t)
	w.submit(w.fanIn(branches, ""), "j")
	if failed := w.handle(w.branches("j", branches, text(makegood.MaxPayloadBytes, "x"))); failed != nil {
		t.Errorf("wants again %v, want none", failed)
	}
	job := w.job("j")
	step, _ := job.Step("join")
	const want = `step "join": its expressions read more than 8388608 bytes of the outputs of other steps`
	if job.ProcessState != makegood.JobError || step.Forward.Error == nil || step.Forward.Error.Message != want {
		t.Errorf("the job is %s, join says %v, want Error and %s", job.ProcessState, step.Forward.Error, want)
	}
}

// The jobs of a batch are moved at the same time, and each may read much. They do that one after the other.
func TestEvaluationsOfABatchTakeTurns(t *testing.T) {
	const jobs, branches = 6, 8
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Evaluations = 1 })
	compiled := w.fanIn(branches, ".id")
	var batch []record
	for i := range jobs {
		id := fmt.Sprintf("j%d", i)
		w.submit(compiled, id)
		batch = append(batch, w.branches(id, branches, list(makegood.MaxPayloadBytes)))
	}
	var reads []string
	w.strike = func(op, job string) faultstore.Effect {
		if op == "Payload" {
			w.mu.Lock()
			defer w.mu.Unlock()
			reads = append(reads, job)
		}
		return faultstore.None
	}
	if failed := w.handle(batch...); failed != nil {
		t.Errorf("wants again %v, want none", failed)
	}
	seen := map[string]int{}
	for i, job := range reads {
		if seen[job]++; seen[job] > 1 && reads[i-1] != job {
			t.Errorf("read %d is of %s, and %s came between: %v", i, job, reads[i-1], reads)
			break
		}
	}
	if len(reads) < jobs*(branches-1) {
		t.Errorf("%d outputs were read, want %d at least", len(reads), jobs*(branches-1))
	}
}

// damaged are payloads of which nothing can be read any more.
type damaged struct{ store.Payloads }

func (damaged) Payload(context.Context, string, string) ([]byte, error) { return []byte("{"), nil }

// A step that was opened by a version with other limits cannot be sent again. No time will mend that, so the
// event does not come again for it.
func TestAnOpenStepWhoseExpressionsFailNowFailsForGood(t *testing.T) {
	w := newWorld(t)
	compiled := w.define("name: one\nsteps: [{name: first, agent: a, startBy: 10s, with: \"${ .input.id }\"}]")
	sub := scheduler.Submission{ID: "j", Definition: compiled.Hash, Input: list(1000)}
	if _, _, err := w.s.Submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	w.use(func(c *scheduler.Config) { c.Payloads = damaged{c.Payloads} })
	if failed := w.handle(w.deadline("j")); failed != nil {
		t.Errorf("wants again %v, want none", failed)
	}
	job := w.job("j")
	step, _ := job.Step("first")
	const want = `the task cannot be sent: step "first": with: the job's input: not JSON: unexpected EOF`
	if job.ProcessState != makegood.JobError || step.Forward.Error == nil || step.Forward.Error.Message != want {
		t.Errorf("the job is %s, its step says %v, want Error and %s", job.ProcessState, step.Forward.Error, want)
	}
}

// Whoever has no time to wait for a turn, or to evaluate, has learned nothing of the expression.
func TestOurTimeThatEndsIsNoFactAboutAnExpression(t *testing.T) {
	w := newWorld(t)
	w.submit(w.fanIn(2, ".id"), "j")
	last := w.branches("j", 2, list(1000))
	ctx, cancel := context.WithCancel(t.Context())
	w.strike = func(op, _ string) faultstore.Effect {
		if op == "Payload" {
			cancel()
		}
		return faultstore.None
	}
	response, err := w.s.HandleSQS(ctx, events.SQSEvent{Records: []record{last}})
	if err != nil || len(response.BatchItemFailures) != 1 {
		t.Errorf("got %v, %v, want the reply again", response.BatchItemFailures, err)
	}
	w.strike = nil
	if failed := w.handle(last); failed != nil || w.open("j", "join") != 1 {
		t.Errorf("delivered again: wants again %v, join#%d, want none and join#1", failed, w.open("j", "join"))
	}
}

package wire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/wire"
)

func remembered(i int) makegood.Task {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return makegood.Task{
		Job: fmt.Sprint("job-", i), Workflow: "order", Step: "pay", Round: 1, Attempt: 1, Agent: "bank", Action: "charge",
		Input: json.RawMessage(`{"n":1}`), Key: "k", SentAt: at, StartBy: at, Timeout: makegood.Second, ReplyTo: "events",
		Birth: "b", ClaimUntil: at, Token: "t",
	}
}

// A message is read as it was written, remembered or not, once or twice, and its reader may write into it.
func TestAMessageSaysTheSameRememberedOrNot(t *testing.T) {
	for name, m := range map[string]*wire.Memory{"without a memory": nil, "with one": wire.NewMemory(true)} {
		t.Run(name, func(t *testing.T) {
			task := remembered(1)
			body, err := m.EncodeTask(task)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := m.DecodeTask(body)
				if err != nil || !reflect.DeepEqual(got, task) {
					t.Errorf("task: got %+v, %v, want %+v", got, err, task)
				}
				clear(got.Input)
			}
			said := job.StepSucceeded{Reply: job.Reply{Step: "pay", Attempt: 1}, Output: wire.Inline(json.RawMessage(`[1]`))}
			if body, err = m.EncodeReply("job-1", said, job.Spent{}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := m.DecodeIncoming(body)
				if want := (wire.Incoming{Job: "job-1", Event: said}); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("reply: got %+v, %v, want %+v", got, err, want)
				}
			}
		})
	}
}

// A memory does not grow with messages that are never read, and those are read all the same.
func TestAMemoryIsBounded(t *testing.T) {
	m := wire.NewMemory(true)
	var first string
	for i := range 20_000 {
		body, err := m.EncodeTask(remembered(i))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = body
		}
	}
	if n := m.Len(); n > 2*wire.MaxRemembered {
		t.Errorf("remembered: got %d messages, want at most %d", n, 2*wire.MaxRemembered)
	}
	if got, err := m.DecodeTask(first); err != nil || got.Job != "job-0" {
		t.Errorf("a forgotten task: got %+v, %v, want that of job-0", got, err)
	}
}

// A long message is not remembered: thousands that are never read would take gigabytes.
func TestAMemoryRemembersNoLongMessage(t *testing.T) {
	m := wire.NewMemory(true)
	task := remembered(1)
	task.Input = json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)
	body, err := m.EncodeTask(task)
	if err != nil || m.Len() != 0 {
		t.Errorf("remembered: got %d messages, %v, want none", m.Len(), err)
	}
	if got, err := m.DecodeTask(body); err != nil || !reflect.DeepEqual(got, task) {
		t.Errorf("a long task: got one of %d bytes, %v, want what was written", len(got.Input), err)
	}
}

// A character that no queue takes is an escape in the message, remembered or not.
func TestACharacterThatNoQueueTakesIsReadTheSameEachTime(t *testing.T) {
	m := wire.NewMemory(true)
	task := remembered(1)
	task.Input = json.RawMessage("\"\uFFFE\"")
	said := job.StepSucceeded{Reply: job.Reply{Step: "pay", Attempt: 1}, Output: wire.Inline(task.Input)}
	asked, err := m.EncodeTask(task)
	if err != nil {
		t.Fatal(err)
	}
	replied, err := m.EncodeReply("job-1", said, job.Spent{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := m.DecodeTask(asked); err != nil || string(got.Input) != `"\ufffe"` {
			t.Errorf("task: got the input %s, %v, want an escape", got.Input, err)
		}
		in, err := m.DecodeIncoming(replied)
		if got := in.Event.(job.StepSucceeded).Output; err != nil || string(got.Inline) != `"\ufffe"` {
			t.Errorf("reply: got the output %s, %v, want an escape", got.Inline, err)
		}
	}
}

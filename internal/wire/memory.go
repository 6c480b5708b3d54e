package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// maxRememberedBytes is how long a message is at most that is remembered. Those that are never asked for stay: so many
// of the longest that a queue takes would be gigabytes.
const maxRememberedBytes = 8 << 10

// maxRemembered is how many messages a Memory remembers at least, where so many are on their way, and half of the most.
const maxRemembered = 4096

// Memory remembers what messages say that this process has written for itself, so that it need not read them: tasks and
// successes, by their whole text. It forgets each when it is asked for, and those that no receiver asks for in time. A
// nil Memory remembers none.
type Memory struct {
	mu           sync.Mutex
	recent, past map[string]any
	// check compares what is remembered with what the text says, for tests.
	check bool
}

// NewMemory returns an empty Memory. With check it reads each message all the same, and panics where that says
// something else.
func NewMemory(check bool) *Memory { return &Memory{check: check, recent: map[string]any{}} }

// EncodeTask is EncodeTask, and remembers the task, unless it is an undo. Its agent may write into the input that is
// read.
func (m *Memory) EncodeTask(t makegood.Task) (string, error) {
	body, err := EncodeTask(t)
	if m != nil && err == nil && t.Undo == nil {
		t.Input = slices.Clone(t.Input)
		m.keep(body, t)
	}
	return body, err
}

// EncodeReply is EncodeReply, and remembers a success.
func (m *Memory) EncodeReply(id string, e job.Event, spent job.Spent) (string, error) {
	body, err := EncodeReply(id, e, spent)
	if said, ok := e.(job.StepSucceeded); ok && m != nil && err == nil && !spent.Counted() && said.Output.Ref == "" {
		m.keep(body, Incoming{Job: id, Event: e})
	}
	return body, err
}

// DecodeTask is DecodeTask.
func (m *Memory) DecodeTask(body string) (makegood.Task, error) {
	if t, ok := take(m, body, DecodeTask); ok {
		return t, nil
	}
	return DecodeTask(body)
}

// DecodeIncoming is DecodeIncoming.
func (m *Memory) DecodeIncoming(body string) (Incoming, error) {
	if in, ok := take(m, body, DecodeIncoming); ok {
		return in, nil
	}
	return DecodeIncoming(body)
}

func (m *Memory) keep(body string, what any) {
	if len(body) > maxRememberedBytes || strings.Contains(body, `\uff`) {
		return // Where a character was written as an escape (refusedRaw), the reader gets other bytes than the writer had.
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.recent) >= maxRemembered {
		m.recent, m.past = make(map[string]any, maxRemembered), m.recent
	}
	m.recent[body] = what
}

// take returns what a message says, if that is remembered, and forgets it.
func take[T any](m *Memory, body string, read func(string) (T, error)) (what T, ok bool) {
	if m == nil {
		return what, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range []map[string]any{m.recent, m.past} {
		if what, ok = all[body].(T); !ok {
			continue
		}
		delete(all, body)
		if m.check {
			if says, err := read(body); err != nil || !reflect.DeepEqual(says, what) {
				panic(fmt.Sprintf("wire: remembered %+v, but the message says %+v, %v", what, says, err))
			}
		}
		return what, true
	}
	return what, false
}

package fenced_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/fenced"
	"github.com/makegood-dev/makegood/internal/limits"
)

// refused holds an error to be final, and to say that nothing was applied, and why.
func refused(t *testing.T, what string, err error, why string) {
	t.Helper()
	if f := agent.Failure(err); err == nil || f.Retryable || f.Applied != makegood.AppliedNo || !strings.Contains(f.Message, why) {
		t.Errorf("%s: got %v, want a final error that applied nothing and says %q", what, err, why)
	}
}

func TestEffectsAreKeptForEverOrForTheLeastTime(t *testing.T) {
	for keep, ok := range map[time.Duration]bool{0: true, limits.MinKeepEffect: true, limits.MinKeepEffect - 1: false, 1: false, -1: false} {
		if err := fenced.CheckKeep(keep); (err == nil) != ok || !ok && !strings.Contains(err.Error(), limits.MinKeepEffect.String()) {
			t.Errorf("%v: got %v, want taken: %v", keep, err, ok)
		}
	}
}

func TestAnOutputIsKeptAsTheActionMeantIt(t *testing.T) {
	got, err := fenced.Write(map[string]string{"a": "<&>"})
	if err != nil || string(got) != `{"a":"<&>"}` {
		t.Errorf("got %q, %v", got, err)
	}
	most := strings.Repeat("x", makegood.MaxPayloadBytes-2)
	if got, err = fenced.Write(most); err != nil || len(got) != makegood.MaxPayloadBytes {
		t.Errorf("as large as may be: got %d bytes, %v", len(got), err)
	}
	deep := func(n int) json.RawMessage { return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err = fenced.Write(deep(500)); err != nil {
		t.Errorf("as deep as may be: got %v", err)
	}
	for why, output := range map[string]any{"the limit is 262144": most + "x", "nested deeper than 500": deep(501), "write the output as JSON": make(chan int)} {
		_, err := fenced.Write(output)
		refused(t, why, err, why)
	}
}

// What was kept by an action that gave something else cannot be read: for good, and the effect stands.
func TestAnOutputThatCannotBeReadIsFinal(t *testing.T) {
	task := makegood.Task{Key: "j/pay/1"}
	if n, err := fenced.Read[int](agentctx.NewContext(t.Context(), task, nil), json.RawMessage(`7`)); err != nil || n != 7 {
		t.Errorf("got %d, %v", n, err)
	}
	_, err := fenced.Read[int](agentctx.NewContext(t.Context(), task, nil), json.RawMessage(`"seven"`))
	if f := agent.Failure(err); f.Retryable || f.Applied != makegood.AppliedUnknown || !strings.Contains(f.Message, "under j/pay/1") {
		t.Errorf("got %+v, want a final error that names the key", f)
	}
	task.Key, task.Undo = "j/pay/1/undo", &makegood.UndoTask{ForwardKey: "j/pay/1"}
	if n, err := fenced.ReadForUndo[int](agentctx.NewContext(t.Context(), task, nil), json.RawMessage(`7`)); err != nil || n != 7 {
		t.Errorf("for an undo: got %d, %v", n, err)
	}
	_, err = fenced.ReadForUndo[int](agentctx.NewContext(t.Context(), task, nil), json.RawMessage(`"seven"`))
	refused(t, "for an undo", err, "under j/pay/1:")
}

func TestWhatFailsBehindAFenceIsToldAsItIs(t *testing.T) {
	if err := fenced.Failed(nil); err != nil {
		t.Errorf("got %v", err)
	}
	declined := agent.RetryAfter(time.Minute, errors.New("declined"))
	if err := fenced.Failed(declined); !errors.Is(err, declined) {
		t.Errorf("got %v, want it as it is", err)
	}
	err := fenced.Failed(fmt.Errorf("asked: %w", agent.Wait(time.Now())))
	refused(t, "a wait", err, "agent.Wait")
	if _, waits := agentctx.Waits(err); waits {
		t.Errorf("got %v, which waits", err)
	}
}

// Each row: what is found under each key, the newest first, and how the undo ends.
func TestAnUndoGoesThroughAllKeysTheNewestFirst(t *testing.T) {
	const none, done, undone, tomb = fenced.None, fenced.Done, fenced.Undone, fenced.Refused
	for _, c := range []struct {
		repeats int
		outcome makegood.Outcome
		found   []fenced.State
		judged  []fenced.State
		missing bool
		applied makegood.Applied
	}{
		{0, makegood.OutcomeDone, []fenced.State{done}, []fenced.State{done}, false, ""},
		{0, makegood.OutcomeDone, []fenced.State{none}, []fenced.State{fenced.Missing}, true, makegood.AppliedNo},
		{0, makegood.OutcomeUnknown, []fenced.State{none}, []fenced.State{none}, false, ""},
		{0, makegood.OutcomeDone, []fenced.State{undone}, []fenced.State{undone}, false, ""},
		{0, makegood.OutcomeDone, []fenced.State{tomb}, []fenced.State{tomb}, false, ""},
		{2, makegood.OutcomeDone, []fenced.State{done, done, done}, []fenced.State{done, done, done}, false, ""},
		{2, makegood.OutcomeUnknown, []fenced.State{none, done, undone}, []fenced.State{none, done, undone}, false, ""},
		{2, makegood.OutcomeDone, []fenced.State{none, done, done}, []fenced.State{fenced.Missing, done, done}, true, makegood.AppliedUnknown},
		{2, makegood.OutcomeUnknown, []fenced.State{none, none, done}, []fenced.State{none, fenced.Missing, done}, true, makegood.AppliedUnknown},
		{2, makegood.OutcomeUnknown, []fenced.State{none, undone, none}, []fenced.State{none, undone, fenced.Missing}, true, makegood.AppliedNo},
		{2, makegood.OutcomeDone, []fenced.State{done, undone, none}, []fenced.State{done, undone, fenced.Missing}, true, makegood.AppliedUnknown},
	} {
		task := makegood.Task{Undo: &makegood.UndoTask{ForwardKey: "j/pay/1", Repeats: c.repeats, Outcome: c.outcome}}
		u, err := fenced.NewUndoing(task)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for i, found := range c.found {
			key, ok := u.Key()
			if keys = append(keys, key); !ok {
				t.Fatalf("%+v: got %d keys", c, i)
			}
			judged := u.Judge(found)
			if judged != c.judged[i] {
				t.Errorf("%+v: key %s counts as %q, want %q", c, key, judged, c.judged[i])
			}
			u.Next(judged)
		}
		if key, more := u.Key(); more || !slices.Equal(keys, task.Undo.Keys()) {
			t.Errorf("%+v: got %v and then %s, want %v", c, keys, key, task.Undo.Keys())
		}
		err = u.Err()
		if errors.Is(err, fenced.ErrMissing) != c.missing || c.missing && agent.Failure(err).Applied != c.applied || !c.missing && err != nil {
			t.Errorf("%+v: got %v, want missing: %v", c, err, c.missing)
		}
	}
	_, err := fenced.NewUndoing(makegood.Task{Step: "pay"})
	refused(t, "no undo", err, `step "pay" is no undo`)
	if !errors.Is(err, fenced.ErrTask) {
		t.Errorf("got %v, want ErrTask", err)
	}
}

package dynamofence_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/dynamofence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/limits"
)

// repeated returns the attempt that does the n-th repetition of the step, and undoOf the undo of a step that was repeated twice.
func repeated(n int) makegood.Task {
	task := forward(n)
	if n > 1 {
		task.Key = fmt.Sprintf("%s/%d", task.Key, n)
	}
	return task
}

func undoOf(attempt int, outcome makegood.Outcome) makegood.Task {
	task := backward(attempt, outcome)
	task.Undo.Repeats = 2
	return task
}

// undone returns what an undo was called for, in that order, and whether there was anything. The undo of what fails names fails.
func (b *bank) undone(task makegood.Task, fails string) (lines []string, happened bool, err error) {
	b.claim(task)
	happened, err = b.fence.TransactUndo(in(task), func(done dynamofence.Effect) ([]types.TransactWriteItem, error) {
		r := receipt{}
		if err := json.Unmarshal(done.Output, &r); err != nil || r.ID == fails {
			return nil, errors.Join(errors.New("broken"), err)
		}
		lines = append(lines, r.ID)
		return []types.TransactWriteItem{line("back-" + r.ID)}, nil
	})
	return lines, happened, err
}

func TestEachEffectOfARepeatedStepIsUndoneTheNewestFirst(t *testing.T) {
	b := newBank(t)
	for n := 1; n <= 3; n++ {
		if _, err := b.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, happened, err := b.undone(undoOf(4, makegood.OutcomeDone), "line-2"); err == nil || !happened || !slices.Equal(got, []string{"line-3"}) {
		t.Errorf("got an undo of %v, %v, %v, want one of the third and an error", got, happened, err)
	}
	b.want(4)
	if got, happened, err := b.undone(undoOf(5, makegood.OutcomeDone), ""); err != nil || !happened || !slices.Equal(got, []string{"line-2", "line-1"}) {
		t.Errorf("got an undo of %v, %v, %v, want one of the other two", got, happened, err)
	}
	b.want(6)
	if got, happened, err := b.undone(undoOf(6, makegood.OutcomeDone), ""); err != nil || !happened || len(got) > 0 {
		t.Errorf("once more: got an undo of %v, %v, %v, want none", got, happened, err)
	}
	for n := 1; n <= 3; n++ {
		late := repeated(n)
		late.Attempt = 7
		if _, err := b.pay(late); !errors.Is(err, dynamofence.ErrUndone) {
			t.Errorf("%s comes in late: got %v, want ErrUndone", late.Key, err)
		}
	}
	b.want(6)
}

// The third repetition is under way when its attempt falls silent: it never happens.
func TestTheLastRepetitionIsRefusedIfItNeverHappened(t *testing.T) {
	b := newBank(t)
	for n := 1; n <= 2; n++ {
		if _, err := b.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, happened, err := b.undone(undoOf(4, makegood.OutcomeUnknown), ""); err != nil || !happened || !slices.Equal(got, []string{"line-2", "line-1"}) {
		t.Errorf("got an undo of %v, %v, %v, want one of what was done", got, happened, err)
	}
	if _, err := b.pay(repeated(3)); !errors.Is(err, dynamofence.ErrUndone) {
		t.Errorf("the third comes in late: got %v, want ErrUndone", err)
	}
	b.want(4)
}

// The second of three is not here, though the step was begun again after it: the others are undone, and the loss is told of.
func TestAMissingRepetitionIsToldOfAndTheOthersAreUndone(t *testing.T) {
	b := newBank(t)
	for _, n := range []int{1, 3} {
		if _, err := b.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	for attempt := 4; attempt <= 5; attempt++ {
		_, happened, err := b.undone(undoOf(attempt, makegood.OutcomeUnknown), "")
		if !errors.Is(err, dynamofence.ErrMissing) || !happened {
			t.Errorf("attempt %d: got %v, %v, want ErrMissing", attempt, happened, err)
		}
		b.want(4)
	}
}

// What a fence keeps expires so long after the undo, and not after the effect: the mark is there for each retry.
func TestTheMarkOfAnUndoIsKeptAsLongFromTheUndoOn(t *testing.T) {
	for _, happened := range []bool{true, false} {
		b := newBank(t)
		now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		fence, err := dynamofence.New(dynamofence.Config{
			Client: b.tables, Effects: "effects", Keep: limits.MinKeepEffect, Now: func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		b.fence = fence
		outcome := makegood.OutcomeUnknown
		if happened {
			outcome = makegood.OutcomeDone
			if _, err := b.pay(forward(1)); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(limits.MinKeepEffect)
		if err := b.refund(backward(2, outcome)); err != nil {
			t.Fatal(err)
		}
		mark := b.items["effects effect#j/pay/1#b "]
		if got, want := asText(mark["ExpiresAt"]), fmt.Sprint(now.Add(limits.MinKeepEffect).Unix()+1); got != want {
			t.Errorf("happened %v: the mark expires at %s, want %s", happened, got, want)
		}
		if asText(mark["Attempt"]) != "2" || asText(mark["LockedBy"]) != "i:2" || asText(mark["At"]) != fmt.Sprint(now.UnixMilli()) {
			t.Errorf("happened %v: got %v, want who undid it, and when", happened, mark)
		}
	}
}

func TestAnUndoThatAnswersWaitIsRefused(t *testing.T) {
	b := newBank(t)
	if _, err := b.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	b.claim(backward(2, makegood.OutcomeDone))
	err := dynamofence.Undo(in(backward(2, makegood.OutcomeDone)), b.fence, func(receipt) ([]types.TransactWriteItem, error) {
		return []types.TransactWriteItem{line("back")}, agent.Wait(time.Now())
	})
	if _, waits := agentctx.Waits(err); waits || agent.Failure(err).Retryable || !strings.Contains(err.Error(), "agent.Wait") {
		t.Errorf("got %v, which waits: %v, want a final failure that says why", err, waits)
	}
	b.want(1)
}

// An action that waits for somebody returns Wait when its fence has returned: the effect stands while the step waits, each attempt after it waits,
// too, and does nothing more, and its undo takes it back.
func TestAnEffectStandsWhileItsStepWaits(t *testing.T) {
	b := newBank(t)
	ask := func(task makegood.Task) error {
		if got, err := b.pay(task); err != nil || got.ID != "line-1" {
			t.Errorf("attempt %d: got %v, %v, want the effect of the first", task.Attempt, got, err)
		}
		return agent.Wait(time.Now().Add(time.Duration(task.Attempt) * time.Hour))
	}
	for attempt := 1; attempt <= 2; attempt++ {
		if _, waits := agentctx.Waits(ask(forward(attempt))); !waits {
			t.Errorf("attempt %d does not wait", attempt)
		}
		b.want(1)
	}
	if err := b.refund(backward(3, makegood.OutcomeUnknown)); err != nil {
		t.Error(err)
	}
	b.want(2)
}

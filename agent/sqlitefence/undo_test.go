package sqlitefence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/limits"
)

// repeated returns the attempt that does the n-th repetition of the step, and undoOf the undo of a step that was repeated n times.
func repeated(n int) makegood.Task {
	task := forward(n)
	if n > 1 {
		task.Key = fmt.Sprintf("%s/%d", task.Key, n)
	}
	return task
}

func undoOf(repeats, attempt int, outcome makegood.Outcome) makegood.Task {
	task := backward(attempt, outcome)
	task.Undo.Repeats = repeats
	return task
}

// undone returns the attempts that an undo was called for, in that order. The undo of attempt fails fails.
func (l *ledger) undone(task makegood.Task, fails int) (attempts []int, err error) {
	err = sqlitefence.Undo(agentctx.NewContext(context.Background(), task, nil), l.fence, func(tx *sql.Tx, done receipt) error {
		if done.Attempt == fails {
			return errors.New("broken")
		}
		attempts = append(attempts, done.Attempt)
		_, err := tx.Exec(`INSERT INTO ledger(step, amount) VALUES(?, -5)`, task.Job)
		return err
	})
	return attempts, err
}

func TestEachEffectOfARepeatedStepIsUndoneTheNewestFirst(t *testing.T) {
	l := ownFile(t)
	for n := 1; n <= 3; n++ {
		if _, err := l.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.undone(undoOf(2, 4, makegood.OutcomeDone), 0); err != nil || !slices.Equal(got, []int{3, 2, 1}) {
		t.Errorf("got an undo of %v, %v, want one of each, the newest first", got, err)
	}
	l.want(6, 0)
	if got, err := l.undone(undoOf(2, 5, makegood.OutcomeDone), 0); err != nil || len(got) > 0 {
		t.Errorf("once more: got an undo of %v, %v, want none", got, err)
	}
	for n := 1; n <= 3; n++ {
		late := repeated(n)
		late.Attempt = 6
		if _, err := l.pay(late); !errors.Is(err, sqlitefence.ErrUndone) {
			t.Errorf("%s comes in late: got %v, want ErrUndone", late.Key, err)
		}
	}
	l.want(6, 0)
}

// The third repetition is under way when its attempt falls silent: it is undone if it was done, and else it never happens.
func TestTheLastRepetitionIsRefusedIfItNeverHappened(t *testing.T) {
	l := ownFile(t)
	for n := 1; n <= 2; n++ {
		if _, err := l.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.undone(undoOf(2, 4, makegood.OutcomeUnknown), 0); err != nil || !slices.Equal(got, []int{2, 1}) {
		t.Errorf("got an undo of %v, %v, want one of what was done", got, err)
	}
	late := repeated(3)
	late.Attempt = 5
	if _, err := l.pay(late); !errors.Is(err, sqlitefence.ErrUndone) {
		t.Errorf("the third comes in late: got %v, want ErrUndone", err)
	}
	l.want(4, 0)
}

// What was undone stays so, and the next attempt goes on from there.
func TestAnUndoOfARepeatedStepGoesOnWhereItFailed(t *testing.T) {
	l := ownFile(t)
	for n := 1; n <= 3; n++ {
		if _, err := l.pay(repeated(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.undone(undoOf(2, 4, makegood.OutcomeDone), 2); err == nil || !slices.Equal(got, []int{3}) {
		t.Errorf("got an undo of %v, %v, want one of the third and an error", got, err)
	}
	l.want(4, 10)
	if got, err := l.undone(undoOf(2, 5, makegood.OutcomeDone), 0); err != nil || !slices.Equal(got, []int{2, 1}) {
		t.Errorf("got an undo of %v, %v, want one of the other two", got, err)
	}
	l.want(6, 0)
}

// One of three is not here, though the job says that it was done: the others are undone, and the loss is told of, each time.
func TestAMissingRepetitionIsToldOfAndTheOthersAreUndone(t *testing.T) {
	for _, c := range []struct {
		missing int
		outcome makegood.Outcome
	}{{3, makegood.OutcomeDone}, {2, makegood.OutcomeDone}, {1, makegood.OutcomeUnknown}} {
		l := ownFile(t)
		for n := 1; n <= 3; n++ {
			if n == c.missing {
				continue
			}
			if _, err := l.pay(repeated(n)); err != nil {
				t.Fatal(err)
			}
		}
		for attempt := 4; attempt <= 5; attempt++ {
			if _, err := l.undone(undoOf(2, attempt, c.outcome), 0); !errors.Is(err, sqlitefence.ErrMissing) {
				t.Errorf("without %d, attempt %d: got %v, want ErrMissing", c.missing, attempt, err)
			}
			l.want(4, 0)
		}
	}
}

// An error rolls back, and a step must not wait for an answer to what is not there.
func TestAnEffectThatAnswersWaitIsRefused(t *testing.T) {
	l := ownFile(t)
	wait := agent.Wait(time.Now().Add(time.Hour))
	refused := func(what string, err error) {
		t.Helper()
		_, waits := agentctx.Waits(err)
		if f := agent.Failure(err); waits || f.Retryable || f.Applied != makegood.AppliedNo || !strings.Contains(f.Message, "agent.Wait") {
			t.Errorf("%s: got %v, which waits: %v, want a final failure that applied nothing and says why", what, err, waits)
		}
	}
	_, err := l.payOr(forward(1), wait)
	refused("do", err)
	l.want(0, 0)
	if _, err = l.pay(forward(2)); err != nil {
		t.Fatal(err)
	}
	err = sqlitefence.Undo(agentctx.NewContext(t.Context(), backward(3, makegood.OutcomeDone), nil), l.fence, func(tx *sql.Tx, _ receipt) error {
		_, err := tx.Exec(`DELETE FROM ledger`)
		return errors.Join(wait, err)
	})
	refused("undo", err)
	l.want(1, 5)
}

// What a fence keeps expires so long after the undo, and not after the effect: the mark is there for each retry.
func TestTheMarkOfAnUndoIsKeptAsLongFromTheUndoOn(t *testing.T) {
	for _, happened := range []bool{true, false} {
		l := openLedger(t, filepath.Join(t.TempDir(), "own.db"), limits.MinKeepEffect)
		outcome := makegood.OutcomeUnknown
		if happened {
			outcome = makegood.OutcomeDone
			if _, err := l.pay(forward(1)); err != nil {
				t.Fatal(err)
			}
		}
		l.now = l.now.Add(limits.MinKeepEffect)
		if err := l.refund(backward(2, outcome)); err != nil {
			t.Fatal(err)
		}
		_, undone := l.lines()
		for attempt := 3; attempt <= 4; attempt++ {
			l.now = l.now.Add(limits.MinKeepEffect / 2)
			other := forward(1)
			other.Job, other.Key = fmt.Sprint("k", attempt), fmt.Sprintf("k%d/pay/1", attempt)
			if _, err := l.pay(other); err != nil { // And what has expired is swept.
				t.Fatal(err)
			}
			if err := l.refund(backward(attempt, outcome)); err != nil {
				t.Errorf("happened %v, attempt %d of the undo: got %v", happened, attempt, err)
			}
			if _, err := l.pay(forward(attempt)); !errors.Is(err, sqlitefence.ErrUndone) {
				t.Errorf("happened %v, the forward call after attempt %d: got %v, want ErrUndone", happened, attempt, err)
			}
		}
		if _, sum := l.lines(); undone != 0 || sum != 10 {
			t.Errorf("happened %v: the ledger comes to %d after the undo and %d at the end, want 0 and 10 of others", happened, undone, sum)
		}
	}
}

// An action that waits for somebody returns Wait when its fence has returned: the effect stands while the step waits, each attempt after it waits,
// too, and does nothing more, and its undo takes it back.
func TestAnEffectStandsWhileItsStepWaits(t *testing.T) {
	l := ownFile(t)
	ask := func(task makegood.Task) error {
		if got, err := l.pay(task); err != nil || got.Attempt != 1 {
			t.Errorf("attempt %d: got %v, %v, want the effect of the first", task.Attempt, got, err)
		}
		return agent.Wait(time.Now().Add(time.Duration(task.Attempt) * time.Hour))
	}
	for attempt := 1; attempt <= 2; attempt++ {
		if _, waits := agentctx.Waits(ask(forward(attempt))); !waits {
			t.Errorf("attempt %d does not wait", attempt)
		}
		l.want(1, 5)
	}
	if err := l.refund(backward(3, makegood.OutcomeUnknown)); err != nil {
		t.Error(err)
	}
	l.want(2, 0)
}

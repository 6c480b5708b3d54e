package sqlitefence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the caller's driver

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

type receipt struct {
	Attempt int
	Note    string `json:",omitempty"`
}

// ledger is a table of a user's, with a fence.
type ledger struct {
	t     *testing.T
	db    *sql.DB
	fence *sqlitefence.Fence
	now   time.Time
}

func openLedger(t *testing.T, file string, keep time.Duration) *ledger {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`CREATE TABLE ledger(step TEXT NOT NULL, amount INTEGER NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	l := &ledger{t: t, db: db, now: time.Now()}
	if l.fence, err = sqlitefence.New(sqlitefence.Config{DB: db, Keep: keep, Now: func() time.Time { return l.now }}); err != nil {
		t.Fatal(err)
	}
	return l
}

func ownFile(t *testing.T) *ledger {
	return openLedger(t, filepath.Join(t.TempDir(), "own.db"), 0)
}

func forward(attempt int) makegood.Task {
	return makegood.Task{
		Job: "j", Birth: "b", Step: "pay", Agent: "bank", Round: 1, Attempt: attempt, Key: "j/pay/1",
		Claim: makegood.TaskClaim{LockedBy: fmt.Sprintf("i:%d", attempt)},
	}
}

func backward(attempt int, outcome makegood.Outcome) makegood.Task {
	task := forward(attempt)
	task.Key, task.Undo = "j/pay/1/undo", &makegood.UndoTask{ForwardKey: "j/pay/1", Outcome: outcome}
	return task
}

func (l *ledger) pay(task makegood.Task) (receipt, error) {
	return l.payOr(task, nil)
}

func (l *ledger) payOr(task makegood.Task, fails error) (receipt, error) {
	return sqlitefence.Do(agentctx.NewContext(context.Background(), task, nil), l.fence, func(tx *sql.Tx) (receipt, error) {
		if _, err := tx.Exec(`INSERT INTO ledger(step, amount) VALUES(?, 5)`, task.Job); err != nil {
			return receipt{}, err
		}
		return receipt{Attempt: task.Attempt}, fails
	})
}

func (l *ledger) refund(task makegood.Task) error {
	return sqlitefence.Undo(agentctx.NewContext(context.Background(), task, nil), l.fence, func(tx *sql.Tx, done receipt) error {
		if done.Attempt == 0 {
			return errors.New("the undo was not told what was done")
		}
		_, err := tx.Exec(`INSERT INTO ledger(step, amount) VALUES(?, -5)`, task.Job)
		return err
	})
}

func (l *ledger) lines() (n, sum int) {
	l.t.Helper()
	if err := l.db.QueryRow(`SELECT count(*), coalesce(sum(amount), 0) FROM ledger`).Scan(&n, &sum); err != nil {
		l.t.Fatal(err)
	}
	return n, sum
}

func (l *ledger) want(lines, sum int) {
	l.t.Helper()
	if n, got := l.lines(); n != lines || got != sum {
		l.t.Errorf("the ledger has %d lines that come to %d, want %d and %d", n, got, lines, sum)
	}
}

func TestALaterAttemptIsAnsweredWithWhatTheFirstStored(t *testing.T) {
	l := ownFile(t)
	for attempt := 1; attempt <= 3; attempt++ {
		if got, err := l.pay(forward(attempt)); err != nil || got.Attempt != 1 {
			t.Errorf("attempt %d: got %+v, %v, want what attempt 1 stored", attempt, got, err)
		}
	}
	l.want(1, 5)
}

// The job's id is used again after the job has expired: that is another job.
func TestAnotherJobOfTheSameIDHasEffectsOfItsOwn(t *testing.T) {
	l := ownFile(t)
	for _, birth := range []string{"b", "c"} {
		task := forward(1)
		task.Birth = birth
		if _, err := l.pay(task); err != nil {
			t.Fatal(err)
		}
	}
	l.want(2, 10)
}

func TestAnAttemptIsRefusedOnceALaterOneHasCome(t *testing.T) {
	l := ownFile(t)
	declined := errors.New("declined")
	if _, err := l.payOr(forward(2), declined); !errors.Is(err, declined) {
		t.Fatalf("got %v, want what the effect said", err)
	}
	l.want(0, 0)
	if _, err := l.pay(forward(1)); !errors.Is(err, sqlitefence.ErrLost) || !errors.Is(err, agent.ErrOver) || agent.Failure(err).Applied != makegood.AppliedNo {
		t.Errorf("got %v, want ErrLost, which is an agent.ErrOver and applied nothing", err)
	}
	l.want(0, 0)
	if _, err := l.pay(forward(2)); err != nil {
		t.Errorf("the same attempt once more: got %v", err)
	}
	l.want(1, 5)
}

func TestWhatWasDoneIsUndoneOnce(t *testing.T) {
	l := ownFile(t)
	if _, err := l.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	for attempt := 2; attempt <= 4; attempt++ {
		if err := l.refund(backward(attempt, makegood.OutcomeDone)); err != nil {
			t.Errorf("undo, attempt %d: got %v", attempt, err)
		}
	}
	l.want(2, 0)
	if _, err := l.pay(forward(5)); !errors.Is(err, sqlitefence.ErrUndone) {
		t.Errorf("the same key once more: got %v, want ErrUndone", err)
	}
}

// The forward call is held up on its way, nobody knows what became of it, and it comes in after the undo.
func TestWhatWasUndoneBeforeItHappenedNeverHappens(t *testing.T) {
	l := ownFile(t)
	if err := l.refund(backward(2, makegood.OutcomeUnknown)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.pay(forward(1)); !errors.Is(err, agent.ErrOver) {
		t.Errorf("a zombie: got %v, want an agent.ErrOver", err)
	}
	if _, err := l.pay(forward(3)); !errors.Is(err, sqlitefence.ErrUndone) {
		t.Errorf("got %v, want ErrUndone", err)
	}
	if err := l.refund(backward(4, makegood.OutcomeUnknown)); err != nil {
		t.Errorf("the undo once more: got %v", err)
	}
	l.want(0, 0)
}

func TestAnUndoOfWhatIsNotHereSaysSo(t *testing.T) {
	l := ownFile(t)
	if err := l.refund(backward(2, makegood.OutcomeDone)); !errors.Is(err, sqlitefence.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
	if err := l.refund(forward(1)); !errors.Is(err, sqlitefence.ErrTask) || agent.Failure(err).Retryable {
		t.Errorf("an undo of what is no undo: got %v, want ErrTask, for good", err)
	}
}

// An undo that fails takes back what it wrote, and the step stays done.
func TestAnUndoThatFailsHasUndoneNothing(t *testing.T) {
	l := ownFile(t)
	if _, err := l.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	task := backward(2, makegood.OutcomeDone)
	err := sqlitefence.Undo(agentctx.NewContext(t.Context(), task, nil), l.fence, func(tx *sql.Tx, _ receipt) error {
		_, err := tx.Exec(`INSERT INTO ledger(step, amount) VALUES('j', -5)`)
		return errors.Join(broken, err)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want what the undo said", err)
	}
	l.want(1, 5)
	if err := l.refund(task); err != nil {
		t.Fatal(err)
	}
	l.want(2, 0)
}

func TestAnOutputAboveItsLimitIsRefusedWithNothingWritten(t *testing.T) {
	l := ownFile(t)
	_, err := sqlitefence.Do(agentctx.NewContext(t.Context(), forward(1), nil), l.fence, func(tx *sql.Tx) (receipt, error) {
		_, err := tx.Exec(`INSERT INTO ledger(step, amount) VALUES('j', 5)`)
		return receipt{Note: strings.Repeat("n", makegood.MaxPayloadBytes)}, err
	})
	if failure := agent.Failure(err); failure.Retryable || failure.Applied != makegood.AppliedNo || !strings.Contains(failure.Message, "the limit is 262144") {
		t.Errorf("got %+v, want a final error that names the limit", failure)
	}
	l.want(0, 0)
}

func TestEffectsExpireAfterTheirTimeAndNoSooner(t *testing.T) {
	if _, err := sqlitefence.New(sqlitefence.Config{DB: &sql.DB{}, Keep: time.Hour}); err == nil || !strings.Contains(err.Error(), "2160h") {
		t.Errorf("got %v, want the least", err)
	}
	if _, err := sqlitefence.New(sqlitefence.Config{}); err == nil {
		t.Error("a fence without a database: got no error")
	}
	l := openLedger(t, filepath.Join(t.TempDir(), "own.db"), limits.MinKeepEffect)
	pay := func(n int) {
		task := forward(1)
		task.Job, task.Key = fmt.Sprint("j", n), fmt.Sprintf("j%d/pay/1", n)
		if _, err := l.pay(task); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 6 {
		pay(n)
	}
	l.now = l.now.Add(limits.MinKeepEffect)
	pay(6)
	l.kept(7, 7)
	l.now = l.now.Add(time.Millisecond)
	pay(7)
	pay(8)
	l.kept(3, 3)
}

// kept compares how many rows the fence has.
func (l *ledger) kept(effects, attempts int) {
	l.t.Helper()
	var e, a int
	err := l.db.QueryRow(`SELECT (SELECT count(*) FROM makegood_effects), (SELECT count(*) FROM makegood_attempts)`).Scan(&e, &a)
	if err != nil || e != effects || a != attempts {
		l.t.Errorf("got %d effects and %d attempts, %v, want %d and %d", e, a, err, effects, attempts)
	}
}

func TestOutsideOfATaskNothingIsFenced(t *testing.T) {
	l := ownFile(t)
	_, err := sqlitefence.Do(t.Context(), l.fence, func(*sql.Tx) (receipt, error) { return receipt{}, errors.New("called") })
	if !errors.Is(err, sqlitefence.ErrTask) || agent.Failure(err).Retryable {
		t.Errorf("got %v, want ErrTask, for good", err)
	}
}

// jobs is a store of jobs, with the user's ledger in its file.
func jobs(t *testing.T) (*sqlitestore.Store, *ledger) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "makegood.db")
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shut() })
	return s, openLedger(t, file, 0)
}

func slotOf(task makegood.Task) store.Slot {
	return store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
}

func claim(t *testing.T, s *sqlitestore.Store, task makegood.Task) {
	t.Helper()
	now := time.Now()
	c := job.Claim{Attempt: task.Attempt, LockedBy: task.Claim.LockedBy, StartedAt: now, CompleteBy: now.Add(time.Minute)}
	if err := s.Claim(t.Context(), slotOf(task), c, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func closeAttempt(t *testing.T, s *sqlitestore.Store, task makegood.Task) job.Finding {
	t.Helper()
	later := time.Now().Add(2 * time.Minute)
	found, err := s.Close(t.Context(), slotOf(task), store.Closing{Attempt: task.Attempt, Now: later, Until: later.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return found.Finding
}

func TestInTheFileOfTheJobsOnlyWhoHoldsTheClaimWrites(t *testing.T) {
	s, l := jobs(t)
	if _, err := l.pay(forward(1)); !errors.Is(err, sqlitefence.ErrLost) {
		t.Errorf("nobody has claimed: got %v, want ErrLost", err)
	}
	claim(t, s, forward(1))
	stranger := forward(1)
	stranger.Claim.LockedBy = "i:another"
	if _, err := l.pay(stranger); !errors.Is(err, sqlitefence.ErrLost) {
		t.Errorf("another's claim: got %v, want ErrLost", err)
	}
	unclaimed := forward(1)
	unclaimed.Claim = makegood.TaskClaim{}
	if _, err := l.pay(unclaimed); !errors.Is(err, sqlitefence.ErrTask) {
		t.Errorf("a task without a claim: got %v, want ErrTask", err)
	}
	l.want(0, 0)
	if _, err := l.pay(forward(1)); err != nil {
		t.Errorf("the holder: got %v", err)
	}
	l.want(1, 5)
}

// A shared step wants no claim, so there is none to look at.
func TestInTheFileOfTheJobsASharedStepNeedsNoClaim(t *testing.T) {
	_, l := jobs(t)
	shared := forward(1)
	shared.Shared, shared.Claim = true, makegood.TaskClaim{}
	if _, err := l.pay(shared); err != nil {
		t.Errorf("got %v, want it done", err)
	}
	l.want(1, 5)
}

// The attempt is closed as silent, and nobody else has come here since.
func TestInTheFileOfTheJobsAZombieIsRefusedAtOnce(t *testing.T) {
	s, l := jobs(t)
	claim(t, s, forward(1))
	if found := closeAttempt(t, s, forward(1)); found != job.FoundSilent {
		t.Fatalf("got %s, want %s", found, job.FoundSilent)
	}
	if _, err := l.pay(forward(1)); !errors.Is(err, sqlitefence.ErrLost) {
		t.Errorf("got %v, want ErrLost", err)
	}
	l.want(0, 0)
}

// Whoever comes first, wins: what is not there when Close has answered never comes.
func TestAnEffectAndTheCloseOfItsAttemptHaveOneWinner(t *testing.T) {
	s, l := jobs(t)
	for n := range 20 {
		task := forward(1)
		task.Job, task.Key = fmt.Sprint("j", n), fmt.Sprintf("j%d/pay/1", n)
		claim(t, s, task)
		before, _ := l.lines()
		var racing sync.WaitGroup
		var err error
		racing.Go(func() { _, err = l.pay(task) })
		closeAttempt(t, s, task)
		closed, _ := l.lines()
		racing.Wait()
		after, _ := l.lines()
		if closed != after || (err == nil) != (after == before+1) || err != nil && !errors.Is(err, sqlitefence.ErrLost) {
			t.Errorf("%d lines when the attempt was closed, %d when it had ended with %v", closed, after, err)
		}
	}
}

// An undo and the forward call that it follows meet: either nothing has happened, or it was undone.
func TestAnEffectAndItsUndoComeToNothing(t *testing.T) {
	l := ownFile(t)
	for n := range 20 {
		do, undo := forward(1), backward(2, makegood.OutcomeUnknown)
		for _, task := range []*makegood.Task{&do, &undo} {
			task.Job = fmt.Sprint("j", n)
		}
		do.Key = fmt.Sprintf("j%d/pay/1", n)
		undo.Key, undo.Undo.ForwardKey = do.Key+"/undo", do.Key
		var racing sync.WaitGroup
		racing.Go(func() {
			if _, err := l.pay(do); err != nil && !errors.Is(err, agent.ErrOver) {
				t.Errorf("do: %v", err)
			}
		})
		if err := l.refund(undo); err != nil {
			t.Errorf("undo: %v", err)
		}
		racing.Wait()
		if _, sum := l.lines(); sum != 0 {
			t.Fatalf("round %d: the ledger comes to %d, want 0", n, sum)
		}
	}
}

// In a transaction of the user's own.
func TestTheFenceInATransactionOfTheCallers(t *testing.T) {
	l := ownFile(t)
	ctx := agentctx.NewContext(t.Context(), forward(1), nil)
	if err := l.fence.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	for _, had := range []bool{false, true} {
		tx, err := l.db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.fence.Hold(ctx, tx); err != nil {
			t.Fatal(err)
		}
		done, was, err := l.fence.Done(ctx, tx)
		if err != nil || was != had || had && string(done.Output) != `{"id":7}` {
			t.Errorf("got %s, %v, %v, want %v", done.Output, was, err, had)
		}
		if !was {
			if err := l.fence.Store(ctx, tx, map[string]int{"id": 7}); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

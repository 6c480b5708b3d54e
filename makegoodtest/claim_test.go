package makegoodtest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite" // the driver of the test's own ledger

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// An agent writes into a ledger in the file of the jobs. Its first attempt hangs, is given up, and goes on.
func TestAZombieIsRefusedByTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var db *sql.DB
		var fence *sqlitefence.Fence
		wake, zombie := make(chan struct{}), make(chan error, 1)
		book := func(ctx context.Context, _ any) (int, error) {
			task := agent.TaskOf(ctx)
			if fence == nil {
				db, fence = openLedger(t, task.Claim.File)
			}
			write := func(ctx context.Context) (int, error) {
				return sqlitefence.Do(ctx, fence, func(tx *sql.Tx) (int, error) {
					_, err := tx.ExecContext(ctx, `INSERT INTO ledger(attempt) VALUES(?)`, task.Attempt)
					return task.Attempt, err
				})
			}
			if task.Attempt > 1 {
				return write(ctx)
			}
			<-wake
			n, err := write(context.WithoutCancel(ctx))
			zombie <- err
			return n, err
		}
		running := makegoodtest.Start(t, makegoodtest.Case{
			YAML: []byte("name: transfer\nsteps: [{name: book, agent: bank, timeout: 1m}]"),
			Services: func() makegoodtest.Services {
				return makegoodtest.Services{Agents: []agent.Handler{agent.New("bank", agent.Do("book", book))}}
			},
		})
		running.LoseClaim("book")
		close(wake)
		if err := <-zombie; !errors.Is(err, sqlitefence.ErrLost) {
			t.Errorf("the zombie: got %v, want ErrLost", err)
		}
		job := running.Wait()
		var lines int
		if err := db.QueryRow(`SELECT count(*) FROM ledger`).Scan(&lines); err != nil {
			t.Fatal(err)
		}
		if job.ProcessState != makegood.JobProcessed || lines != 1 || string(job.Output("book")) != "2" {
			t.Errorf("got %s with %d lines by attempt %s, want Processed, with one by attempt 2", job.ProcessState, lines, job.Output("book"))
		}
	})
}

// A step writes at each success until it is ready, and the next one fails: nothing that it wrote is left.
func TestEachEffectOfARepeatedStepIsUndoneBehindItsFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var db *sql.DB
		var fence *sqlitefence.Fence
		book := func(ctx context.Context, _ any) (int, error) {
			task := agent.TaskOf(ctx)
			if fence == nil {
				db, fence = openLedger(t, task.Claim.File)
			}
			return sqlitefence.Do(ctx, fence, func(tx *sql.Tx) (n int, err error) {
				if _, err := tx.ExecContext(ctx, `INSERT INTO ledger(attempt) VALUES(?)`, task.Attempt); err != nil {
					return 0, err
				}
				return n, tx.QueryRowContext(ctx, `SELECT count(*) FROM ledger`).Scan(&n)
			})
		}
		var undone []int
		cancel := func(ctx context.Context, _ any, _ *int) error {
			return sqlitefence.Undo(ctx, fence, func(tx *sql.Tx, done int) error {
				undone = append(undone, done)
				_, err := tx.ExecContext(ctx, `DELETE FROM ledger WHERE attempt = (SELECT max(attempt) FROM ledger)`)
				return err
			})
		}
		refuse := func(context.Context, any) (any, error) { return nil, agent.Final(errors.New("no")) }
		job := makegoodtest.Start(t, makegoodtest.Case{
			YAML: []byte(`
name: transfer
steps:
  - {name: book, agent: bank, undo: {action: cancel}, repeat: {until: "${ .output == 3 }", every: 1s}}
  - {name: send, agent: bank}
`),
			Services: func() makegoodtest.Services {
				return makegoodtest.Services{Agents: []agent.Handler{agent.New("bank", agent.Do("book", book).Undo("cancel", cancel), agent.Do("send", refuse))}}
			},
		}).Wait()
		var lines int
		if err := db.QueryRow(`SELECT count(*) FROM ledger`).Scan(&lines); err != nil {
			t.Fatal(err)
		}
		if job.ProcessState != makegood.JobUndone || lines != 0 || !slices.Equal(undone, []int{3, 2, 1}) {
			t.Errorf("got %s with %d lines, after an undo of %v, want Undone, with none, of all three", job.ProcessState, lines, undone)
		}
	})
}

func openLedger(t *testing.T, file string) (*sql.DB, *sqlitefence.Fence) {
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", file, 20*time.Second/time.Millisecond))
	if err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`CREATE TABLE ledger(attempt INTEGER NOT NULL)`); err != nil {
		t.Error(err)
	}
	fence, err := sqlitefence.New(sqlitefence.Config{DB: db})
	if err != nil {
		t.Error(err)
	}
	return db, fence
}

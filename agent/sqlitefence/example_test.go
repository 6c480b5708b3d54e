package sqlitefence_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/engine"
)

type transfer struct {
	Account string `json:"account"`
	Amount  int    `json:"amount"`
}

// bank is an agent whose table lies in the file of the jobs.
func bank(db *sql.DB, fence *sqlitefence.Fence) *agent.Agent {
	book := func(ctx context.Context, in transfer) (transfer, error) {
		return sqlitefence.Do(ctx, fence, func(tx *sql.Tx) (transfer, error) {
			_, err := tx.ExecContext(ctx, `INSERT INTO ledger(account, amount) VALUES(?, ?)`, in.Account, in.Amount)
			return in, err
		})
	}
	cancel := func(ctx context.Context, _ transfer, _ *transfer) error {
		return sqlitefence.Undo(ctx, fence, func(tx *sql.Tx, done transfer) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO ledger(account, amount) VALUES(?, ?)`, done.Account, -done.Amount)
			return err
		})
	}
	return agent.New("bank", agent.Do("book", book).Undo("cancel", cancel))
}

// However often the engine is killed: the account has this line once.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The file is there when the engine is; sql.Open does not look for it.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "makegood.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	fence, err := sqlitefence.New(sqlitefence.Config{DB: db})
	if err != nil {
		fmt.Println(err)
		return
	}
	eng, err := engine.Open(ctx, engine.Options{
		Dir: dir, Agents: []agent.Handler{bank(db, fence)},
		Workflows: fstest.MapFS{"transfer.yaml": {Data: []byte("name: transfer\nsteps: [{name: book, agent: bank, undo: {action: cancel}}]")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()
	if _, err := db.ExecContext(ctx, `CREATE TABLE ledger(account TEXT NOT NULL, amount INTEGER NOT NULL)`); err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = eng.Run(ctx) }()
	if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "transfer", ID: "t-1", Input: json.RawMessage(`{"account":"anna","amount":5}`)}); err != nil {
		fmt.Println(err)
		return
	}
	job, err := eng.Wait(ctx, "t-1")
	fmt.Println(job.ProcessState, err)
	var account string
	var lines, sum int
	err = db.QueryRowContext(ctx, `SELECT account, count(*), sum(amount) FROM ledger`).Scan(&account, &lines, &sum)
	fmt.Println(account, lines, sum, err)
	// Output:
	// Processed <nil>
	// anna 1 5 <nil>
}

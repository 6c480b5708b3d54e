package sqlitetx_test

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
	"github.com/makegood-dev/makegood/client/sqlitetx"
	"github.com/makegood-dev/makegood/engine"
)

// An order and its job are there together, or neither is.
func ExampleSubmit() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	payments := agent.New("payments", agent.Do("charge", func(context.Context, json.RawMessage) (string, error) { return "receipt", nil }))
	eng, err := engine.Open(ctx, engine.Options{
		Dir: dir, Agents: []agent.Handler{payments},
		Workflows: fstest.MapFS{"order.yaml": {Data: []byte("name: order\nsteps: [{name: charge, agent: payments}]")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = eng.Run(ctx) }()
	defer func() { _ = eng.Close() }()

	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "makegood.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	fmt.Println(inTransaction(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ('o-1')"); err != nil {
			return err
		}
		return sqlitetx.Submit(ctx, tx, makegood.Submission{Workflow: "order", ID: "o-1", Input: json.RawMessage(`{"id":"o-1"}`)})
	}))
	job, err := eng.Wait(ctx, "o-1")
	fmt.Println(job.ProcessState, err)
	// Output:
	// <nil>
	// Processed <nil>
}

func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // After a commit it does nothing.
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

package machine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"pgregory.net/rapid"

	_ "modernc.org/sqlite" // of who writes to their own database

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// fenced is a step whose effects are in a database of the agent's own, behind the shipped fence.
type fenced struct {
	step  string
	db    *sql.DB
	fence *sqlitefence.Fence
	// undone are the keys whose undo has come to it.
	undone map[string]bool
}

// drawFence puts one step of some lives behind a fence.
func drawFence(t *rapid.T, w makegood.Workflow) *fenced {
	s := rapid.SampledFrom(w.Steps).Draw(t, "fenced")
	if s.Agent != "a" || !domain.CanUndo(s) || s.Undo.Agent != "a" || rapid.Bool().Draw(t, "no fence") {
		return nil
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // Each connection would have a database of its own.
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`CREATE TABLE ledger(key TEXT NOT NULL, amount INTEGER NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	f := &fenced{step: s.Name, db: db, undone: map[string]bool{}}
	if f.fence, err = sqlitefence.New(sqlitefence.Config{DB: db}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fenced) has(task makegood.Task) bool {
	return f != nil && task.Step == f.step && task.Agent == "a"
}

func (f *fenced) context(x *world, task makegood.Task) context.Context {
	task.Claim.LockedBy = x.claimed[id(task.Step, task.Attempt)]
	return agentctx.NewContext(context.Background(), task, nil)
}

// do has an attempt take effect, whenever its agent comes to it.
func (f *fenced) do(x *world, task makegood.Task) {
	if !f.has(task) {
		return
	}
	_, err := sqlitefence.Do(f.context(x, task), f.fence, func(tx *sql.Tx) (string, error) {
		_, err := tx.Exec(`INSERT INTO ledger(key, amount) VALUES(?, 1)`, task.Key)
		return task.Key, err
	})
	if err != nil && !errors.Is(err, sqlitefence.ErrLost) && !errors.Is(err, sqlitefence.ErrUndone) {
		x.t.Fatalf("attempt %s behind a fence: %v", id(task.Step, task.Attempt), err)
	}
}

// undo has the undo of the step take effect; nothing of the step stands after it.
func (f *fenced) undo(x *world, task makegood.Task) {
	if !f.has(task) {
		return
	}
	err := sqlitefence.Undo(f.context(x, task), f.fence, func(tx *sql.Tx, key string) error {
		_, err := tx.Exec(`INSERT INTO ledger(key, amount) VALUES(?, -1)`, key)
		return err
	})
	if err != nil && !errors.Is(err, sqlitefence.ErrMissing) {
		x.t.Fatalf("the undo of step %s behind a fence: %v", task.Step, err)
	}
	x.seen.Played(layers.Fence)
	f.undone[task.Undo.ForwardKey] = true
	f.check(x, task.Undo.ForwardKey)
}

// check: of a step that was undone nothing stands, under whatever key.
func (f *fenced) check(x *world, key string) {
	rows, err := f.db.Query(`SELECT key, sum(amount) FROM ledger WHERE key = ? OR key GLOB ? GROUP BY key`, key, key+"/*")
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var of string
		var stands int
		if err := errors.Join(rows.Scan(&of, &stands), rows.Err()); err != nil {
			x.t.Fatal(err)
		}
		if stands != 0 {
			x.t.Fatalf("step %s was undone behind its fence, and %d stands under %s", f.step, stands, of)
		}
	}
}

// late lets an attempt that was held up on its way come to the fence, whatever has become of it.
func (x *world) late() {
	var all []string
	for _, which := range sorted(x.tasks) {
		if task := x.tasks[which]; x.fence.has(task) && task.Undo == nil && x.claimed[which] != "" && !x.idle[which] {
			all = append(all, which)
		}
	}
	if len(all) == 0 {
		return
	}
	task := x.tasks[rapid.SampledFrom(all).Draw(x.t, "late")]
	x.fence.do(x, task)
	if key := fmt.Sprintf("%s/%s/%d", task.Job, task.Step, task.Round); x.fence.undone[key] {
		x.fence.check(x, key)
	}
}

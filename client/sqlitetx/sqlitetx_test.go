package sqlitetx_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite" // the caller's driver

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client/sqlitetx"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

type order struct {
	ID    string `json:"id"`
	Total int    `json:"total"`
	Note  string `json:"note,omitempty"`
}

// shop is an engine that runs, and the caller's own tables in its file.
type shop struct {
	t       *testing.T
	db      *sql.DB
	engine  *embedded.Engine
	charged atomic.Int64
}

func open(t *testing.T) *shop {
	s := &shop{t: t}
	dir := t.TempDir()
	payments := agent.New("payments", agent.Do("charge", func(context.Context, order) (string, error) {
		s.charged.Add(1)
		return "receipt", nil
	}))
	engine, err := embedded.Open(t.Context(), embedded.Config{
		Dir: dir, Agents: []agent.Handler{payments}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.engine = engine
	compiled, err := workflowfile.Parse("order.yaml", []byte("name: order\nsteps: [{name: charge, agent: payments}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Define(t.Context(), compiled); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	if s.db, err = sql.Open("sqlite", filepath.Join(dir, embedded.DataFile)+"?_pragma=busy_timeout(5000)"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`CREATE TABLE orders(id TEXT PRIMARY KEY, total INTEGER)`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, s.db.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// place puts an order and its job into one transaction, and commits it or not.
func (s *shop) place(o order, workflow string, commit bool) error {
	s.t.Helper()
	tx, err := s.db.Begin()
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`INSERT INTO orders(id, total) VALUES(?, ?) ON CONFLICT DO NOTHING`, o.ID, o.Total); err != nil {
		s.t.Fatal(err)
	}
	input, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := sqlitetx.Submit(s.t.Context(), tx, makegood.Submission{Workflow: workflow, ID: o.ID, Input: input}); err != nil {
		return err
	}
	if commit {
		return tx.Commit()
	}
	return nil
}

func (s *shop) until(id string) job.Job {
	s.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		j, err := s.engine.Job(s.t.Context(), id)
		if err == nil && j.ProcessState.Finished() {
			return j
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("job %s does not end: %+v, %v", id, j, err)
		}
	}
}

// The order and its job are committed together, and the engine finds the job without being told.
func TestTheJobIsThereIfAndOnlyIfTheOrderIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		if err := s.place(order{ID: "lost", Total: 1}, "order", false); err != nil {
			t.Fatal(err)
		}
		large := order{ID: "kept", Total: 2, Note: strings.Repeat("n", 5000)}
		if err := s.place(large, "order", true); err != nil {
			t.Fatal(err)
		}
		if j := s.until("kept"); j.ProcessState != makegood.JobProcessed {
			t.Errorf("got %s: %s", j.ProcessState, j.Reason)
		}
		if n := s.charged.Load(); n != 1 {
			t.Errorf("charged %d times, want once", n)
		}
		if j, err := s.engine.Job(t.Context(), "lost"); err == nil {
			t.Errorf("the order was rolled back, and its job is there: %+v", j)
		}
		input, err := json.Marshal(large)
		if err != nil || len(input) <= limits.MaxInlineBytes {
			t.Fatalf("the input is to be a large one: %d bytes, %v", len(input), err)
		}
	})
}

func TestTheSameSubmissionIsTheSameJobAndAnotherIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		for range 2 {
			if err := s.place(order{ID: "o-1", Total: 1}, "order", true); err != nil {
				t.Fatal(err)
			}
		}
		s.until("o-1")
		var mismatch *api.MismatchError
		if err := s.place(order{ID: "o-1", Total: 2}, "order", true); !errors.As(err, &mismatch) || mismatch.Have == mismatch.Got {
			t.Errorf("other content: got %v, want both hashes", err)
		}
		var invalid *api.InvalidError
		if err := s.place(order{ID: "o-2"}, "unheard-of", true); !errors.As(err, &invalid) {
			t.Errorf("an unknown workflow: got %v, want an InvalidError", err)
		}
		if err := s.place(order{ID: "no spaces"}, "order", true); !errors.As(err, &invalid) {
			t.Errorf("a bad id: got %v, want an InvalidError", err)
		}
		if n := s.charged.Load(); n != 1 {
			t.Errorf("charged %d times, want once", n)
		}
	})
}

//go:build unix

package pagesoak_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/lab/pagesoak"
)

// running is how many jobs have an attempt under way in the file of BenchmarkRestart, beside its million others.
const running = 10_000

// runningWorkflow is theirs.
const runningWorkflow = "name: running\nsteps: [{name: first, agent: runner, action: run, undo: none}, {name: second, agent: runner, action: end, undo: none}]\n"

// BenchmarkRestart opens the file of a million jobs after the engine died over 10,000 attempts. It reports how long
// after that the first of them is tried again, and the last.
func BenchmarkRestart(b *testing.B) {
	died := filepath.Join(b.TempDir(), "died")
	makeDied(b, died)
	var opened, first, last []time.Duration
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "data")
		copyFile(b, filepath.Join(died, "makegood.db"), filepath.Join(dir, "makegood.db"))
		r := &runner{left: running, first: make(chan struct{}), last: make(chan struct{})}
		began := time.Now()
		eng := pagesoak.OpenMillion(b, dir, []string{runningWorkflow}, r.agent())
		opened = append(opened, time.Since(began))
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- eng.Run(ctx) }()
		<-r.first
		first = append(first, time.Since(began))
		<-r.last
		last = append(last, time.Since(began))
		stop()
		check(b, <-ended)
		check(b, eng.Close())
		check(b, os.RemoveAll(dir))
	}
	b.ReportMetric(0, "ns/op") // It would count the copies.
	for name, took := range map[string][]time.Duration{"open": opened, "first": first, "last": last} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-ms")
	}
}

// runner is an agent that has seen the first and the last of the jobs that ran.
type runner struct {
	mu          sync.Mutex
	left        int
	first, last chan struct{}
}

func (r *runner) agent() agent.Handler {
	return runnerOf(func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.left--; r.left == running-1 {
			close(r.first)
		}
		if r.left == 0 {
			close(r.last)
		}
		return nil
	})
}

// runnerOf is the agent of runningWorkflow.
func runnerOf(run func(context.Context) error) agent.Handler {
	return agent.New("runner",
		agent.Do("run", func(ctx context.Context, _ any) (any, error) { return nil, run(ctx) }),
		agent.Do("end", func(context.Context, any) (any, error) { return nil, nil }))
}

// makeDied makes the folder: it copies the file of a million jobs, and into that a job that an engine left under way.
func makeDied(b *testing.B, dir string) {
	b.Helper()
	pagesoak.MakeMillion(b, millionFolder)
	copyFile(b, filepath.Join(millionFolder, "makegood.db"), filepath.Join(dir, "makegood.db"))
	one := filepath.Join(b.TempDir(), "one")
	leaveRunning(b, one)
	leaveRunning(b, dir) // The file gets the workflow.
	db, err := sql.Open("sqlite", filepath.Join(dir, "makegood.db"))
	check(b, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		fmt.Sprintf(`ATTACH '%s' AS one`, filepath.Join(one, "makegood.db")),
		`CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) SELECT i FROM n`,
		`INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, data)
			SELECT printf('runs-%07d', i), rev, process_state, complete_by + 3000000000, failure_count, locked_by, workflow, created_at, data FROM temp.n, one.jobs`,
		`INSERT INTO claims(job, birth, step, agent, attempt, locked_by, started_at, complete_by, closed, ends, expires_at)
			SELECT printf('runs-%07d', i), birth, step, agent, attempt, locked_by, started_at, complete_by, closed, ends, expires_at FROM temp.n, one.claims`,
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(statement, err)
		}
	}
}

// leaveRunning leaves a job under way in a folder.
func leaveRunning(b *testing.B, dir string) {
	b.Helper()
	began := make(chan struct{})
	eng := pagesoak.OpenMillion(b, dir, []string{runningWorkflow}, runnerOf(func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}))
	go func() { _ = eng.Run(b.Context()) }() // Its end is that of Close.
	_, err := eng.Submit(b.Context(), makegood.Submission{Workflow: "running", ID: "running"})
	check(b, err)
	<-began
	check(b, eng.Close())
}

func copyFile(b *testing.B, from, to string) {
	b.Helper()
	check(b, os.MkdirAll(filepath.Dir(to), 0o700))
	in, err := os.Open(from)
	check(b, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	check(b, err)
	_, err = io.Copy(out, in)
	check(b, err)
	check(b, out.Close())
}

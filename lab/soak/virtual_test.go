package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// hours is how many hours of virtual time are measured, after those of the retention. make soak says 24.
var hours = flag.Int("hours", 0, "measure so many virtual hours")

const (
	retention = 24 * time.Hour
	// every is how far apart jobs are submitted.
	every = 15 * time.Second
	// cycle is the number of submissions after which the mix begins again, restartEvery how long an engine lives.
	cycle        = 20
	restartEvery = 3 * time.Hour
	lookEvery    = time.Minute
)

// mix is the workflow of the n-th submission.
func mix(n int) string {
	switch n % cycle {
	case 3:
		return "refused"
	case 8:
		return "silent"
	case 13:
		return "rests"
	case 17:
		return "stuck"
	default:
		return "order"
	}
}

// soaked is an engine of a folder, opened again and again.
type soaked struct {
	t     *testing.T
	dir   string
	tries atomic.Int64
	jobs  *engine.Engine
	ended chan error
	stop  context.CancelFunc
}

func (s *soaked) open() {
	s.t.Helper()
	var err error
	s.jobs, err = engine.Open(s.t.Context(), engine.Options{
		Dir: s.dir, Workflows: workflows, Agents: []agent.Handler{crew(&s.tries)}, Retention: retention, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ended = stop, make(chan error, 1)
	go func() { s.ended <- s.jobs.Run(ctx) }()
}

// close ends the engine in the middle of its work.
func (s *soaked) close() {
	s.t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
	if err := s.jobs.Close(); err != nil {
		s.t.Error(err)
	}
}

// people answer the jobs that wait for them: approvals are given, and jobs in Error are undone.
func (s *soaked) people() {
	s.t.Helper()
	for listed, err := range s.jobs.List(s.t.Context(), api.Filter{State: makegood.JobError}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.jobs.Request(s.t.Context(), listed.ID, api.Request{Verb: makegood.VerbUndo, Reason: "soak"}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// approve approves the n-th job, if it rests and waits long enough.
func (s *soaked) approve(n int) {
	s.t.Helper()
	if n < 0 || mix(n) != "rests" {
		return
	}
	_, err := s.jobs.Complete(s.t.Context(), fmt.Sprintf("rests-%08d", n), api.StepRef{Step: "ok", Early: true}, json.RawMessage(`"approve"`))
	if err != nil {
		s.t.Error(err)
	}
}

// cancel cancels the n-th job, if it is one that a person changes their mind about.
func (s *soaked) cancel(n int) {
	if n%cycle == 5 {
		// It may have ended: then the answer is a refusal, which is as good.
		_, _ = s.jobs.Request(s.t.Context(), fmt.Sprintf("order-%08d", n), api.Request{Verb: makegood.VerbCancel})
	}
}

// rows counts the rows of every table of the engine's file.
func (s *soaked) rows() map[string]int {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, "makegood.db")+"?mode=ro")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	names, err := db.QueryContext(s.t.Context(), "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			s.t.Fatal(err)
		}
		counts[name] = 0
	}
	if err := names.Err(); err != nil {
		s.t.Fatal(err)
	}
	for name := range counts {
		var n int
		if err := db.QueryRowContext(s.t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		counts[name] = n
	}
	return counts
}

// held are the sizes at the end of an hour.
type held struct {
	figures
	rows map[string]int
}

// hour lets an hour pass, with submissions from the n-th on, and returns the sizes at its end.
func (s *soaked) hour(n int, began time.Time) (int, held) {
	s.t.Helper()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); n++ {
		time.Sleep(every)
		if time.Since(began)%restartEvery < every {
			s.close()
			s.open()
		}
		if time.Since(began)%lookEvery < every {
			s.people()
		}
		if err := submit(s.t.Context(), s.jobs, mix(n), n); err != nil {
			s.t.Fatal(err)
		}
		s.cancel(n)
		s.approve(n - int(20*time.Minute/every))
	}
	synctest.Wait() // How many goroutines are at work is chance.
	f, err := measure(began, s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for state, jobs := range s.states() {
		if makegood.ProcessState(state).Finished() {
			f.ended += jobs
		} else {
			f.queued += jobs
		}
	}
	return n, held{f, s.rows()}
}

func (s *soaked) states() map[string]int {
	s.t.Helper()
	states := map[string]int{}
	groups, err := s.jobs.Count(s.t.Context(), api.Filter{}, []api.Facet{api.ByState}, "")
	if err != nil || groups.Cursor != "" {
		s.t.Fatalf("count: %v, and more at %q", err, groups.Cursor)
	}
	for _, g := range groups.Groups {
		states[g.Values[0]] += g.Jobs
	}
	return states
}

// grown compares the end with the first of the measured hours. Claims are kept for 16 days (docs/architecture.md), so they
// may grow by those of the hours between, and the file by their bytes.
func (s *soaked) grown(first, last held, between int) {
	s.t.Helper()
	const slack, claimBytes, claimsAJob = 50, 250, 8
	jobs := between * int(time.Hour/every)
	claims := last.rows["claims"] - first.rows["claims"]
	if claims > claimsAJob*jobs {
		s.t.Errorf("%d claims more after %d jobs", claims, jobs)
	}
	for _, table := range slices.Sorted(maps.Keys(last.rows)) {
		if was, is := first.rows[table], last.rows[table]; table != "claims" && is > was+was/20+slack {
			s.t.Errorf("table %s: %d rows after the first hour, %d at the end", table, was, is)
		}
	}
	if last.queued > first.queued+slack {
		s.t.Errorf("%d jobs under way after the first hour, %d at the end", first.queued, last.queued)
	}
	if may := first.data + first.data/10 + int64(max(0, claims)*claimBytes); last.data > may {
		s.t.Errorf("the file: %d bytes after the first hour, %d at the end, want at most %d", first.data, last.data, may)
	}
	if last.log > 2*first.log+8<<20 {
		s.t.Errorf("the log: %d bytes after the first hour, %d at the end", first.log, last.log)
	}
	if last.heap > first.heap*3/2+4<<20 {
		s.t.Errorf("the heap: %d bytes after the first hour, %d at the end", first.heap, last.heap)
	}
	if last.goroutines > first.goroutines+first.goroutines/2 {
		s.t.Errorf("%d goroutines after the first hour, %d at the end", first.goroutines, last.goroutines)
	}
}

// A day of work, with faults, leaves behind as much as its first hour: jobs go when their retention is over, and queues,
// files, memory and goroutines stay as they are. Without -hours it is three hours, in which no job goes.
func TestADayOfWorkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := &soaked{t: t, dir: t.TempDir()}, time.Now()
		s.open()
		before, measured := 0, 3
		if *hours > 0 {
			before, measured = int(retention/time.Hour)+1, *hours
		}
		var all []held
		n := 0
		for range before + measured {
			var h held
			n, h = s.hour(n, began)
			t.Logf("%3.0f h: %d jobs under way, %d ended, rows %v, file %d, log %d, heap %d, %d goroutines", h.at.Hours(), h.queued, h.ended, h.rows, h.data, h.log, h.heap, h.goroutines)
			all = append(all, h)
		}
		states := s.states()
		for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
			if states[string(state)] == 0 {
				t.Errorf("no job is %s: %v", state, states)
			}
		}
		first, last := all[before], all[len(all)-1]
		if before == 0 {
			// Nothing is old enough to go: what ends stays, and what is under way does not grow.
			first.rows, last.rows, first.data, last.data = nil, nil, 0, 0
		}
		s.grown(first, last, measured-1)
		s.close()
	})
}

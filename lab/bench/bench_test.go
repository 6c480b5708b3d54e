package main

import (
	"os"
	"strings"
	"testing"
)

// The tables of the docs are those that the figures in lab/bench/figures give, and no hand writes in them.
func TestTheTablesAreThoseOfTheFigures(t *testing.T) {
	for _, table := range tables {
		text, err := os.ReadFile("../../" + table.file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := table.in("../..", string(text))
		if err != nil {
			t.Fatalf("%s: %v", table.file, err)
		}
		if want != string(text) {
			t.Errorf("%s: the table %s is not that of the figures in %s: make bench-tables", table.file, table.name, kept)
		}
		if _, err := os.Stat("../../" + kept + "/" + table.suite + ".txt"); err != nil {
			t.Errorf("no figures of the table %s are kept: %v", table.name, err)
		}
	}
}

func TestATableShowsTheSpreadOfItsFigures(t *testing.T) {
	figures, err := parse(`commit: 12345678
busy: 2
of: HEAD
BenchmarkManyJobs/queued-2   	    2000	    400000 ns/op	     34571 B/step	  12.5 cpu-µs/step	   271.6 allocs/step	  2500 jobs/s
busy: 40
BenchmarkManyJobs/queued-2   	    2000	    200000 ns/op	     34571 B/step	  14.5 cpu-µs/step	   271.6 allocs/step	  5000 jobs/s
BenchmarkManyJobs/queued-2   	    2000	    250000 ns/op	     34571 B/step	  13.5 cpu-µs/step	   271.6 allocs/step	  4000 jobs/s
PASS
of: 0980d3c
BenchmarkTenInARow/queued-2  	     400	   3500000 ns/op	    286 jobs/s
`)
	if err != nil {
		t.Fatal(err)
	}
	got := sinceTable(figures)
	for _, want := range []string{
		"| jobs of three steps, jobs a second, queued | HEAD | 2,500 | **4,000** | 5,000 | 13.5 µs | 272 | 34,571 |\n",
		"| ten steps in a row, ms a job, queued | 0980d3c | 3.50 | **3.50** | 3.50 |  |  |  |\n",
		"Commit 12345678,", "rounds: 3. Others used 2 to 40 %, median 40 % of the processors before each run.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant in it %q", got, want)
		}
	}
}

func TestAPeerThatIsAheadIsNamed(t *testing.T) {
	figures, err := parse(`peer: makegood-queued
BenchmarkManyJobs/queued 2000 400000 ns/op 2500 jobs/s
BenchmarkTenInARow/queued 400 4600000 ns/op 217 jobs/s
peer: dbos-sqlite
BenchmarkManyJobs 2000 1400000 ns/op 722 jobs/s
BenchmarkTenInARow 400 2900000 ns/op 345 jobs/s
`)
	if err != nil {
		t.Fatal(err)
	}
	const want = "- **Makegood**, steps by the queue: DBOS on SQLite, `synchronous=FULL` takes 2.90 ms for ten steps in a row, we 4.60 ms.\n"
	if got := losses(figures); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := losses(figures[:2]), "In no row of that table.\n"; got != want {
		t.Errorf("without peers: got %q, want %q", got, want)
	}
}

func TestALineThatIsNoFigureIsRefused(t *testing.T) {
	for _, line := range []string{"BenchmarkX 1 2", "BenchmarkX 1 two ns/op"} {
		if got, err := parse(line); err == nil {
			t.Errorf("%q: got %v, want an error", line, got)
		}
	}
}

func TestTheFlushesOfASummaryAreAddedUp(t *testing.T) {
	const summary = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 90.00    0.100000         100      1000           fdatasync
 10.00    0.010000         100        23         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.110000                  1023         1 total
`
	if got := total(summary); got != 1023 {
		t.Errorf("got %d calls, want 1023", got)
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// mapped is the step of an order with the map: its lines are done by a job of their own, whose attempts count.
const mapped = "reserve"

// tally is what the engine's file says of the jobs. Ends and states are those of orders.
type tally struct {
	ends      map[string]makegood.ProcessState
	states    map[makegood.ProcessState]int
	attempts  int
	retries   int
	undos     int
	noReasons []string
}

// endedSoFar counts the orders that are at their end, in the file of an engine that is running.
func (s *stage) endedSoFar(ctx context.Context) int {
	t, err := s.count(ctx)
	if err != nil {
		// It may not have made its file yet.
		return 0
	}
	n := 0
	for state, count := range t.states {
		if state.Finished() || state == makegood.JobError {
			n += count
		}
	}
	return n
}

func (s *stage) count(ctx context.Context) (tally, error) {
	t := tally{ends: map[string]makegood.ProcessState{}, states: map[makegood.ProcessState]int{}}
	reader, err := sqlitestore.OpenReader(ctx, filepath.Join(s.data, embedded.DataFile))
	if err != nil {
		return t, err
	}
	defer reader.Close()
	err = reader.Each(ctx, func(j job.Job) error {
		t.add(j)
		return nil
	})
	return t, err
}

func (t *tally) add(j job.Job) {
	isOrder := !domain.IsChild(j.ID)
	if isOrder {
		t.ends[j.ID] = j.ProcessState
		t.states[j.ProcessState]++
		if j.ProcessState != makegood.JobProcessed && j.Reason == "" {
			t.noReasons = append(t.noReasons, j.ID)
		}
	}
	for _, step := range j.Steps {
		if isOrder && step.Name == mapped {
			continue
		}
		t.attempts += step.Attempt
		for _, a := range []job.Activity{step.Forward, step.Undo} {
			if a.Attempt > 0 {
				t.retries--
			}
		}
		t.retries += step.Attempt
		if step.Undo.State == job.Done {
			t.undos++
		}
	}
}

// report prints the counts of the run, and reports whether everything was made good.
func (s *stage) report(ctx context.Context, script services.Script, kills int, took time.Duration) (bool, error) {
	t, err := s.count(ctx)
	if err != nil {
		return false, fmt.Errorf("read the jobs: %w", err)
	}
	ledger, err := services.ReadLedger(ctx, s.shop)
	if err != nil {
		return false, err
	}
	s.printTable(t, ledger, kills, took)
	violations := services.CheckLines(ledger, t.ends, s.lines)
	for _, id := range t.noReasons {
		violations = append(violations, fmt.Sprintf("order %s (%s): no reason is given", id, t.ends[id]))
	}
	for id, state := range t.ends {
		if want := script.Ends(id); state != want {
			violations = append(violations, fmt.Sprintf("order %s: ended %s, the shop's script makes it %s", id, state, want))
		}
	}
	services.PrintViolations(os.Stdout, violations)
	if len(violations) > 0 {
		fmt.Printf("\nThe ledger does NOT agree: %d violations.\n", len(violations))
		return false, nil
	}
	fmt.Printf(`
The shop's ledger, compared with the jobs:
  ok  each of the %d Processed orders: one reservation of each line, one charge, one shipment stand
  ok  each of the %d Undone orders: nothing stands, and no money was kept
  ok  each of the %d orders in Error: the charge stands, because its refund was refused for good
  ok  no attempt reached the shop twice, and every order ended as the shop's script has it
`, t.states[makegood.JobProcessed], t.states[makegood.JobUndone], t.states[makegood.JobError])
	return true, nil
}

func (s *stage) printTable(t tally, l services.Ledger, kills int, took time.Duration) {
	faults, lines := 0, 0
	for _, n := range l.Totals.Faults {
		faults += n
	}
	for _, n := range s.lines {
		lines += n
	}
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		what  string
		count int
	}{
		{"orders", len(t.ends)},
		{"their lines", lines},
		{"Processed", t.states[makegood.JobProcessed]},
		{"Undone", t.states[makegood.JobUndone]},
		{"Error, with a reason", t.states[makegood.JobError]},
		{"attempts made", t.attempts},
		{"of them retries", t.retries},
		{"steps undone", t.undos},
		{"faults of the shop", faults},
		{"duplicates refused by the shop", l.Totals.DuplicatesRefused},
		{"forward calls refused after their undo", l.Totals.TombstoneRefusals},
		{"kills survived", kills},
	} {
		fmt.Fprintf(w, "%s\t%d\t\n", row.what, row.count)
	}
	fmt.Fprintf(w, "seconds\t%.1f\t\n", took.Seconds())
	_ = w.Flush() // standard output; if it is gone, so is the reader
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

const (
	// perLife is how many transfers each life submits, and badEvery selects those that are never signed.
	perLife  = 5
	badEvery = 4
	// longest is how long a life lasts at most, from when its engine runs.
	longest = 60 * time.Millisecond
	// tells is after how many kills it is told how it goes.
	tells = 100
)

func transferOf(life, n int) (id string, t transfer) {
	t = transfer{From: fmt.Sprint("a", (life+n)%7), To: fmt.Sprint("a", (life+n+1)%7), Cents: 1 + (life*perLife+n)%100, Bad: n%badEvery == badEvery-1}
	return fmt.Sprintf("t-%d-%d", life, n), t
}

// live is a life of the killed process: it goes on with the existing jobs, and submits some more.
func live(ctx context.Context, dir, number string, out io.Writer) error {
	life, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	return running(ctx, dir, func(ctx context.Context, eng *engine.Engine, _ *ledger) error {
		fmt.Fprintln(out, "up")
		for n := range perLife {
			id, t := transferOf(life, n)
			input, err := json.Marshal(t)
			if err != nil {
				return err
			}
			if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "transfer", ID: id, Input: input}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	})
}

// killAgainAndAgain starts a life, and kills it, so many times.
func killAgainAndAgain(ctx context.Context, dir string, kills int, seed uint64, out io.Writer) error {
	random := rand.New(rand.NewPCG(seed, 0))
	for life := range kills {
		if err := lifeAndDeath(ctx, dir, life, time.Duration(random.Int64N(int64(longest)))); err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
		if (life+1)%tells == 0 {
			fmt.Fprintf(out, "killed %d times\n", life+1)
		}
	}
	return nil
}

func lifeAndDeath(ctx context.Context, dir string, life int, lasts time.Duration) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, program, asLife, dir, fmt.Sprint(life))
	process.Stderr = os.Stderr
	said, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	up, err := bufio.NewReader(said).ReadString('\n')
	if err == nil {
		time.Sleep(lasts)
	}
	killed := process.Process.Kill() // SIGKILL, or what this system has
	_ = process.Wait()               // It says that the process was killed.
	if err != nil {
		return fmt.Errorf("it did not come up, but said %q: %w", up, err)
	}
	return killed
}

// totals are what a comparison has found.
type totals struct{ done, undone, lines, sum int }

// compare lets all jobs end, and compares the ledger with them.
func compare(ctx context.Context, dir string, lives int) (found totals, err error) {
	err = running(ctx, dir, func(ctx context.Context, eng *engine.Engine, l *ledger) error {
		for life := range lives {
			for n := range perLife {
				if err := compareOne(ctx, eng, l, life, n, &found); err != nil {
					return err
				}
			}
		}
		var all, sum int
		err := l.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(cents), 0) FROM ledger`).Scan(&all, &sum)
		if err == nil && (all != found.lines || sum != 0) {
			err = fmt.Errorf("the ledger has %d lines and comes to %d, want %d and 0", all, sum, found.lines)
		}
		found.sum = sum
		return err
	})
	return found, err
}

// compareOne compares a job with its lines.
func compareOne(ctx context.Context, eng *engine.Engine, l *ledger, life, n int, found *totals) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, t := transferOf(life, n)
	job, err := eng.Wait(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return nil // It was killed before.
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	var lines, steps, undone, sum int
	row := l.db.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT step || undo), coalesce(sum(undo), 0), coalesce(sum(cents), 0) FROM ledger WHERE job = ?`, id)
	if err := row.Scan(&lines, &steps, &undone, &sum); err != nil {
		return err
	}
	found.lines += lines
	switch {
	case lines != steps:
		return fmt.Errorf("job %s is %s, and of its %d lines only %d differ", id, job.ProcessState, lines, steps)
	case job.ProcessState == makegood.JobProcessed && lines == 2 && undone == 0 && sum == 0 && !t.Bad:
		found.done++
	case job.ProcessState == makegood.JobUndone && lines == 2*undone && sum == 0 && t.Bad:
		found.undone++
	default:
		return fmt.Errorf("job %s is %s (%s) with %d lines, %d of them of undos, that come to %d", id, job.ProcessState, job.Reason, lines, undone, sum)
	}
	return nil
}

// Command repair shows how many jobs are repaired at once. It opens a shop and an engine, submits 10,000 orders with
// a typing error in their definition, looks at the jobs that wait for a person, corrects the definition, and has all
// jobs go on by one command. Then a refund that can never succeed is settled by hand. At last it compares the shop's
// ledger with the jobs, line by line. It exits 0 only if every effect was made exactly once.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// maxOrders is how many orders it takes: their ids have five digits.
const maxOrders = 99_999

func main() {
	orders := flag.Int("orders", 10_000, "`how many` orders")
	within := flag.Duration("within", 0, "fail if finding, correcting and processing them takes `longer`; 0: however long it takes")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Repairs 10,000 jobs with two commands, and a refund by hand.\n\nExample: go run ./examples/repair -orders 500\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *orders, *within)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "repair:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, orders int, within time.Duration) error {
	if orders < 1 || orders > maxOrders {
		return fmt.Errorf("-orders %d: want 1 to %d", orders, maxOrders)
	}
	s, err := open(ctx, orders)
	if err != nil {
		return err
	}
	defer s.close()
	for _, act := range []func(context.Context) error{s.submit, s.repair, s.settle, s.check} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	if within > 0 && s.took > within {
		return fmt.Errorf("the two commands and all jobs took %s, want at most %s", s.took, within)
	}
	return nil
}

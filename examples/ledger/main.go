// Command ledger shows that an agent's writes in a table of its own happen exactly once. It runs transfers between
// accounts in a process that it kills again and again, at any moment, and then compares the ledger with the jobs,
// line by line. Then it lets attempts hang until they were given up, and wakes them: their writes must be refused.
//
//	go run ./examples/ledger -kills 1000
//
// The ledger lies in the file of the jobs, and has no constraint that would keep a line from being there twice: only
// the fence does (agent/sqlitefence).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// What the command is started as by itself, as its first argument.
const (
	asLife   = "life"
	asTeller = "teller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

// start does what the arguments say.
func start(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 3 && args[0] == asLife {
		return live(ctx, args[1], args[2], out)
	}
	if len(args) == 3 && args[0] == asTeller {
		return tell(ctx, args[1], args[2], in, out)
	}
	flags := flag.NewFlagSet("ledger", flag.ContinueOnError)
	kills := flags.Int("kills", 1000, "how often the process is killed")
	zombies := flags.Int("zombies", 9, "how many attempts hang until they were given up")
	seed := flags.Uint64("seed", 1, "decides when it is killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return show(ctx, dir, *kills, *zombies, *seed, out)
}

// show kills, compares, and wakes zombies.
func show(ctx context.Context, dir string, kills, zombies int, seed uint64, out io.Writer) error {
	if err := killAgainAndAgain(ctx, dir, kills, seed, out); err != nil {
		return err
	}
	found, err := compare(ctx, dir, kills)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d kills, %d transfers: %d done, %d undone; %d lines in the ledger, each once, %d cents in all\n",
		kills, found.done+found.undone, found.done, found.undone, found.lines, found.sum)
	refused, err := wakeZombies(ctx, dir, zombies)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d attempts that hung and were given up were woken: %d of their transactions were refused\n", zombies, refused)
	return nil
}

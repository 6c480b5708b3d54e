// Command shop serves the shop of the examples as a process of its own: inventory, payments and
// shipping at one loopback address, with faults by script and a ledger at GET /ledger.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/makegood-dev/makegood/internal/sample/services"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends, and returns the exit code: 0, or 1 when the shop could not be opened.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		err = serve(ctx, o, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "shop: %v\n", err)
		return 1
	}
	return 0
}

type options struct {
	addr       string
	script     services.Script
	dedupe     bool
	ledgerFile string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("shop", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.addr, "addr", "127.0.0.1:4790", "loopback `address` to serve at; port 0 takes a free one")
	faults := flags.String("faults", string(services.FaultsNone), "what goes wrong: `none, some or nasty`")
	flags.Uint64Var(&o.script.Seed, "seed", 1, "the same `number` gives the same faults")
	flags.StringVar(&o.ledgerFile, "ledger-file", "", "`file` to write every effect to, a JSON line each; what it held is lost")
	flags.BoolVar(&o.dedupe, "dedupe", true, "refuse a key seen before; =false counts every request")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	o.script.Profile, err = services.ParseProfile(*faults)
	return o, err
}

func serve(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	shop := services.Options{Script: o.script, CountOnly: !o.dedupe}
	if o.ledgerFile != "" {
		file, err := os.Create(o.ledgerFile)
		if err != nil {
			return fmt.Errorf("open the ledger file: %w", err)
		}
		defer file.Close()
		shop.Record = record(file, stderr)
	}
	s, err := services.Start(o.addr, shop)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Fprintf(stdout, "shop: %s (faults %s, seed %d)\n", s.URL(), o.script.Profile, o.script.Seed)
	<-ctx.Done()
	return nil
}

// record writes effects to the file. The ledger itself is in memory, so the shop goes on without
// the file when it cannot be written, and says so.
func record(file io.Writer, stderr io.Writer) func(services.Effect) {
	encoder := json.NewEncoder(file)
	return func(e services.Effect) {
		if err := encoder.Encode(e); err != nil {
			fmt.Fprintf(stderr, "shop: write the ledger file: %v\n", err)
		}
	}
}

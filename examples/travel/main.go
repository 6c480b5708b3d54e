// Command travel is a travel agency. Without a word it is a demonstration: bookings go on through an outage of its
// services and a kill of its engine, and the ledger of the services is compared with them. With the word office it is
// the agency's own server, with the engine in it, and with the word agency the services, as own servers. See
// README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/makegood-dev/makegood/examples/travel/trips"
)

// The addresses at which the services are by default, and the switchboard of their outages.
const (
	officeAddr      = "127.0.0.1:4800"
	flightsAddr     = "127.0.0.1:4801"
	hotelsAddr      = "127.0.0.1:4802"
	carsAddr        = "127.0.0.1:4803"
	paymentsAddr    = "127.0.0.1:4804"
	switchboardAddr = "127.0.0.1:4805"
)

const usage = `travel shows that an outage and a kill undo no booking.

  go run ./examples/travel -outage 30s -bookings 300

Or it runs what README.md types, each in a terminal of its own:

  bin/travel agency     the remote services, and the switchboard of their outages
  bin/travel office     the agency's server, with the engine in it

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0, or 1 after a failure or a wrong result.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	word := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		word, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("travel "+word, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	act, err := words(word, flags, stdout)
	if err == nil {
		err = flags.Parse(args)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("%q is no flag: see --help", flags.Arg(0))
	case err == nil:
		err = act(ctx)
	}
	if err != nil {
		fmt.Fprintf(stderr, "travel: %v\n", err)
		return 1
	}
	return 0
}

// words returns what a word of the command does, and defines its flags.
func words(word string, flags *flag.FlagSet, out io.Writer) (act func(context.Context) error, err error) {
	switch word {
	case "":
		var d demo
		flags.IntVar(&d.bookings, "bookings", 300, "how `many` trips are booked, 10 to 100000")
		flags.DurationVar(&d.outage, "outage", 30*time.Second, "how long flights answer 503, hotels refuse connections and cars hang, up to 20m")
		d.out = out
		return d.run, nil
	case "agency":
		return func(ctx context.Context) error { return serveAgency(ctx, out) }, nil
	case "office":
		var o office
		flags.StringVar(&o.addr, "addr", officeAddr, "`address` of the server")
		flags.StringVar(&o.data, "data", "travel-data", "`folder` that keeps the jobs")
		o.urls, o.out = urlsOf(os.Getenv), out
		return o.serve, nil
	}
	return nil, fmt.Errorf("there is no word %q: want agency, office, or none; see --help", word)
}

// urlsOf says where the services are: FLIGHTS_URL and its like, or where the word agency serves them.
func urlsOf(getenv func(string) string) trips.Urls {
	of := func(name, addr string) string {
		if url := getenv(name); url != "" {
			return url
		}
		return "http://" + addr
	}
	return trips.Urls{
		Flights: of("FLIGHTS_URL", flightsAddr), Hotels: of("HOTELS_URL", hotelsAddr),
		Cars: of("CARS_URL", carsAddr), Payments: of("PAYMENTS_URL", paymentsAddr),
	}
}

// Command provisioning serves a platform of three resources at one loopback address: namespaces, which are slow,
// access rules, and DNS names, which are refused now and then. Each subscription has one of each, active or inactive.
// The engine is `makegood dev` with the workflow beside this file: see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends, and returns the exit code: 0, or 1 when the platform could not be opened.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var p platform
	flags := flag.NewFlagSet("provisioning", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "127.0.0.1:4791", "loopback `address` to serve at; port 0 takes a free one")
	flags.DurationVar(&p.slow, "slow", 200*time.Millisecond, "how long a namespace takes")
	flags.IntVar(&p.refusals, "refuse", 1, "how `often` the DNS name of a subscription is refused before it is not")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		err = serve(ctx, *addr, &p, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "provisioning: %v\n", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, addr string, p *platform, stdout io.Writer) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("open the platform at %q: want a loopback address, such as 127.0.0.1:4791", addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("open the platform: %w", err)
	}
	server := &http.Server{Handler: p.routes(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(stdout, "platform: http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the platform: %w", err)
	}
	return nil
}

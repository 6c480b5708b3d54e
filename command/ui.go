package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/stack"
)

// uiInterval is the time between two looks at a view of a stack that is open: each look makes requests to a door, and
// reads the table.
const uiInterval = 5 * time.Second

// newUI makes the verb that serves the page of a stack.
func newUI() *cobra.Command {
	var name, addr string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve the page of a deployed stack on this machine",
		Long: fmt.Sprintf(`Serve the page of a deployed stack on this machine, with your AWS credentials: every user of the page acts
as you, so it listens on loopback alone. The page cannot do more on the stack than you may.

Each view that is open is looked at again every %s, and not at all in the background. A look asks a door: an
invocation, and reads of the jobs that are shown. Jobs at their end are in no index of a stack, so they are shown on
request, by reads of the table.

Exit status: 0 it was stopped; 1 bad usage, or no such stack; 3 it failed; 130 it was told to stop twice.`, uiInterval),
		Example: `  makegood ui --stack shop-prod
  makegood ui --stack shop-prod --addr 127.0.0.1:4780`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return ui(cmd, name, addr) },
	}
	cmd.Flags().StringVar(&name, "stack", os.Getenv(stack.Variable), "`name` of the deployed stack; also "+stack.Variable)
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:4780", "loopback `address` to listen on; port 0 takes a free one")
	return cmd
}

// ui serves until it is told to stop.
func ui(cmd *cobra.Command, name, addr string) error {
	if name == "" {
		return exit(codeUsage, errors.New("--stack is missing; of a process, `makegood dev` serves the page itself"))
	}
	listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", addr)
	if err != nil {
		return exit(codeUsage, fmt.Errorf("%w; --addr names another address", err))
	}
	if !isLoopback(listener.Addr()) {
		return exit(codeUsage, errors.Join(fmt.Errorf("--addr %s: want a loopback address: every caller that reaches it acts with your credentials", addr), listener.Close()))
	}
	asks, err := stack.Open(cmd.Context(), name, os.Getenv)
	if err != nil {
		return exit(codeUsage, errors.Join(err, listener.Close()))
	}
	logger := newLogger(cmd.ErrOrStderr(), slog.LevelWarn, false)
	shown := page.New(page.Config{
		Jobs: asks, Repairs: bulk.New(asks, logger), Where: "stack " + name, Flags: "--stack " + name, Interval: uiInterval, Scans: true,
		Host: "127.0.0.1", Logger: logger,
	})
	// Streams would keep the server from ending.
	defer context.AfterFunc(cmd.Context(), shown.Close)()
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "makegood serves the page of stack %s at http://%s\n", name, listener.Addr())
	if err := httpapi.Serve(cmd.Context(), listener, shown, logger); err != nil {
		return exit(codeFailed, err)
	}
	return nil
}

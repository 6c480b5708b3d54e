package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	changed "github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
	"github.com/makegood-dev/makegood/internal/plain"
)

// The values of --changes that are no URL.
const (
	changesToStderr = "stderr"
	changesLive     = "live"
	// maxChangeLine is how long a line of a stream may be.
	maxChangeLine = 64 << 10
)

// checkChanges refuses a --changes that is neither stderr, live nor a URL. It may hold a secret, and is in no message.
func checkChanges(to string) error {
	if to == "" || to == changesToStderr || to == changesLive || webhook.IsAddress(to) {
		return nil
	}
	return errors.New("--changes: want stderr, live, or a URL of http or https")
}

// changesSink returns the sink that receives every change; nil: only viewers of the page and of watch receive
// changes. look returns the command that shows a job.
func changesSink(to string, stderr io.Writer, look func(id string) string) changed.Sink {
	switch to {
	case "", changesLive:
		return nil
	case changesToStderr:
		return func(_ context.Context, run makegood.Changes) error {
			for _, c := range run.Changes {
				if _, err := fmt.Fprintln(stderr, changeLine(run.Job, c, look)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return func(ctx context.Context, run makegood.Changes) error {
		body, err := changed.Run{Changes: run}.Encode()
		if err != nil {
			return err
		}
		return webhook.Post(ctx, to, body)
	}
}

// changeLine writes a change for people; look returns the command that shows a job.
func changeLine(id string, c makegood.Change, look func(id string) string) string {
	line := fmt.Sprintf("%s %s/%d ", c.At.UTC().Format("15:04:05.000"), id, c.Number)
	if c.Lost > 0 {
		return line + fmt.Sprintf("%d changes were lost: `%s` shows how the job stands", c.Lost, look(id))
	}
	what := "job"
	if c.Step != "" {
		what = c.Step
		if c.Undo {
			what = "undo of " + c.Step
		}
		if c.Attempt > 0 {
			what += fmt.Sprintf("#%d", c.Attempt)
		}
	}
	line += fmt.Sprintf("%s %s -> %s", what, cmp.Or(c.From, "(new)"), c.To)
	if c.Paused {
		line += ", paused"
	}
	if c.Outcome != "" {
		line += fmt.Sprintf(" (%s)", c.Outcome)
	}
	if c.Reason != "" {
		line += ": " + plain.Line(c.Reason)
	}
	return line
}

// newChanges makes the verb that follows what changes.
func newChanges() *cobra.Command {
	var job, workflow string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "Follow every change of the jobs of a makegood dev",
		Long: `Follow every change of every job and of its steps, as it happens, until it is interrupted: a line for each, or with --json an
object. The makegood dev at --addr must have --changes. Changes that are left out, because this was too slow, are counted on
standard error. On a stack changes are events of its bus: see docs/changes.md.

Exit status: 0 it was interrupted; 1 bad usage, or changes are not kept there; 3 the API cannot be reached, or has ended.`,
		Example: `  makegood changes
  makegood changes --job order-17 --json
  makegood changes --workflow order`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return followChanges(cmd, address(cmd), url.Values{"job": {job}, "workflow": {workflow}}, asJSON)
		},
	}
	flags := cmd.Flags()
	addrFlag(cmd)
	flags.StringVar(&job, "job", "", "`id` of the one job to follow")
	flags.StringVar(&workflow, "workflow", "", "`name` of the one workflow to follow")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object for each")
	return cmd
}

func followChanges(cmd *cobra.Command, addr string, filter url.Values, asJSON bool) error {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, strings.TrimSuffix(addr, "/")+"/api/changes?"+filter.Encode(), nil)
	if err != nil {
		return exit(codeUsage, fmt.Errorf("--addr: %w", err))
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return failed(cmd, fmt.Errorf("follow changes: %w", unreached(request.URL, err)))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var problem struct{ Error string }
		_ = json.NewDecoder(io.LimitReader(answer.Body, maxChangeLine)).Decode(&problem) // Else the status says it.
		return exit(codeUsage, errors.New(cmp.Or(problem.Error, answer.Status)))
	}
	err = printChanges(cmd, answer.Body, asJSON)
	if cmd.Context().Err() != nil {
		return nil
	}
	return exit(codeFailed, cmp.Or(err, errors.New("the stream has ended")))
}

// unreached names the server in the error of a request without an answer, as the client does for its own.
func unreached(to *url.URL, err error) error {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		err = wrapped.Err
	}
	return &api.UnreachableError{URL: to.Scheme + "://" + to.Host, Err: err}
}

// printChanges prints a stream of server-sent events until it ends.
func printChanges(cmd *cobra.Command, stream io.Reader, asJSON bool) error {
	look := func(id string) string { return cmd.Root().Name() + " get " + id + where(cmd) }
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxChangeLine)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var event struct {
			Job    string
			Missed int64
			makegood.Change
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return fmt.Errorf("the line received is no change: %w", err)
		}
		var err error
		switch {
		case event.Missed != 0:
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%d changes were left out: this was too slow\n", event.Missed)
		case asJSON:
			_, err = fmt.Fprintln(cmd.OutOrStdout(), string(plain.Escaped([]byte(data))))
		default:
			_, err = fmt.Fprintln(cmd.OutOrStdout(), changeLine(event.Job, event.Change, look))
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

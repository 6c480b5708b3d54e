package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/batch"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

type runOptions struct {
	input, id, data string
	retention       retention
	json, verbose   bool
}

func newRun(agents []agent.Handler) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run WORKFLOW.yaml [CHILD.yaml...] --input FILE.jsonl",
		Short: "Run one job for each line of a file, all to their end",
		Long: `Run one job for each line of a file through a workflow, in this process, all to their end.

The id of a job is .id of its line, or what --id gives; a line without one gets an id made of its
number and its content. With --data everything is kept in that folder: killed and run again, it goes
on where it was cut off and repeats no job that ended. Without --data no job outlives the process.
A job deleted by --retention counts as new when its line comes again.

Further files are the workflows of child jobs (agent: workflow), which do steps of these jobs or of each other.

The whole file is checked before its first line is submitted. Jobs that a run before left under way go on meanwhile.

At its end it says how many jobs ended how, and why; --json prints one object: {"jobs":N,"processed":N,
"undone":N,"cancelled":N,"error":N,"seconds":S}, and undoneIds, cancelledIds and errorIds where there are any.

Exit status: 0 all jobs are Processed; 1 bad usage or input, no line was submitted; 2 some job ended
otherwise; 3 it was interrupted or failed, 130 it was interrupted twice and ended at once; after either
it goes on when run again with the same --data.`,
		Example: `  makegood run workflows/order/order.yaml --input examples/orders/orders.jsonl --data ./data
  makegood run order.yaml --input orders.jsonl --id '.customer + "-" + .id' --json
  makegood run order.yaml reserve-line.yaml --input orders.jsonl
  makegood run order.yaml --input orders.jsonl --json | jq -r '.undoneIds[]?'`,
		Args: some("WORKFLOW.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd, args, o, agents)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.input, "input", "", "`file` with one JSON value a line; - is standard input (required)")
	flags.StringVar(&o.id, "id", "", "`jq` expression that gives a line's job id (default: .id)")
	flags.StringVar(&o.data, "data", "", "`folder` that keeps everything; without it no job outlives the process")
	addRetention(cmd, &o.retention, 0)
	flags.BoolVar(&o.json, "json", false, "print the summary as one JSON object")
	flags.BoolVar(&o.verbose, "verbose", false, "log every decision to standard error")
	completeFolder(cmd, "data")
	completeFlag(cmd, "input", completeFiles("jsonl", "ndjson", "json"))
	cmd.ValidArgsFunction = completeFiles("yaml", "yml")
	require(cmd, "input")
	return cmd
}

// run returns nil when all jobs are Processed, and an error with an exit code otherwise.
func run(cmd *cobra.Command, workflows []string, o runOptions, agents []agent.Handler) (err error) {
	ctx := cmd.Context()
	compiled, inputs, err := o.prepare(cmd.InOrStdin(), workflows, agents)
	if err != nil {
		return exit(codeUsage, err)
	}
	defer inputs.Close()
	for _, c := range compiled {
		warn(cmd.ErrOrStderr(), c)
	}
	http, err := httpagent.New(httpagent.Policy{AllowPrivate: true})
	if err != nil {
		return exit(codeFailed, err)
	}
	defer http.Close()
	logger := newLogger(cmd.ErrOrStderr(), slog.LevelError, o.verbose)
	// What libraries log goes the same way: Go's HTTP client tells of every stray answer.
	slog.SetDefault(logger)
	bar := newBar(ctx, cmd.ErrOrStderr(), 0)
	r := batch.New(inputs, bar.endedOf)
	engine, err := embedded.Open(ctx, embedded.Config{
		Dir: o.data, Retention: time.Duration(o.retention), Agents: append([]agent.Handler{http}, agents...), Saved: r.Saved,
		Logger: logger, Notifier: untold{},
	})
	if err != nil {
		return exit(codeUsage, err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	for _, c := range compiled {
		if err := engine.Define(ctx, c); err != nil {
			return exit(codeUsage, err)
		}
	}
	summary, err := r.Do(ctx, engine, compiled[0])
	bar.close()
	if wrong := new(batch.InputError); errors.As(err, &wrong) {
		return exit(codeUsage, err)
	}
	if err != nil {
		return exit(codeFailed, stopped(err, summary, o))
	}
	if err := printSummary(cmd.OutOrStdout(), summary, o.json); err != nil {
		return exit(codeFailed, err)
	}
	if summary.Processed < summary.Jobs {
		return exit(codeOtherwise, nil)
	}
	return nil
}

// prepare reads the workflows and opens the file of inputs, which is read when the engine works. If a workflow is
// wrong, it reads the file, too, and returns everything that is wrong with either.
func (o runOptions) prepare(stdin io.Reader, workflows []string, agents []agent.Handler) ([]*workflowfile.Compiled, *batch.Inputs, error) {
	compiled, wrong, err := readTogether(workflows, agents)
	if err != nil {
		return nil, nil, err
	}
	file, name := io.NopCloser(stdin), stdinName
	if o.input != "-" {
		if file, err = os.Open(o.input); err != nil {
			return nil, nil, errors.Join(wrong, err)
		}
		name = o.input
	}
	inputs, err := batch.NewInputs(name, file, o.id)
	if err == nil && wrong != nil {
		_, err = inputs.Lines()
	}
	if err = errors.Join(wrong, err); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return compiled, inputs, nil
}

// readTogether reads the files of a workflow and of its child workflows. wrong has the mistakes in files it has read.
func readTogether(names []string, agents []agent.Handler) (all []*workflowfile.Compiled, wrong, err error) {
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		compiled, parseErr := workflowfile.Parse(name, source, workflowfile.WithAgents(agents...))
		wrong = errors.Join(wrong, parseErr)
		all = append(all, compiled)
	}
	if wrong != nil {
		return all, wrong, nil
	}
	for _, absent := range workflowfile.Absent(all...) {
		wrong = errors.Join(wrong, fmt.Errorf("%w: name its file, too", absent))
	}
	return all, wrong, nil
}

// untold leaves it to the summary to name the jobs in Error, since the user of run reads that.
type untold struct{}

func (untold) Announce(context.Context, notify.Notice) error    { return nil }
func (untold) AgentAlert(context.Context, string, string) error { return nil }

// newLogger writes records of a level and above, or all, and the same warning once a minute.
func newLogger(w io.Writer, level slog.Level, verbose bool) *slog.Logger {
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(quiet.New(telemetry.LogLines(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), time.Now))
}

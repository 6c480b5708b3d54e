package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

type submitOptions struct {
	remote
	id, input, startAt, replyTo, tenant, priority string
	labels                                        []string
	wait                                          bool

	// These are for a file of many.
	rate   string
	dryRun bool
}

func newSubmit() *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:   "submit WORKFLOW, or submit --input FILE.jsonl",
		Short: "Submit a job, or a file of jobs, to a running makegood dev, or to a deployed stack",
		Long: `Submit a job to a running makegood dev or a deployed stack, and print its id. It is stored when
this returns. The same id with the same workflow and input is the same job; with other content it is
refused.

Without a WORKFLOW, --input names a file of many, or - for standard input: one submission a line, as
{"workflow":"order","id":"order-17","input":{...}}, with startAt, replyTo, tenant, priority and labels where they
are wanted. All lines
are checked before the first is submitted, and each mistake is named by its line. A line without an id gets one
of the file's name, its number and its content; so the same command again, after it was cut off, submits no job
twice.

Exit status: 0 it is stored, and with --wait it ended Processed; 1 bad usage or refused; 2 with --wait:
it ended otherwise; 3 the API or AWS cannot be reached, and it is not known whether it is stored: submit it
again with the same --id. Of a file: 0 all are stored, or were already; 1 a line is wrong, none was
submitted; 2 some were refused; 3 it was cut off, or of some it is not known.`,
		Example: `  makegood submit order --id order-17 --input '{"id":"order-17","customer":"c-1","total":9.5}'
  makegood submit order --input @order.json --wait
  makegood submit order --input @order.json --stack shop-prod
  jq '.order' message.json | makegood submit order --input - --at 2026-12-24T18:00:00Z
  makegood submit --input orders.jsonl --stack shop-prod --rate 20/s
  makegood submit --input orders.jsonl --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().Changed("input") {
				return nil
			}
			return one("WORKFLOW")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return submitMany(cmd, o)
			}
			if o.rate != "" || o.dryRun {
				return exit(codeUsage, errors.New("--rate and --dry-run are for a file of many, without a WORKFLOW"))
			}
			return submit(cmd, args[0], o)
		},
	}
	o.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", "", "the job's `id`; without it one is made")
	flags.StringVar(&o.input, "input", "null", "the job's input: `JSON`, @FILE, or - for standard input; without a WORKFLOW, a file of submissions or -")
	flags.StringVar(&o.startAt, "at", "", "when the job may start: a `time` as in RFC 3339")
	flags.StringVar(&o.startAt, "start-at", "", "the same as --at: a `time` as in RFC 3339")
	flags.StringVar(&o.replyTo, "reply-to", "", "registered `name` of the receiver of the job's changes")
	flags.StringVar(&o.tenant, "tenant", "", "`name` of the tenant that the job is for: it is found by that")
	flags.StringVar(&o.priority, "priority", "", "`class` of the job before the gate of an agent with a limit: urgent, normal (the default) or idle")
	flags.StringArrayVar(&o.labels, "label", nil, fmt.Sprintf("`NAME=VALUE` by which it is found, too; several times, at most %d", limits.MaxLabels))
	flags.BoolVar(&o.wait, "wait", false, "wait until the job is at its end or in Error; a job below it that stands before a person is named on standard error")
	flags.StringVar(&o.rate, "rate", "", fmt.Sprintf("of a file at most `N/s` jobs a second (default: %d/s, and %d/s on a stack)", defaultRate, defaultStackRate))
	flags.BoolVar(&o.dryRun, "dry-run", false, "check a file, and submit none of its jobs")
	cmd.ValidArgsFunction = completeWorkflows(&o.remote)
	return cmd
}

func submit(cmd *cobra.Command, workflow string, o submitOptions) error {
	s := makegood.Submission{Workflow: workflow, ReplyTo: o.replyTo, Tenant: o.tenant, Priority: makegood.Priority(o.priority)}
	var err error
	if s.Labels, err = readLabels(o.labels); err != nil {
		return exit(codeUsage, err)
	}
	if o.startAt != "" {
		if s.StartAt, err = startTime(o.startAt); err != nil {
			return err
		}
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	if s.Input, err = o.readInput(cmd); err != nil {
		return err
	}
	s.ID = o.id
	job, err := c.Submit(cmd.Context(), s)
	if err != nil {
		return failed(cmd, err)
	}
	if job.Existed {
		fmt.Fprintln(cmd.ErrOrStderr(), "it was there already, with the same content")
	}
	if o.wait {
		if job, err = waitTelling(cmd, c, job.ID); err != nil {
			return failed(cmd, err)
		}
	}
	if err := printSubmitted(cmd.OutOrStdout(), job, o); err != nil || !o.wait {
		return err
	}
	return ended(job)
}

func readLabels(given []string) (map[string]string, error) {
	var labels map[string]string
	for _, text := range given {
		name, value, found := strings.Cut(text, "=")
		if _, twice := labels[name]; !found || twice {
			return nil, fmt.Errorf("--label %.40q: want NAME=VALUE, each name once", text)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels, limits.CheckLabels(labels)
}

// startTime reads --at.
func startTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, exit(codeUsage, fmt.Errorf("--at %s: want a time as in RFC 3339, such as 2026-12-24T18:00:00Z", text))
	}
	return at, nil
}

func printSubmitted(w io.Writer, job makegood.Job, o submitOptions) error {
	switch {
	case o.json:
		return printJSON(w, job)
	case o.wait:
		fmt.Fprintln(w, headline(job))
	default:
		fmt.Fprintln(w, job.ID)
	}
	return nil
}

// readJSON returns the JSON that a flag names.
func readJSON(flag string, stdin io.Reader, given string) (json.RawMessage, error) {
	text := []byte(given)
	var err error
	file, isFile := strings.CutPrefix(given, "@")
	switch {
	case given == "-":
		text, err = io.ReadAll(io.LimitReader(stdin, 2*makegood.MaxPayloadBytes))
	case isFile:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w; a text has quotes of its own, as in %s '\"text\"'; @FILE reads a file, - reads standard input", flag, err, flag)
	}
	return text, nil
}

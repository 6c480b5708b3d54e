package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/limits"
)

// tokenVariable is where --token - reads the completion token from, before standard input: neither a shell's history
// nor a list of processes shows it.
const tokenVariable = "MAKEGOOD_COMPLETION"

// saying is what the verbs of steps that wait have in common.
type saying struct {
	remote
	at    api.StepRef
	early string
	token string
}

func (o *saying) addFlags(cmd *cobra.Command) {
	o.remote.flags(cmd)
	o.askedBy(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.at.Undo, "undo", false, "the step's undo is meant")
	flags.IntVar(&o.at.Round, "round", 0, "refuse it in another round of the job than this `number`")
	flags.StringVar(&o.token, "token", "", "completion `token` of the step, in place of JOB and STEP; - reads it from "+tokenVariable+" or else from standard input, and keeps it out of the shell's history")
	cmd.Args = o.arguments
	cmd.ValidArgsFunction = completeSteps(&o.remote, waits)
}

// addEarly adds the flag that keeps an early answer; a heartbeat is never kept.
func (o *saying) addEarly(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.early, "early", "", "`keep`: an answer that comes before the step waits is kept for when it does; else it is refused")
	completeFlag(cmd, "early", completeOneOf("keep"))
}

// arguments wants a job and a step, or a token.
func (o *saying) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case o.token == "" && len(args) == 2:
		return nil
	case o.token == "":
		return fmt.Errorf("%s takes a JOB and a STEP, or --token, got %d arguments", cmd.Name(), len(args))
	case len(args) > 0:
		return fmt.Errorf("%s takes a JOB and a STEP or --token, not both: the token says which step is meant", cmd.Name())
	}
	return nil
}

// check reads what the flags say beside.
func (o *saying) check(args []string) error {
	if o.early != "" && o.early != "keep" {
		return exit(codeUsage, fmt.Errorf("--early %s: want keep", o.early))
	}
	if o.token != "" && (o.at.Undo || o.at.Round != 0 || o.early != "") {
		return exit(codeUsage, errors.New("--undo, --round and --early narrow a JOB and a STEP; a token says all that by itself, and its answer may come early"))
	}
	if o.at.Round < 0 {
		return exit(codeUsage, fmt.Errorf("--round %d: want 1 or more", o.at.Round))
	}
	if len(args) == 2 {
		o.at.Step, o.at.Early = args[1], o.early == "keep"
	}
	return nil
}

// readCompletion returns the token that --token names.
func (o *saying) readCompletion(stdin io.Reader) (string, error) {
	if o.token != "-" {
		return o.token, nil
	}
	if token := os.Getenv(tokenVariable); token != "" {
		return token, nil
	}
	text, err := io.ReadAll(io.LimitReader(stdin, 2*limits.MaxCompletionTokenBytes))
	token := strings.TrimSpace(string(text))
	if err == nil && token == "" {
		err = errors.New("standard input is empty")
	}
	if err != nil {
		return "", exit(codeUsage, fmt.Errorf("--token -: %s is not set, and %w", tokenVariable, err))
	}
	return token, nil
}

// says is what a verb does to a step, by its address or by its token.
type says struct {
	byAddress func(ctx context.Context, c *client.Client, job string) (makegood.Job, error)
	byToken   func(ctx context.Context, c api.Completion) (api.Standing, error)
}

// do sends it, and prints the step's state then.
func (o *saying) do(cmd *cobra.Command, args []string, s says) error {
	if err := o.check(args); err != nil {
		return err
	}
	if o.token != "" {
		return o.doByToken(cmd, s)
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	job, err := s.byAddress(cmd.Context(), c, args[0])
	if err != nil {
		return failed(cmd, err)
	}
	return o.printLine(cmd, job, headline(job)+changes(job))
}

func (o *saying) doByToken(cmd *cobra.Command, s says) error {
	token, err := o.readCompletion(cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	stands, err := s.byToken(cmd.Context(), c.Completion(token))
	if err != nil {
		return failed(cmd, err)
	}
	line := string(stands.State)
	if stands.CompleteBy != nil {
		line += " until " + moment(stands.CompleteBy)
	}
	if stands.Existed {
		line += "; it was so already"
	}
	return o.printLine(cmd, stands, line)
}

// sayingStatus is the exit status of these verbs.
const sayingStatus = `

Exit status: 0 it is stored, or was so already; 1 bad usage, refused (it shows the answer that stands), or no such job, token
or stack; 3 the API or AWS cannot be reached, and it is not known whether it was taken: say it again.`

func newComplete() *cobra.Command {
	var o saying
	var output string
	cmd := &cobra.Command{
		Use:   "complete JOB STEP",
		Short: "Complete a step that waits, with its output",
		Long: `Complete a step that waits: its agent has left it waiting, or it is an approval or a wait. The first answer wins,
the same again is the same, and another one is refused with the one that stands. The holder of the step's completion token
needs neither JOB nor STEP.` + sayingStatus,
		Example: `  makegood complete order-17 charge --output '{"charge":"c-1"}'
  makegood complete order-17 approve --output '"reject"' --why 'too dear'
  makegood complete order-17 charge --output @charge.json --stack shop-prod
  MAKEGOOD_COMPLETION=c1... makegood complete --token - --output '"approve"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "-" && o.token == "-" && os.Getenv(tokenVariable) == "" {
				return exit(codeUsage, fmt.Errorf("--output and --token are both to be read from standard input; %s takes the token", tokenVariable))
			}
			value, err := readJSON("--output", cmd.InOrStdin(), output)
			if err != nil {
				return exit(codeUsage, err)
			}
			return o.do(cmd, args, says{
				func(ctx context.Context, c *client.Client, job string) (makegood.Job, error) {
					return c.Complete(ctx, job, o.at, value)
				},
				func(ctx context.Context, c api.Completion) (api.Standing, error) { return c.Complete(ctx, value) },
			})
		},
	}
	o.addFlags(cmd)
	o.addEarly(cmd)
	cmd.Flags().StringVar(&o.at.Why, "why", "", "the reason for the answer, a `text`; some approvals want it. Not with --token")
	cmd.Flags().StringVar(&output, "output", "null", "what the step gave: `JSON`, @FILE, or - for standard input")
	return cmd
}

// newFail makes the verb that says that a step that waits has failed.
func newFail() *cobra.Command {
	var o saying
	var reason string
	var final, notApplied bool
	cmd := &cobra.Command{
		Use:   "fail JOB STEP",
		Short: "Say that a step that waits has failed",
		Long: `Say that a step that waits has failed. It is tried again as its workflow says, unless --final. Its outcome counts as
unknown, and so it is undone when the job is, unless --not-applied.` + sayingStatus,
		Example: `  makegood fail order-17 charge --reason 'the bank is closed'
  makegood fail order-17 charge --reason 'no such account' --final --not-applied
  makegood fail --token - --reason 'the bank is closed' < token`,
		RunE: func(cmd *cobra.Command, args []string) error {
			why := makegood.StepError{Message: reason, Retryable: !final, Applied: makegood.AppliedUnknown}
			if notApplied {
				why.Applied = makegood.AppliedNo
			}
			if reason == "" {
				return exit(codeUsage, errors.New("fail needs a --reason"))
			}
			return o.do(cmd, args, says{
				func(ctx context.Context, c *client.Client, job string) (makegood.Job, error) {
					return c.Fail(ctx, job, o.at, why)
				},
				func(ctx context.Context, c api.Completion) (api.Standing, error) { return c.Fail(ctx, why) },
			})
		},
	}
	o.addFlags(cmd)
	o.addEarly(cmd)
	flags := cmd.Flags()
	flags.StringVar(&reason, "reason", "", "`why`; it is kept as the step's error")
	flags.BoolVar(&final, "final", false, "do not try it again")
	flags.BoolVar(&notApplied, "not-applied", false, "it is known that it had no effect")
	return cmd
}

// newHeartbeat makes the verb that has a step wait longer.
func newHeartbeat() *cobra.Command {
	var o saying
	var until string
	var extra time.Duration
	cmd := &cobra.Command{
		Use:   "heartbeat JOB STEP",
		Short: "Have a step that waits wait longer",
		Long: `Have a step that waits wait longer: until a time, for some time from now, or, without either, as long again as it was
to wait. Its deadline is never moved back.` + sayingStatus,
		Example: `  makegood heartbeat order-17 charge --for 48h
  makegood heartbeat order-17 charge --until 2026-12-24T18:00:00Z
  makegood heartbeat --token - < token`,
		RunE: func(cmd *cobra.Command, args []string) error {
			deadline, err := readDeadline(cmd, until, extra, time.Now())
			if err != nil {
				return exit(codeUsage, err)
			}
			return o.do(cmd, args, says{
				func(ctx context.Context, c *client.Client, job string) (makegood.Job, error) {
					return c.Heartbeat(ctx, job, o.at, deadline)
				},
				func(ctx context.Context, c api.Completion) (api.Standing, error) { return c.Heartbeat(ctx, deadline) },
			})
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&until, "until", "", "its new deadline: a `time` as in RFC 3339")
	cmd.Flags().DurationVar(&extra, "for", 0, "its new deadline, as a `duration` from now, such as 48h")
	cmd.MarkFlagsMutuallyExclusive("until", "for")
	return cmd
}

// readDeadline returns the deadline that the flags name; zero: none.
func readDeadline(cmd *cobra.Command, until string, extra time.Duration, now time.Time) (time.Time, error) {
	if cmd.Flags().Changed("for") {
		if extra <= 0 || extra > makegood.MaxWait {
			return time.Time{}, fmt.Errorf("--for %s: want more than 0s, and at most %s", extra, makegood.MaxWait)
		}
		return now.Add(extra), nil
	}
	if until == "" {
		return time.Time{}, nil
	}
	deadline, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return time.Time{}, fmt.Errorf("--until %s: want a time as in RFC 3339, such as 2026-12-24T18:00:00Z", until)
	}
	return deadline, nil
}

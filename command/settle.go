package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
)

// settling is what the flags of settle say.
type settling struct {
	undo                   bool
	done, skipped, notDone bool
	round, attempt         int
	output, reason         string
}

func (s *settling) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&s.undo, "undo", false, "the step's undo is meant")
	flags.IntVar(&s.round, "round", 0, "refuse it in another round of the job than this `number`")
	flags.IntVar(&s.attempt, "attempt", 0, "refuse it if another attempt than this `number` is the latest")
	flags.BoolVar(&s.done, "done", false, "it was done, by other means")
	flags.BoolVar(&s.skipped, "skipped", false, "it is left out; needs a --reason")
	flags.BoolVar(&s.notDone, "not-done", false, "it had no effect that stands, and is not to be undone; needs a --reason")
	flags.StringVar(&s.output, "output", "null", "its output, if it was done: `JSON`, @FILE, or - for standard input")
	flags.StringVar(&s.reason, "reason", "", "`why`; it is kept with the step for ever")
	cmd.MarkFlagsOneRequired("done", "skipped", "not-done")
	cmd.MarkFlagsMutuallyExclusive("done", "skipped", "not-done")
	cmd.MarkFlagsMutuallyExclusive("output", "skipped", "not-done")
	cmd.MarkFlagsMutuallyExclusive("undo", "not-done")
}

// read checks what the flags say, and reads the output that they name.
func (s *settling) read(cmd *cobra.Command) (api.SettleOptions, error) {
	switch {
	case s.round < 0:
		return api.SettleOptions{}, fmt.Errorf("--round %d: want 1 or more", s.round)
	case s.attempt < 0:
		return api.SettleOptions{}, fmt.Errorf("--attempt %d: want 1 or more", s.attempt)
	case s.skipped && s.reason == "":
		return api.SettleOptions{}, errors.New("--skipped needs a --reason: it is kept with the step for ever")
	case s.notDone && s.reason == "":
		return api.SettleOptions{}, errors.New("--not-done needs a --reason: say how you know that no effect of the step stands")
	}
	var output json.RawMessage
	if s.done {
		value, err := readJSON("--output", cmd.InOrStdin(), s.output)
		if err != nil {
			return api.SettleOptions{}, err
		}
		output = value
	}
	return api.SettleOptions{Skipped: s.skipped, NotDone: s.notDone, Attempt: s.attempt, Output: output, Reason: s.reason}, nil
}

// newSettle makes the verb that says that a person has dealt with a step.
func newSettle() *cobra.Command {
	var o manyOptions
	var s settling
	cmd := &cobra.Command{
		Use:   "settle JOB... STEP --done|--skipped|--not-done",
		Short: "Say that you have dealt with a step, or its undo, yourself",
		Long: `Say that you have dealt with a step, or with its undo, outside the job: the refund was made by bank transfer, the
parcel went by courier. It counts as done, with an output, or as skipped, and the job goes on, if none of its other steps has
failed. The step shows for ever who settled it, when and why. A step that is skipped and may have had an effect is
undone when the job is.

Of a step that failed and may have had an effect say --not-done when no effect of it stands: it had none, or you have
taken it back. --attempt says which attempt you speak of. Then it is not undone, and may be tried again, also by another definition or with another input. The job
stays where it is.

An attempt that is out is ended first; while an agent holds it, settle is refused, with the name of its holder and the time
until which they hold it. It is also refused for a step while the job is being undone, for an undo while it is not, and for a
step that is done or settled already.` + manyHelp,
		Example: `  makegood settle order-17 charge --undo --done --reason 'refunded by bank transfer'
  makegood settle order-17 reserve --done --output '{"lot":7}' --reason 'booked by phone'
  makegood settle order-17 notify --skipped --reason 'the customer knows' --stack shop-prod
  makegood settle order-17 charge --not-done --reason 'the bank knows of no payment'
  makegood settle --state Error --workflow order notify --skipped --reason 'the fair is over' --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.output == "-" && args[0] == "-" {
				return exit(codeUsage, errors.New("the ids and --output are both to be read from standard input; --output takes @FILE, too"))
			}
			says, err := s.read(cmd)
			if err != nil {
				return exit(codeUsage, err)
			}
			at := api.StepRef{Step: args[len(args)-1], Undo: s.undo, Round: s.round}
			return o.do(cmd, args[:len(args)-1], asked{
				name: "settle", words: []any{at, says},
				one: func(ctx context.Context, c *client.Client, id, request string) (makegood.Job, error) {
					named := says
					named.Name = request
					return c.Settle(ctx, id, at, named)
				},
				would: func(job makegood.Job) outcome { return wouldSettle(job, at, s.notDone) },
				show:  func(job makegood.Job) string { return headline(job) + changes(job) },
			})
		},
	}
	o.flags(cmd)
	o.askedBy(cmd)
	s.addFlags(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || len(args) == 1 && o.filter.given(cmd) == "" {
			return fmt.Errorf("%s takes a JOB and a STEP, got %d arguments", cmd.Name(), len(args))
		}
		return o.arguments(cmd, args[:len(args)-1])
	}
	cmd.ValidArgsFunction = completeSteps(&o.remote, func(a makegood.Activity) bool { return a.State != makegood.StepDone && a.Settled == nil })
	return cmd
}

// wouldSettle says what settling a step would do to a job, as far as a look shows it.
func wouldSettle(job makegood.Job, at api.StepRef, notDone bool) outcome {
	i := slices.IndexFunc(job.Steps, func(s makegood.JobStep) bool { return s.Name == at.Step })
	if i < 0 {
		return outcome{Outcome: refused, Reason: "it has no step " + at.Step}
	}
	side, of := job.Steps[i].Activity, "step "+at.Step
	if at.Undo {
		side, of = makegood.Activity{State: makegood.StepNotStarted}, "undo of step "+at.Step
		if undo := job.Steps[i].Undo; undo != nil {
			side = *undo
		}
	}
	if side.State == makegood.StepDone || side.Settled != nil && !notDone {
		return outcome{Outcome: refused, Reason: of + " is " + string(side.State) + " already"}
	}
	return outcome{Outcome: granted, Would: "settles " + of + ", which is " + string(side.State)}
}

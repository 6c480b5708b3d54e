package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// answering is what answer says to each job.
type answering struct {
	at     api.StepRef
	answer string
	// definitions has the makegood.Workflow of each hash that a dry run has met.
	definitions *sync.Map
}

// newAnswer makes the verb that answers what approvals ask, of one job or many.
func newAnswer() *cobra.Command {
	var o manyOptions
	a := answering{definitions: &sync.Map{}}
	cmd := &cobra.Command{
		Use:   "answer JOB... STEP ANSWER",
		Short: "Answer what an approval asks, of one job or many",
		Long: `Answer the question of an approval that waits, with one of its choices. The first answer wins, the same again is the
same, and another one is refused with the answer that stands. A step that waits without a question is left alone: complete gives it an output.

It takes one job, several, - (their ids on standard input, one a line, or what list --json prints), or the filters of list, which
find jobs that wait at STEP unless they say otherwise. On a terminal the command asks before it acts on jobs of a filter; elsewhere --yes is
needed. --dry-run shows each question, and what would follow. Cut off, the same command goes on with the jobs that are left.

Exit status of one job: 0 it is stored, or was so already; 1 bad usage, refused, or no such job or stack; 3 the API
or AWS cannot be reached, and it is not known whether it was taken: ask again. Of many: 0 all are stored, or were so
already; 1 bad usage, no job was changed; 2 some were refused; 3 it was cut off, or of some it is not known.`,
		Example: `  makegood answer trip-7 approve reject --why 'over budget'
  makegood answer --workflow trip approve approve --dry-run
  makegood answer --workflow trip --since 24h approve approve --who ann --yes
  makegood list --state waiting --tenant acme --json | makegood answer - approve approve --stack shop-prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs := args[:len(args)-2]
			a.at.Step, a.answer = args[len(args)-2], args[len(args)-1]
			if a.at.Round < 0 {
				return exit(codeUsage, fmt.Errorf("--round %d: want 1 or more", a.at.Round))
			}
			if len(jobs) == 0 {
				o.filter.narrow(cmd, "state", string(api.JobWaiting))
				o.filter.narrow(cmd, "step", a.at.Step)
			}
			return o.do(cmd, jobs, asked{
				name: "answer", one: a.one, foreseen: a.foresee,
				show: func(job makegood.Job) string { return headline(job) + changes(job) },
			})
		},
	}
	o.baseFlags(cmd)
	o.askedBy(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.at.Why, "why", "", "the reason for the answer, a `text`; some approvals want it")
	flags.BoolVar(&a.at.Undo, "undo", false, "the approval is the step's undo")
	flags.IntVar(&a.at.Round, "round", 0, "refuse it in another round of the job than this `number`")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch set := o.filter.given(cmd); {
		case len(args) < 2:
			return fmt.Errorf("%s takes jobs, a STEP and an ANSWER, got %d arguments", cmd.Name(), len(args))
		case len(args) == 2 && set == "":
			return fmt.Errorf("%s needs a JOB, several, - for standard input, or a filter such as --workflow trip, before STEP and ANSWER", cmd.Name())
		}
		return o.arguments(cmd, args[:len(args)-2])
	}
	cmd.ValidArgsFunction = completeSteps(&o.remote, waits)
	return cmd
}

// one answers the question of one job. It reads the question first: a step that waits without a question would take
// any output.
func (a answering) one(ctx context.Context, c *client.Client, id, _ string) (makegood.Job, error) {
	offers, err := c.Offers(ctx, id)
	if err != nil {
		return makegood.Job{}, err
	}
	step, complete := a.asks(offers)
	if complete.Granted() {
		if wrong := a.misfit(step); wrong != "" {
			return makegood.Job{}, &api.RefusedError{Reason: wrong}
		}
	}
	output, err := json.Marshal(a.answer)
	if err != nil {
		return makegood.Job{}, err
	}
	// If the step does not wait, the engine answers: it refuses, or it has the same answer already.
	job, err := c.Complete(ctx, id, a.at, output)
	job.Existed = job.Existed || err == nil && !complete.Granted()
	return job, err
}

// asks returns what a job says of the step, and of completing it: refused where it is not there.
func (a answering) asks(offers makegood.Offers) (makegood.StepOffers, makegood.Offer) {
	step, _ := domain.OffersOfStep(offers, a.at.Step, a.at.Undo)
	complete, there := domain.StepOffer(step, domain.AskComplete)
	if !there {
		complete = makegood.Offer{Effect: limits.OfferRefused, Reason: "step " + a.at.Step + " asks no question now"}
	}
	return step, complete
}

// misfit says why a step that waits cannot be given this answer; empty: it can.
func (a answering) misfit(step makegood.StepOffers) string {
	switch {
	case len(step.Choices) == 0:
		return "step " + a.at.Step + " is no approval and asks no question: complete gives it an output"
	case !slices.Contains(step.Choices, a.answer):
		return fmt.Sprintf("%q is none of its answers, which are %s", a.answer, strings.Join(step.Choices, ", "))
	}
	return ""
}

// foresee says what would come of answering one job.
func (a answering) foresee(ctx context.Context, c *client.Client, id string) outcome {
	offers, err := c.Offers(ctx, id)
	if err != nil {
		return outcomeOf(id, bulk.AnswerOf(makegood.Job{}, err))
	}
	foreseen := outcome{Job: id, State: offers.ProcessState, Outcome: refused}
	step, complete := a.asks(offers)
	switch {
	case complete.Effect == limits.OfferAlready:
		foreseen.Outcome = duplicate
	case !complete.Granted():
		foreseen.Reason = complete.Reason
	default:
		if foreseen.Reason = a.misfit(step); foreseen.Reason == "" {
			foreseen.Outcome = granted
			foreseen.Would = strings.TrimSpace(step.Question+" "+complete.Effect) + a.follows(ctx, c, id)
		}
	}
	return foreseen
}

// follows returns the effect of the answer by the job's definition; empty: the job only goes on, or the definition
// cannot be read.
func (a answering) follows(ctx context.Context, c *client.Client, id string) string {
	job, err := c.Look(ctx, id)
	if err != nil || a.at.Undo {
		return ""
	}
	known, is := a.definitions.Load(job.Definition)
	if !is {
		definition, err := c.Definition(ctx, job.Definition)
		if err != nil {
			return ""
		}
		known, _ = a.definitions.LoadOrStore(job.Definition, definition.Workflow)
	}
	for _, s := range known.(makegood.Workflow).Steps {
		if do, says := s.OnAnswer[a.answer]; says && s.Name == a.at.Step {
			return "; onAnswer: " + do.String()
		}
	}
	return ""
}

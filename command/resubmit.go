package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/domain"
)

// newResubmit makes the verb that lets a job go on, perhaps by another definition or with another input.
func newResubmit() *cobra.Command {
	short := domain.VerbOf(string(makegood.VerbResubmit)).Says
	var o manyOptions
	var reason, definition, input string
	cmd := &cobra.Command{
		Use:   "resubmit ID...",
		Short: short,
		Long: short + `.

With --definition the job is moved to another definition of its workflow first. Steps done, skipped, waiting or under way
must be there unchanged, and so must an undo that has begun; steps that failed or have not begun may be changed, be missing or be
new. With --input it has another input from then on; steps that are done have seen the one before. --dry-run shows what
would become of each step. Of the filters of list, --definition is called --from here.

` + grantedIn(makegood.VerbResubmit) + manyHelp,
		Example: `  makegood resubmit order-17 --reason 'the bank is back'
  makegood resubmit order-17 --definition current --dry-run
  makegood resubmit --state Error --workflow order --definition current --yes
  makegood resubmit order-17 --input @order.json --stack shop-prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := api.Request{Verb: makegood.VerbResubmit, Reason: reason, Definition: definition}
			if cmd.Flags().Changed("input") {
				value, err := readInput(cmd, args, input)
				if err != nil {
					return exit(codeUsage, err)
				}
				r.Input = value
			}
			asks := askedOf(r)
			asks.ofJob = string(makegood.VerbResubmit) // The state of the job does not say in which direction it goes on.
			if r.Definition != "" || r.Input != nil {
				asks.plan = func(ctx context.Context, c *client.Client, id, request string) (makegood.Plan, error) {
					r := r
					r.Name = request
					return c.Plan(ctx, id, r)
				}
			}
			return o.do(cmd, args, asks)
		},
	}
	o.moving(cmd, makegood.VerbResubmit, &reason, &definition)
	cmd.Flags().StringVar(&input, "input", "", "give it another input first: `JSON`, @FILE, or - for standard input")
	return cmd
}

// moving adds the flags of a verb that may move jobs to another definition, which --definition names; the filter for
// the definition that they have is called --from there.
func (o *manyOptions) moving(cmd *cobra.Command, verb makegood.Verb, reason, definition *string) {
	o.filter.renamed = map[string]string{"definition": "from"}
	o.flags(cmd)
	o.askedBy(cmd)
	cmd.Flags().StringVar(reason, "reason", "", "`why`; "+reasonKept(verb))
	cmd.Flags().StringVar(definition, "definition", "", "move it to this `definition` first: current, or a hash")
}

// readInput reads the input that a flag names.
func readInput(cmd *cobra.Command, args []string, input string) (json.RawMessage, error) {
	if input == "-" && len(args) == 1 && args[0] == "-" {
		return nil, errors.New("--input and the ids are both to be read from standard input")
	}
	return readJSON("--input", cmd.InOrStdin(), input)
}

// planned is what a plan says of a job, beside others.
func planned(id string, plan makegood.Plan, err error) outcome {
	switch {
	case err != nil:
		return outcomeOf(id, bulk.AnswerOf(makegood.Job{}, err))
	case plan.Existed:
		return outcome{Job: id, Outcome: duplicate, Plan: &plan}
	}
	return outcome{Job: id, Outcome: granted, Plan: &plan}
}

// printPlan shows what would become of each step.
func printPlan(w io.Writer, plan makegood.Plan) {
	fmt.Fprintf(w, "%s  %s", plan.Job, plan.Effect)
	if plan.To != plan.From {
		fmt.Fprintf(w, ", by definition %.12s in place of %.12s", plan.To, plan.From)
	}
	if plan.Input {
		fmt.Fprint(w, ", with another input")
	}
	fmt.Fprintln(w)
	width := 0
	for _, s := range plan.Steps {
		width = max(width, len(s.Name))
	}
	for _, s := range plan.Steps {
		line := fmt.Sprintf("  %-*s  %-5s  %s", width, s.Name, s.Fate, s.State)
		if s.Undo != "" {
			line += ", undo " + string(s.Undo)
		}
		if len(s.Differs) > 0 {
			line += "; differs in " + strings.Join(s.Differs, ", ")
		}
		for _, note := range domain.Notes(s) {
			line += "; " + note
		}
		fmt.Fprintln(w, line)
	}
}

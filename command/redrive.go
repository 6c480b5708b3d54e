package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// newRedrive makes the verb that does the failed items of maps again, perhaps by another definition.
func newRedrive() *cobra.Command {
	short := domain.VerbOf(string(makegood.VerbRedrive)).Says
	var o manyOptions
	var reason, definition, index string
	cmd := &cobra.Command{
		Use:   "redrive {ID... | ID STEP --index N}",
		Short: short,
		Long: short + `.

Items that are done stay as they are. The output of the step with the map is made anew, and the steps behind it are not
done again. With --definition the job is moved to another definition of its workflow first: the agent, the action, the
retry and the timeout of the items may differ there; their list, their input and their undo may not. Of the filters of list,
--definition is called --from here. makegood get ID says how many items have failed, and why.

With --index only these items of a step with a map are done again, and others that have failed stay as they are. It is
refused as a whole where one of them has not failed. Of a batch only the named items are done again.

` + grantedIn(makegood.VerbRedrive) + manyHelp,
		Example: `  makegood redrive order-17 --reason 'the goods came in'
  makegood redrive order-17 --definition current
  makegood redrive order-17 reserve --index 3,17-20
  makegood redrive --state Processed --workflow order --dry-run
  makegood redrive - --stack shop-prod --rate 20/s < ids`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := api.Request{Verb: makegood.VerbRedrive, Reason: reason, Definition: definition, Indexes: index}
			if index != "" {
				if len(args) != 2 {
					return exit(codeUsage, errors.New("--index wants one job and its step with the map: makegood redrive ID STEP --index 3,17-20"))
				}
				request.Step, args = args[1], args[:1]
			}
			asks := askedOf(request)
			asks.ofJob = string(makegood.VerbRedrive) // The state of the job does not say whether an item has failed.
			return o.do(cmd, args, asks)
		},
	}
	o.moving(cmd, makegood.VerbRedrive, &reason, &definition)
	cmd.Flags().StringVar(&index, "index", "", fmt.Sprintf("only these `items` of STEP, by their places from 0: 3, or 3,17-20; at most %d", limits.MaxIndexes))
	return cmd
}

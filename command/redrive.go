package command

import (
	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
)

// newRedrive makes the verb that does the failed items of maps again, perhaps by another definition.
func newRedrive() *cobra.Command {
	short := domain.VerbOf(string(makegood.VerbRedrive)).Says
	var o manyOptions
	var reason, definition string
	cmd := &cobra.Command{
		Use:   "redrive ID...",
		Short: short,
		Long: short + `.

Items that are done stay as they are. The output of the step with the map is made anew, and the steps behind it are not
done again. With --definition the job is moved to another definition of its workflow first: the agent, the action, the
retry and the timeout of the items may differ there; their list, their input and their undo may not. Of the filters of list,
--definition is called --from here. makegood get ID says how many items have failed, and why.

` + grantedIn(makegood.VerbRedrive) + manyHelp,
		Example: `  makegood redrive order-17 --reason 'the goods came in'
  makegood redrive order-17 --definition current
  makegood redrive --state Processed --workflow order --dry-run
  makegood redrive - --stack shop-prod --rate 20/s < ids`,
		RunE: func(cmd *cobra.Command, args []string) error {
			asks := askedOf(api.Request{Verb: makegood.VerbRedrive, Reason: reason, Definition: definition})
			asks.ofJob = string(makegood.VerbRedrive) // The state of the job does not say whether an item has failed.
			return o.do(cmd, args, asks)
		},
	}
	o.moving(cmd, makegood.VerbRedrive, &reason, &definition)
	return cmd
}

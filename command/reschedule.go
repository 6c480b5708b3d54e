package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
)

// newReschedule makes the verb that moves the start of a job.
func newReschedule() *cobra.Command {
	short := domain.VerbOf(string(makegood.VerbReschedule)).Says
	var o manyOptions
	var at string
	cmd := &cobra.Command{
		Use:   "reschedule ID... --at TIME",
		Short: short,
		Long: short + `. Its timeout counts from the new start. A time that
has passed is at once; one more than ` + makegood.MaxStartDelay.String() + ` ahead is refused.

` + grantedIn(makegood.VerbReschedule) + manyHelp,
		Example: `  makegood reschedule report-2026 --at 2027-01-01T06:00:00Z
  makegood reschedule report-2026 --at 2027-01-01T06:00:00+01:00 --json
  makegood reschedule report-2026 --at 2027-01-01T06:00:00Z --stack shop-prod
  makegood reschedule --state Pending --workflow report --at 2027-01-01T06:00:00Z --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at == "" {
				return exit(codeUsage, errors.New("--at is missing: when the job is to start"))
			}
			startAt, err := startTime(at)
			if err != nil {
				return err
			}
			return o.do(cmd, args, askedOf(api.Request{Verb: makegood.VerbReschedule, StartAt: startAt}))
		},
	}
	o.flags(cmd)
	o.askedBy(cmd)
	cmd.Flags().StringVar(&at, "at", "", "when the job is to start: a `time` as in RFC 3339")
	return cmd
}

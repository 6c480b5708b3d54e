package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
)

// newReschedule makes the verb that moves the start of a job.
func newReschedule() *cobra.Command {
	const short = "Move the start of a job of which nothing has begun"
	var o remote
	var at string
	cmd := &cobra.Command{
		Use:   "reschedule ID --at TIME",
		Short: short,
		Long: short + `. Its timeout counts from the new start. A time that
has passed is at once; one more than ` + makegood.MaxStartDelay.String() + ` ahead is refused.

` + grantedIn(makegood.Reschedule) + `

Exit status: 0 it is stored, or was so already; 1 bad usage, refused, or no such job or stack; 3 the API
or AWS cannot be reached, and it is not known whether it was granted: ask again.`,
		Example: `  makegood reschedule report-2026 --at 2027-01-01T06:00:00Z
  makegood reschedule report-2026 --at 2027-01-01T06:00:00+01:00 --json
  makegood reschedule report-2026 --at 2027-01-01T06:00:00Z --stack shop-prod`,
		Args: one("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at == "" {
				return exit(codeUsage, errors.New("--at is missing: when the job is to start"))
			}
			startAt, err := startTime(at)
			if err != nil {
				return err
			}
			c, err := o.client(cmd)
			if err != nil {
				return err
			}
			job, err := c.Reschedule(cmd.Context(), args[0], startAt)
			if err != nil {
				return failed(cmd, err)
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), job)
			}
			fmt.Fprintln(cmd.OutOrStdout(), headline(job))
			return nil
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&at, "at", "", "when the job is to start: a `time` as in RFC 3339")
	cmd.ValidArgsFunction = completeIDs(&o, new(string))
	return cmd
}

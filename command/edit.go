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

// editOptions are the flags of edit.
type editOptions struct {
	manyOptions
	timeout, reason, step, tolerate string
	concurrency                     int
}

// newEdit makes the verb that gives a job another timeout, or the map of a step other figures.
func newEdit() *cobra.Command {
	short := domain.VerbOf(string(makegood.VerbEdit)).Says
	var o editOptions
	cmd := &cobra.Command{
		Use:   "edit ID... --timeout D | --map STEP --concurrency N --tolerate N",
		Short: short,
		Long: short + `.

With --timeout it may go forward that long from now on, or from its start if that is ahead, and, if it is in Error, from
when it is resubmitted; also in later rounds, and under another definition. From ` + domain.TimeoutText(makegood.Duration(limits.MinTimeout)) + ` to ` + domain.TimeoutText(makegood.Duration(limits.MaxJobTimeout)) + `; none: as long as it takes.

` + grantedIn(makegood.VerbEdit) + `

With --map the map of that step has another concurrency or tolerance, until it has ended; also while the job is being
undone, in later rounds, and under another definition. A lower concurrency interrupts no item: none begins until fewer are
under way. A lower tolerance gives a map up at once that has more failed items.` + manyHelp,
		Example: `  makegood edit order-17 --timeout 2h --reason 'the bank is slow today'
  makegood edit order-17 --timeout none
  makegood edit order-17 --map reserve --concurrency 5 --reason 'the shop is slow'
  makegood edit order-17 --map reserve --tolerate 1%/500
  makegood edit --state Processing --workflow order --timeout 3d --dry-run --stack shop-prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := o.request(cmd)
			if err != nil {
				return exit(codeUsage, err)
			}
			asks := askedOf(asked)
			if asked.Step != "" {
				asks.ofJob, asks.ofStep = domain.AskEdit, asked.Step // The state of the job does not say whether its map has ended.
			}
			return o.do(cmd, args, asks)
		},
	}
	o.flags(cmd)
	o.askedBy(cmd)
	cmd.Flags().StringVar(&o.timeout, "timeout", "", "how `long` it may go forward, such as 90m or 3d, or none")
	cmd.Flags().StringVar(&o.step, "map", "", "the `step` with the map that is edited")
	cmd.Flags().IntVar(&o.concurrency, "concurrency", 0, fmt.Sprintf("how many of its items may be under way at once, 1 to %d", limits.MaxConcurrency))
	cmd.Flags().StringVar(&o.tolerate, "tolerate", "", "how `many` of its items may fail: a number, a share and the number from which on it counts (1%/500), both (10,1%/500), or none")
	cmd.Flags().StringVar(&o.reason, "reason", "", "`why`; "+reasonKept(makegood.VerbEdit))
	return cmd
}

// request reads the flags.
func (o *editOptions) request(cmd *cobra.Command) (api.Request, error) {
	r := api.Request{Verb: makegood.VerbEdit, Reason: o.reason, Step: o.step, Concurrency: o.concurrency}
	figures := cmd.Flags().Changed("concurrency") || o.tolerate != ""
	switch {
	case (o.step != "") != figures:
		return r, errors.New("--map says the step whose map has another --concurrency or --tolerate: give both")
	case figures == (o.timeout != ""):
		return r, errors.New("--timeout is missing: how long it may go forward, or none; or --map, with --concurrency or --tolerate")
	case o.timeout != "":
		var err error
		if r.Timeout, err = domain.ParseTimeout(o.timeout); err != nil {
			return r, fmt.Errorf("--timeout: %w", err)
		}
		return r, nil
	}
	if o.tolerate != "" {
		t, err := domain.ParseTolerance(o.tolerate)
		if err != nil {
			return r, fmt.Errorf("--tolerate: %w", err)
		}
		r.Tolerate = &t
	}
	if cmd.Flags().Changed("concurrency") && o.concurrency == 0 {
		return r, fmt.Errorf("--concurrency: want 1 to %d", limits.MaxConcurrency)
	}
	return r, domain.CheckFigures(r.Concurrency, r.Tolerate)
}

package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

type limitsApply struct {
	remote
	prune, dryRun bool
}

// newApplyLimits makes the verb that sets the limits of a file.
func newApplyLimits() *cobra.Command {
	var o limitsApply
	cmd := &cobra.Command{
		Use:   "apply [FILE]",
		Short: "Set the limits of agents as a file has them",
		Long: fmt.Sprintf(`Set the limits of agents as a file has them: %[1]s, or FILE; - is standard input. The file maps each agent to its
concurrency, rate, burst, key and reason, as agents limit has them. It is checked as a whole first: if one limit is
wrong, or of an agent that is not there, none is set. A limit that stands already is left as it is, with its time and its
author. One that differs is replaced, also where a person has set it by hand, and the line says which limit that was.

Exit status: 0 the limits stand as the file has them; 1 bad usage, a bad file, refused, or no such agent or stack; 2 with
--dry-run: they do not stand so; 3 the API or AWS cannot be reached: the lines say which limits were set; make it again.`, workflowfile.LimitsFile),
		Example: "  makegood agents apply\n  makegood agents apply limits/prod.yaml --prune --stack shop-prod\n  makegood agents apply --dry-run --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.apply(cmd, append(args, workflowfile.LimitsFile)[0])
		},
	}
	o.flags(cmd)
	o.askedBy(cmd)
	cmd.Flags().BoolVar(&o.prune, "prune", false, "take away the limits of agents that the file does not name")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what it would change, and change nothing")
	cmd.ValidArgsFunction = completeFiles("yaml", "yml")
	return cmd
}

// limitChange is what becomes of the limit of an agent.
type limitChange struct {
	// AgentLimit is that of the file; of an agent that the file does not name it has no limit.
	workflowfile.AgentLimit
	// Change is set, changed, unchanged or removed.
	Change string `json:"change"`
	// Was is the limit that stood before; nil: there was none.
	Was *makegood.Hold `json:"was"`
}

const unchanged = "unchanged"

// limitChanges compares the limits of a file with those that stand. The limits to remove come first, since there is a
// greatest number of limits.
func limitChanges(file []workflowfile.AgentLimit, stand []makegood.Hold, prune bool) (all []limitChange) {
	was := map[string]*makegood.Hold{}
	for _, h := range stand {
		if h.Kind != makegood.HoldLimit {
			continue
		}
		was[h.Name] = &h
		if prune && !slices.ContainsFunc(file, func(l workflowfile.AgentLimit) bool { return l.Agent == h.Name }) {
			all = append(all, limitChange{workflowfile.AgentLimit{Agent: h.Name}, "removed", &h})
		}
	}
	for _, l := range file {
		c := limitChange{l, "changed", was[l.Agent]}
		if c.Was == nil {
			c.Change = "set"
		} else if l.Limit == domain.LimitOf(*c.Was) && (l.Reason == "" || l.Reason == c.Was.Reason) {
			c.Change = unchanged
		}
		all = append(all, c)
	}
	return all
}

// line says in a line what becomes of the limit.
func (c limitChange) line(dryRun bool) string {
	change, limits := c.Change, []string{}
	if dryRun && c.Change != unchanged {
		change = "would be " + change
	}
	if c.Limit != (makegood.Limit{}) {
		limits = append(limits, protocol.FiguresText(c.Limit))
	}
	if c.Was != nil && c.Change != unchanged {
		limits = append(limits, protocol.FiguresText(domain.LimitOf(*c.Was))+", "+sinceText(*c.Was))
	}
	return plain.Line(fmt.Sprintf("agent %s  %s: %s", c.Agent, change, strings.Join(limits, " in the place of ")))
}

// changes reads a file of limits, and compares it with the limits that stand.
func (o *limitsApply) changes(cmd *cobra.Command, c *client.Client, file string) ([]limitChange, error) {
	file, source, err := readSource(cmd.InOrStdin(), file)
	if err != nil {
		return nil, err
	}
	agents, err := c.ListAgents(cmd.Context())
	if err != nil {
		return nil, err
	}
	var known []workflowfile.Anything
	for _, a := range agents {
		known = append(known, workflowfile.Anything(a.Name))
	}
	limits, err := workflowfile.ParseLimits(file, source, workflowfile.WithExactly(known...))
	if err != nil {
		return nil, err
	}
	stand, err := c.ListHolds(cmd.Context())
	return limitChanges(limits, stand, o.prune), err
}

// apply sets the limits of a file, and prints a line for each agent as it goes.
func (o *limitsApply) apply(cmd *cobra.Command, file string) error {
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	all, err := o.changes(cmd, c, file)
	if err != nil {
		return failed(cmd, err)
	}
	differ := func(c limitChange) bool { return c.Change != unchanged }
	for i, change := range all {
		if differ(change) && !o.dryRun {
			_, err = c.LimitAgent(cmd.Context(), change.Agent, change.Limit, change.Reason)
		}
		if err != nil {
			all, err = all[:i], fmt.Errorf("agent %s: %w", change.Agent, err)
			break
		}
		if !o.json {
			fmt.Fprintln(cmd.OutOrStdout(), change.line(o.dryRun))
		}
	}
	if o.json {
		err = errors.Join(err, printJSON(cmd.OutOrStdout(), inList("limits", all)))
	}
	if err == nil && o.dryRun && slices.ContainsFunc(all, differ) {
		return exit(codeOtherwise, nil)
	}
	return failed(cmd, err)
}

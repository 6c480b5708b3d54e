package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/scaffold"
)

type templateOptions struct {
	agents []string
	check  string
}

// newTemplate makes the verb that prints or compares the template. agents are the linked ones, besides http.
func newTemplate(agents []agent.Handler) *cobra.Command {
	var o templateOptions
	cmd := &cobra.Command{
		Use:   "template",
		Short: "Print the template of this version, or say what yours lacks",
		Long: `Print the template of this version, which sam deploys, for the agents that are linked into this command and http,
or for those that --agents names.

With --check it says what a template of yours lacks: parameters, resources, statements, properties and agents. What
yours has beside that is your own matter. Values that differ are named too, and are no mistake: they may be meant.

Exit status: 0 it is printed, or the template is complete; 1 bad usage, or a part is lacking.`,
		Example: `  makegood template > template.yaml
  makegood template --agents flights,hotels,http
  makegood template --check template.yaml`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := o.agents
			if len(names) == 0 {
				names = linkedNames(agents)
			}
			if o.check != "" {
				return checkTemplate(cmd.OutOrStdout(), o.check, names)
			}
			text, err := scaffold.Template(names)
			if err != nil {
				return exit(codeUsage, err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.agents, "agents", nil, "`names` of agents, with commas between; NAME:outside for one that runs outside of Lambda (default: those that are linked, and http)")
	flags.StringVar(&o.check, "check", "", "`file` with a template of yours to compare")
	completeFlag(cmd, "check", completeFiles("yaml", "yml"))
	return cmd
}

// linkedNames are the agents that run where these do.
func linkedNames(agents []agent.Handler) []string {
	var names []string
	for _, a := range agents {
		names = append(names, a.Name())
	}
	return append(names, makegood.HTTPAgent)
}

func checkTemplate(stdout io.Writer, file string, agents []string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return exit(codeUsage, err)
	}
	found, err := scaffold.Compare(source, agents)
	if err != nil {
		return exit(codeUsage, fmt.Errorf("%s: %w", file, err))
	}
	for _, path := range found.Differs {
		fmt.Fprintf(stdout, "%s: differs from this version: %s\n", file, path)
	}
	for _, path := range found.Lacks {
		fmt.Fprintf(stdout, "%s: lacks %s\n", file, path)
	}
	if len(found.Lacks) > 0 {
		return exit(codeUsage, errors.New(file+" is not up to date: copy the parts that it lacks from the output of the verb template"))
	}
	fmt.Fprintf(stdout, "%s: it is complete, for the agents %s\n", file, strings.Join(agents, ", "))
	return nil
}

//go:build makegood_local

package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
)

// newAgent makes the verb of a command that was built without what runs agents of a deployed stack (decision 0053).
func newAgent([]agent.Handler) *cobra.Command {
	return &cobra.Command{
		Use:                "agent NAME",
		Short:              "Run an agent of a deployed stack here (not in this build)",
		Long:               "Run an agent of a deployed stack: not in this build, which has the tag makegood_local. Build your command without that tag.",
		Example:            "  makegood agent payments --stack shop-prod",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return exit(codeUsage, errors.New("this command was built with the tag makegood_local, without what runs agents of a stack: build it without"))
		},
	}
}

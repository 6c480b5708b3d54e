package command

import (
	"errors"

	"github.com/spf13/cobra"
)

// howToImport says how the importer is run.
const howToImport = `state machines of AWS Step Functions are taken over by a command of its own, makegood-import. In a clone of Makegood
(https://github.com/makegood-dev/makegood) type

  go run github.com/makegood-dev/makegood/importer/cmd/makegood-import order.asl.json --check
  go run github.com/makegood-dev/makegood/importer/cmd/makegood-import order.asl.json --replace . --out ../orders

docs/coming-from-step-functions.md there says what becomes of what`

// newImport makes the verb that says how the importer is run.
func newImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Say how to take over a state machine of AWS Step Functions: with makegood-import",
		Long: `Say how to take over a state machine of AWS Step Functions. The translation is a command of its own,
makegood-import, in the folder importer of a clone of Makegood; its --help has the flags that this verb had.

Exit status: 1, since no state machine was taken over.`,
		Example: `  makegood import order.asl.json
  go run github.com/makegood-dev/makegood/importer/cmd/makegood-import --help`,
		// The flags of the importer are let through, so that a command line of an earlier release gets the same answer.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		Args:               cobra.ArbitraryArgs,
		ValidArgsFunction:  completeFiles("json", "yaml", "yml"),
		RunE: func(*cobra.Command, []string) error {
			return exit(codeUsage, errors.New(howToImport))
		},
	}
}

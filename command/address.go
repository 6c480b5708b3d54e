package command

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/internal/stack"
)

// addrVariable is the environment variable that holds the address of the API where no flag does.
const addrVariable = "MAKEGOOD_ADDR"

func addrFlag(cmd *cobra.Command) {
	cmd.Flags().String("addr", defaultAddr, "`address` of a running makegood dev, HOST:PORT or a URL; also "+addrVariable)
}

// address returns the address of the API that a verb asks: that of --addr, of the environment, or the default one.
func address(cmd *cobra.Command) string {
	flag := cmd.Flags().Lookup("addr")
	if flag == nil {
		return defaultAddr
	}
	if flag.Changed {
		return flag.Value.String()
	}
	return cmp.Or(os.Getenv(addrVariable), flag.Value.String())
}

// where returns the flags with which another command asks the same place as this one, with a space before them;
// empty: it does so by itself.
func where(cmd *cobra.Command) string {
	for _, name := range []string{"data", "stack"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Value.String() != "" {
			return " --" + name + " " + flag.Value.String()
		}
	}
	at, name, asksStacks := address(cmd), os.Getenv(stack.Variable), cmd.Flags().Lookup("stack") != nil
	switch {
	case cmd.Flags().Changed("addr"), name == "" && at != defaultAddr, name != "" && !asksStacks:
		// A verb that asks no stacks may offer one that does.
		return " --addr " + at
	case name != "":
		return " --stack " + name
	}
	return ""
}

package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// one wants exactly one argument, of this name, which is that in the verb's Use.
func one(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one %s, got %d: %s", cmd.Name(), name, len(args), strings.Join(args, " "))
		}
		return some(name)(cmd, args)
	}
}

// some wants one argument or more, of this name.
func some(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		article := "a"
		if strings.ContainsRune("AEIOU", rune(name[0])) {
			article = "an"
		}
		return fmt.Errorf("%s needs %s %s", cmd.Name(), article, name)
	}
}

// none wants no argument.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes flags only, got %s", cmd.Name(), strings.Join(args, " "))
	}
	return nil
}

// require refuses the verb without a flag, which must be there.
func require(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic("command: " + err.Error())
	}
}

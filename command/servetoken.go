package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/internal/login"
)

// newServeToken makes the verb that writes the file of tokens.
func newServeToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Make, list and revoke the tokens of serve",
		Example: "  makegood serve token new anna --role operator --tokens ./tokens\n  makegood serve token list --tokens ./tokens\n  makegood serve token revoke anna --tokens ./tokens",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s takes new, list or revoke", cmd.CommandPath())
		},
	}
	cmd.AddCommand(newTokenNew(), newTokenList(), newTokenRevoke())
	return cmd
}

func tokensFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "tokens", "", "`file` of tokens, as serve --tokens has it (required)")
	require(cmd, "tokens")
}

func newTokenNew() *cobra.Command {
	var file, role string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it, once: the file keeps its hash alone. The name is kept with what its holder asks for; that of an
agent is the agent's name in workflows. A second token of a name lets the first go on until it is revoked. A server that runs
with the file reads it again by itself.

Exit status: 0; 1 bad usage, or the file is wrong: it is unchanged.`,
		Example: "  makegood serve token new anna --role operator --tokens ./tokens\n  makegood serve token new payments --role agent --tokens ./tokens",
		Args:    one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := login.NewToken(file, args[0], login.Role(role))
			if err != nil {
				return exit(codeUsage, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the token of %s, with the role %s; it is shown once:\n", args[0], role)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	tokensFlag(cmd, &file)
	cmd.Flags().StringVar(&role, "role", "", "what its holder may do: `ROLE` operator, reader or agent (required)")
	require(cmd, "role")
	return cmd
}

// listedToken is a token in JSON.
type listedToken struct {
	Name string     `json:"name"`
	Role login.Role `json:"role"`
	ID   string     `json:"id"`
}

func newTokenList() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the names that have a token",
		Example: "  makegood serve token list --tokens ./tokens",
		Args:    none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := login.ReadTokens(file)
			if err != nil {
				return exit(codeUsage, err)
			}
			listed := []listedToken{}
			for _, t := range all {
				listed = append(listed, listedToken{t.Name, t.Role, t.Short()})
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"tokens": listed})
			}
			for _, t := range listed {
				fmt.Fprintf(cmd.OutOrStdout(), "%s  %-8s  %s\n", t.ID, t.Role, t.Name)
			}
			return nil
		},
	}
	tokensFlag(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON on standard output")
	return cmd
}

func newTokenRevoke() *cobra.Command {
	var file, id string
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Take the tokens of a name out of the file",
		Long: `Take the tokens of a name out of the file: all, or the one with the id that list shows. A server that runs with the file
lets them in no more, and browsers that have signed in with them neither.

Exit status: 0; 1 bad usage, or there is no such token: the file is unchanged.`,
		Example: "  makegood serve token revoke anna --tokens ./tokens\n  makegood serve token revoke anna --id 1f2e3d4c --tokens ./tokens",
		Args:    one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			taken, err := login.Revoke(file, args[0], id)
			if err == nil && taken == 0 {
				err = errors.New("there is no such token; `makegood serve token list` shows what there is")
			}
			if err != nil {
				return exit(codeUsage, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s revoked\n", count(taken, "token"))
			return nil
		},
	}
	tokensFlag(cmd, &file)
	cmd.Flags().StringVar(&id, "id", "", "`ID` of the one that goes; without it all of the name")
	return cmd
}

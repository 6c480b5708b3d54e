package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/internal/scaffold"
)

type newOptions struct {
	module, dir, replace string
	local                bool
}

// newNew makes the verb that writes a project.
func newNew() *cobra.Command {
	var o newOptions
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a project of your own: a workflow, its agents, their tests, and what deploys them",
		Long: `Write a project of your own: a workflow of three steps, the agents that do and undo them, tests that kill the
engine at each of its calls, a command with the agents in it, the mains of the Lambda functions, a template, a
Makefile and a README. All of it is yours to change; makegood template --check says later what a newer version
wants of the template.

With --local it is for a process of its own, outside AWS: there are no functions, no template and no deployment, and its command
is built without the code that runs agents of a stack.

NAME is that of the Go package, of the command and of the stacks: lower-case letters and digits. No file that is
there is overwritten. In the end it runs go mod tidy in the project, which may have to download modules.

Exit status: 0 it is written; 1 bad usage, or a file is in the way, and no file was written; 3 it could not be
written whole, or go mod tidy failed.`,
		Example: `  makegood new trips
  makegood new trips --module example.com/team/trips --dir ~/src/trips
  makegood new trips --replace ~/src/makegood
  makegood new trips --local`,
		Args: one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeProject(cmd.Context(), cmd.OutOrStdout(), args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.module, "module", "", "`path` of the Go module (default: example.com/NAME)")
	flags.StringVar(&o.dir, "dir", "", "`folder` to write into (default: NAME)")
	flags.StringVar(&o.replace, "replace", "", "`folder` of a checkout of Makegood that the project uses in place of a published version")
	flags.BoolVar(&o.local, "local", false, "leave AWS out")
	completeFolder(cmd, "dir")
	completeFolder(cmd, "replace")
	return cmd
}

func writeProject(ctx context.Context, stdout io.Writer, name string, o newOptions) error {
	begin := scaffold.Begin{Project: scaffold.Project{Name: name, Local: o.local}, Module: o.module, Folder: o.dir, Checkout: o.replace}
	folder, err := begin.WriteTo(ctx, stdout, "make test\n  make demo\nREADME.md there says how to go on\n")
	switch {
	case err != nil && folder == "":
		return exit(codeUsage, err)
	case err != nil:
		return exit(codeFailed, err)
	}
	return nil
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

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
is built without what runs agents of a stack.

NAME is that of the Go package, of the command and of the stacks: lower-case letters and digits. No file that is
there is overwritten. In the end it runs go mod tidy in the project, which may have to download modules.

Exit status: 0 it is written; 1 bad usage, or something is in the way, and nothing was written; 3 it could not be
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
	folder, err := writeAround(ctx, stdout, scaffold.Project{Name: name, Local: o.local}, nil, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nnow type:\n  cd %s\n", folder)
	if file := workspaceOf(ctx, folder); file != "" {
		fmt.Fprintf(stdout, "  export GOWORK=off   # %s does not list the new module\n", file)
	}
	fmt.Fprint(stdout, "  make test\n  make demo\nREADME.md there says how to go on\n")
	return nil
}

// writeAround writes a project, with files of its own, and returns its folder. The options complete it.
func writeAround(ctx context.Context, stdout io.Writer, p scaffold.Project, own []scaffold.File, o newOptions) (folder string, err error) {
	info, _ := debug.ReadBuildInfo() // nil without modules: no version is known then
	p.Version, p.Module, folder = required(info), cmp.Or(o.module, "example.com/"+p.Name), cmp.Or(o.dir, p.Name)
	if o.replace != "" {
		if p.Replace, err = checkout(o.replace); err != nil {
			return "", exit(codeUsage, err)
		}
	}
	files, err := p.Files()
	if err != nil {
		return "", exit(codeUsage, err)
	}
	files = append(files, own...)
	if err := scaffold.Write(folder, files, func(name string) { fmt.Fprintln(stdout, "wrote", filepath.Join(folder, name)) }); err != nil {
		if errors.Is(err, scaffold.ErrThere) {
			return "", exit(codeUsage, err)
		}
		return "", exit(codeFailed, err)
	}
	if err := goModTidy(ctx, folder, p.Replace); err != nil {
		return "", exit(codeFailed, fmt.Errorf("the project is written, and its go.mod is not complete yet: %w", err))
	}
	return folder, nil
}

// checkout returns the absolute path of a folder that holds the module of Makegood.
func checkout(folder string) (string, error) {
	file := filepath.Join(folder, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--replace wants a checkout of Makegood: %w", err)
	}
	if !strings.HasPrefix(string(text), "module "+module+"\n") {
		return "", fmt.Errorf("--replace wants a checkout of Makegood: %s is of another module", file)
	}
	return filepath.Abs(folder)
}

// required returns the version of Makegood that this program was built of, if it is one that others can require: of a tree
// with changes nobody else has it.
func required(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	version := ""
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && m.Replace == nil {
			version = m.Version
		}
	}
	if !strings.HasPrefix(version, "v") || strings.HasSuffix(version, "+dirty") {
		return ""
	}
	return version
}

// workspaceOf returns the path of the go.work above a folder, or "" where there is none. The go command refuses to build a
// module below a go.work that does not list it.
func workspaceOf(ctx context.Context, folder string) string {
	env := exec.CommandContext(ctx, "go", "env", "GOWORK")
	env.Dir = folder
	file, err := env.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(string(file)), "off")
}

// goModTidy completes go.mod and writes go.sum, with the go command of whoever runs this. What a checkout knows of the
// checksums need not be asked of anybody.
func goModTidy(ctx context.Context, folder, checkout string) error {
	if checkout != "" {
		sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o644); err != nil {
			return err
		}
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir, tidy.Env = folder, append(os.Environ(), "GOWORK=off")
	if said, err := tidy.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy in %s: %w\n%s", folder, err, said)
	}
	return nil
}

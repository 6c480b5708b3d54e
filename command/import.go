package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/asl"
	"github.com/makegood-dev/makegood/internal/scaffold"
)

type importOptions struct {
	name, machine, out, module, replace string
	check, asJSON                       bool
}

// newImport makes the verb that takes over a state machine.
func newImport() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take over a state machine of AWS Step Functions: a workflow, its agents' stubs, and what became of each state",
		Long: `Take over a state machine of AWS Step Functions, written in Amazon States Language: print what becomes of each of
its states, and write a project with the workflow, the stubs of its agents, a test, and the report as a file.

FILE is a definition as JSON or YAML, the answer of aws stepfunctions describe-state-machine, or a template of SAM or
CloudFormation with one in it; - is standard input. What cannot be taken over is said, state by state, and a step stands
in its place that stops the job until somebody has written it. docs/coming-from-step-functions.md says what becomes of
what. No file that is there is overwritten. In the end it runs go mod tidy in the project, which may have to download
modules; with --check nothing is written.

Exit status: 0 all was taken over; 1 bad usage, FILE is no definition, or something is in the way: nothing was written;
2 it is written, or checked, and something was not taken over; 3 it could not be written whole.`,
		Example: `  makegood import order.asl.json
  makegood import --check --json order.asl.json
  makegood import template.yaml --machine OrderStateMachine --out ~/src/orders --module example.com/team/orders
  aws stepfunctions describe-state-machine --state-machine-arn ARN | makegood import - --check`,
		Args: one("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return importMachine(cmd, args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "`name` of the workflow (default: that of the state machine, or of FILE)")
	flags.StringVar(&o.machine, "machine", "", "logical `id` of the state machine, in a template that has several")
	flags.StringVar(&o.out, "out", "", "`folder` to write into (default: that of the workflow's name)")
	flags.StringVar(&o.module, "module", "", "`path` of the Go module (default: example.com/NAME)")
	flags.StringVar(&o.replace, "replace", "", "`folder` of a checkout of Makegood that the project uses in place of a published version")
	flags.BoolVar(&o.check, "check", false, "only say what would become of it, and write nothing")
	flags.BoolVar(&o.asJSON, "json", false, "print the report as one JSON object on standard output")
	cmd.ValidArgsFunction = completeFiles("json", "yaml", "yml")
	completeFolder(cmd, "out")
	completeFolder(cmd, "replace")
	return cmd
}

func importMachine(cmd *cobra.Command, file string, o importOptions) error {
	source, err := readUpTo(asl.MaxBytes, cmd.InOrStdin(), file)
	if err != nil {
		return exit(codeUsage, err)
	}
	from, _, _ := strings.Cut(filepath.Base(file), ".")
	imported, err := asl.Import(source, asl.Options{Name: o.name, From: strings.TrimPrefix(from, "-"), Machine: o.machine})
	var wrong asl.Errors
	switch {
	case errors.As(err, &wrong):
		for _, e := range wrong {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", file, e)
		}
		return exit(codeUsage, nil)
	case err != nil:
		return exit(codeFailed, fmt.Errorf("%s: %w", file, err))
	}
	if !o.check {
		// With --json standard output has the report alone.
		said := cmd.OutOrStdout()
		if o.asJSON {
			said = cmd.ErrOrStderr()
		}
		if err := writeImported(cmd.Context(), said, imported, o); err != nil {
			return err
		}
	}
	if err := printReport(cmd.OutOrStdout(), imported.Report, o.asJSON); err != nil {
		return exit(codeFailed, err)
	}
	if !imported.Report.Whole() {
		return exit(codeOtherwise, nil)
	}
	return nil
}

func printReport(stdout io.Writer, report asl.Report, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(stdout, report.Text())
		return err
	}
	return writeJSON(stdout, report)
}

// writeImported writes the project of a definition.
func writeImported(ctx context.Context, stdout io.Writer, imported *asl.Imported, o importOptions) error {
	p := scaffold.Project{Name: strings.ReplaceAll(imported.Workflow, "-", ""), Agents: append(imported.Agents, makegood.HTTPAgent)}
	files, err := imported.Files(p.Name)
	if err != nil {
		return exit(codeFailed, err)
	}
	var own []scaffold.File
	for _, f := range files {
		own = append(own, scaffold.File(f))
	}
	folder, err := writeAround(ctx, stdout, p, own, newOptions{module: o.module, dir: o.out, replace: o.replace})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nnow type:\n  cd %s\n  make test\nand write what is a stub in agents.go\n\n", folder)
	return nil
}

// Command makegood-import takes over state machines of AWS Step Functions: it reads a definition, prints what becomes
// of each of its states, and writes a project. It reads its arguments and files; package asl does the translation.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/importer/internal/asl"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/scaffold"
)

// The exit codes, which mean what those of makegood mean; 0 is success.
const (
	// codeUsage: bad usage or input, or a file is in the way. Nothing was written.
	codeUsage = 1
	// codeOtherwise: all was done, and some state was not taken over.
	codeOtherwise = 2
	// codeFailed: it was interrupted, or failed on the way.
	codeFailed = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, newRoot(), os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs the command and returns its exit code. It prints errors to stderr.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	err := root.ExecuteContext(ctx)
	var end *exitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &end):
		fmt.Fprintf(stderr, "%s\n%s --help says how it is used\n", plain.Text(err.Error()), root.Name())
		return codeUsage
	case end.err != nil:
		fmt.Fprintln(stderr, plain.Text(end.err.Error()))
	}
	return end.code
}

// exitError ends the command with a code, and with a message unless err is nil.
type exitError struct {
	code int
	err  error
}

func exit(code int, err error) error { return &exitError{code, err} }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }

type options struct {
	name, machine, out, module, replace string
	check, asJSON                       bool
}

func newRoot() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "makegood-import FILE",
		Short: "Take over a state machine of AWS Step Functions: a workflow, its agents' stubs, and what became of each state",
		Long: `Take over a state machine of AWS Step Functions, written in Amazon States Language: print what becomes of each of
its states, and write a project with the workflow, the stubs of its agents, a test, and the report as a file.

FILE is a definition as JSON or YAML, the answer of aws stepfunctions describe-state-machine, or a template of SAM or
CloudFormation with one in it; - is standard input. What cannot be taken over is said, state by state, and a step stands
in its place that stops the job until somebody has written it. docs/coming-from-step-functions.md says what becomes of
what. No file that is there is overwritten. In the end it runs go mod tidy in the project, which may have to download
modules; with --check nothing is written.

Exit status: 0 all was taken over; 1 bad usage, FILE is no definition, or a file is in the way: no file was written;
2 it is written, or checked, and something was not taken over; 3 it could not be written whole.`,
		Example: `  makegood-import order.asl.json --replace . --out ../orders
  makegood-import --check --json order.asl.json
  makegood-import template.yaml --machine OrderStateMachine --replace . --out ~/src/orders --module example.com/team/orders
  aws stepfunctions describe-state-machine --state-machine-arn ARN | makegood-import - --check`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return importMachine(cmd, args[0], o)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
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
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("%s takes one FILE, got %d: %s", cmd.Name(), len(args), strings.Join(args, " "))
	case len(args) == 0:
		return fmt.Errorf("%s needs a FILE", cmd.Name())
	}
	return nil
}

func importMachine(cmd *cobra.Command, file string, o options) error {
	source, err := read(cmd.InOrStdin(), file)
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
		if err := writeProject(cmd.Context(), said, imported, o); err != nil {
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

// read returns a file, or standard input under the name -. It reads a byte more than a definition may have, so that
// asl.Import sees that there is too much.
func read(stdin io.Reader, name string) ([]byte, error) {
	from := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	return io.ReadAll(io.LimitReader(from, asl.MaxBytes+1))
}

func printReport(stdout io.Writer, report asl.Report, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(stdout, report.Text())
		return err
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(report); err != nil {
		return err
	}
	_, err := stdout.Write(plain.Escaped(line.Bytes()))
	return err
}

// writeProject writes the project of a definition.
func writeProject(ctx context.Context, stdout io.Writer, imported *asl.Imported, o options) error {
	p := scaffold.Project{Name: strings.ReplaceAll(imported.Workflow, "-", ""), Agents: append(imported.Agents, makegood.HTTPAgent)}
	files, err := imported.Files(p.Name)
	if err != nil {
		return exit(codeFailed, err)
	}
	begin := scaffold.Begin{Project: p, Module: o.module, Folder: o.out, Checkout: o.replace}
	for _, f := range files {
		begin.Own = append(begin.Own, scaffold.File(f))
	}
	folder, err := begin.WriteTo(ctx, stdout, "make test\nand write what is a stub in agents.go\n\n")
	switch {
	case err != nil && folder == "":
		return exit(codeUsage, err)
	case err != nil:
		return exit(codeFailed, err)
	}
	return nil
}

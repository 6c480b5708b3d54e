package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// newValidate checks workflow files. agents are those that are linked, besides http.
func newValidate(agents []agent.Handler) *cobra.Command {
	var asJSON, strict bool
	var outside []string
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check workflow files",
		Long: `Check workflow files, expressions included, and print everything that is wrong, or
probably a mistake: that is a warning, and the file is right all the same. With --strict a file with a warning is wrong.
Of the agents that are linked into this command, and http, it knows the names and the actions;
of those that run elsewhere, and --outside names, only the names. With --addr, or MAKEGOOD_ADDR, the agents of the engine
there are known, too, by their names.
It does not say whether the workflow of a child job is missing: makegood dev does, which reads all files.
A file of the name ` + workflowfile.LimitsFile + ` has the limits of agents, as makegood agents apply sets them.
A file of the name - is standard input.

Exit status: 0 all files are right; 1 one is not, or cannot be read; 3 the API at --addr cannot be reached.`,
		Example: `  makegood validate workflows/order/order.yaml
  makegood validate --json *.yaml
  makegood validate --strict workflows/*/*.yaml
  makegood validate --outside payments --outside shipping order.yaml
  makegood validate --addr 127.0.0.1:4777 order.yaml
  makegood validate - < order.yaml`,
		Args: some("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			elsewhere, here, err := parseOutside(outside, agents)
			if err != nil {
				return exit(codeUsage, err)
			}
			v := validator{stdin: cmd.InOrStdin(), agents: embedded.Config{Agents: here, Outside: elsewhere}.Named()}
			if cmd.Flags().Changed("addr") || os.Getenv(addrVariable) != "" {
				if err := v.ask(cmd); err != nil {
					return err
				}
			}
			var report validation
			for _, file := range args {
				result := v.file(file)
				result.OK = result.OK && !(strict && len(result.Warnings) > 0)
				report.Files = append(report.Files, result)
			}
			if asJSON {
				return cmp.Or(printJSON(cmd.OutOrStdout(), report), report.ok())
			}
			return report.print(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addrFlag(cmd)
	cmd.Flags().StringArrayVar(&outside, "outside", nil, "`NAME` of an agent that runs in other processes, as dev --outside has it; may be repeated")
	cmd.Flags().BoolVar(&strict, "strict", false, "a warning is an error, as in a pipeline")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object on standard output")
	cmd.ValidArgsFunction = completeFiles("yaml", "yml")
	return cmd
}

// validation is what --json prints.
type validation struct {
	Files []validated `json:"files"`
}

// validated is the result of checking one file. Workflow, Hash and Steps are empty if the file has errors.
type validated struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Workflow string    `json:"workflow"`
	Hash     string    `json:"hash"`
	Steps    int       `json:"steps"`
	Errors   []problem `json:"errors"`
	// Warnings are no errors, but probable mistakes.
	Warnings []problem `json:"warnings"`
	content  string
}

// problem is an error in a file; Line is 0 for one that could not be read.
type problem struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
	text    string
}

type validator struct {
	stdin  io.Reader
	agents []workflowfile.Named
}

// ask adds the agents of the engine at --addr. The API gives their names alone.
func (v *validator) ask(cmd *cobra.Command) error {
	c, err := new(remote).client(cmd)
	if err != nil {
		return err
	}
	there, err := c.ListAgents(cmd.Context())
	if err != nil {
		return failed(cmd, err)
	}
	for _, a := range there {
		if !slices.ContainsFunc(v.agents, func(known workflowfile.Named) bool { return known.Name() == a.Name }) {
			v.agents = append(v.agents, workflowfile.Anything(a.Name))
		}
	}
	return nil
}

func (v validator) file(name string) validated {
	shown, source, err := readSource(v.stdin, name)
	result := validated{File: shown, Errors: []problem{}, Warnings: []problem{}}
	if errors.Is(err, syscall.EISDIR) {
		err = fmt.Errorf("%s is a folder: name its files, as %s", name, filepath.Join(name, "*.yaml"))
	}
	if err != nil {
		result.Errors = append(result.Errors, problem{Message: err.Error(), text: err.Error()})
		return result
	}
	var wrong workflowfile.Errors
	result.OK = !errors.As(v.parse(&result, source), &wrong)
	for _, e := range wrong {
		result.Errors = append(result.Errors, problem{e.Line, e.Message, e.Error()})
	}
	return result
}

// parse adds to a result the content of its file, if that is right.
func (v validator) parse(result *validated, source []byte) error {
	agents := workflowfile.WithAgents(v.agents...)
	if filepath.Base(result.File) == workflowfile.LimitsFile {
		all, err := workflowfile.ParseLimits(result.File, source, agents)
		result.content = "limits of " + count(len(all), "agent")
		return err
	}
	compiled, err := workflowfile.Parse(result.File, source, agents)
	if err != nil {
		return err
	}
	for _, w := range compiled.Warnings {
		result.Warnings = append(result.Warnings, problem{w.Line, w.Message, warning(w)})
	}
	result.Workflow, result.Hash, result.Steps = compiled.Workflow.Name, compiled.Hash, len(compiled.Workflow.Steps)
	result.content = fmt.Sprintf("workflow %s, %s", result.Workflow, count(result.Steps, "step"))
	return nil
}

// readSource reads a file, or standard input under the name -, as far as a workflow file may go and a byte more: so the
// reader of its text sees that it is too long. shown is its name in messages.
func readSource(stdin io.Reader, name string) (shown string, source []byte, err error) {
	shown = stdinName
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return name, nil, err
		}
		defer file.Close()
		shown, stdin = name, file
	}
	source, err = io.ReadAll(io.LimitReader(stdin, workflowfile.MaxSourceBytes+1))
	return shown, source, err
}

// ok returns the error to end with.
func (r validation) ok() error {
	for _, f := range r.Files {
		if !f.OK {
			return exit(codeUsage, nil)
		}
	}
	return nil
}

func (r validation) print(stdout, stderr io.Writer) error {
	for _, f := range r.Files {
		for _, e := range f.Errors {
			fmt.Fprintln(stderr, e.text)
		}
		for _, w := range f.Warnings {
			fmt.Fprintln(stderr, w.text)
		}
		if f.OK {
			fmt.Fprintf(stdout, "%s: ok, %s\n", f.File, f.content)
		}
	}
	return r.ok()
}

// warning writes FILE:LINE: warning: message.
func warning(e workflowfile.Error) string {
	e.Message = "warning: " + e.Message
	return e.Error()
}

// warn prints probable mistakes.
func warn(w io.Writer, c *workflowfile.Compiled) {
	for _, e := range c.Warnings {
		fmt.Fprintln(w, warning(e))
	}
}

// warnAbsent warns of each step with a child workflow that is in none of the files.
func warnAbsent(w io.Writer, files []workflowfile.File) {
	var all []*workflowfile.Compiled
	for _, f := range files {
		all = append(all, f.Compiled)
	}
	for _, absent := range workflowfile.Absent(all...) {
		fmt.Fprintf(w, "warning: %v, among these files\n", absent)
	}
}

func count(n int, what string) string { return plural(n, what, what+"s") }

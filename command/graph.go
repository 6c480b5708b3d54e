package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/graph"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// The forms in which a graph is written.
const (
	asText    = "text"
	asSVG     = "svg"
	asMermaid = "mermaid"
)

// pipeWidth is how wide a graph in text may be where no terminal says so.
const pipeWidth = 160

// drawn is what a graph is drawn of.
type drawn struct {
	title string
	nodes []graph.Node
	edges []graph.Edge
}

// newGraph makes the verb that draws a workflow file, or a job.
func newGraph() *cobra.Command {
	var o remote
	var as, to string
	cmd := &cobra.Command{
		Use:   "graph FILE|JOB",
		Short: "Draw the steps of a workflow file, or of a job",
		Long: `Draw the steps of a workflow file, or of a job as it is now, from left to right: as text, as SVG, or as
Mermaid, which Markdown shows. What ends in .yaml or .yml is a file, and so is -, standard input; a
job is asked for where --addr or --stack says. A line that others imply is left out. Of a job, the
shapes say where each step is:

  ` + strings.Join(graph.Legend(), "\n  ") + `

The form is that of --as, or of the name that -o gives (.svg, .mmd, .txt), or text. Text that does not fit into the
terminal is a list.

Exit status: 0 it was drawn; 1 bad usage, a wrong file, no such job or stack; 3 the API or AWS cannot be
reached, or the file cannot be written.`,
		Example: `  makegood graph workflows/order/order.yaml
  makegood graph workflows/order/order.yaml -o order.svg
  makegood graph order-17 --as mermaid
  makegood graph order-17 --stack shop-prod -o order-17.svg`,
		Args: one("FILE or JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, err := graphForm(as, to)
			if err != nil {
				return exit(codeUsage, err)
			}
			d, err := toDraw(cmd, o, args[0])
			if err != nil {
				return err
			}
			return writeGraph(cmd.OutOrStdout(), d, form, to)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "`form` to write: text, svg or mermaid")
	cmd.Flags().StringVarP(&to, "output", "o", "", "`file` to write, instead of standard output")
	o.flags(cmd)
	_ = cmd.Flags().MarkHidden("json") // a graph is none
	cmd.ValidArgsFunction = completeFiles("yaml", "yml")
	return cmd
}

// graphForm returns the form that was asked for.
func graphForm(as, to string) (string, error) {
	switch as {
	case asText, asSVG, asMermaid:
		return as, nil
	case "":
	default:
		return "", fmt.Errorf("--as %.40q: want %s, %s or %s", as, asText, asSVG, asMermaid)
	}
	switch filepath.Ext(to) {
	case ".svg":
		return asSVG, nil
	case ".mmd", ".mermaid":
		return asMermaid, nil
	default:
		return asText, nil
	}
}

// toDraw reads a workflow file, or asks for a job and its definition.
func toDraw(cmd *cobra.Command, o remote, name string) (drawn, error) {
	if name == "-" || workflowfile.IsFile(name) {
		return fileToDraw(cmd, name)
	}
	c, err := o.client(cmd)
	if err != nil {
		return drawn{}, err
	}
	job, err := c.Look(cmd.Context(), name)
	if err != nil {
		return drawn{}, failed(cmd, err)
	}
	definition, err := c.Definition(cmd.Context(), job.Definition)
	if err != nil {
		return drawn{}, failed(cmd, err)
	}
	nodes, edges := graph.OfJob(definition.Workflow, job)
	return drawn{fmt.Sprintf("%s, %s, %s", job.ID, job.Workflow, job.ProcessState), nodes, edges}, nil
}

func fileToDraw(cmd *cobra.Command, name string) (drawn, error) {
	name, source, err := readSource(cmd.InOrStdin(), name)
	if err != nil {
		return drawn{}, exit(codeUsage, err)
	}
	compiled, err := workflowfile.Parse(name, source)
	if err != nil {
		return drawn{}, exit(codeUsage, err)
	}
	nodes, edges := graph.OfWorkflow(compiled.Workflow)
	return drawn{"workflow " + compiled.Workflow.Name, nodes, edges}, nil
}

// writeGraph writes a graph to standard output, or to a file, whole.
func writeGraph(stdout io.Writer, d drawn, form, to string) error {
	var out bytes.Buffer
	if err := d.write(&out, form, stdout, to != ""); err != nil {
		return exit(codeUsage, err)
	}
	const mode = 0o644
	write := func() error { return os.WriteFile(to, out.Bytes(), mode) }
	if to == "" {
		write = func() error { _, err := stdout.Write(out.Bytes()); return err }
	}
	if err := write(); err != nil {
		return exit(codeFailed, fmt.Errorf("write the graph: %w", err))
	}
	return nil
}

func (d drawn) write(out io.Writer, form string, stdout io.Writer, toFile bool) error {
	switch form {
	case asMermaid:
		return graph.Mermaid(out, d.nodes, d.edges...)
	case asSVG:
		laid, err := graph.Layout(d.nodes, d.edges...)
		if err != nil {
			return err
		}
		return graph.SVG(out, laid, graph.SVGOptions{Standalone: true, Title: d.title})
	default:
		o := graph.TextOptions{Width: pipeWidth}
		if file, is := stdout.(*os.File); is && !toFile && isTerminal(file) {
			o = terminalOptions(file)
		}
		return d.writeText(out, o)
	}
}

// writeText draws in text, or lists the steps if the drawing does not fit.
func (d drawn) writeText(out io.Writer, o graph.TextOptions) error {
	laid, err := graph.Layout(d.nodes, d.edges...)
	if err != nil {
		return err
	}
	lines, fits := graph.Text(laid, o)
	if !fits {
		lines = d.list()
	}
	_, err = io.WriteString(out, strings.Join(lines, "\n")+"\n")
	return err
}

// list writes a line for each step, with the steps before it.
func (d drawn) list() []string {
	var lines []string
	for _, n := range d.nodes {
		var after []string
		for _, e := range d.edges {
			if e.To == n.ID && e.Kind < graph.Back {
				after = append(after, e.From)
			}
		}
		line := n.Label
		if len(after) > 0 {
			line += "  after " + strings.Join(after, ", ")
		}
		lines = append(lines, line)
	}
	return lines
}

// terminalOptions returns the options of a terminal: its width, and colours unless NO_COLOR or TERM=dumb is in the
// environment.
func terminalOptions(file *os.File) graph.TextOptions {
	width, _ := terminalSize(file)
	return graph.TextOptions{Width: width - 1, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// terminalSize is how many characters and lines a terminal has; 80 and 24 for one that does not say so, or has too
// little room to draw.
func terminalSize(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 || height < 5 {
		return 80, 24
	}
	return width, height
}

// graphLines draws a job for a terminal; nil: it does not fit.
func graphLines(w makegood.Workflow, job makegood.Job, o graph.TextOptions) []string {
	nodes, edges := graph.OfJob(w, job)
	laid, err := graph.Layout(nodes, edges...)
	if err != nil {
		return nil // what a store has kept is no workflow of this release; the steps are listed all the same
	}
	lines, fits := graph.Text(laid, o)
	if !fits {
		return nil
	}
	return lines
}

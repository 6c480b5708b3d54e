package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/graph"
	"github.com/makegood-dev/makegood/internal/plain"
)

func newWatch() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a job until its end",
		Long: `Watch a job until it is at its end or in Error. On a terminal its graph is drawn, with its steps below, and
drawn again when they change: see graph --help for the shapes, and NO_COLOR=1 for them without colours. In a pipe each change is a line, and with --json a JSON object,
without input and outputs, which get shows. New entries of its history come with them. While a job that does a step of it
(agent: workflow) stands before a person, its id and reason are shown too ("waitsFor" with --json).

Exit status: 0 it ended Processed; 1 bad usage, no such job or stack; 2 it ended otherwise; 3 the API or
AWS cannot be reached, or it was interrupted.`,
		Example: `  makegood watch order-17
  makegood watch order-17 --json | jq -r .processState
  makegood watch order-17 --stack shop-prod`,
		Args: one("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return watch(cmd, o, args[0]) },
	}
	o.flags(cmd)
	cmd.ValidArgsFunction = completeIDs(&o, new(string))
	return cmd
}

func watch(cmd *cobra.Command, o remote, id string) error {
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	draw := newPicture(cmd.OutOrStdout(), o.json, definitions(cmd.Context(), c))
	var last makegood.Job
	withHistory := following(cmd.Context(), c)
	for job, err := range watchWithBlockers(cmd.Context(), c, id) {
		if err != nil && cmd.Context().Err() != nil {
			return exit(codeFailed, fmt.Errorf("%w; the job goes on", err))
		}
		if err != nil {
			return failed(cmd, err)
		}
		last = job.Job
		job.Job = withHistory(job.Job)
		if err := draw(job); err != nil {
			return exit(codeFailed, err)
		}
	}
	return ended(last)
}

// definitions returns a function that reads the workflow of a job, each definition once; it returns nil if the workflow
// cannot be read, and the job is shown without.
func definitions(ctx context.Context, c *client.Client) func(makegood.Job) *makegood.Workflow {
	read := readOnce(c.Definition)
	return func(job makegood.Job) *makegood.Workflow {
		definition, err := read(ctx, job.Definition)
		if err != nil {
			return nil
		}
		return &definition.Workflow
	}
}

// newPicture returns a function that shows a job each time it has changed. workflow reads the job's; it is called on
// a terminal only.
func newPicture(w io.Writer, asJSON bool, workflow func(makegood.Job) *makegood.Workflow) func(watched) error {
	file, ok := w.(*os.File)
	switch {
	case asJSON:
		return func(job watched) error { return printJSON(w, job) }
	case ok && isTerminal(file):
		return redraw(file, workflow)
	default:
		last, entries := "", 0
		return func(job watched) error {
			// The events, and after them the job's present state.
			lines := newEntries(job.Job, entries)
			entries = lastEntry(job.Job)
			if line := job.line(); line != last {
				// Otherwise a claim was extended, or another change that a line does not show.
				lines, last = append(lines, line), line
			}
			for _, line := range lines {
				if _, err := fmt.Fprintln(w, line); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// changes says in a line where the steps are.
func changes(job makegood.Job) string {
	var steps []string
	for _, s := range job.Steps {
		text := s.Name + " " + stateText(s.Activity)
		if s.Undo != nil {
			text += ", undo " + stateText(*s.Undo)
		}
		steps = append(steps, text)
	}
	return "  [" + strings.Join(steps, "; ") + "]"
}

// stateText is a state, and for a step that waits the time until which it does.
func stateText(a makegood.Activity) string {
	if a.State == makegood.StepWaiting {
		return string(a.State) + " until " + moment(a.CompleteBy)
	}
	return string(a.State)
}

// redraw draws a job over the picture before: its graph, where that fits, and its steps in lines, cut to the
// terminal's width so that no line wraps.
func redraw(file *os.File, workflow func(makegood.Job) *makegood.Workflow) func(watched) error {
	drawn := 0
	return func(job watched) error {
		width, height := terminalSize(file)
		lines := pictureLines(job, workflow(job.Job), terminalOptions(file), height)
		if len(lines) > height-1 {
			lines = append(lines[:height-2], fmt.Sprintf("  ... and %d more lines", len(lines)-height+2))
		}
		var out strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&out, "\x1b[%dA", drawn)
		}
		for _, line := range lines {
			fmt.Fprintf(&out, "\r%s\x1b[K\n", cut(line, width-1))
		}
		out.WriteString("\x1b[J")
		drawn = len(lines)
		_, err := io.WriteString(file, out.String())
		return err
	}
}

// pictureLines returns the picture of a job. Its graph has at most half of the lines that remain beside the headings,
// so that the steps are seen too.
func pictureLines(job watched, w *makegood.Workflow, o graph.TextOptions, height int) []string {
	lines := []string{headline(job.Job)}
	for _, b := range job.WaitsFor {
		lines = append(lines, "  "+plain.Line(b.String()))
	}
	if w != nil {
		const around = 4
		if picture := graphLines(*w, job.Job, o); len(picture) > 0 && len(picture) <= (height-around)/2 {
			lines = slices.Concat(lines, []string{""}, picture, []string{""})
		}
	}
	lines = append(lines, stepLines(job.Job)...)
	return append(lines, newEntries(job.Job, lastEntry(job.Job)-drawnEntries)...)
}

// cut shortens a line to so many characters. What colours it takes no room, and stays.
func cut(line string, width int) string {
	var b strings.Builder
	shown, coloured := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			coloured = true
		case coloured:
			coloured = r != 'm'
		case shown == width:
			continue
		default:
			shown++
		}
		b.WriteRune(r)
	}
	return b.String()
}

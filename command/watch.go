package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/makegood-dev/makegood"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// newWatch makes the verb that watches a job.
func newWatch() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a job until its end",
		Long: `Watch a job until it is at its end or in Error. On a terminal its steps are drawn, and drawn again when
they change; in a pipe each change is a line, and with --json a JSON object,
without input and outputs, which get shows. New entries of its history come with them.

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
	draw := newPicture(cmd.OutOrStdout(), o.json)
	var last makegood.Job
	withHistory := following(cmd.Context(), c)
	for job, err := range c.Watch(cmd.Context(), id) {
		if err != nil && cmd.Context().Err() != nil {
			return exit(codeFailed, fmt.Errorf("%w; the job goes on", err))
		}
		if err != nil {
			return failed(cmd, err)
		}
		if err := draw(withHistory(job)); err != nil {
			return exit(codeFailed, err)
		}
		last = job
	}
	return ended(last)
}

// newPicture returns what shows a job each time it has changed.
func newPicture(w io.Writer, asJSON bool) func(makegood.Job) error {
	file, ok := w.(*os.File)
	switch {
	case asJSON:
		return func(job makegood.Job) error { return printJSON(w, job) }
	case ok && term.IsTerminal(int(file.Fd())):
		return redraw(file)
	default:
		last, entries := "", 0
		return func(job makegood.Job) error {
			// What has happened, and behind it what the job is now.
			lines := newEntries(job, entries)
			entries = lastEntry(job)
			if line := headline(job) + changes(job); line != last {
				// Else a claim was extended, or something else that a line does not show.
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

// stateText is a state, and of what waits until when.
func stateText(a makegood.Activity) string {
	if a.State == makegood.Waiting {
		return string(a.State) + " until " + moment(a.CompleteBy)
	}
	return string(a.State)
}

// redraw draws a job over the picture before, lines cut to the terminal's width so that each is one.
func redraw(file *os.File) func(makegood.Job) error {
	drawn := 0
	return func(job makegood.Job) error {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width < 20 || height < 5 {
			width, height = 80, 24
		}
		lines := append([]string{headline(job)}, stepLines(job)...)
		lines = append(lines, newEntries(job, lastEntry(job)-drawnEntries)...)
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
		_, err = io.WriteString(file, out.String())
		return err
	}
}

// cut shortens a line to so many characters.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width])
}

package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/plain"
)

// sending is a source of jobs that can evaluate the inputs of their steps: an engine can, a folder that is only read
// cannot.
type sending interface {
	SentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error)
}

// sentInputs returns the evaluated inputs of the steps of a job. They take a request of their own; when it fails, get
// shows the job without them.
func sentInputs(cmd *cobra.Command, jobs api.Reader, job makegood.Job) []makegood.SentInput {
	from, known := jobs.(sending)
	if !known || !slices.ContainsFunc(job.Steps, func(s makegood.JobStep) bool { return s.Attempt > 0 }) {
		return nil
	}
	all, err := from.SentInputs(cmd.Context(), job.ID, "")
	if err != nil {
		return nil
	}
	return all.Inputs
}

// sentLines are a line for each input.
func sentLines(sent []makegood.SentInput) []string {
	var lines []string
	for _, in := range sent {
		what := in.Step
		if in.Undo {
			what = "undo of " + what
		}
		how := "was asked"
		if !in.AsSent {
			how = "would be asked now"
		}
		text := ""
		switch {
		case in.Problem != "":
			text = "(" + plain.Line(in.Problem) + ")"
		case len(in.Value) == 0 || string(in.Value) == "null" && in.Bytes > len("null"):
			text = fmt.Sprintf("(%d bytes)", in.Bytes)
		default:
			text = shown(in.Value)
		}
		line := fmt.Sprintf("  %s %s  %s", what, how, text)
		if in.Changed != "" {
			line += fmt.Sprintf("  (%s)", plain.Line(in.Changed))
		}
		lines = append(lines, line)
	}
	return lines
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/plain"
)

// tree is a job with the jobs that do steps of it.
type tree struct {
	ID string `json:"id"`
	// Step is that of the job above which this one does.
	Step string `json:"step,omitempty"`
	// Job is without payloads; nil where it cannot be read, and Missing says why: it never began, its time is over, or it
	// is damaged.
	Job      *makegood.Job `json:"job"`
	Missing  string        `json:"missing,omitempty"`
	Children []tree        `json:"children"`
}

func showTree(cmd *cobra.Command, jobs api.Reader, id string, asJSON bool) error {
	all, err := readTree(cmd.Context(), jobs, id)
	if err != nil {
		return failed(cmd, err)
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), all)
	}
	printTree(cmd.OutOrStdout(), all, "")
	if spent, known := all.spent(); known {
		fmt.Fprintf(cmd.OutOrStdout(), "cost of all  %s\n", spentText(spent))
	}
	return nil
}

// spent is the cost of the job and those below it; known is false where that of one is not counted.
func (t tree) spent() (sum makegood.Spent, known bool) {
	if t.Job == nil || t.Job.Spent == nil {
		return sum, false
	}
	sum = *t.Job.Spent
	for _, child := range t.Children {
		part, known := child.spent()
		if !known {
			return sum, false
		}
		sum = sum.Plus(part)
	}
	return sum, true
}

// readTree reads a job, and then the child of each of its steps: a read a job, also on a stack, where a list of the ids
// that begin so would read the whole table.
func readTree(ctx context.Context, jobs api.Reader, id string) (tree, error) {
	t := tree{ID: id, Children: []tree{}}
	job, err := jobs.Look(ctx, id)
	if err != nil {
		return t, err
	}
	t.Job = &job
	for _, s := range job.Steps {
		if s.Child == "" {
			continue
		}
		child, err := readTree(ctx, jobs, s.Child)
		switch {
		case errors.Is(err, api.ErrNotFound):
			child.Missing = "is not stored: it never began, or its time is over"
		case errors.Is(err, api.ErrDamaged):
			child.Missing = "cannot be read: " + err.Error()
		case err != nil:
			return t, err
		}
		child.Step = s.Name
		t.Children = append(t.Children, child)
	}
	return t, nil
}

func printTree(w io.Writer, t tree, indent string) {
	line := indent
	if t.Step != "" {
		line += t.Step + ": "
	}
	if t.Job == nil {
		fmt.Fprintf(w, "%sjob %s %s\n", line, t.ID, plain.Line(t.Missing))
		return
	}
	fmt.Fprintln(w, line+headline(*t.Job)+changes(*t.Job))
	for _, child := range t.Children {
		printTree(w, child, indent+"  ")
	}
}

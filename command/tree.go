package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
)

// tree is a job with the jobs that do steps of it.
type tree struct {
	ID string `json:"id"`
	// Step is that of the job above which this one does.
	Step string `json:"step,omitempty"`
	// Job is without payloads; nil where it cannot be read, and Missing says why: it never began, its time is over, or it
	// is damaged.
	Job     *makegood.Job `json:"job"`
	Missing string        `json:"missing,omitempty"`
	// Items counts the items of Step, where it has a map: Job is the first of the jobs that do them, and the others are
	// left out.
	Items    *makegood.Items `json:"items,omitempty"`
	Children []tree          `json:"children"`
}

func showTree(cmd *cobra.Command, jobs api.Reader, id string, asJSON bool) error {
	all, err := readTree(cmd.Context(), jobs, id, true)
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
	if len(t.Children) == 0 && isOfMap(*t.Job) && slices.ContainsFunc(t.Job.Steps, func(s makegood.JobStep) bool { return s.Child != "" }) {
		return sum, false // The jobs below it were not read.
	}
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
//
// The jobs that do the items of a map are not read, since there may be a thousand, unless such a job is at the top of
// the tree.
func readTree(ctx context.Context, jobs api.Reader, id string, top bool) (tree, error) {
	t := tree{ID: id, Children: []tree{}}
	job, err := jobs.Look(ctx, id)
	if err != nil {
		return t, err
	}
	t.Job = &job
	if !top && isOfMap(job) {
		return t, nil
	}
	var counted makegood.Job // The job with its counts, read at its first step with a map.
	for i, s := range job.Steps {
		if s.Child == "" {
			continue
		}
		child, err := readTree(ctx, jobs, s.Child, false)
		if child.Job != nil && isOfMap(*child.Job) {
			if counted.ID == "" {
				counted, _ = jobs.Get(ctx, id) // Without it the jobs are shown, and no counts.
			}
			if i < len(counted.Steps) {
				child.Items = counted.Steps[i].Items
			}
		}
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

// isOfMap reports whether a job does items of a map.
func isOfMap(job makegood.Job) bool {
	_, is := domain.MapRefOf(job.Definition)
	return is
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
	line += headline(*t.Job)
	if t.Step == "" || !isOfMap(*t.Job) {
		line += changes(*t.Job)
	}
	fmt.Fprintln(w, line)
	for _, line := range itemLines(t.Items, indent+"  ") {
		fmt.Fprintln(w, line)
	}
	for _, child := range t.Children {
		printTree(w, child, indent+"  ")
	}
}

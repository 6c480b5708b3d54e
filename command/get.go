package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine/folder"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
)

// maxShownBytes is how much of a payload get shows to people; --json shows all of it.
const maxShownBytes = 400

func newGet() *cobra.Command {
	var o remote
	var data string
	var whole bool
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show a job, with its steps, input, outputs and history",
		Long: `Show a job, with its steps, input and outputs: from the process at --addr, from a deployed stack, or
from the folder that --data names, whether an engine runs on it or not. Its history, the newest entry last, is
the trouble (attempts that failed, fell silent, or were given up; that it turned round or stopped, and why) and
the requests of people, with their names; a job that goes well has none.

The input of each step is shown where it can be evaluated (not of a folder): with "[secret NAME]" in the place of a
secret, and marked "now" where a value that it reads has changed since it was sent.

Of a step with a map it counts the items: not begun, under way, done, failed, before a person, undone; with the rate
and the time that is left while they run, and the reasons of failures, each with the step and the job of one item.

With --tree it shows the job and the jobs that do steps of it (agent: workflow), and theirs: of each its state, its
reason, and its steps; of a step with a map the counts of its items, and not the jobs that do them. A job that did an earlier attempt of a step is not among them: makegood list --id-prefix ID~ has all.

Exit status: 0; 1 bad usage, no such job or stack; 3 the API or AWS cannot be reached.`,
		Example: `  makegood get order-17
  makegood get order-17 --tree
  makegood get order-17 --json | jq .processState
  makegood get order-17 --data ./data
  makegood get order-17 --stack shop-prod`,
		Args: one("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs, closeJobs, err := o.jobs(cmd, data)
			if err != nil {
				return err
			}
			defer closeJobs()
			if whole {
				return showTree(cmd, jobs, args[0], o.json)
			}
			job, err := getJob(cmd, jobs, args[0])
			if err != nil {
				return err
			}
			sent := sentInputs(cmd, jobs, job)
			if o.json {
				return printJSON(cmd.OutOrStdout(), struct {
					makegood.Job
					Sent []makegood.SentInput `json:"sent,omitempty"`
				}{job, sent})
			}
			printJob(cmd.OutOrStdout(), job)
			if data == "" {
				for _, line := range payloadLines(job, cmd.Root().Name(), where(cmd)) {
					fmt.Fprintln(cmd.OutOrStdout(), line)
				}
			}
			for _, line := range sentLines(sent) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			for _, line := range questions(cmd, jobs, job) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		},
	}
	o.flags(cmd)
	dataFlag(cmd, &data)
	cmd.Flags().BoolVar(&whole, "tree", false, "show the job with the jobs that do steps of it")
	cmd.ValidArgsFunction = completeIDs(&o, &data)
	return cmd
}

func dataFlag(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", "", "read this `folder` instead of asking a process")
	completeFolder(cmd, "data")
	cmd.MarkFlagsMutuallyExclusive("addr", "data")
	cmd.MarkFlagsMutuallyExclusive("stack", "data")
}

func getJob(cmd *cobra.Command, jobs api.Reader, id string) (makegood.Job, error) {
	job, err := jobs.Get(cmd.Context(), id)
	if invalid, is := errors.AsType[*api.InvalidError](err); is && invalid.Status == http.StatusRequestEntityTooLarge {
		fmt.Fprintln(cmd.ErrOrStderr(), "its input and outputs are more than one answer can hold, and left out")
		job, err = jobs.Look(cmd.Context(), id)
	}
	return job, failed(cmd, err)
}

// offering is a source of jobs that knows the allowed actions: a process does, and a folder that is only read does not.
type offering interface {
	Offers(ctx context.Context, id string) (makegood.Offers, error)
}

// questions are those of the job's approvals that wait, with the command that answers. They take a request
// of their own; when it fails, get shows the job without them.
func questions(cmd *cobra.Command, jobs api.Reader, job makegood.Job) []string {
	from, known := jobs.(offering)
	if !known || !slices.ContainsFunc(job.Steps, func(s makegood.JobStep) bool { return waits(s.Activity) || s.Undo != nil && waits(*s.Undo) }) {
		return nil
	}
	offers, err := from.Offers(cmd.Context(), job.ID)
	if err != nil {
		return nil
	}
	var lines []string
	for _, s := range offers.Steps {
		if len(s.Choices) == 0 {
			continue
		}
		undo := ""
		if s.Undo {
			undo = " --undo"
		}
		lines = append(lines, fmt.Sprintf("  %s asks  %s", s.Step, plain.Line(s.Question)),
			fmt.Sprintf("    %s answer %s %s %s%s%s   one of %s", cmd.Root().Name(), job.ID, s.Step, quoted(s.Choices[0]), undo, where(cmd), strings.Join(s.Choices, ", ")))
	}
	return lines
}

// jobs returns the source of jobs: a folder, or the server that the flags and the environment name. Call the returned
// function after the last use.
func (o *remote) jobs(cmd *cobra.Command, data string) (api.Reader, func(), error) {
	if data == "" {
		c, err := o.client(cmd)
		return c, func() {}, err
	}
	f, err := openData(cmd, data)
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// openData opens a folder for reading.
func openData(cmd *cobra.Command, data string) (*folder.Folder, error) {
	f, err := folder.Open(cmd.Context(), data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit(codeUsage, fmt.Errorf("%w\nis --data the folder that %[2]s dev or %[2]s run was given?", err, cmd.Root().Name()))
	}
	if err != nil {
		return nil, exit(codeFailed, err)
	}
	return f, nil
}

// headline says in a line what a job is and how it does.
func headline(job makegood.Job) string {
	line := fmt.Sprintf("%s  %s  %s", job.ID, job.Workflow, job.ProcessState)
	if job.Paused {
		line += ", paused" + heldBy(job)
	}
	if job.Desired != job.ProcessState && !job.AtEnd() {
		line += ", wanted " + string(job.Desired)
	}
	if job.Reason != "" {
		line += ": " + plain.Line(job.Reason)
	}
	if job.FirstReason != "" {
		line += " (first: " + plain.Line(job.FirstReason) + ")"
	}
	return line
}

// forWhom says for which tenant a job is, and with which priority and labels it was submitted; empty: without.
func forWhom(job makegood.Job) string {
	var all []string
	if job.Tenant != "" {
		all = append(all, "tenant "+job.Tenant)
	}
	if job.Priority != "" {
		all = append(all, "priority "+string(job.Priority))
	}
	for _, name := range slices.Sorted(maps.Keys(job.Labels)) {
		all = append(all, "label "+name+"="+plain.Line(job.Labels[name]))
	}
	return strings.Join(all, ", ")
}

func printJob(w io.Writer, job makegood.Job) {
	fmt.Fprintln(w, headline(job))
	fmt.Fprintf(w, "  created %s", moment(&job.CreatedAt))
	if job.StartAt != nil {
		fmt.Fprintf(w, ", starts %s", moment(job.StartAt))
	}
	if job.FinishedAt != nil {
		fmt.Fprintf(w, ", finished %s", moment(job.FinishedAt))
	}
	fmt.Fprintf(w, ", round %d, %s\n", job.Round, count(job.FailureCount, "failure"))
	if of, ok := domain.ChildOf(job.ID); ok {
		fmt.Fprintf(w, "  does step %s of job %s\n", of.Step, of.Parent)
	}
	if line := forWhom(job); line != "" {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if line := expectedBy(job); line != "" {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if job.RequestedBy != nil {
		fmt.Fprintf(w, "  last asked by %s\n", plain.Line(*job.RequestedBy))
	}
	if job.Spent != nil {
		fmt.Fprintf(w, "  cost    %s\n", spentText(*job.Spent))
	}
	fmt.Fprintf(w, "  input   %s\n", shown(job.Input))
	for _, line := range stepLines(job) {
		fmt.Fprintln(w, line)
	}
	for _, s := range job.Steps {
		if len(s.Output) > 0 && string(s.Output) != "null" {
			fmt.Fprintf(w, "  output of %s  %s\n", s.Name, shown(s.Output))
		}
	}
	printHistory(w, job)
}

// expectedBy describes the times by which a job that is not at its end should be; empty: there are none.
func expectedBy(job makegood.Job) string {
	var all []string
	if job.ExpectBy != nil && !job.AtEnd() {
		line := "expected by " + moment(job.ExpectBy)
		if job.Warned {
			line += " (an operator was told that it will be late)"
		}
		all = append(all, line)
	}
	if job.Deadline != nil && !job.AtEnd() {
		all = append(all, "given up at "+moment(job.Deadline))
	}
	return strings.Join(all, ", ")
}

// stepLines returns a line a step, and one more for each undo.
func stepLines(job makegood.Job) []string {
	width := 0
	for _, s := range job.Steps {
		width = max(width, len(s.Name))
	}
	var lines []string
	for _, s := range job.Steps {
		line := fmt.Sprintf("  %-*s  %s", width, s.Name, activityText(s.Activity))
		if s.Child != "" && s.LockedBy == nil {
			line += ", by " + domain.HolderOf(s.Child)
		}
		lines = append(lines, line)
		if s.Undo != nil {
			lines = append(lines, fmt.Sprintf("  %-*s  undo: %s", width, "", activityText(*s.Undo)))
		}
		indent := fmt.Sprintf("  %-*s  ", width, "")
		lines = append(lines, itemLines(s.Items, indent)...)
		if s.Edited != nil {
			lines = append(lines, indent+"edited: "+domain.FiguresText(s.Edited.Concurrency, s.Edited.Tolerate))
		}
	}
	return lines
}

func activityText(a makegood.Activity) string {
	text := string(a.State)
	if a.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", a.Attempt)
	}
	if a.State == makegood.StepQueued {
		text += ", stands before the gate of its agent"
	}
	if a.Inline {
		text += ", inline"
	}
	if a.LockedBy != nil {
		text += ", by " + plain.Line(*a.LockedBy)
	}
	if a.LockedBy != nil && a.CompleteBy != nil {
		text += " until " + moment(a.CompleteBy)
	}
	if a.Progress != nil {
		text += fmt.Sprintf(", said %s at %s", plain.Line(string(a.Progress.Value)), moment(&a.Progress.At))
	}
	if a.State == makegood.StepWaiting {
		text += ", until " + moment(a.CompleteBy)
	}
	if a.CompletedBy != nil {
		text += ", completed by " + plain.Line(*a.CompletedBy)
	}
	if a.CompletedWhy != nil {
		text += " (" + plain.Line(*a.CompletedWhy) + ")"
	}
	if a.Settled != nil {
		text += settledText(*a.Settled)
	}
	if a.FailureCount > 0 {
		text += ", " + count(a.FailureCount, "failure")
	}
	if a.Error != nil {
		text += "; last error: " + plain.Line(a.Error.Message)
	}
	return text
}

// settledText says by which person a step was settled, when and why.
func settledText(s makegood.Settlement) string {
	text := ", settled by hand"
	if s.By != nil {
		text = ", settled by " + plain.Line(*s.By)
	}
	text += " at " + moment(&s.At)
	if s.Reason != "" {
		text += " (" + plain.Line(s.Reason) + ")"
	}
	return text
}

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func shown(value json.RawMessage) string {
	if len(value) == 0 {
		return "null"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return "(not JSON)"
	}
	text := compact.String()
	if len(text) > maxShownBytes {
		text = fmt.Sprintf("%s... (%d bytes; --json shows all)", strings.ToValidUTF8(text[:maxShownBytes], ""), len(text))
	}
	return plain.Line(text)
}

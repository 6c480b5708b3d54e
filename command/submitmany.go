package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/batch"
	"github.com/makegood-dev/makegood/internal/bulk"
)

// stdinName is what standard input is called, in messages and in the ids of lines that have none.
const stdinName = "stdin"

// submitMany submits the lines of a file: all of them are checked before the first is submitted.
func submitMany(cmd *cobra.Command, o submitOptions) error {
	if o.id != "" || o.startAt != "" || o.replyTo != "" || o.tenant != "" || o.priority != "" || len(o.labels) > 0 || o.wait {
		return exit(codeUsage, errors.New("--id, --at, --reply-to, --tenant, --priority, --label and --wait are for one job: in a file each line says them for itself, as id, startAt, replyTo, tenant, priority and labels"))
	}
	pace, err := readPace(o.rate, o.stackName(cmd) != "")
	if err != nil {
		return exit(codeUsage, err)
	}
	file, name, err := openSubmissions(cmd.InOrStdin(), o.input)
	if err != nil {
		return exit(codeUsage, err)
	}
	defer file.Close()
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	checked, err := o.check(cmd, c, file, name)
	if err != nil {
		return err
	}
	if o.dryRun {
		fmt.Fprintf(cmd.OutOrStdout(), "%s of %s, all as they must be; none was submitted\n", thousands(checked.Lines, "submission"), strings.Join(slices.Sorted(maps.Keys(checked.Workflows)), ", "))
		return nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return exit(codeFailed, fmt.Errorf("read %s again: %w", name, err))
	}
	run := newManyRun(cmd, "submit", o.json, checked.Lines, pace)
	return each(cmd.Context(), run, batch.EachSubmission(name, file), func(ctx context.Context, line batch.Submission) outcome {
		got := outcomeOf(line.ID, bulk.AnswerOf(c.Submit(ctx, line.Submission)))
		got.Line = line.Number
		return got
	})
}

// openSubmissions opens a file that can be read twice. Standard input is kept in a file that only this process can
// open.
func openSubmissions(stdin io.Reader, given string) (*os.File, string, error) {
	if given != "-" {
		path := strings.TrimPrefix(given, "@")
		file, err := os.Open(path)
		if err != nil {
			return nil, "", fmt.Errorf("--input: %w", err)
		}
		return file, path, nil
	}
	file, err := os.CreateTemp("", "makegood-submit-*")
	if err != nil {
		return nil, "", fmt.Errorf("keep standard input: %w", err)
	}
	_ = os.Remove(file.Name()) // it lives as long as it is open; where that cannot be, it is left to the system
	if _, err = io.Copy(file, stdin); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, "", fmt.Errorf("keep standard input: %w", err)
	}
	return file, stdinName, nil
}

// check reads all lines, and refuses unknown workflows. A stack is not asked for them: a submitter need not have the
// right to read, and workflows may have been published since it was deployed.
func (o *submitOptions) check(cmd *cobra.Command, c *client.Client, file io.Reader, name string) (batch.Submissions, error) {
	checked, err := batch.CheckSubmissions(name, file)
	if err != nil {
		return checked, exit(codeUsage, fmt.Errorf("%w\nno job was submitted", err))
	}
	if o.stackName(cmd) != "" {
		return checked, nil
	}
	workflows, err := c.Workflows(cmd.Context())
	if err != nil {
		return checked, failed(cmd, err)
	}
	known := names(workflows)
	var unknown batch.Errors
	for _, workflow := range slices.Sorted(maps.Keys(checked.Workflows)) {
		if !slices.Contains(known, workflow) {
			unknown.Add(name, checked.Workflows[workflow], "there is no workflow %s; there are %v", workflow, known)
		}
	}
	if len(unknown.First) > 0 {
		return checked, exit(codeUsage, fmt.Errorf("%w\nno job was submitted", &unknown))
	}
	return checked, nil
}

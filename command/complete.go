package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

const (
	// completeWithin is how long a shell waits for proposals: a person has pressed a key.
	completeWithin = time.Second
	// maxCompleted is how many ids are offered.
	maxCompleted = 100
)

// completion is what a shell asks to complete an argument or a flag.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// beginning returns the texts that begin with the typed one, in any case.
func beginning(all []string, begun string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool {
		return len(one) < len(begun) || !strings.EqualFold(one[:len(begun)], begun)
	})
}

// completeOneOf offers what begins with the typed text.
func completeOneOf[T ~string](all ...T) completion {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var texts []string
		for _, one := range all {
			texts = append(texts, string(one))
		}
		return beginning(texts, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// complete offers what read finds in the jobs of the process, stack or folder that the flags name; nothing after an
// error.
func (o *remote) complete(cmd *cobra.Command, data, begun string, read func(context.Context, api.Reader) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	cmd.SetContext(ctx)
	jobs, closeJobs, err := o.jobs(cmd, data)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer closeJobs()
	all, err := read(ctx, jobs)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return beginning(all, begun), cobra.ShellCompDirectiveNoFileComp
}

// completeWorkflows offers the workflows that the process or stack knows which the flags name.
func completeWorkflows(o *remote) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && cmd.Args != nil && cmd.Name() != "list" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.complete(cmd, "", begun, func(ctx context.Context, jobs api.Reader) ([]string, error) {
			known, err := jobs.Workflows(ctx)
			return names(known), err
		})
	}
}

func names(workflows []api.Workflow) []string {
	var all []string
	for _, w := range workflows {
		all = append(all, w.Name)
	}
	return all
}

// completeIDs offers the ids of the newest jobs of the process or folder that the flags name. Of a stack it offers
// none: to list its jobs is to pay for reading its table.
func completeIDs(o *remote, data *string) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || *data == "" && o.stackName(cmd) != "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.complete(cmd, *data, begun, func(ctx context.Context, jobs api.Reader) (ids []string, _ error) {
			for job, err := range jobs.List(ctx, api.Filter{}) {
				if err != nil || len(ids) == maxCompleted {
					break
				}
				ids = append(ids, job.ID)
			}
			return ids, nil
		})
	}
}

// waits reports whether a step, or its undo, waits.
func waits(a makegood.Activity) bool { return a.State == makegood.StepWaiting }

// completeSteps offers the ids of jobs, and then the steps of the job for which holds is true, or is for their undo.
// For a stack it offers no ids, as completeIDs.
func completeSteps(o *remote, holds func(makegood.Activity) bool) completion {
	ids := completeIDs(o, new(string))
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return ids(cmd, args, begun)
		}
		return o.complete(cmd, "", begun, func(ctx context.Context, jobs api.Reader) (steps []string, _ error) {
			job, err := jobs.Look(ctx, args[0])
			for _, s := range job.Steps {
				if holds(s.Activity) || s.Undo != nil && holds(*s.Undo) {
					steps = append(steps, s.Name)
				}
			}
			return steps, err
		})
	}
}

// completeFiles offers files with these extensions, and folders.
func completeFiles(extensions ...string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

// completeFlag says how a flag of a verb is completed. It panics where the verb has no such flag.
func completeFlag(cmd *cobra.Command, flag string, c completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic("command: " + err.Error())
	}
}

// completeFolder says that a flag is a folder.
func completeFolder(cmd *cobra.Command, flag string) {
	completeFlag(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}

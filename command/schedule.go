package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
)

func newSchedule() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Create, look at and change schedules, which make jobs again and again",
		Long: `Create, look at and change schedules of a running makegood dev or a deployed stack. Each fire of a schedule
makes the job NAME:TIME, with TIME in UTC. Schedules that a workflow file says are changed there, and can be
paused, resumed and run here.`,
		Example: `  makegood schedule create nightly --workflow report --cron '30 2 * * *' --zone Europe/Berlin
  makegood schedule next nightly
  makegood schedule pause nightly`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("schedule knows no %q: want create, list, get, pause, resume, run, rm or next", args[0])
			}
			return errors.New("schedule needs a word: create, list, get, pause, resume, run, rm or next")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(
		newScheduleCreate(), newScheduleList(),
		newScheduleAsk("get", "Show a schedule, and where it stands", "  makegood schedule get nightly\n  makegood schedule get nightly --json", (*client.Client).GetSchedule),
		newScheduleAsk("pause", "Keep a schedule from firing until it is resumed", "  makegood schedule pause nightly", (*client.Client).PauseSchedule),
		newScheduleAsk("resume", "Let a schedule fire again, from now on", "  makegood schedule resume nightly", (*client.Client).ResumeSchedule),
		newScheduleRun(), newScheduleRemove(), newScheduleNext(),
	)
	return cmd
}

// scheduleExit says what the exit codes of the verbs for schedules mean.
const scheduleExit = `

Exit status: 0; 1 bad usage, refused, or no such schedule or stack; 3 the API or AWS cannot be reached, and it is
not known what became of the request: make it again.`

// failedSchedule returns the exit code of an error about a schedule.
func failedSchedule(cmd *cobra.Command, err error) error {
	if errors.Is(err, api.ErrNoSchedule) {
		return exit(codeUsage, fmt.Errorf("%w; `%s schedule list%s` shows what there is", err, cmd.Root().Name(), where(cmd)))
	}
	return failed(cmd, err)
}

type scheduleOptions struct {
	remote
	workflow, cron, zone, input, missed, overlap, priority string
	every                                                  time.Duration
	atMost                                                 int
	replace                                                bool
}

func newScheduleCreate() *cobra.Command {
	var o scheduleOptions
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a schedule, or change one with --replace",
		Long: `Create a schedule. Its first fire is the next one from now on. The same again is the same schedule; another of
its name is refused, but for --replace, which puts this one in its place: it stays paused if it was.` + scheduleExit,
		Example: `  makegood schedule create nightly --workflow report --cron '30 2 * * *' --zone Europe/Berlin
  makegood schedule create quarters --workflow poll --every 15m --overlap skip
  makegood schedule create nightly --workflow report --cron @daily --input '{"day":"${ .time[:10] }"}' --replace`,
		Args: one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return createSchedule(cmd, args[0], o) },
	}
	o.flags(cmd)
	o.askedBy(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.workflow, "workflow", "", "`name` of the workflow of its jobs")
	flags.StringVar(&o.cron, "cron", "", "five `fields`: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly")
	flags.DurationVar(&o.every, "every", 0, "a rate in the place of --cron: a `duration`, counted from 1970-01-01T00:00:00Z")
	flags.StringVar(&o.zone, "zone", "", "time `zone` of --cron, such as Europe/Berlin; without it UTC")
	flags.StringVar(&o.input, "input", "", "input of the jobs: `JSON`, @FILE, or - for standard input; its strings may hold ${ .time } and ${ .schedule }")
	flags.StringVar(&o.missed, "missed", "", "`what` becomes of fires that are missed: skip, one (the latest; the default) or all")
	flags.IntVar(&o.atMost, "at-most", 0, "how `many` fires --missed all makes up for")
	flags.StringVar(&o.overlap, "overlap", "", "`what` becomes of a fire while the job of the one before is unfinished: allow (the default), skip or queue")
	flags.StringVar(&o.priority, "priority", "", "`class` of its jobs before the gate of an agent with a limit: urgent, normal (the default) or idle")
	flags.BoolVar(&o.replace, "replace", false, "put it in the place of the one of its name")
	completeFlag(cmd, "workflow", completeWorkflows(&o.remote))
	return cmd
}

// schedule returns what the flags say.
func (o scheduleOptions) schedule(name string, stdin io.Reader) (makegood.Schedule, error) {
	s := makegood.Schedule{
		Name: name, Workflow: o.workflow, Cron: o.cron, Every: makegood.Duration(o.every), Zone: o.zone,
		Missed: makegood.Missed(o.missed), AtMost: o.atMost, Overlap: makegood.Overlap(o.overlap), Priority: makegood.Priority(o.priority),
	}
	if o.workflow == "" {
		return s, errors.New("schedule create needs --workflow")
	}
	if o.input == "" {
		return s, nil
	}
	input, err := readJSON("--input", stdin, o.input)
	s.Input = json.RawMessage(input)
	return s, err
}

func createSchedule(cmd *cobra.Command, name string, o scheduleOptions) error {
	s, err := o.schedule(name, cmd.InOrStdin())
	if err != nil {
		return exit(codeUsage, err)
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	stored, err := c.CreateSchedule(cmd.Context(), s)
	if refused := new(api.RefusedError); errors.As(err, &refused) {
		if !o.replace {
			return failedSchedule(cmd, fmt.Errorf("%w; --replace puts this one in its place", err))
		}
		stored, err = c.ChangeSchedule(cmd.Context(), s, 0)
	}
	if err != nil {
		return failedSchedule(cmd, err)
	}
	if stored.Existed {
		fmt.Fprintln(cmd.ErrOrStderr(), "it was there already, and says the same")
	}
	return printSchedule(cmd, o.remote, stored)
}

func newScheduleList() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use: "list", Short: "List schedules", Long: "List schedules by their names." + scheduleExit,
		Example: "  makegood schedule list\n  makegood schedule list --json | jq -r '.schedules[].name'",
		Args:    none,
		RunE:    listing(&o, "schedules", (*client.Client).ListSchedules, printSchedules),
	}
	o.flags(cmd)
	return cmd
}

// newScheduleAsk makes a verb that shows the schedule as it stands after it.
func newScheduleAsk(word, short, example string, ask func(*client.Client, context.Context, string) (api.Scheduled, error)) *cobra.Command {
	return scheduleVerb(word, short, example, func(cmd *cobra.Command, o *remote, c *client.Client, name string) error {
		s, err := ask(c, cmd.Context(), name)
		if err != nil {
			return err
		}
		return printSchedule(cmd, *o, s)
	})
}

func newScheduleRun() *cobra.Command {
	return scheduleVerb("run", "Make a job of a schedule now, beside its fires, and print its id", "  makegood watch $(makegood schedule run nightly)",
		func(cmd *cobra.Command, o *remote, c *client.Client, name string) error {
			job, err := c.RunSchedule(cmd.Context(), name)
			if err != nil {
				return err
			}
			return o.printLine(cmd, map[string]string{"job": job}, job)
		})
}

func newScheduleRemove() *cobra.Command {
	return scheduleVerb("rm", "Remove a schedule; jobs that it made go on", "  makegood schedule rm nightly",
		func(cmd *cobra.Command, o *remote, c *client.Client, name string) error {
			// What cannot be read can be removed all the same.
			s, _ := c.GetSchedule(cmd.Context(), name)
			if err := c.RemoveSchedule(cmd.Context(), name, 0); err != nil {
				return err
			}
			if s.From != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "the file of workflow %s says it still, and brings it back when it is loaded again, at the next start or publish: remove it there, too\n", s.From)
			}
			return o.printLine(cmd, map[string]string{"removed": name}, fmt.Sprintf("schedule %s is gone", name))
		})
}

// shownFires is how many fires next shows unless it is told.
const shownFires = 10

func newScheduleNext() *cobra.Command {
	count := shownFires
	cmd := scheduleVerb("next", "Show the next fires of a schedule", "  makegood schedule next nightly\n  makegood schedule next nightly --count 3 --json",
		func(cmd *cobra.Command, o *remote, c *client.Client, name string) error {
			fires, err := c.NextFires(cmd.Context(), name, count)
			if err != nil {
				return err
			}
			if s, err := c.GetSchedule(cmd.Context(), name); err == nil && s.PausedAt != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "it is paused: none of these comes before it is resumed")
			}
			return o.print(cmd, inList("fires", fires), func(w io.Writer) {
				for _, fire := range fires {
					fmt.Fprintln(w, fire.UTC().Format(time.RFC3339))
				}
			})
		})
	cmd.Flags().IntVar(&count, "count", shownFires, "how `many`, 1 to 200")
	return cmd
}

// scheduleVerb makes a verb for one schedule.
func scheduleVerb(word, short, example string, do func(cmd *cobra.Command, o *remote, c *client.Client, name string) error) *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use: word + " NAME", Short: short, Long: short + "." + scheduleExit, Example: example, Args: one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client(cmd)
			if err != nil {
				return err
			}
			return failedSchedule(cmd, do(cmd, &o, c, args[0]))
		},
	}
	o.flags(cmd)
	if word != "get" {
		o.askedBy(cmd)
	}
	return cmd
}

// printSchedule prints one schedule, in JSON or for people.
func printSchedule(cmd *cobra.Command, o remote, s api.Scheduled) error {
	if o.json {
		return printJSON(cmd.OutOrStdout(), s)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "schedule %s of workflow %s: %s\n", s.Name, s.Workflow, when(s))
	fmt.Fprintf(&text, "  next fire   %s\n", state(s))
	if s.LastFire != nil {
		fmt.Fprintf(&text, "  last fire   %s, job %s\n", moment(s.LastFire), s.LastJob)
	}
	fmt.Fprintf(&text, "  missed %s, overlap %s, %d left out so far\n", s.Missed, s.Overlap, s.Skipped)
	if s.Priority != "" {
		fmt.Fprintf(&text, "  priority %s\n", s.Priority)
	}
	if s.From != "" {
		fmt.Fprintf(&text, "  from the file of workflow %s: change it there\n", s.From)
	}
	if s.Problem != "" {
		fmt.Fprintf(&text, "  the last fire made no job: %s\n", s.Problem)
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), text.String()) // a closed standard output is no error
	return nil
}

// when says when a schedule fires.
func when(s api.Scheduled) string {
	switch {
	case s.Cron == "":
		return "every " + s.Every.String()
	case s.Zone == "":
		return s.Cron + " UTC"
	default:
		return s.Cron + " " + s.Zone
	}
}

// state says when a schedule fires next, or why it does not.
func state(s api.Scheduled) string {
	switch {
	case s.PausedAt != nil:
		return "paused"
	case s.NextFire == nil:
		return "never"
	default:
		return moment(s.NextFire)
	}
}

func printSchedules(w io.Writer, all []api.Scheduled) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no schedules")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tWORKFLOW\tWHEN\tNEXT\tLAST JOB\tPROBLEM")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Workflow, when(s), state(s), s.LastJob, s.Problem)
	}
	_ = table.Flush() // a closed standard output is no error
}

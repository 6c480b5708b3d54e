package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/repair"
)

// How fast a verb goes through many jobs without --rate. Each job that it changes costs three or four write units of
// a stack's table and an invocation of its door, beside the cost of the job's further work.
const (
	defaultRate      = 1000
	defaultStackRate = 50
	// maxRate is the highest --rate.
	maxRate = 10_000
	// atOnce and stackAtOnce are how many requests are under way at most: embedded they share flushes, and on a stack each
	// takes a concurrent execution of the account.
	atOnce      = 32
	stackAtOnce = 16
)

// manyOptions are the flags of a verb that takes many jobs.
type manyOptions struct {
	remote
	filter      filterFlags
	request     string
	rate        string
	dryRun, yes bool
}

// asked is a verb, with all that is asked of each job.
type asked struct {
	name string
	// one asks it of one job, under the name of the request; empty: one is made.
	one func(ctx context.Context, c *client.Client, id, request string) (makegood.Job, error)
	// would returns the outcome that it would have for a job, read without its payloads.
	would func(job makegood.Job) outcome
	// byState: would reads only the state, which a list has, too.
	byState bool
	// ofJob is the request whose result a dry run asks of each job. Empty: the state of the job alone decides.
	ofJob string
	// foreseen returns the outcome that it would have, where that takes more than reading the job; nil: use would.
	foreseen func(ctx context.Context, c *client.Client, id string) outcome
	// show is the line that is printed of one job.
	show func(job makegood.Job) string
	// plan returns its effect on one job, where reading the job is not enough; nil: use would.
	plan func(ctx context.Context, c *client.Client, id, request string) (makegood.Plan, error)
}

// askedOf returns a verb of the table; its effect depends on the state alone.
func askedOf(verb makegood.Verb, one func(ctx context.Context, c *client.Client, id, request string) (makegood.Job, error)) asked {
	return asked{
		name: string(verb), one: one, byState: true, show: headline,
		would: func(job makegood.Job) outcome { return wouldBe(verb, job) },
	}
}

func (o *manyOptions) flags(cmd *cobra.Command) {
	o.baseFlags(cmd)
	cmd.Flags().StringVar(&o.request, "request", "", "`name` of the request: a job that was granted it before is left as it is")
}

// baseFlags are those of a verb that is the same however often it is asked, so that its requests need no name.
func (o *manyOptions) baseFlags(cmd *cobra.Command) {
	o.remote.flags(cmd)
	o.filter.add(cmd, &o.remote)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what it would do to each job, and change nothing")
	flags.BoolVar(&o.yes, "yes", false, "do not ask before it goes through the jobs that a filter finds")
	flags.StringVar(&o.rate, "rate", "", fmt.Sprintf("at most `N/s` jobs a second (default: %d/s, and %d/s on a stack)", defaultRate, defaultStackRate))
	cmd.Args = o.arguments
	cmd.ValidArgsFunction = completeIDs(&o.remote, new(string))
}

// manyHelp says how a verb takes many jobs, and its exit status.
const manyHelp = `

It takes one job, several, - (their ids on standard input, one a line, or what list --json prints), or the filters of
list. What a filter finds is asked about on a terminal; elsewhere --yes is needed. Cut off, the same command goes on: a
filter finds what is left, and with --request NAME no job is granted it twice, however often the command is run.

Exit status of one job: 0 it is stored, or was so already; 1 bad usage, refused, or no such job or stack; 3 the API
or AWS cannot be reached, and it is not known whether it was granted: ask again. Of many: 0 all are stored, or were so
already; 1 bad usage, nothing was done; 2 some were refused; 3 it was cut off, or of some it is not known.`

// arguments wants an id or more, or -, or a filter.
func (o *manyOptions) arguments(cmd *cobra.Command, args []string) error {
	set := o.filter.given(cmd)
	switch {
	case len(args) > 0 && set != "":
		return fmt.Errorf("%s takes ids or a filter, not both: got %s and %s", cmd.Name(), args[0], set)
	case len(args) > 1 && contains(args, "-"):
		return fmt.Errorf("%s takes ids, or - for those on standard input, not both", cmd.Name())
	case len(args) == 0 && set == "":
		return fmt.Errorf("%s needs an ID, several, - for standard input, or a filter such as --state Error", cmd.Name())
	}
	return nil
}

// do asks for a verb: of one job as ever, and of many with a summary.
func (o *manyOptions) do(cmd *cobra.Command, args []string, a asked) error {
	pace, err := o.pace(cmd)
	if err != nil {
		return exit(codeUsage, err)
	}
	if o.request != "" && makegood.CheckJobID(o.request) != nil {
		return exit(codeUsage, fmt.Errorf("--request %.140q: want what the id of a job may be", o.request))
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] != "-" && !o.dryRun {
		return o.doOne(cmd, c, args[0], a)
	}
	targets, err := o.targets(cmd, c, args)
	if err != nil {
		return err
	}
	run := newManyRun(cmd, a.name, o.json, len(targets), pace)
	if o.dryRun {
		run.tally.DryRun = true
		return through(cmd.Context(), run, each(targets), pace, func(ctx context.Context, t target) outcome {
			if a.plan != nil {
				plan, err := a.plan(ctx, c, t.id, o.request)
				return planned(t.id, plan, err)
			}
			return a.foresee(ctx, c, t)
		})
	}
	if err := o.confirm(cmd, a.name, len(targets)); err != nil {
		return err
	}
	return through(cmd.Context(), run, each(targets), pace, func(ctx context.Context, t target) outcome {
		job, err := a.one(ctx, c, t.id, o.request)
		return outcomeOf(t.id, job, err)
	})
}

func (o *manyOptions) doOne(cmd *cobra.Command, c *client.Client, id string, a asked) error {
	job, err := a.one(cmd.Context(), c, id, o.request)
	if err != nil {
		return failed(cmd, err)
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), job)
	}
	fmt.Fprintln(cmd.OutOrStdout(), a.show(job))
	return nil
}

// pace reads --rate.
func (o *manyOptions) pace(cmd *cobra.Command) (repair.Pace, error) {
	return readPace(o.rate, o.stackName(cmd) != "")
}

func readPace(rate string, deployed bool) (repair.Pace, error) {
	p := repair.Pace{AtOnce: atOnce, PerSecond: defaultRate}
	if deployed {
		p = repair.Pace{AtOnce: stackAtOnce, PerSecond: defaultStackRate}
	}
	if rate == "" {
		return p, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(rate, "/s"), 64)
	if err != nil || !(n > 0 && n <= maxRate) {
		return p, fmt.Errorf("--rate %s: want N/s, such as 20/s, more than 0 and at most %d/s", rate, maxRate)
	}
	p.PerSecond = n
	return p, nil
}

// confirm asks whether a filter is meant: ids were named one by one.
func (o *manyOptions) confirm(cmd *cobra.Command, verb string, jobs int) error {
	if o.yes || o.filter.given(cmd) == "" || jobs == 0 {
		return nil
	}
	return confirmed(cmd, fmt.Sprintf("%s %s", verb, thousands(jobs, "job")))
}

// confirmed asks the person at the terminal for a confirmation.
func confirmed(cmd *cobra.Command, question string) error {
	return agreed(cmd, question, "--yes does it, --dry-run shows it")
}

// agreed asks the person at the terminal, and fails unless they say yes. Without a terminal the error names the flags
// to use instead.
func agreed(cmd *cobra.Command, question, instead string) error {
	in, isFile := cmd.InOrStdin().(*os.File)
	if !isFile || !isTerminal(in) || !isTerminal(cmd.ErrOrStderr()) {
		return exit(codeUsage, fmt.Errorf("%s? Nobody can be asked here: %s", question, instead))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", question)
	said, err := readAnswer(cmd.Context(), in)
	if err != nil {
		return exit(codeFailed, err)
	}
	if said = strings.ToLower(strings.TrimSpace(said)); said != "y" && said != "yes" {
		return exit(codeUsage, errors.New("nothing was done"))
	}
	return nil
}

// readAnswer reads a line, unless ctx ends before it comes.
func readAnswer(ctx context.Context, in io.Reader) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // an end without a line is no yes
		line <- text
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// foresee says what a verb would do to a job, which is looked at only where what a list has said is not enough.
func (a asked) foresee(ctx context.Context, c *client.Client, t target) outcome {
	if a.foreseen != nil {
		return a.foreseen(ctx, c, t.id)
	}
	if a.ofJob != "" {
		return offered(ctx, c, t.id, a.ofJob)
	}
	job := makegood.Job{ID: t.id, ProcessState: t.state}
	if t.state == "" || !a.byState {
		var err error
		if job, err = c.Look(ctx, t.id); err != nil {
			return outcomeOf(t.id, job, err)
		}
	}
	o := a.would(job)
	o.Job, o.State = t.id, job.ProcessState
	return o
}

// offered returns the outcome that a request to a job would have, where that rests on more than its state.
func offered(ctx context.Context, c *client.Client, id, ask string) outcome {
	offers, err := c.Offers(ctx, id)
	if err != nil {
		return outcomeOf(id, makegood.Job{}, err)
	}
	o, there := domain.OfferOf(offers, ask)
	foreseen := outcome{Job: id, State: offers.ProcessState, Outcome: granted, Would: o.Effect}
	switch {
	case !there || o.Effect == limits.OfferRefused:
		foreseen.Outcome, foreseen.Would, foreseen.Reason = refused, "", o.Reason
	case o.Effect == limits.OfferAlready:
		foreseen.Outcome, foreseen.Would = duplicate, ""
	}
	return foreseen
}

// wouldBe says what the table of verbs has for a job.
func wouldBe(verb makegood.Verb, job makegood.Job) outcome {
	rule := machine.RuleFor(verb, job.ProcessState)
	switch rule.Effect {
	case machine.Refuses:
		return outcome{Outcome: refused, Reason: rule.Reason}
	case machine.Already:
		return outcome{Outcome: duplicate}
	}
	return outcome{Outcome: granted, Would: string(rule.Effect)}
}

// manyRun is a verb on its way through many jobs.
type manyRun struct {
	verb           string
	asJSON         bool
	stdout, stderr io.Writer
	total          int
	tally          *tally
	// lostAfter is how many failures in a row mean that the API answers no more.
	lostAfter int
	lost      int
}

// errLost: the API answers no more.
var errLost = errors.New("the API does not answer")

func newManyRun(cmd *cobra.Command, verb string, asJSON bool, total int, p repair.Pace) *manyRun {
	return &manyRun{
		verb: verb, asJSON: asJSON, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), total: total,
		tally: newTally(verb), lostAfter: p.AtOnce,
	}
}

// through does it to all, prints each outcome and then the summary, and returns the exit code for these.
func through[T any](ctx context.Context, r *manyRun, items iter.Seq2[T, error], p repair.Pace, do func(context.Context, T) outcome) error {
	began := time.Now()
	progress := newBar(ctx, r.stderr, r.total)
	err := repair.Do(ctx, items, p, do, func(_ T, o outcome) error {
		progress.ended(r.tally.Jobs + 1)
		return r.hear(o)
	})
	progress.close()
	r.tally.close(time.Since(began).Seconds())
	if printed := r.summary(); printed != nil {
		return printed
	}
	return r.ended(err)
}

func each(targets []target) iter.Seq2[target, error] {
	return func(yield func(target, error) bool) {
		for _, t := range targets {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// hear counts and prints the outcome of a job.
func (r *manyRun) hear(o outcome) error {
	r.tally.add(o)
	if err := r.print(o); err != nil {
		return err
	}
	if o.Outcome != broke {
		r.lost = 0
		return nil
	}
	if o.all {
		return errors.New(o.Reason)
	}
	if r.lost++; r.lost >= r.lostAfter {
		return errLost
	}
	return nil
}

func (r *manyRun) print(o outcome) error {
	switch {
	case r.asJSON:
		return printJSON(r.stdout, o)
	case o.Would != "":
		fmt.Fprintf(r.stdout, "%s  %s: %s\n", o.Job, o.State, o.Would)
	case o.Plan != nil:
		printPlan(r.stdout, *o.Plan)
	}
	return nil
}

func (r *manyRun) summary() error {
	if r.asJSON {
		return printJSON(r.stdout, struct {
			Summary *tally `json:"summary"`
		}{r.tally})
	}
	r.tally.print(r.stdout)
	return nil
}

// ended returns the exit code of all, and what to do next.
func (r *manyRun) ended(err error) error {
	left := r.total - r.tally.Jobs
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		return exit(codeFailed, fmt.Errorf("stopped: %w\n%s", err, goesOn(left)))
	case err != nil:
		return exit(codeFailed, fmt.Errorf("stopped\n%s", goesOn(left)))
	case r.tally.Failed > 0:
		return exit(codeFailed, fmt.Errorf("of %s it is not known what became of the request; the same command asks again, without harm", thousands(r.tally.Failed, "job")))
	case r.tally.Refused > 0:
		return exit(codeOtherwise, nil)
	}
	return nil
}

func goesOn(left int) string {
	return fmt.Sprintf("%s not gone through; the same command goes on with the rest", thousands(left, "job"))
}

// thousands counts things: 10,000 jobs.
func thousands(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes 10000 as 10,000.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
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
	filter           filterFlags
	request, journal string
	rate             string
	dryRun, yes      bool
}

// asked is a verb, with all that is asked of each job.
type asked struct {
	name string
	// words are all that is asked, as JSON has them in a journal.
	words any
	// one asks it of one job, under the name of the request; empty: one is made.
	one func(ctx context.Context, c *client.Client, id, request string) (makegood.Job, error)
	// would returns the outcome that it would have for a job, read without its payloads.
	would func(job makegood.Job) outcome
	// byState: would reads only the state, which a list has, too.
	byState bool
	// ofJob is the request whose result a dry run asks of each job. Empty: the state of the job alone decides.
	ofJob string
	// ofStep is the step that the request is of; empty: it is of the job.
	ofStep string
	// foreseen returns the outcome that it would have, where that takes more than reading the job; nil: use would.
	foreseen func(ctx context.Context, c *client.Client, id string) outcome
	// show is the line that is printed of one job.
	show func(job makegood.Job) string
	// plan returns its effect on one job, where reading the job is not enough; nil: use would.
	plan func(ctx context.Context, c *client.Client, id, request string) (makegood.Plan, error)
}

// askedOf returns a verb of the table; its effect depends on the state alone.
func askedOf(r api.Request) asked {
	return asked{
		name: string(r.Verb), words: r, byState: true, show: headline,
		one: func(ctx context.Context, c *client.Client, id, request string) (makegood.Job, error) {
			r := r
			r.Name = request
			return c.Request(ctx, id, r)
		},
		would: func(job makegood.Job) outcome { return wouldBe(r.Verb, job) },
	}
}

func (o *manyOptions) flags(cmd *cobra.Command) {
	o.baseFlags(cmd)
	cmd.Flags().StringVar(&o.request, "request", "", "`name` of the request: a job that was granted it before is left as it is")
	cmd.Flags().StringVar(&o.journal, "journal", "", "`file` for the answers of many jobs until all have answered, so that the same command asks the others; needs --request")
	cmd.MarkFlagsMutuallyExclusive("journal", "dry-run")
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
filter finds what is left, and with --request NAME no job is granted it twice, however often the command is run. With
--journal FILE, too, it asks only the jobs that have not answered, and counts them all; the file is gone at the end.

Exit status of one job: 0 it is stored, or was so already; 1 bad usage, refused, or no such job or stack; 3 the API
or AWS cannot be reached, and it is not known whether it was granted: ask again. Of many: 0 all are stored, or were so
already; 1 bad usage, nothing was done; 2 some were refused; 3 it was cut off, or of some it is not known.`

// arguments wants an id or more, or -, or a filter.
func (o *manyOptions) arguments(cmd *cobra.Command, args []string) error {
	set := o.filter.given(cmd)
	switch {
	case len(args) > 0 && set != "":
		return fmt.Errorf("%s takes ids or a filter, not both: got %s and %s", cmd.Name(), args[0], set)
	case len(args) > 1 && slices.Contains(args, "-"):
		return fmt.Errorf("%s takes ids, or - for those on standard input, not both", cmd.Name())
	case len(args) == 0 && set == "":
		return fmt.Errorf("%s needs an ID, several, - for standard input, or a filter such as --state Error", cmd.Name())
	}
	return nil
}

// do asks for a verb: of one job as ever, and of many with a summary.
func (o *manyOptions) do(cmd *cobra.Command, args []string, a asked) error {
	pace, err := readPace(o.rate, o.stackName(cmd) != "")
	if err != nil {
		return exit(codeUsage, err)
	}
	if o.request != "" && makegood.CheckJobID(o.request) != nil {
		return exit(codeUsage, fmt.Errorf("--request %.140q: want what the id of a job may be", o.request))
	}
	if o.journal != "" && o.request == "" {
		return exit(codeUsage, errors.New("--journal needs --request: a job whose answer was not written down is asked again, by that name"))
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] != "-" && !o.dryRun && o.journal == "" {
		return o.doOne(cmd, c, args[0], a)
	}
	targets, err := o.targets(cmd, c, args)
	if err != nil {
		return err
	}
	run := newManyRun(cmd, a.name, o.json, len(targets), pace)
	if !o.dryRun {
		return o.doMany(cmd, c, a, run, targets)
	}
	run.tally.DryRun = true
	return each(cmd.Context(), run, bulk.Each(targets), func(ctx context.Context, t target) outcome {
		if a.plan != nil {
			plan, err := a.plan(ctx, c, t.id, o.request)
			return planned(t.id, plan, err)
		}
		return a.foresee(ctx, c, t)
	})
}

// doMany asks the jobs that have not answered yet, if the user means it.
func (o *manyOptions) doMany(cmd *cobra.Command, c *client.Client, a asked, run *manyRun, targets []target) error {
	work, err := o.begin(cmd, a, run, targets)
	if err != nil {
		return exit(codeUsage, fmt.Errorf("--journal %s: %w", o.journal, err))
	}
	if err = o.confirm(cmd, a.name, work.Progress().Left()); err == nil {
		err = run.through(cmd.Context(), func(heard func(outcome) error) error {
			return work.Carry(cmd.Context(), run.pace, func(ctx context.Context, id string) bulk.Answer {
				return bulk.AnswerOf(a.one(ctx, c, id, o.request))
			}, func(id string, a bulk.Answer) error { return heard(outcomeOf(id, a)) })
		})
	}
	return errors.Join(err, work.Close())
}

// begin starts a bulk run. If the journal already has answers, the run goes on from them, and begin counts them.
func (o *manyOptions) begin(cmd *cobra.Command, a asked, run *manyRun, targets []target) (*bulk.Run, error) {
	order := bulk.Order{Name: o.request}
	for _, t := range targets {
		order.Jobs = append(order.Jobs, t.id)
	}
	if o.journal == "" {
		return bulk.Begin(order), nil
	}
	words, err := json.Marshal(a.words)
	if err != nil {
		return nil, err
	}
	order.Says = fmt.Sprintf("%s of %s, %s", a.name, cmp.Or(o.stackName(cmd), address(cmd)), words)
	work, err := bulk.Resume(o.journal, order, func(id string, a bulk.Answer) { run.tally.add(outcomeOf(id, a)) })
	if err != nil {
		return nil, err
	}
	p := work.Progress()
	run.total, run.tally.Before = p.Total(), p.Asked
	if p.Damaged > 0 {
		fmt.Fprintf(run.stderr, "--journal %s: %s cannot be read; their jobs are asked again\n", o.journal, thousands(p.Damaged, "line"))
	}
	if p.Asked > 0 {
		fmt.Fprintf(run.stderr, "%s of %s answered before\n", grouped(p.Asked), thousands(p.Total(), "job"))
	}
	return work, nil
}

func (o *manyOptions) doOne(cmd *cobra.Command, c *client.Client, id string, a asked) error {
	job, err := a.one(cmd.Context(), c, id, o.request)
	if err != nil {
		return failed(cmd, err)
	}
	return o.printLine(cmd, job, a.show(job))
}

// readPace reads --rate.
func readPace(rate string, deployed bool) (bulk.Pace, error) {
	p := bulk.Pace{AtOnce: atOnce, PerSecond: defaultRate}
	if deployed {
		p = bulk.Pace{AtOnce: stackAtOnce, PerSecond: defaultStackRate}
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
		return a.offered(ctx, c, t.id)
	}
	job := makegood.Job{ID: t.id, ProcessState: t.state}
	if t.state == "" || !a.byState {
		var err error
		if job, err = c.Look(ctx, t.id); err != nil {
			return outcomeOf(t.id, bulk.AnswerOf(job, err))
		}
	}
	o := a.would(job)
	o.Job, o.State = t.id, job.ProcessState
	return o
}

// offered returns the outcome that a request to a job would have, where that rests on more than its state.
func (a asked) offered(ctx context.Context, c *client.Client, id string) outcome {
	offers, err := c.Offers(ctx, id)
	if err != nil {
		return outcomeOf(id, bulk.AnswerOf(makegood.Job{}, err))
	}
	o, there := domain.OfferOf(offers, a.ofJob)
	if a.ofStep != "" {
		o, there = domain.OfferToEdit(offers, a.ofStep)
	}
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
	pace           bulk.Pace
	tally          *tally
	// lost is how many requests in a row have failed: as many as are under way at once mean that the API answers no more.
	lost int
}

// errLost: the API answers no more.
var errLost = errors.New("the API does not answer")

func newManyRun(cmd *cobra.Command, verb string, asJSON bool, total int, p bulk.Pace) *manyRun {
	return &manyRun{
		verb: verb, asJSON: asJSON, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), total: total, pace: p, tally: newTally(verb),
	}
}

// each does it to each of items.
func each[T any](ctx context.Context, r *manyRun, items iter.Seq2[T, error], do func(context.Context, T) outcome) error {
	return r.through(ctx, func(heard func(outcome) error) error {
		return bulk.Do(ctx, items, r.pace, do, func(_ T, o outcome) error { return heard(o) })
	})
}

// through carries it out, prints each outcome that is heard and then the summary, and returns the exit code for these.
func (r *manyRun) through(ctx context.Context, carry func(heard func(outcome) error) error) error {
	began := time.Now()
	progress := newBar(ctx, r.stderr, r.total)
	err := carry(func(o outcome) error {
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
	if r.lost++; r.lost >= r.pace.AtOnce {
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

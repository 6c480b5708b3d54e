package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/stack"
)

// box is where messages lie: in quarantine, or in dead letters.
type box struct {
	name, short, what string
	// embedded is the part of the help about an engine in one process.
	embedded string
	queues   func(agents []string) []string
}

func quarantined() box {
	return box{
		name: "quarantine", short: "Show, replay or drop messages that were not understood",
		what:   "messages that our code could not understand, or had to refuse, each with the reason",
		queues: func([]string) []string { return []string{putaway.Quarantine} },
		embedded: `Without --stack it is the quarantine of the makegood dev at --addr, or of the folder at --data: kept as long as finished
jobs are, and of too many the oldest are dropped.`,
	}
}

func deadLetters() box {
	return box{
		name: "dead-letters", short: "Show, replay or drop messages that no function came to an end over",
		what:   "messages that a function received time and again and never came to an end over",
		queues: putaway.DeadLetters, embedded: noDeadLetters,
	}
}

// noDeadLetters says what there is in one process instead of dead letters.
const noDeadLetters = `An engine in one process has no dead letters: its queues are in its memory, a lost message is made again from the jobs in its
store, and messages that were not understood are in quarantine.`

// putAwayOptions are the flags of the verbs of a box.
type putAwayOptions struct {
	box
	remote
	data        string
	wanted      putaway.Wanted
	all         bool
	yes, dryRun bool
	vouched     bool
	keep        string
	limit       int
}

const putAwayStatus = `

Exit status: 0 done; 1 bad usage, no such message or stack, or no message was touched; 2 some were refused, and are there still;
3 the API or AWS cannot be reached, or it was cut off: the same command goes on.`

const putAwayRights = `

Of a stack it uses your own AWS credentials: receive, hide and delete on these queues, for replay also send on the events and the
submissions queue, and the stack's key. docs/dead-letters.md has the policy.`

// newPutAway makes the verbs of a box.
func newPutAway(b box) *cobra.Command {
	o := &putAwayOptions{box: b}
	cmd := &cobra.Command{
		Use:   b.name,
		Short: b.short,
		Long: fmt.Sprintf(`Show, replay or drop the messages in %s of a deployed stack: %s. They lie there for fourteen
days. To look takes them out for a moment and gives them back, which raises their counts of deliveries, and moves them nowhere.

%s`, b.name, b.what, b.embedded) + putAwayRights,
		Example: fmt.Sprintf("  makegood %[1]s list --stack shop-prod\n  makegood %[1]s replay --all --dry-run --stack shop-prod", b.name),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s knows no %q: want list, get, replay or drop", cmd.Name(), args[0])
			}
			return fmt.Errorf("%s needs a word: list, get, replay or drop", cmd.Name())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(o.newList(), o.newGet(), o.newReplay(), o.newDrop())
	return cmd
}

func (o *putAwayOptions) filters(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.wanted.Reason, "reason", "", "only messages with a reason that begins with this `text`")
	flags.StringVar(&o.wanted.Source, "queue", "", "only those that came from this `queue`: events, submissions, tasks-AGENT, sweeps")
	flags.StringVar(&o.wanted.Job, "job", "", "only those of the job with this `id`")
}

func (o *putAwayOptions) newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the messages, and why each is there",
		Long:    "List the messages in " + o.name + ", with the reason, in no order: SQS has none." + putAwayStatus,
		Example: fmt.Sprintf("  makegood %[1]s list --stack shop-prod\n  makegood %[1]s list --stack shop-prod --queue submissions --json | jq -r .reason", o.name),
		Args:    none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.with(cmd, func(b *opened) error { return o.list(cmd, b) })
		},
	}
	o.reads(cmd)
	o.filters(cmd)
	cmd.Flags().IntVar(&o.limit, "limit", 100, fmt.Sprintf("at most this `number`, 1 to %d", putaway.Max))
	return cmd
}

func (o *putAwayOptions) newGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get ID",
		Short:   "Show one message, with its body",
		Long:    "Show one message of " + o.name + ", with its body, and what a replay would do." + putAwayStatus,
		Example: fmt.Sprintf("  makegood %s get 9f1c2d1e-6a0b-4c55-8f6e-6f3f0c7a1b2d --stack shop-prod", o.name),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes the ID of one message, as list shows it, got %d arguments", cmd.Name(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.wanted, o.limit = putaway.Wanted{IDs: args}, putaway.Max
			return o.with(cmd, func(b *opened) error { return o.get(cmd, b) })
		},
	}
	o.reads(cmd)
	return cmd
}

// reads adds the flags of a read-only verb.
func (o *putAwayOptions) reads(cmd *cobra.Command) {
	o.flags(cmd)
	dataFlag(cmd, &o.data)
}

func (o *putAwayOptions) newReplay() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay ID...",
		Short: "Let messages do their work",
		Long: `Let messages of ` + o.name + ` do their work. A reply, a deadline or a submission that is understood now goes
to its own queue again. A task is never put back: its Scheduler is told to look at the job, and sends the current attempt when
it is due; a task of an attempt that is over is deleted. A message that would be refused again stays, with the reason. A message is deleted
only when its successor was sent, so none is lost when this is cut off, and one sent twice has no further effect.` + putAwayStatus,
		Example: fmt.Sprintf("  makegood %[1]s replay --all --dry-run --stack shop-prod\n  makegood %[1]s replay --queue submissions --submissions --yes --stack shop-prod", o.name),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.each(cmd, args, func(ctx context.Context, b *opened, l putaway.Message) (putaway.Outcome, error) {
				if o.dryRun {
					return b.Foresee(ctx, l)
				}
				return b.Replay(ctx, l)
			})
		},
	}
	o.choosing(cmd)
	cmd.Flags().BoolVar(&o.vouched, "submissions", false, "also submissions that are in quarantine: look at them first, agents can put messages there, too")
	return cmd
}

func (o *putAwayOptions) newDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop ID...",
		Short: "Delete messages, and print them",
		Long: `Delete messages of ` + o.name + `, and print them. With --keep each is written to a file before it is deleted, a
JSON object a line.` + putAwayStatus,
		Example: fmt.Sprintf("  makegood %[1]s drop 9f1c2d1e-6a0b-4c55-8f6e-6f3f0c7a1b2d --stack shop-prod\n  makegood %[1]s drop --reason 'not UTF-8' --keep dropped.jsonl --yes --stack shop-prod", o.name),
		RunE: func(cmd *cobra.Command, args []string) error {
			keep, err := o.keeper()
			if err != nil {
				return exit(codeUsage, err)
			}
			defer keep.Close()
			return o.each(cmd, args, func(ctx context.Context, b *opened, l putaway.Message) (putaway.Outcome, error) {
				if o.dryRun {
					return putaway.Outcome{Result: dropped, Why: l.Reason}, nil
				}
				if err := keep.write(l); err != nil {
					return putaway.Outcome{}, fmt.Errorf("--keep: %w", err)
				}
				return putaway.Outcome{Result: dropped, Why: l.Reason}, b.Drop(ctx, l)
			})
		},
	}
	o.choosing(cmd)
	cmd.Flags().StringVar(&o.keep, "keep", "", "append each to this `file` before it is deleted")
	return cmd
}

// dropped is what became of a message that was dropped.
const dropped putaway.Result = "dropped"

// choosing adds the flags that say which messages are meant.
func (o *putAwayOptions) choosing(cmd *cobra.Command) {
	o.flags(cmd)
	o.askedBy(cmd)
	o.filters(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "all that are there")
	flags.BoolVar(&o.yes, "yes", false, "do not ask")
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what would become of each, and change none")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		filter := o.wanted.Reason != "" || o.wanted.Source != "" || o.wanted.Job != ""
		switch {
		case len(args) > 0 && (filter || o.all):
			return fmt.Errorf("%s takes ids, or a filter, not both", cmd.Name())
		case len(args) == 0 && !filter && !o.all:
			return fmt.Errorf("%s needs an ID, several, a filter, or --all", cmd.Name())
		}
		return nil
	}
}

// opened has the selected messages of a box, and the operations on them.
type opened struct {
	messages []putaway.Message
	more     bool
	desk
}

// desk operates on messages of a box.
type desk interface {
	// Foresee returns the outcome that Replay would have for a message, without effect.
	Foresee(ctx context.Context, l putaway.Message) (putaway.Outcome, error)
	Replay(ctx context.Context, l putaway.Message) (putaway.Outcome, error)
	Drop(ctx context.Context, l putaway.Message) error
	Close(ctx context.Context) error
}

// with opens a box, calls do with the selected messages, and gives back the rest.
func (o *putAwayOptions) with(cmd *cobra.Command, do func(*opened) error) error {
	if o.limit < 1 || o.limit > putaway.Max {
		return exit(codeUsage, fmt.Errorf("--limit %d is out of range: 1 to %d", o.limit, putaway.Max))
	}
	b, err := o.open(cmd)
	if err != nil {
		return err
	}
	defer func() {
		if err := b.Close(cmd.Context()); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "some could not be given back, and come back by themselves in %s: %v\n", putaway.Hold, err)
		}
	}()
	return do(b)
}

// open opens the box of a stack, of a process, or of a folder.
func (o *putAwayOptions) open(cmd *cobra.Command) (*opened, error) {
	name := o.stackName(cmd)
	switch {
	case o.data == "" && name != "":
		return o.openStack(cmd, name)
	case o.name != putaway.Quarantine:
		return nil, exit(codeUsage, errors.New(plain.Line(noDeadLetters)+" --stack names a stack"))
	case o.data != "":
		f, err := openData(cmd, o.data)
		if err != nil {
			return nil, err
		}
		return o.openShelf(cmd, quarantineDesk{quarantineReader: f, close: f.Close})
	default:
		c, err := o.client(cmd)
		if err != nil {
			return nil, err
		}
		return o.openShelf(cmd, quarantineDesk{quarantineReader: c, writer: c, close: func() error { return nil }})
	}
}

func (o *putAwayOptions) openStack(cmd *cobra.Command, name string) (*opened, error) {
	ctx := cmd.Context()
	parts, err := stack.FindParts(ctx, name, os.Getenv)
	if err != nil {
		return nil, failed(cmd, err)
	}
	office := putaway.Office{Queues: parts.Queues(), Prefix: parts.QueuePrefix, Job: looksUp(name), Vouched: o.vouched}
	b, err := office.Open(ctx, o.queues(parts.Agents), o.wanted, o.limit)
	if err != nil {
		return nil, exit(codeFailed, err)
	}
	return &opened{b.Messages, b.More, b}, nil
}

// looksUp asks a stack for jobs, once one is asked for: most messages need none.
func looksUp(name string) func(ctx context.Context, id string) (makegood.Job, error) {
	var c *client.Client
	return func(ctx context.Context, id string) (makegood.Job, error) {
		if c == nil {
			opened, err := stack.Open(ctx, name, os.Getenv)
			if err != nil {
				return makegood.Job{}, err
			}
			c = opened
		}
		j, err := c.Look(ctx, id)
		if errors.Is(err, api.ErrNotFound) {
			return j, putaway.ErrNoJob
		}
		return j, err
	}
}

func (o *putAwayOptions) list(cmd *cobra.Command, b *opened) error {
	if o.json {
		for _, l := range b.messages {
			l.Body = ""
			if err := printJSON(cmd.OutOrStdout(), l); err != nil {
				return err
			}
		}
	} else if err := printMessages(cmd.OutOrStdout(), b.messages); err != nil {
		return exit(codeFailed, fmt.Errorf("write the list: %w", err))
	}
	if b.more {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d shown, and there are more: --limit shows up to %d\n", len(b.messages), putaway.Max)
	}
	return nil
}

func printMessages(w io.Writer, all []putaway.Message) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "nothing")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tFROM\tWHAT\tSINCE\tREASON")
	for _, l := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", l.ID, orDash(l.Source), plain.Line(protocol.PutAwayText(l)), l.SentAt.Format(time.RFC3339), plain.Line(l.Reason))
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return plain.Line(text)
}

func (o *putAwayOptions) get(cmd *cobra.Command, b *opened) error {
	if len(b.messages) == 0 {
		return exit(codeUsage, fmt.Errorf("there is no message %s in %s", o.wanted.IDs[0], o.name))
	}
	l := b.messages[0]
	outcome, err := b.Foresee(cmd.Context(), l)
	if err != nil {
		outcome.Why = "not known: " + err.Error()
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), api.Quarantined{PutAway: l, Replay: outcome})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\nqueue: %s, from %s, since %s, %d deliveries\nreason: %s\nreplay: %s, %s\n\n%s\n", l.ID, plain.Line(protocol.PutAwayText(l)), l.Queue,
		orDash(l.Source), l.SentAt.Format(time.RFC3339), l.Deliveries, plain.Line(l.Reason), outcome.Result, plain.Line(outcome.Why), plain.Text(l.Body))
	return nil
}

// done is what became of a message.
type done struct {
	putaway.Message
	putaway.Outcome
}

// each calls do for every selected message, prints its outcome, and sums up.
func (o *putAwayOptions) each(cmd *cobra.Command, ids []string, do func(context.Context, *opened, putaway.Message) (putaway.Outcome, error)) error {
	o.wanted.IDs, o.limit = ids, putaway.Max
	return o.with(cmd, func(b *opened) error {
		if missing := len(ids) - len(b.messages); missing > 0 {
			return exit(codeUsage, fmt.Errorf("%d of %d are not in %s, and no message was touched", missing, len(ids), o.name))
		}
		if err := o.confirm(cmd, len(b.messages), len(ids) > 0); err != nil {
			return err
		}
		counts := map[putaway.Result]int{}
		for _, l := range b.messages {
			outcome, err := do(cmd.Context(), b, l)
			if err != nil {
				return exit(codeFailed, fmt.Errorf("%w\n%d of %d are done; the same command goes on", err, total(counts), len(b.messages)))
			}
			counts[outcome.Result]++
			if err := o.say(cmd, l, outcome); err != nil {
				return err
			}
		}
		fmt.Fprintln(cmd.ErrOrStderr(), o.summary(counts, b.more))
		if counts[putaway.Refused] > 0 {
			return exit(codeOtherwise, nil)
		}
		return nil
	})
}

func (o *putAwayOptions) say(cmd *cobra.Command, l putaway.Message, outcome putaway.Outcome) error {
	if o.json {
		return printJSON(cmd.OutOrStdout(), done{l, outcome})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %s: %s, %s\n", l.ID, plain.Line(protocol.PutAwayText(l)), outcome.Result, plain.Line(outcome.Why))
	return err
}

func total(counts map[putaway.Result]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// summary says how many of each.
func (o *putAwayOptions) summary(counts map[putaway.Result]int, more bool) string {
	var parts []string
	for _, r := range []putaway.Result{putaway.Sent, putaway.Asked, putaway.Over, dropped, putaway.Refused} {
		if counts[r] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[r], r))
		}
	}
	text := cmp.Or(strings.Join(parts, ", "), "there is no message")
	if o.dryRun {
		text = "it would be: " + text
	}
	if more {
		text += "; there are more: the same command goes on"
	}
	return text
}

// confirm asks whether a filter is meant: ids were named one by one.
func (o *putAwayOptions) confirm(cmd *cobra.Command, n int, named bool) error {
	if o.yes || o.dryRun || named || n == 0 {
		return nil
	}
	return confirmed(cmd, fmt.Sprintf("%s %s", cmd.Name(), thousands(n, "message")))
}

// keeper appends messages to a file.
type keeper struct{ file *os.File }

func (o *putAwayOptions) keeper() (keeper, error) {
	if o.keep == "" || o.dryRun {
		return keeper{}, nil
	}
	file, err := os.OpenFile(o.keep, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return keeper{}, fmt.Errorf("--keep: %w", err)
	}
	return keeper{file}, nil
}

// write keeps a message, durably.
func (k keeper) write(l putaway.Message) error {
	if k.file == nil {
		return nil
	}
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := k.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return k.file.Sync()
}

// Close closes the file: all that was written is on the disk.
func (k keeper) Close() {
	if k.file != nil {
		_ = k.file.Close() // each line was flushed
	}
}

package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/stack"
)

// patience is how long a verb tries to reach the API: a person waits.
const patience = 2 * time.Second

// remote is where a verb finds its API.
type remote struct {
	stack     string
	json      bool
	who       string
	tokenFile string
}

func (o *remote) flags(cmd *cobra.Command) {
	addrFlag(cmd)
	cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "`file` with the token to show to a makegood serve at --addr; also the token itself in "+loginVariable)
	cmd.Flags().StringVar(&o.stack, "stack", "", "`name` of a deployed stack to ask instead; also "+stack.Variable)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON on standard output")
	cmd.MarkFlagsMutuallyExclusive("addr", "stack")
}

// askedBy adds the flag of a verb that makes a change, and puts the name of the user into its requests.
func (o *remote) askedBy(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.who, "who", "", "`name` of the user, kept with the request (default USER@HOST); a stack keeps the ARN that signed instead")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		cmd.SetContext(api.As(cmd.Context(), cmp.Or(o.who, userAtHost())))
	}
}

// userAtHost names the user and the machine of this process, as far as they are known.
func userAtHost() string {
	name := localUser()
	if host, err := os.Hostname(); err == nil && name != "" {
		name += "@" + host
	}
	if limits.CheckWho(name) != nil {
		return ""
	}
	return name
}

// stackName returns the name of the stack to ask; empty: none. A flag overrides the environment.
func (o *remote) stackName(cmd *cobra.Command) string {
	if o.stack != "" || cmd.Flags().Changed("addr") {
		return o.stack
	}
	return os.Getenv(stack.Variable)
}

func (o *remote) client(cmd *cobra.Command) (*client.Client, error) {
	hasStack := cmd.Flags().Lookup("stack") != nil
	if hasStack && os.Getenv(addrVariable) != "" && os.Getenv(stack.Variable) != "" && o.stack == "" && !cmd.Flags().Changed("addr") {
		return nil, exit(codeUsage, fmt.Errorf("both %s and %s are set: unset one of them, or say --addr or --stack", addrVariable, stack.Variable))
	}
	if name := o.stackName(cmd); name != "" && hasStack {
		c, err := stack.Open(cmd.Context(), name, os.Getenv)
		return c, failed(cmd, err)
	}
	base := address(cmd)
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	token, err := o.token()
	if err != nil {
		return nil, exit(codeUsage, err)
	}
	c, err := client.New(base, client.WithPatience(patience), client.WithToken(token))
	if err != nil {
		return nil, exit(codeUsage, fmt.Errorf("--addr: %w", err))
	}
	return c, nil
}

// loginVariable has the token that is shown where --token-file names none.
const loginVariable = "MAKEGOOD_TOKEN"

// token returns the token for the API; empty: none.
func (o *remote) token() (string, error) {
	if o.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(loginVariable)), nil
	}
	token, err := readToken(o.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return token, nil
}

// failed returns the exit code of an error of the client, and says what to do next.
func failed(cmd *cobra.Command, err error) error {
	var unreachable *api.UnreachableError
	var mismatch *api.MismatchError
	var invalid *api.InvalidError
	var coded *exitError
	var deployed *stack.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return err
	case errors.Is(err, context.Canceled):
		return exit(codeFailed, err)
	case errors.As(err, &deployed) && deployed.Usage:
		return exit(codeUsage, deployed)
	case errors.As(err, &deployed):
		return exit(codeFailed, deployed)
	case errors.As(err, &unreachable) && unreachable.Status != 0:
		return exit(codeFailed, fmt.Errorf("%w\nthe request may be made again without harm; the log of what answered says more", err))
	case errors.As(err, &unreachable) && strings.HasSuffix(unreachable.URL, protocol.HostSuffix):
		return exit(codeFailed, fmt.Errorf("%w\nit is not known what became of the request; it may be made again without harm", err))
	case errors.As(err, &unreachable):
		return exit(codeFailed, fmt.Errorf("%w\nis `%s dev` running? --addr names it, or %s", err, cmd.Root().Name(), addrVariable))
	case errors.As(err, &invalid) && invalid.Status == http.StatusUnauthorized:
		return exit(codeUsage, fmt.Errorf("%w\n--token-file or %s has the token that whoever runs the server made for you", err, loginVariable))
	case errors.As(err, &mismatch):
		return exit(codeUsage, fmt.Errorf("%w; give it another --id", err))
	case errors.Is(err, api.ErrNotFound):
		return exit(codeUsage, fmt.Errorf("%w; `%s list%s` shows what there is", err, cmd.Root().Name(), where(cmd)))
	default:
		return exit(codeUsage, err)
	}
}

// ended returns the exit code that says how a job ended.
func ended(job makegood.Job) error {
	if job.ProcessState == makegood.JobProcessed {
		return nil
	}
	return exit(codeOtherwise, nil)
}

// print prints a result: with --json as JSON, and else as show writes it for people.
func (o *remote) print(cmd *cobra.Command, result any, show func(w io.Writer)) error {
	if o.json {
		return printJSON(cmd.OutOrStdout(), result)
	}
	show(cmd.OutOrStdout())
	return nil
}

// printLine prints a result as JSON, or in a line for people.
func (o *remote) printLine(cmd *cobra.Command, result any, line string) error {
	return o.print(cmd, result, func(w io.Writer) { fmt.Fprintln(w, line) })
}

// inList names a list for the JSON of a result; a list without elements is [].
func inList[T any](name string, all []T) map[string][]T {
	return map[string][]T{name: append([]T{}, all...)}
}

// listing returns the RunE of a verb that shows all that the API has of a kind.
func listing[T any](o *remote, name string, list func(*client.Client, context.Context) ([]T, error), show func(io.Writer, []T)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c, err := o.client(cmd)
		if err != nil {
			return err
		}
		all, err := list(c, cmd.Context())
		if err != nil {
			return failed(cmd, err)
		}
		return o.print(cmd, inList(name, all), func(w io.Writer) { show(w, all) })
	}
}

func printJSON(w io.Writer, v any) error {
	if err := writeJSON(w, v); err != nil {
		return exit(codeFailed, fmt.Errorf("write the result: %w", err))
	}
	return nil
}

// writeJSON writes a line of JSON. What would draw on a terminal is escaped.
func writeJSON(w io.Writer, v any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(plain.Escaped(line.Bytes()))
	return err
}

// newVerb makes the verb that asks for a verb of the table, and returns where it finds its API.
func newVerb(verb makegood.Verb) (*cobra.Command, *remote) {
	short := domain.VerbOf(string(verb)).Says
	var o manyOptions
	var reason string
	state := makegood.JobError
	if machine.RuleFor(verb, state).Effect == machine.Refuses {
		state = makegood.JobProcessing
	}
	cmd := &cobra.Command{
		Use:   string(verb) + " ID...",
		Short: short,
		Long:  short + ".\n\n" + grantedIn(verb) + manyHelp,
		Example: fmt.Sprintf(`  makegood %[1]s order-17 --reason 'the customer called'
  makegood %[1]s order-17 order-18 --json
  makegood %[1]s --state %[2]s --workflow order --dry-run
  makegood %[1]s - --stack shop-prod --rate 20/s < ids`, verb, state),
		RunE: func(cmd *cobra.Command, args []string) error {
			asks := askedOf(api.Request{Verb: verb, Reason: reason})
			if verb == makegood.VerbUndo || verb == makegood.VerbRedo {
				asks.ofJob = string(verb) // The state of the job does not say whether there is a step to undo.
			}
			return o.do(cmd, args, asks)
		},
	}
	o.flags(cmd)
	o.askedBy(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`why`; "+reasonKept(verb))
	return cmd, &o.remote
}

// reasonKept says what becomes of a verb's reason: the history keeps it, and the job itself why it is undone.
func reasonKept(verb makegood.Verb) string {
	if domain.VerbOf(string(verb)).Turns {
		return "it is kept with a job that it turns round, and in its history"
	}
	return "it is kept in the history of the job"
}

// newVerbs makes one verb for each of the table.
func newVerbs() []*cobra.Command {
	all := []*cobra.Command{newResubmit(), newRedrive(), newReschedule(), newEdit(), orAsAWhole(makegood.VerbPause), orAsAWhole(makegood.VerbResume)}
	for _, verb := range domain.Verbs() {
		if !slices.ContainsFunc(all, func(cmd *cobra.Command) bool { return cmd.Name() == string(verb) }) {
			cmd, _ := newVerb(verb)
			all = append(all, cmd)
		}
	}
	return all
}

// grantedIn says what the table of verbs says.
func grantedIn(verb makegood.Verb) string {
	var lines []string
	for _, s := range domain.ProcessStates() {
		rule := machine.RuleFor(verb, s)
		line := fmt.Sprintf("  %-11s %s", s, rule.Effect)
		if rule.Reason != "" {
			line += ": " + rule.Reason
		}
		lines = append(lines, line)
	}
	return "What it does to a job in each state:\n" + strings.Join(lines, "\n")
}

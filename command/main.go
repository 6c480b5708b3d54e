// Package command is the makegood command, with your workflows and your agents in it: a main of yours is one call.
//
//	func main() { command.Main(trips.Files, trips.Agents...) }
//
// It reads its arguments and prints the answers; all else is done by the packages behind it. There is one file a
// verb.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/plain"
)

// The exit codes of all verbs; 0 is success.
const (
	// codeUsage: bad usage or input, refused, or not found. The command had no effect.
	codeUsage = 1
	// codeOtherwise: all was done, and some job did not end Processed.
	codeOtherwise = 2
	// codeFailed: it was interrupted, failed on the way, or could not reach the API.
	codeFailed = 3
	// codeAtOnce: a second SIGINT or SIGTERM ended it at once, as a shell has it.
	codeAtOnce = 130

	// garbagePercent is Go's GOGC. An engine keeps little and makes much garbage: by Go's own 100 it spends a tenth of the
	// processor's time on collecting it.
	garbagePercent = 400
)

// Main runs the command on the arguments of the process, and ends the process with the verb's exit code: 0 success, 1
// bad usage or input, 2 some job did not end Processed, 3 interrupted or failed, 130 interrupted twice. files hold
// the workflows that are linked, *.yaml or *.yml, also in folders below; agents are those that do their steps, beside
// the built-in http. The name of the process is that of the command, in its help too. Without GOGC in its environment
// garbage is collected as with GOGC=400.
func Main(files fs.FS, agents ...agent.Handler) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	os.Exit(begin(newRoot(filepath.Base(os.Args[0]), files, agents)))
}

// begin runs the command and returns its exit code. The first SIGINT or SIGTERM lets the verb stop, which
// it does within a limit of its own; the second ends the process as a crash would, which every verb
// survives.
func begin(root *cobra.Command) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-asked
		stop()
		if isTerminal(os.Stderr) {
			fmt.Fprintln(os.Stderr) // a bar may stand there
		}
		fmt.Fprintln(os.Stderr, "stopping; asked a second time, it ends at once")
		<-asked
		os.Exit(codeAtOnce)
	}()
	return execute(ctx, root, os.Stderr)
}

// pace is how often dev and serve look at files that may change.
type pace struct{ workflows, certificate time.Duration }

// newRoot makes the command with all its verbs.
func newRoot(name string, files fs.FS, agents []agent.Handler) *cobra.Command {
	return newRootAt(pace{lookEvery, certificateLook}, name, files, agents)
}

// newRootAt does so at a pace: a test does not wait as long as a person does. A new verb is a file with its
// constructor, and a line here.
func newRootAt(looks pace, name string, files fs.FS, agents []agent.Handler) *cobra.Command {
	root := &cobra.Command{
		Use:     name,
		Short:   "Run multi-step jobs that end finished, undone, or in front of a person",
		Example: "  makegood run workflows/order/order.yaml --input examples/orders/orders.jsonl --data ./data\n  makegood dev --data ./data",
		Version: ownVersion(),
		// main prints errors, so that they look the same for all verbs.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newRun(agents),
		newValidate(agents),
		newDev(looks, files, agents),
		newServe(looks, files, agents),
		newBackup(),
		newRestore(),
		newPublish(agents),
		newSubmit(),
		newGet(),
		newPayload(),
		newList(),
		newCount(),
		newCost(),
		newPlan(),
		newErrors(),
		newWatch(),
		newChanges(),
		newGraph(),
		newAudit(),
		newUI(),
		newSchedule(),
		newHolds(),
		newAgents(),
		newAnswer(),
		newComplete(),
		newFail(),
		newSettle(),
		newPutAway(quarantined()),
		newPutAway(deadLetters()),
		newHeartbeat(),
		newNew(),
		newTemplate(agents),
		newImport(),
		newAgent(agents),
	)
	root.AddCommand(newVerbs()...)
	rename(root, name)
	return root
}

// rename makes the help of all verbs say the name of the command; where it names the program Makegood, it stays.
func rename(root *cobra.Command, name string) {
	var names []string
	for _, verb := range root.Commands() {
		names = append(names, "makegood "+verb.Name(), name+" "+verb.Name())
	}
	renamed := strings.NewReplacer(names...)
	for _, verb := range append(root.Commands(), root) {
		verb.Example = strings.ReplaceAll(verb.Example, "makegood ", name+" ")
		verb.Short, verb.Long = renamed.Replace(verb.Short), renamed.Replace(verb.Long)
		verb.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = renamed.Replace(f.Usage) })
	}
}

// flagError names the nearest flag of the verb where one was given that it does not have.
func flagError(cmd *cobra.Command, err error) error {
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is && wrong.GetFlag().Value.Type() == "bool" {
		return takesNoValue(cmd, wrong)
	}
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := plain.Nearest(unknown.GetSpecifiedName(), names); meant != "" {
		return fmt.Errorf("%w: did you mean --%s?", err, meant)
	}
	return err
}

// takesNoValue is the error for a switch with a value, which may be meant for --output.
func takesNoValue(cmd *cobra.Command, wrong *pflag.InvalidValueError) error {
	err := fmt.Errorf("--%s takes no value, got %.40q", wrong.GetFlag().Name, wrong.GetValue())
	if cmd.Flags().Lookup("output") != nil {
		return fmt.Errorf("%w: an output is given with --output", err)
	}
	return err
}

// execute runs a command and returns its exit code. It prints the error to stderr.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	verb, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if exit, is := errors.AsType[*exitError](err); is {
		if exit.err != nil {
			fmt.Fprintln(stderr, plain.Text(exit.err.Error()))
		}
		return exit.code
	}
	fmt.Fprintf(stderr, "%s\n%s --help says how it is used\n", plain.Text(err.Error()), verb.CommandPath())
	return codeUsage
}

// exitError ends the command with a code, and with a message unless err is nil.
type exitError struct {
	code int
	err  error
}

func exit(code int, err error) error { return &exitError{code, err} }

// Error is the message.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the error behind the exit code.
func (e *exitError) Unwrap() error { return e.err }

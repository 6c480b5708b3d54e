package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/sample"
	"github.com/makegood-dev/makegood/internal/scaffold"
)

// newFolder is what --sample says without a folder. The help shows it, so it is words; a folder of that name is
// written ./a new one.
const newFolder = "a new one"

// sampleOptions are what dev is told about the sample and the page.
type sampleOptions struct {
	sample string
	open   bool
	// program is the name of the command, for the commands that are shown.
	program string
	// running is the sample that is served; nil: none.
	running *sample.Sample
}

func addSample(cmd *cobra.Command, o *sampleOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.sample, "sample", "", "serve the sample, a shop's orders, in place of workflow files; --sample=`FOLDER` keeps it there, else its folder is removed at the end")
	flags.Lookup("sample").NoOptDefVal = newFolder
	flags.BoolVar(&o.open, "open", false, "open the page in a browser, where there is a desktop")
	cmd.MarkFlagsMutuallyExclusive("sample", "workflows")
	cmd.MarkFlagsMutuallyExclusive("sample", "data")
}

// devOrSample serves what dev is told to, or the sample where that is asked for or agreed to.
func devOrSample(cmd *cobra.Command, o devOptions, linked fs.FS, agents []agent.Handler) (err error) {
	if err := o.offerSample(cmd, linked); err != nil {
		return err
	}
	if o.sample == "" {
		return dev(cmd, o, linked, agents)
	}
	o.running, err = sample.Open(folderOfSample(o.sample))
	if err != nil {
		return exit(codeUsage, err)
	}
	defer func() { err = errors.Join(err, o.running.Close()) }()
	o.program = cmd.Root().Name()
	o.workflows, o.data = o.running.Workflows(), o.running.Data()
	return dev(cmd, o, nil, o.running.Agents())
}

// folderOfSample is the folder that the flag names; empty: a new one.
func folderOfSample(flag string) string {
	if flag == newFolder {
		return ""
	}
	return flag
}

// offerSample asks the person at the terminal, if there is one, whether they want the sample: if no flag says what to
// serve, and there is no folder of their own. After a yes the page is opened, unless --open was given.
func (o *devOptions) offerSample(cmd *cobra.Command, linked fs.FS) error {
	flags := cmd.Flags()
	if flags.Changed("sample") || flags.Changed("workflows") || flags.Changed("data") || !sample.IsLinked(linked) {
		return nil
	}
	_, err := os.Stat(o.workflows)
	in, isFile := cmd.InOrStdin().(*os.File)
	if !errors.Is(err, fs.ErrNotExist) || !isFile || !isTerminal(in) || !isTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "There is no folder %s here. Serve the sample, a shop's orders, from a folder that is new? [Y/n] ", o.workflows)
	said, err := readAnswer(cmd.Context(), in)
	if err != nil {
		return exit(codeFailed, err)
	}
	if isYes(said) {
		o.sample = newFolder
		o.open = o.open || !flags.Changed("open")
	}
	return nil
}

// isYes reports whether a line is a yes, or empty; an end of the input is neither.
func isYes(line string) bool {
	said, ended := strings.CutSuffix(line, "\n")
	return ended && slices.Contains([]string{"", "y", "yes"}, strings.ToLower(strings.TrimSpace(said)))
}

// printSample says where the sample is, and what to type next.
func printSample(w io.Writer, o devOptions, addr string) {
	s := o.running
	kept := "kept in " + s.Folder
	if s.Temporary {
		kept = "in " + s.Folder + ", and gone when this ends"
	}
	fmt.Fprintf(w, "  this is the sample: a shop at %s with services that fail now and then; all is %s\n", s.ShopURL(), kept)
	fmt.Fprintln(w, "next, in another terminal:")
	for _, next := range o.next(addr) {
		fmt.Fprintf(w, "  # %s\n  %s\n", next.Why, next.Line)
	}
}

// next are the commands to go on with, for an engine at an address.
func (o sampleOptions) next(addr string) []sample.Command {
	if addr == defaultAddr {
		addr = ""
	}
	info, _ := debug.ReadBuildInfo() // nil without modules: no version is known then
	return sample.Next(o.program, addr, scaffold.Published(info) != "")
}

func (o sampleOptions) firstView() string {
	if o.running != nil {
		return "/welcome"
	}
	return "/"
}

// tour is what the page offers of the sample; nil: there is none.
func (o devOptions) tour(addr string) *page.Tour {
	if o.running == nil {
		return nil
	}
	tour := &page.Tour{
		Workflow: sample.Workflow, About: "the sample, beside a shop with services that fail now and then. Each step has an undo.",
		First: sample.First(), Many: sample.Many(),
	}
	for _, next := range o.next(addr) {
		tour.Commands = append(tour.Commands, page.Command(next))
	}
	return tour
}

// showPage opens the page on the desktop. Where there is none, or it does not work, it prints the address, and dev
// serves all the same.
func showPage(cmd *cobra.Command, page string) {
	argv := browserFor(runtime.GOOS, os.Getenv)
	if argv == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "there is no desktop here: open %s in a browser\n", page)
		return
	}
	browser := exec.CommandContext(context.WithoutCancel(cmd.Context()), argv[0], append(argv[1:], page)...)
	if err := browser.Start(); err != nil {
		fmt.Fprintf(cmd.OutOrStdout(), "no browser was opened (%v): open %s in one\n", err, page)
		return
	}
	go func() { _ = browser.Wait() }() // its result says whether a browser came; an error has no remedy
}

// browserFor returns the command, but for the address, that opens a page on a system's desktop; nil: there is no
// desktop.
func browserFor(system string, getenv func(string) string) []string {
	switch {
	case system == "darwin":
		return []string{"open"}
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		return []string{"xdg-open"}
	default:
		return nil
	}
}

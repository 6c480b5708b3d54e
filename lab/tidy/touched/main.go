// Command touched prints the packages that make quick tests: those with files that changed, and those that import them
// directly. Standard error says what they were compared with, and which importers and files are left out.
//
// It runs in the root of the module, and it runs no test.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns 0, or 1 where git or go list fail, or 2 where the arguments are wrong.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("touched", flag.ContinueOnError)
	flags.SetOutput(stderr)
	base := flags.String("base", "", "commit to compare with (default: where origin/main and HEAD parted, or HEAD where there is no origin/main)")
	most := flags.Int("importers", 10, "how many importers to print at most")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	since, err := commit(*base)
	if err != nil {
		fmt.Fprintf(stderr, "touched: %v\n", err)
		return 1
	}
	files, err := changedSince(since)
	if err != nil {
		fmt.Fprintf(stderr, "touched: %v\n", err)
		return 1
	}
	all, err := listed()
	if err != nil {
		fmt.Fprintf(stderr, "touched: %v\n", err)
		return 1
	}
	p := choose(all, files, *most)
	p.explain(stderr, since, len(files))
	for _, path := range p.tested() {
		fmt.Fprintln(stdout, path)
	}
	return 0
}

// explain writes the list of packages that the run tests, and the list that it leaves out.
func (p plan) explain(out io.Writer, since string, files int) {
	fmt.Fprintf(out, "quick: %d files changed since %.12s: %d packages of theirs, %d that import these, %d that read the tree\n",
		files, since, len(p.changed), len(p.importers), len(p.readers))
	if len(p.leftOut) > 0 {
		fmt.Fprintf(out, "quick: LEFT OUT are %d more importers (make test has them): %s\n", len(p.leftOut), strings.Join(p.leftOut, " "))
	}
	if len(p.nobody) > 0 {
		fmt.Fprintf(out, "quick: LEFT OUT are %d files outside the packages tested here: %s\n", len(p.nobody), strings.Join(p.nobody, " "))
	}
}

// commit returns the hash of the commit to compare with.
func commit(base string) (string, error) {
	if base == "" {
		base = "origin/main"
		if _, err := output("git", "rev-parse", "--verify", "--quiet", base+"^{commit}"); err != nil {
			base = "HEAD"
		}
	}
	hash, err := output("git", "merge-base", base, "HEAD")
	return strings.TrimSpace(hash), err
}

// changedSince returns the files that differ from the commit, deleted and untracked ones too.
func changedSince(commit string) ([]string, error) {
	changed, err := output("git", "diff", "--name-only", "--no-renames", "--relative", "-z", commit)
	if err != nil {
		return nil, err
	}
	untracked, err := output("git", "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(changed+untracked, func(r rune) bool { return r == 0 }), nil
}

// output returns what a command prints; its error has what the command says.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

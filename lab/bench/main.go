// Command bench measures the engine, and compares its figures. It runs programs that print Go's benchmark format, in
// rounds: each program once a round, in a process of its own, and each round begins with another one, so that other
// work of the machine falls on all of them. make bench, make bench-since and make bench-peers are its three suites.
// keep SUITE puts the figures of a suite into lab/bench/figures, and from there into the tables of README.md and
// docs/performance.md.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// built is the folder of the programs, and of figures that are not kept.
	built = ".build/bench"
	// kept has the figures of the last release, or of the last commit that was measured on a quiet machine.
	kept = "lab/bench/figures"
)

// runner is a program that prints the figures of one piece of work.
type runner struct {
	name    string
	command []string
	// dir is where it runs; empty: here.
	dir string
	// about are lines of configuration that stand before its figures.
	about []string
}

// suites return the programs of a suite, which they have built.
var suites = map[string]func(ctx context.Context, o options) ([]runner, error){
	"works": works,
	"since": since,
	"peers": peers,
}

// options are the flags.
type options struct {
	rounds int
	only   *regexp.Regexp
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "how often each program runs")
	only := flags.String("only", "", "a regular expression: the programs that run")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "bench [FLAGS] works, since or peers: measure; keep SUITE: keep its figures; tables: write the tables of those that are kept\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	suite := flags.Arg(0)
	switch {
	case suite == "tables":
		return writeTables(".")
	case suite == "keep" && suites[flags.Arg(1)] != nil:
		return keep(flags.Arg(1))
	case suites[suite] == nil || flags.NArg() != 1:
		return fmt.Errorf("there is no suite %q: want works, since or peers, after the flags", strings.Join(flags.Args(), " "))
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: %d rounds, want at least one", *rounds)
	}
	return measure(ctx, suite, options{*rounds, pattern})
}

// keep makes the figures that were measured last those of the docs.
func keep(suite string) error {
	text, err := os.ReadFile(filepath.Join(built, suite+".txt"))
	if err != nil {
		return fmt.Errorf("no figures of %s were measured: %w", suite, err)
	}
	if err := os.WriteFile(filepath.Join(kept, suite+".txt"), text, 0o644); err != nil {
		return err
	}
	return writeTables(".")
}

// measure runs a suite, and writes its figures.
func measure(ctx context.Context, suite string, o options) error {
	if err := os.MkdirAll(built, 0o755); err != nil {
		return err
	}
	runners, err := suites[suite](ctx, o)
	if err != nil {
		return err
	}
	if len(runners) == 0 {
		return fmt.Errorf("no program of %s is named as -only asks", suite)
	}
	text, err := inRounds(ctx, runners, o.rounds)
	if err != nil {
		return err
	}
	file := filepath.Join(built, suite+".txt")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "the figures are in %s\n", file)
	return nil
}

// inRounds runs each program once a round, and returns their figures, with the host before them.
func inRounds(ctx context.Context, runners []runner, rounds int) (string, error) {
	about, err := host(ctx)
	if err != nil {
		return "", err
	}
	text := about
	for round := range rounds {
		for i := range runners {
			r := runners[(i+round)%len(runners)]
			fmt.Fprintf(os.Stderr, "%s round %d of %d, %2d of %d: %s ", time.Now().Format("15:04:05"), round+1, rounds, i+1, len(runners), r.name)
			printed, err := once(ctx, r)
			if err != nil {
				return "", err
			}
			text += "\n" + printed
		}
	}
	return text, nil
}

// once runs a program, and returns the figures that it printed, with how busy the machine was before.
func once(ctx context.Context, r runner) (string, error) {
	busy, err := busy()
	if err != nil {
		return "", err
	}
	out, err := output(ctx, r)
	if err != nil {
		return "", err
	}
	found, err := parse(out)
	if err != nil {
		return "", fmt.Errorf("%s: %w", r.name, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s printed no figures:\n%s", r.name, out)
	}
	fmt.Fprintln(os.Stderr, found[0].short())
	return strings.Join(append(slices.Clone(r.about), "busy: "+busy), "\n") + "\n" + lines(out), nil
}

// output runs a program, which may take minutes and no more.
func output(ctx context.Context, r runner) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	command := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	command.Dir = cmp.Or(r.dir, ".")
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", r.name, err, out, &errors)
	}
	return string(out), nil
}

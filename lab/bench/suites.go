package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// work is a benchmark of lab/bench/works, and how often it is done.
type work struct {
	name  string
	times int
}

// all of lab/bench/works. W1, W7 and W8 are the three of ManyJobs, and of TenInARow.
var all = []work{
	{"ManyJobs/queued", 4000},
	{"ManyJobs/inline", 4000},
	{"ManyJobs/chains", 4000},
	{"TenInARow/queued", 400},
	{"TenInARow/inline", 400},
	{"TenInARow/chains", 400},
	{"Kill", 5},
	{"Branches/queued", 20},
	{"Branches/inline", 20},
	{"Million/submit", 1000},
	{"Million/list", 200},
	{"Million/sweep", 1000},
	{"Million/restart", 2},
	{"Waiting/begin", 10_000},
	{"Waiting/complete", 10_000},
	{"Waiting/restart", 5},
}

// works are all benchmarks of lab/bench/works.
func works(ctx context.Context, o options) ([]runner, error) {
	test, err := buildWorks(ctx)
	if err != nil {
		return nil, err
	}
	var runners []runner
	for _, w := range all {
		if o.only.MatchString(w.name) {
			runners = append(runners, benchmark(test, w))
		}
	}
	return runners, nil
}

// buildWorks builds the test of lab/bench/works, and returns where it is.
func buildWorks(ctx context.Context) (string, error) {
	test, err := filepath.Abs(filepath.Join(built, "works.test"))
	if err != nil {
		return "", err
	}
	return test, command(ctx, ".", nil, "go", "test", "-c", "-o", test, "./lab/bench/works")
}

func benchmark(test string, w work) runner {
	first, second, sub := strings.Cut(w.name, "/")
	pattern := "^Benchmark" + first + "$"
	if sub {
		pattern += "/^" + second + "$"
	}
	return runner{name: w.name, dir: "lab/bench/works", command: []string{test, "-test.run", "NONE", "-test.bench", pattern, "-test.benchtime", strconv.Itoa(w.times) + "x", "-test.timeout", "5m"}}
}

// command runs a program that prints nothing where all is well.
func command(ctx context.Context, dir string, env []string, words ...string) error {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return nil
}

// base is the commit that the figures are compared with: the last one before the engine had its public package.
const base = "0980d3c"

// since are W1 and W2 of the commit base, below its engine, since it has no package engine, and through it here.
func since(ctx context.Context, o options) ([]runner, error) {
	test, err := buildWorks(ctx)
	if err != nil {
		return nil, err
	}
	old, err := buildBase(ctx)
	if err != nil {
		return nil, err
	}
	var runners []runner
	for _, w := range []work{{"ManyJobs/queued", 4000}, {"TenInARow/queued", 400}} {
		before, here := benchmark(old, w), benchmark(test, w)
		before.name, before.about = w.name+" of "+base, []string{"of: " + base}
		here.about = []string{"of: HEAD"}
		runners = append(runners, before, here)
	}
	for _, lane := range []string{"inline", "chains"} {
		for _, w := range []work{{"ManyJobs/" + lane, 4000}, {"TenInARow/" + lane, 400}} {
			here := benchmark(test, w)
			here.about = []string{"of: HEAD"}
			runners = append(runners, here)
		}
	}
	return matching(runners, o), nil
}

func matching(runners []runner, o options) []runner {
	var some []runner
	for _, r := range runners {
		if o.only.MatchString(r.name) {
			some = append(some, r)
		}
	}
	return some
}

// buildBase builds the test of internal/embedded at the commit base, with the work of testdata/since.go.
func buildBase(ctx context.Context) (string, error) {
	tree, err := filepath.Abs(filepath.Join(built, "tree-"+base))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(tree, "go.mod")); err != nil {
		if err := command(ctx, ".", nil, "sh", "-ec", `mkdir -p "$1"; git archive "$0" | tar -x -C "$1"`, base, tree); err != nil {
			return "", err
		}
	}
	source, err := filepath.Abs("lab/bench/testdata/since.go")
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(tree, "internal/embedded/since_test.go"): source}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(tree, "..", "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return "", err
	}
	// The same main stands there as in every test, and would have it run in another folder.
	test := filepath.Join(tree, "..", "base.test")
	return test, command(ctx, tree, []string{"GOWORK=off"}, "go", "test", "-c", "-overlay", list, "-o", test, "./internal/embedded")
}

// peersOf are the peers of lab/bench/peers; how many jobs each does takes it some seconds.
var peersOf = []struct {
	name      string
	many, row int
}{
	{"restate-run", 2000, 100},
	{"restate-calls", 2000, 50},
	{"dbos-sqlite", 2000, 200},
	{"dbos-postgres", 2000, 200},
	{"river", 2000, 50},
}

// peers are W1 and W2 by us and by the peers.
func peers(ctx context.Context, o options) ([]runner, error) {
	test, err := buildWorks(ctx)
	if err != nil {
		return nil, err
	}
	program, packages, err := buildPeers(ctx)
	if err != nil {
		return nil, err
	}
	var runners []runner
	for _, w := range all[:6] {
		ours := benchmark(test, work{w.name, min(w.times, 2000)})
		ours.name = "makegood " + w.name
		ours.about = []string{"peer: makegood-" + w.name[strings.Index(w.name, "/")+1:], "versions: HEAD"}
		runners = append(runners, ours)
	}
	for _, p := range peersOf {
		for _, w := range []work{{"ManyJobs", p.many}, {"TenInARow", p.row}} {
			runners = append(runners, runner{
				name:    p.name + " " + w.name,
				command: []string{program, "-peer", p.name, "-work", w.name, "-jobs", strconv.Itoa(w.times), "-packages", packages},
			})
		}
	}
	runners = matching(runners, o)
	for i, r := range runners {
		if !strings.Contains(r.name, "TenInARow") {
			continue // How many jobs share a flush depends on chance.
		}
		flushes, err := flushesOf(ctx, r)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "%s %s: %s flushes a job\n", time.Now().Format("15:04:05"), r.name, flushes)
		runners[i].about = append(runners[i].about, "flushes: "+flushes)
	}
	return runners, nil
}

// buildPeers builds the program of lab/bench/peers, and has npm fetch the servers that it starts.
func buildPeers(ctx context.Context) (program, packages string, err error) {
	dir, err := filepath.Abs(filepath.Join(built, "peers"))
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	const here = "lab/bench/peers"
	for _, file := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(here, file))
		if err != nil {
			return "", "", err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			return "", "", err
		}
	}
	if err := command(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", "", err
	}
	program = filepath.Join(dir, "peers")
	return program, filepath.Join(dir, "node_modules"), command(ctx, here, []string{"GOWORK=off"}, "go", "build", "-o", program, ".")
}

// Command aws runs the tests that need AWS's API against stand-ins for it: MiniStack, and AWS's own DynamoDB Local with
// ElasticMQ and the S3 of moto. It installs them, pinned, into .tools, starts them on loopback, runs every test under
// the build tag aws against each, stops them, and writes docs/conformance.md. Told which packages, it runs those, and
// writes nothing; all of lab/e2e/lambda runs on MiniStack only then. With -on and the name of a stand-in it does all
// that on the set alone that has it, and writes nothing: CI has a job for each set.
//
// It is called by make test-aws in the root of the repository. A stand-in that cannot be had fails
// the run. It proves nothing about AWS itself: what the stand-ins do otherwise is listed by name.
//
// With -run and the name of a tool it installs that, pinned like the stand-ins, and runs it with the arguments that
// follow: make template-check does so with cfn-lint. With -deploy and a command it starts MiniStack and runs the
// command with sam and the endpoint in its environment: make e2e does so. With -stand-in and a command it starts
// MiniStack and tells the command what it tells the tests: make cost does so. With -axe and a command it starts
// nothing, and tells the command where axe-core is, which it installs like the rest: make browser does so. -collector
// does the same with a collector for OpenTelemetry: make collector does so. -rie does the same with the emulator of
// Lambda's runtime: make functions-init does so.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// runLimit is how long all of it may take.
const runLimit = 45 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	command, name := run, "test-aws"
	arguments := os.Args[1:]
	switch {
	case len(arguments) > 1 && arguments[0] == "-on":
		command, arguments = runOn(arguments[1]), arguments[2:]
	case len(arguments) > 1 && arguments[0] == "-run":
		command, name, arguments = runTool, arguments[1], arguments[1:]
	case len(arguments) > 1 && arguments[0] == "-deploy":
		command, name, arguments = runDeployer, arguments[1], arguments[1:]
	case len(arguments) > 1 && arguments[0] == "-stand-in":
		command, name, arguments = runOnStandIn, arguments[1], arguments[1:]
	case len(arguments) > 1 && arguments[0] == "-axe":
		command, name, arguments = runWithAxe, arguments[1], arguments[1:]
	case len(arguments) > 1 && arguments[0] == "-collector":
		command, name, arguments = runWithCollector, arguments[1], arguments[1:]
	case len(arguments) > 1 && arguments[0] == "-rie":
		command, name, arguments = runWithRIE, arguments[1], arguments[1:]
	}
	err := command(ctx, arguments)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// run tests the packages named, or all that have such tests; only then it writes the report.
func run(ctx context.Context, packages []string) error {
	results, err := runStacks(ctx, stacks(), packages)
	if results != nil && len(packages) == 0 {
		err = errors.Join(err, os.WriteFile(reportFile, []byte(report(stacks(), results)), 0o644))
	}
	return err
}

// runOn returns the command that does the same on the stack that has a product of this name, and writes no report.
func runOn(name string) func(context.Context, []string) error {
	return func(ctx context.Context, packages []string) error {
		on, err := stacksWith(name)
		if err != nil {
			return err
		}
		_, err = runStacks(ctx, on, packages)
		return err
	}
}

// runStacks tests the packages named, or all that have such tests, on each of these stacks.
func runStacks(ctx context.Context, on []stack, packages []string) ([]result, error) {
	suites, err := findSuites(packages)
	if err != nil {
		return nil, err
	}
	// The tests on each stack use the Python of MiniStack, which has boto3.
	if err := install(ctx, miniStack()); err != nil {
		return nil, fmt.Errorf("%s: %w", miniStack(), err)
	}
	// Both stacks at once: most suites wait for what is not visible yet, and one after the other would take CI half an
	// hour.
	got, wrong := make([][]result, len(on)), make([]error, len(on))
	var running sync.WaitGroup
	for i, stack := range on {
		todo := suites
		if len(packages) == 0 {
			todo = stack.unasked(suites)
		}
		running.Go(func() { got[i], wrong[i] = runStack(ctx, stack, todo) })
	}
	running.Wait()
	return slices.Concat(got...), errors.Join(wrong...)
}

// runStack runs the suites against one stack, which it starts and stops.
func runStack(ctx context.Context, s stack, suites []suite) (results []result, err error) {
	var environment []string
	for _, p := range s.products {
		running, err := start(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		defer running.stop()
		fmt.Printf("== %s at %s\n", p, running.endpoint)
		environment = append(environment, p.environment(running.endpoint)...)
	}
	var wrong []error
	for _, some := range together(suites) {
		got, failed := make([]result, len(some)), make([]error, len(some))
		var running sync.WaitGroup
		for i, suite := range some {
			running.Go(func() { got[i], failed[i] = suite.run(ctx, s, environment) })
		}
		running.Wait()
		results, wrong = append(results, got...), append(wrong, failed...)
	}
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.folder, b.folder) })
	return results, errors.Join(wrong...)
}

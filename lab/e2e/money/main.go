//go:build linux

// Command money shows what jobs have cost. It runs a stack on a stand-in: the functions of a deployment, as processes,
// on a table and queues. Three workflows of two tenants go through it; then it asks, as you would type it, what they
// have cost.
//
//	make money-demo
//
// The engine that runs in a process of yours counts nothing, since it asks nothing of AWS; so this needs a stand-in.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/command"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/processes"
)

// patience bounds what should be done long before.
const patience = 2 * time.Minute

// asCommand is the first argument with which the program is the makegood command.
const asCommand = "makegood"

func main() {
	processes.Serve(workflows, agents()...)
	if len(os.Args) > 1 && os.Args[1] == asCommand {
		os.Args = os.Args[1:]
		command.Main(workflows)
	}
	each := flag.Int("jobs", 20, "how many jobs of each workflow")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := show(ctx, os.Stdout, *each); err != nil {
		fmt.Fprintln(os.Stderr, "money:", err)
		os.Exit(1)
	}
}

// show runs the jobs, and asks what they have cost.
func show(ctx context.Context, out io.Writer, each int) (err error) {
	at := processes.Config{DynamoDB: os.Getenv(standin.DynamoDBVariable), SQS: os.Getenv(standin.SQSVariable), Agents: []string{"bank", "post", "stock"}}
	if at.DynamoDB == "" || at.SQS == "" {
		return fmt.Errorf("%s and %s must name the endpoint of a stand-in: run this with make money-demo", standin.DynamoDBVariable, standin.SQSVariable)
	}
	stack, err := processes.Open(ctx, at)
	defer func() { err = errors.Join(err, stack.Close()) }()
	if err != nil {
		return err
	}
	if err := stack.Announce(ctx); err != nil {
		return err
	}
	if err := runJobs(ctx, stack, each); err != nil {
		return fmt.Errorf("%w\n%s", err, stack.Said())
	}
	folder, err := os.MkdirTemp("", "money")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	prices, err := json.Marshal(makegood.ListPrices())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, priceFile), prices, 0o600); err != nil {
		return err
	}
	for _, line := range []string{
		"cost --by workflow --since 1h --scan", "cost --by tenant --since 1h --scan", "cost --by agent --workflow order --scan",
		"cost --by job --limit 3 --since 1h --scan", "get order-0", "cost --by tenant --workflow order --since 30d --scan --json",
		"cost --by agent --since 24h --prices " + priceFile + " --region " + makegood.ListPrices().Region + " --scan",
	} {
		if err := ask(ctx, stack, out, folder, line); err != nil {
			return err
		}
	}
	return nil
}

// priceFile is what makegood cost --list prints, as a file of one's own.
const priceFile = "prices.json"

// runJobs submits jobs of each workflow, and waits until all have ended.
func runJobs(ctx context.Context, stack *processes.Stack, each int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var ids []string
	for _, workflow := range []string{"order", "notice", "report"} {
		for n := range each {
			input, err := json.Marshal(request{Cents: 100 * n, Refused: n%5 == 4})
			if err != nil {
				return err
			}
			id := fmt.Sprint(workflow, "-", n)
			tenant := []string{"north", "south"}[n%2]
			if _, err := stack.Client.Submit(ctx, makegood.Submission{Workflow: workflow, ID: id, Tenant: tenant, Input: input}); err != nil {
				return fmt.Errorf("submit %s: %w", id, err)
			}
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		job, err := stack.Client.Wait(ctx, id)
		if err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		if !job.ProcessState.Finished() {
			return fmt.Errorf("job %s is %s (%s)", id, job.ProcessState, job.Reason)
		}
	}
	return nil
}

// ask types a line of makegood in a folder, and shows what it says.
func ask(ctx context.Context, stack *processes.Stack, out io.Writer, folder, line string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "$ makegood %s --stack shop\n", line)
	asked := exec.CommandContext(ctx, program, append(append([]string{asCommand}, strings.Fields(line)...), "--stack", stack.Name)...)
	asked.Dir = folder
	asked.Env = append(os.Environ(), stack.Environment()...)
	said, err := asked.CombinedOutput()
	if err != nil {
		return fmt.Errorf("makegood %s: %w\n%s", line, err, said)
	}
	_, err = fmt.Fprintf(out, "%s\n", said)
	return err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	// steps is how many the long job has: Lambda would stop a chain of functions and queues after 16.
	steps = 60
	// chains is how many such jobs run at once, so that batches hold messages of several lineages.
	chains = 20
	// endWithin is how long jobs may take to end.
	endWithin = 15 * time.Minute
)

// orderFor is the sample workflow, with a shop at another address and time for functions that start.
func orderFor(shop string) string {
	text := strings.ReplaceAll(string(order.YAML), order.DefaultShop, shop)
	return strings.ReplaceAll(text, "timeout: 1s", "timeout: 5s")
}

// hopsFor is a workflow of sixty steps, one after the other, each a reservation under a key of its own.
func hopsFor(shop string) string {
	var b strings.Builder
	b.WriteString("name: hops\nsteps:\n")
	for i := range steps {
		fmt.Fprintf(&b, "  - {name: s%02d, agent: http, timeout: 5s, with: {url: %q, body: {order: \"${ .input.id }\", amount: 1}}}\n", i, shop+"/inventory/reserve")
	}
	return b.String()
}

// suites runs the suites of the two adapters against the account.
func (w *world) suites(ctx context.Context) ([]string, error) {
	command := exec.CommandContext(ctx, "go", "test", "-tags", "aws", "-count=1", "-timeout=40m", "./internal/store/dynamostore", "./internal/queue/sqsqueue")
	command.Env = append(os.Environ(),
		standin.DynamoDBVariable+"=https://dynamodb."+w.config.Region+".amazonaws.com", standin.DynamoDBVariable+standin.ProductSuffix+"="+standin.AWS,
		standin.SQSVariable+"=https://sqs."+w.config.Region+".amazonaws.com", standin.SQSVariable+standin.ProductSuffix+"="+standin.AWS)
	out, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return []string{"```", strings.TrimSpace(string(out)), "```"}, nil
}

// submit submits a job for each id.
func (w *world) submit(ctx context.Context, workflow string, ids []string) error {
	for i, id := range ids {
		input := fmt.Sprintf(`{"id":%q,"customer":"c%d","total":%d.25}`, id, i, 10+i)
		if _, err := w.client.Submit(ctx, makegood.Submission{Workflow: workflow, ID: id, Input: json.RawMessage(input)}); err != nil {
			return err
		}
	}
	return nil
}

// ended waits until each job is at its end.
func (w *world) ended(ctx context.Context, ids []string) ([]makegood.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	jobs := make([]makegood.Job, len(ids))
	for i, id := range ids {
		job, err := w.client.Wait(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("job %s, which was %s: %w", id, job.ProcessState, err)
		}
		jobs[i] = job
	}
	return jobs, nil
}

func names(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return ids
}

// fortunate are ids of orders that the shop neither refuses nor keeps waiting: what is measured with them is not
// the shop.
func fortunate(prefix string, n int) []string {
	script := services.Script{Profile: services.FaultsSome, Seed: seed}.Answering()
	var ids []string
	for _, id := range names(prefix, 100*n) {
		good := script.Ends(id) == makegood.JobProcessed
		for try := 1; try <= services.MaxFaults; try++ {
			good = good && script.Fault(id, services.Reserve, try) == services.NoFault
		}
		if good && len(ids) < n {
			ids = append(ids, id)
		}
	}
	return ids
}

// hops sends jobs of sixty steps. One that ran alone tells how long a hop takes; many at once that they share
// batches, and that Lambda takes none of them for a loop.
func (w *world) hops(ctx context.Context) ([]string, error) {
	defer func() {
		// The orders want a shop whose ledger holds theirs alone.
		_ = w.ask(ctx, http.MethodPost, "/reset", func(*http.Response) error { return nil })
	}()
	var found []string
	for _, ids := range [][]string{fortunate("alone", 1), fortunate("chain", chains)} {
		began := time.Now()
		if err := w.submit(ctx, "hops", ids); err != nil {
			return found, err
		}
		jobs, err := w.ended(ctx, ids)
		if err != nil {
			return found, err
		}
		for _, j := range jobs {
			if j.ProcessState != makegood.JobProcessed {
				return found, fmt.Errorf("job %s ended %s: %s", j.ID, j.ProcessState, j.Reason)
			}
		}
		took := time.Since(began)
		found = append(found, fmt.Sprintf("%d jobs of %d steps: Processed in %.1f s; %.0f ms a step, which is two hops over a queue.",
			len(ids), steps, took.Seconds(), took.Seconds()*1000/steps))
	}
	return found, nil
}

// orders sends orders, and compares their ends with the shop's script and with its ledger.
func (w *world) orders(ctx context.Context) ([]string, error) {
	w.began = time.Now()
	ids := names("order", w.options.orders)
	if err := w.submit(ctx, "order", ids); err != nil {
		return nil, err
	}
	jobs, err := w.ended(ctx, ids)
	if err != nil {
		return nil, err
	}
	w.jobs = len(jobs)
	took := time.Since(w.began)
	script := services.Script{Profile: services.FaultsSome, Seed: seed}.Answering()
	var wrong []error
	ends, counts := map[string]makegood.ProcessState{}, map[makegood.ProcessState]int{}
	for _, j := range jobs {
		ends[j.ID] = j.ProcessState
		counts[j.ProcessState]++
		if want := script.Ends(j.ID); j.ProcessState != want {
			wrong = append(wrong, fmt.Errorf("order %s ended %s (%s), want %s", j.ID, j.ProcessState, j.Reason, want))
		}
	}
	var ledger services.Ledger
	if err := w.ask(ctx, http.MethodGet, "/ledger", func(r *http.Response) error { return json.NewDecoder(r.Body).Decode(&ledger) }); err != nil {
		return nil, fmt.Errorf("the shop's ledger: %w", err)
	}
	for _, violation := range services.Check(ledger, ends) {
		wrong = append(wrong, errors.New(violation))
	}
	return []string{fmt.Sprintf("%d orders in %.0f s: %d Processed, %d Undone, %d Error. Each was compared with the shop's script and its ledger.",
		len(jobs), took.Seconds(), counts[makegood.JobProcessed], counts[makegood.JobUndone], counts[makegood.JobError])}, errors.Join(wrong...)
}

// owner returns partition and account of an ARN.
func owner(of string) (partition, account string, err error) {
	a, err := arn.Parse(of)
	return a.Partition, a.AccountID, err
}

// Command cost prints what a step costs on AWS: it runs jobs of 1, 5 and 20 steps, and a map, on the shipped Scheduler
// and agent handlers, unbatched and batched, quick and slow, counts what they ask of DynamoDB, SQS and Lambda
// (lab/costmeter), and prices that by AWS's list. make cost calls it, on a stand-in. With -json it prints one JSON
// object, with -counts the counts of the calculator.
//
// It measures no time and no bill: docs/cost.md says what is counted, assumed and left out.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

// runLimit is how long all of it may take.
const runLimit = 5 * time.Minute

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	counts := flag.Bool("counts", false, "print internal/sizing/counts.go instead, from more loads")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	err := run(ctx, os.Stdout, os.Getenv, *asJSON, *counts)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, getenv func(string) string, asJSON, counts bool) error {
	at := endpoints{dynamoDB: getenv(standin.DynamoDBVariable), sqs: getenv(standin.SQSVariable)}
	if at.dynamoDB == "" || at.sqs == "" {
		return fmt.Errorf("%s and %s must name the endpoint of a stand-in: run this with make cost", standin.DynamoDBVariable, standin.SQSVariable)
	}
	if counts {
		return writeCounts(ctx, at, out)
	}
	var all []figures
	for _, l := range loads() {
		f, err := measure(ctx, at, l)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	more, err := measureHeard(ctx, at, all)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(out, all, more)
	}
	_, err = fmt.Fprintf(out, "%s\n%s\n%s\n%s\n%s", table(all), keptTable(all), changesTable(more), besideTable(invocations(all)), legend())
	return err
}

// writeJSON writes one object: the loads, what hearing of every change costs a job of some of them more, the prices'
// date and region, and what others ask.
func writeJSON(out io.Writer, all []figures, more []changesRow) error {
	others := map[string]float64{}
	for _, p := range peers() {
		others[p.name] = p.dollars
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Loads        []row              `json:"loads"`
		Changes      []changesRow       `json:"changesMoreOfAJob"`
		PricesOf     string             `json:"pricesOf"`
		PricesRegion string             `json:"pricesRegion"`
		Others       map[string]float64 `json:"othersDollarsPerMillionSteps"`
	}{rows(all), more, prices.Date, prices.Region, others})
}

// Command scheduler is a Lambda function that handles batches of the events queue: it moves jobs on. It reads its configuration, wires and
// starts; package deployed says from what.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/workflows"
)

func main() {
	handler, err := deployed.Scheduler(context.Background(), os.Getenv, workflows.Files())
	if err != nil {
		fmt.Fprintln(os.Stderr, "scheduler:", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}

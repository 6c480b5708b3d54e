// Command scheduler is a Lambda function that moves jobs on: it handles batches of the events and submissions queues.
package main

import (
	"github.com/makegood-dev/makegood/onlambda"
	"github.com/makegood-dev/makegood/workflows"
)

func main() { onlambda.Scheduler(workflows.Files) }

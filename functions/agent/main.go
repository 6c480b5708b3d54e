// Command agent is a Lambda function that runs one agent, named by MAKEGOOD_AGENT: one of package workflows, or the built-in http. It
// reads its configuration, wires and starts; package deployed says from what.
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
	handler, err := deployed.Agent(context.Background(), os.Getenv, workflows.Agents(os.Getenv))
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}

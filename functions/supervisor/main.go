// Command supervisor is a Lambda function that sweeps once for every event of its schedule. It reads its configuration, wires and starts;
// package deployed says from what.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/makegood-dev/makegood/internal/deployed"
)

func main() {
	handler, err := deployed.Supervisor(context.Background(), os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}

// Command door is a Lambda function behind a URL that asks IAM who knocks. MAKEGOOD_DOOR says what it lets them do:
// submit, read or operate. It reads its configuration, wires and starts; package deployed says from what.
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
	handler, err := deployed.Door(context.Background(), os.Getenv, workflows.Files())
	if err != nil {
		fmt.Fprintln(os.Stderr, "door:", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}

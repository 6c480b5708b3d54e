// Command knocker is a Lambda function that tries at which doors it is let in, for make aws-verify. It is deployed once
// under each policy of docs/doors.md. What it asks for is about a job and a workflow that nobody has, so that it has
// no effect where it is let in.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/lab/testkit/localdoors"
)

// nobody is a job, and a workflow, that is not there.
const nobody = "makegood-verify-nobody"

// Doors is the event: where the doors of the stack are, and Lambda's API.
type Doors struct{ Stack, Submit, Read, Operate, Endpoint string }

// Answers are what came of each try, by its name: allowed, denied, or the error.
type Answers map[string]string

func main() {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "knocker:", err)
		os.Exit(1)
	}
	lambda.Start(func(ctx context.Context, at Doors) (Answers, error) { return knock(ctx, at, c) })
}

// knock tries everything.
func knock(ctx context.Context, at Doors, c aws.Config) (Answers, error) {
	jobs, err := doors.New(doors.Config{AWS: c, Stack: at.Stack, Addresses: doors.Addresses{Submit: at.Submit, Read: at.Read, Operate: at.Operate}})
	if err != nil {
		return nil, err
	}
	_, submitErr := jobs.Submit(ctx, makegood.Submission{Workflow: nobody, ID: nobody})
	_, readErr := jobs.Get(ctx, nobody)
	_, operateErr := jobs.Request(ctx, nobody, api.Request{Verb: makegood.VerbCancel})
	answers := Answers{"submit": verdict(submitErr), "read": verdict(readErr), "operate": verdict(operateErr)}
	event, err := json.Marshal(events.LambdaFunctionURLRequest{RawPath: "/" + nobody})
	if err != nil {
		return nil, err
	}
	for _, door := range []string{"submit", "read", "operate"} {
		_, err := localdoors.Invoke(ctx, at.Endpoint, at.Stack+"-"+door, c, event)
		answers["invoke "+door] = invoked(err)
	}
	return answers, nil
}

// verdict reads an answer: whoever is told that there is no such job or workflow was let in.
func verdict(err error) string {
	var invalid *api.InvalidError
	switch {
	case err == nil, errors.Is(err, api.ErrNotFound):
		return "allowed"
	case errors.As(err, &invalid) && invalid.Status == http.StatusForbidden:
		return "denied"
	case errors.As(err, &invalid) && invalid.Status == http.StatusBadRequest:
		return "allowed"
	default:
		return err.Error()
	}
}

// invoked reads the answer of Lambda's API.
func invoked(err error) string {
	switch {
	case err == nil:
		return "allowed"
	case errors.Is(err, localdoors.ErrDenied):
		return "denied"
	default:
		return err.Error()
	}
}

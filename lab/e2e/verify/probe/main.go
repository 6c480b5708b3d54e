// Command probe is a Lambda function that tries what its role may do and what it may not, for make aws-verify. It
// is deployed once under the role of each of our functions.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/lab/e2e/verify/probed"
)

func main() {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	lambda.Start(func(ctx context.Context, s probed.Stack) (probed.Answers, error) {
		return probed.Probe(ctx, s, dynamodb.NewFromConfig(c), sqs.NewFromConfig(c)), nil
	})
}

package main

import (
	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

// price is a list price of AWS.
type price struct {
	what    string
	dollars float64
	per     string
	source  string
}

// list names the prices, with where they were read.
func list() []price {
	return []price{
		{"DynamoDB on demand, write unit of 1 KB", prices.MillionWrites, "million", "aws.amazon.com/dynamodb/pricing/on-demand"},
		{"DynamoDB on demand, read unit of 4 KB", prices.MillionReads, "million", "aws.amazon.com/dynamodb/pricing/on-demand"},
		{"SQS standard queue, request of 64 KB", prices.MillionRequests, "million", "infracost, sqs_queue_test golden file"},
		{"Lambda request", prices.MillionInvocations, "million", "infracost, lambda_function_test golden file"},
		{"Lambda duration, arm64", prices.GBSecond, "GB second", "infracost, lambda_function_test golden file"},
	}
}

// peer is what others ask for a million steps of the reference load: 200,000 jobs of 5 steps in sequence, payloads of
// 1 KB, without retries and waits, and without what the steps themselves do.
type peer struct {
	name    string
	dollars float64
	from    string
}

func peers() []peer {
	return []peer{
		{"AWS Lambda durable functions", 8.40, "8.00 $ a million operations, data, 0.2 million invocations"},
		{"AWS Step Functions Standard", 25.00, "0.025 $ a thousand transitions, at least one a step"},
	}
}

// What Lambda's duration is reckoned with: it cannot be counted on a stand-in.
const (
	// assumedSeconds is how long an invocation is billed, of ten records as of one: they run at the same time.
	assumedSeconds = sizing.RunSeconds
	// memoryGB is that of template.yaml's functions.
	memoryGB = sizing.MemoryGB
)

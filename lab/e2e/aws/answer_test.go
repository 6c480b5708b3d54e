//go:build aws

package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// The SDK of today and the stand-in that is installed understand each other at all.
func TestTheStandInAnswersTheSDK(t *testing.T) {
	config := func(s standin.Service) aws.Config {
		return aws.Config{
			Region: "eu-west-1", BaseEndpoint: aws.String(s.Endpoint),
			Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		}
	}
	tables := dynamodb.NewFromConfig(config(standin.DynamoDB(t)))
	if _, err := tables.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Errorf("list tables: %v", err)
	}
	queues := sqs.NewFromConfig(config(standin.SQS(t)))
	if _, err := queues.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Errorf("list queues: %v", err)
	}
}

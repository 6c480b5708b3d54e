// Package standin tells tests which stand-ins for AWS answer them, and lists what each of those is
// known to do otherwise than AWS. It starts none: make test-aws does (lab/e2e/aws).
//
// A test that needs one carries the build tag aws. Without a stand-in it fails; it never skips.
package standin

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// The environment that make test-aws sets for the tests.
const (
	// DynamoDBVariable, SQSVariable and S3Variable hold the URL of a service's endpoint.
	DynamoDBVariable = "MAKEGOOD_TEST_DYNAMODB"
	SQSVariable      = "MAKEGOOD_TEST_SQS"
	S3Variable       = "MAKEGOOD_TEST_S3"
	// ProductSuffix makes of them the names of the variables that hold product and version.
	ProductSuffix = "_PRODUCT"
	// EndpointVariable holds the URL for everything else: SNS, EventBridge, Lambda. Only MiniStack
	// sets it.
	EndpointVariable = "MAKEGOOD_TEST_AWS"
	// DeployedVariable holds product and version of what AWS_ENDPOINT_URL answers for, in tests that deploy.
	DeployedVariable = "MAKEGOOD_TEST_DEPLOYED"
	// PythonVariable holds the Python that has boto3.
	PythonVariable = "MAKEGOOD_TEST_PYTHON"
)

// AWS is the product of an endpoint that is no stand-in: make aws-verify runs suites against an account.
const AWS = "AWS"

// CutOff is what a failed test prints when the stand-in has cut answers off: the SDK then asks again, and what
// is counted or compared by a test may be one too many. make test-aws gives such a suite a second try, and
// says so.
const CutOff = "the stand-in cut answers off"

// Service is one service of a stand-in.
type Service struct {
	// Product is the stand-in with its version, as "DynamoDB Local 3.1.0".
	Product string
	// Endpoint is its URL.
	Endpoint string
}

// Config is what a client of the service is made of: with credentials of no worth for a stand-in, and those of
// the environment for AWS.
func (s Service) Config(t testing.TB) aws.Config {
	t.Helper()
	if s.Product != AWS {
		return Config(s.Endpoint)
	}
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// DynamoDB returns the DynamoDB that the test runs against, and fails the test when there is none.
func DynamoDB(t testing.TB) Service { return need(t, DynamoDBVariable) }

// SQS returns the SQS that the test runs against, and fails the test when there is none.
func SQS(t testing.TB) Service { return need(t, SQSVariable) }

// S3 returns the S3 that the test runs against, and fails the test when there is none.
func S3(t testing.TB) Service { return need(t, S3Variable) }

func need(t testing.TB, variable string) Service {
	t.Helper()
	s := Service{Product: os.Getenv(variable + ProductSuffix), Endpoint: os.Getenv(variable)}
	if s.Endpoint == "" || s.Product == "" {
		t.Fatalf("%s and %s%s must name a stand-in and its endpoint: run this with make test-aws", variable, variable, ProductSuffix)
	}
	t.Logf("against %s at %s", s.Product, s.Endpoint)
	return s
}

// Deviation is a rule of our suites that a stand-in breaks and AWS does not.
type Deviation struct {
	// Product is the stand-in's name, without its version.
	Product string
	// Package is the folder of the test, Test its full name, subtests included.
	Package, Test string
	// Reason says what the stand-in does.
	Reason string
}

// Deviations are all that are known. make test-aws wants exactly these to fail: one that passes, or
// no longer runs, is an error, too.
func Deviations() []Deviation {
	return []Deviation{
		{"DynamoDB Local", "agent/dynamofence", "TestWhatATransactionTakes", "says that a transaction takes the units of one item of each table, however many it has"},
		{"MiniStack", "lab/e2e/cost", "TestTheMeterSaysWhatTheServerReports/spilling", "says that a GetItem costs one read unit, whatever the size of the item"},
		{"moto", "internal/payload/s3payload", "TestDoors/the_store_refuses_other_bytes", "takes what comes with another x-amz-checksum-sha256 under a presigned URL"},
		{"moto", "internal/payload/s3payload", "TestDoors/the_store_refuses_more_and_fewer_bytes", "takes another length than the signed content-length under a presigned URL"},
		{"MiniStack", "lab/costmeter", "TestTheMeterSaysWhatTheServerReports/reads", "says that a GetItem costs one read unit, whatever the size of the item"},
	}
}

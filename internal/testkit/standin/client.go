package standin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Region is where the tests say that they are. A stand-in may keep what it has by Region.
const Region = "eu-central-1"

// Config is what a client of a stand-in is made of, with credentials of no worth.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: &endpoint, HTTPClient: &WholeAnswers{},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// CreateTable makes a table whose name nobody else has. That it is there already is no error: the answer was cut
// off, and the SDK has asked again.
func CreateTable(ctx context.Context, db *dynamodb.Client, in *dynamodb.CreateTableInput) error {
	var there *types.ResourceInUseException
	if _, err := db.CreateTable(ctx, in); err != nil && !errors.As(err, &there) {
		return fmt.Errorf("create table %s: %w", aws.ToString(in.TableName), err)
	}
	return nil
}

// WholeAnswers is an HTTP client for the SDK that has read an answer before it returns it. Where the SDK reads it bit
// by bit on a busy machine, answers end before they should; the SDK asks again, and what is counted is something else.
type WholeAnswers struct{ http.Client }

// Do does what http.Client's Do does. When it returns no error, the body is all there.
func (c *WholeAnswers) Do(r *http.Request) (*http.Response, error) {
	response, err := c.Client.Do(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // All of it was read, or that is the error.
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

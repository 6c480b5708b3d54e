package dynamostore

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// asked is a request as DynamoDB gets it.
type asked struct {
	Operation                           string
	ConsistentRead                      bool
	ReturnValuesOnConditionCheckFailure string
	Key, Item                           map[string]any
	ExpressionAttributeValues           map[string]any
	RequestItems                        map[string]struct{ Keys []map[string]any }
}

// inside answers requests where they would leave the process, so that a test may run in a bubble of
// synctest.
type inside func(asked) (status int, answer any)

// Do is the SDK's HTTP client.
func (f inside) Do(r *http.Request) (*http.Response, error) {
	var a asked
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	_, a.Operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	status, answer := f(a)
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
	}, err
}

// offline returns a store whose requests f answers.
func offline(t *testing.T, f inside) *Store {
	t.Helper()
	s, err := New(Config{Table: "jobs", Index: "due", Client: dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", HTTPClient: f, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refusal is the body of an error of DynamoDB.
func refusal(code string) any {
	return map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": "as the test wants"}
}

package costmeter

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A request that the SDK repeats is paid for each time, so it is counted each time; and who asked sees nothing of what the
// meter asked for.
func TestEveryTryIsCountedAndTheCallerSeesTheirOwnAnswer(t *testing.T) {
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // What is missing fails the test below.
		tries++
		if tries == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if !strings.Contains(string(body), `"ReturnValues":"ALL_NEW"`) || !strings.Contains(string(body), `"ReturnConsumedCapacity":"INDEXES"`) {
			t.Errorf("asked: %s, want the new image and what was consumed", body)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = fmt.Fprint(w, `{"Attributes":{"PK":{"S":"p"},"SK":{"S":"s"},"Due":{"S":"1"}},"ConsumedCapacity":{"Table":{"CapacityUnits":7}}}`)
	}))
	defer server.Close()
	config := aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	m := New(Config{Tables: []*dynamodb.CreateTableInput{schema()}, Check: true})
	m.Watch(&config)
	in := &dynamodb.UpdateItemInput{TableName: aws.String("jobs"), Key: with(nil)}
	out, err := dynamodb.NewFromConfig(config).UpdateItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if out.Attributes != nil || in.ReturnValues != "" {
		t.Errorf("the caller sees %v, and their request asks for %q; want nothing of either", out.Attributes, in.ReturnValues)
	}
	entries := m.Take()
	if len(entries) != 2 || entries[0].Doubt == "" || entries[1].Doubt != "" {
		t.Fatalf("got %+v, want a try in doubt and one that is sure", entries)
	}
	if e := entries[1]; e.Service != "DynamoDB" || e.Operation != "UpdateItem" || e.Table != 1 || e.Indexes["due"] != 1 {
		t.Errorf("got %+v, want a unit of the table and one of the index due", e)
	}
	if d := entries[1].Differs(); !strings.Contains(d, "the server reported table 7") {
		t.Errorf("got %q, want the difference from what was reported", d)
	}
}

func TestTotalsAddUpWhatIsBilled(t *testing.T) {
	m := New(Config{})
	m.Invoked("scheduler", 10)
	m.Invoked("agent", 10)
	entries := append(m.Take(), Entry{Service: serviceSQS, Requests: 3}, Entry{Table: 1, Indexes: map[string]float64{"due": 2}, Read: 0.5})
	if got, want := Sum(entries), (Totals{WriteUnits: 3, ReadUnits: 0.5, SQSRequests: 3, Invocations: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if left := m.Take(); len(left) != 0 {
		t.Errorf("taken again: got %v, want nothing", left)
	}
}

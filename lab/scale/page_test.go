package scale

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// answering is DynamoDB and SQS as far as a sweep needs them: an index with so many overdue jobs in each shard, leases
// that are granted, and a queue that takes everything. It counts the requests of each operation.
type answering struct {
	jobs int

	mu       sync.Mutex
	left     map[string]int // by shard
	requests map[string]int
}

func (a *answering) Do(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
	a.mu.Lock()
	a.requests[operation]++
	a.mu.Unlock()
	answer := []byte("{}")
	switch operation {
	case "Query":
		answer, err = a.page(body)
	case "SendMessageBatch":
		answer, err = sent(body)
	case "GetQueueUrl":
		answer = []byte(`{"QueueUrl":"https://sqs.us-east-1.amazonaws.com/000000000000/events"}`)
	case "GetQueueAttributes":
		answer = []byte(`{"Attributes":{"ApproximateNumberOfMessages":"0","ApproximateNumberOfMessagesNotVisible":"1","ApproximateNumberOfMessagesDelayed":"0"}}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(answer)), Request: request}, err
}

// page answers a query of the index with the next jobs of its shard.
func (a *answering) page(body []byte) ([]byte, error) {
	var query struct {
		Limit                     int
		ExpressionAttributeValues map[string]struct{ N string }
	}
	if err := json.Unmarshal(body, &query); err != nil {
		return nil, err
	}
	shard := query.ExpressionAttributeValues[":shard"].N
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, seen := a.left[shard]; !seen && !strings.HasPrefix(shard, "-") {
		a.left[shard] = a.jobs
	}
	items := []any{}
	for range min(query.Limit, a.left[shard]) {
		a.left[shard]--
		items = append(items, map[string]any{
			"PK": map[string]string{"S": fmt.Sprintf("job#order-%s-%06d", shard, a.left[shard])}, "SK": map[string]string{"S": "job"},
			"Shard": map[string]string{"N": shard}, "CompleteBy": map[string]string{"N": "1764150000000"},
		})
	}
	return json.Marshal(map[string]any{"Items": items, "Count": len(items)})
}

// sent answers a batch of messages: all are taken.
func sent(body []byte) ([]byte, error) {
	var batch struct {
		Entries []struct{ Id, MessageBody string }
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, err
	}
	taken := []any{}
	for _, e := range batch.Entries {
		sum := md5.Sum([]byte(e.MessageBody)) // which the SDK compares
		taken = append(taken, map[string]string{"Id": e.Id, "MessageId": e.Id, "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	}
	return json.Marshal(map[string]any{"Successful": taken, "Failed": []any{}})
}

// sweep sweeps the shipped adapters once, with so many overdue jobs in each of 16 shards.
func sweep(tb testing.TB, jobs int) (supervisor.Result, map[string]int) {
	tb.Helper()
	a := &answering{jobs: jobs, left: map[string]int{}, requests: map[string]int{}}
	c := aws.Config{Region: "us-east-1", HTTPClient: a, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	store, err := dynamostore.New(dynamostore.Config{Client: dynamodb.NewFromConfig(c), Table: "jobs", Index: "CompleteBy"})
	if err != nil {
		tb.Fatal(err)
	}
	queues := sqsqueue.New(sqsqueue.Config{Client: sqs.NewFromConfig(c), Prefix: ""})
	r, err := supervisor.New(supervisor.Config{
		Index: store, Queue: queues, Events: "events", Leases: store, Holder: "supervisor", Places: store, AtOnce: 8, Logger: slog.New(slog.DiscardHandler),
	}).Sweep(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return r, a.requests
}

// A page of a hundred keys is thirteen requests: its lease, itself, the depth, and ten that send.
func TestAPageIsThirteenRequests(t *testing.T) {
	const shards, begins, pages = 16, 4, 10
	r, got := sweep(t, pages*supervisor.DefaultPage)
	// Each shard, and each of beginnings, is asked once more, with a lease, until it is found empty; and its lease is released.
	empty := shards + begins
	want := map[string]int{"Query": shards*pages + empty, "GetQueueAttributes": shards * pages, "SendMessageBatch": shards * pages * 10}
	for operation, n := range want {
		if got[operation] != n {
			t.Errorf("%d requests %s, want %d", got[operation], operation, n)
		}
	}
	leases := 0
	for operation, n := range got {
		if _, known := want[operation]; !known && operation != "GetQueueUrl" {
			leases += n
		}
	}
	if wantLeases := shards*pages + empty + empty; leases != wantLeases || r.Sent != shards*pages*supervisor.DefaultPage {
		t.Errorf("got %+v, and %v: %d requests for leases, want %d", r, got, leases, wantLeases)
	}
}

// BenchmarkAPageOfASweep is the processor's part of a page of a hundred keys, without the network and its encryption: a
// sweep that tells of 300,000 jobs in its 48 seconds has 63 a second.
func BenchmarkAPageOfASweep(b *testing.B) {
	const shards = 16
	before := processor()
	for b.Loop() {
		sweep(b, 10*supervisor.DefaultPage)
	}
	b.ReportMetric(float64((processor()-before).Microseconds())/1000/float64(b.N*shards*10), "cpu-ms/page")
}

func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

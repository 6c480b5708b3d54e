package sqsqueue_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
)

// request is a request that the server got.
type request struct {
	Operation string
	QueueURL  string `json:"QueueUrl"`
	QueueName string
	// Of batches.
	Entries []entry
	// Of a receive.
	MaxNumberOfMessages int
	WaitTimeSeconds     *int
	VisibilityTimeout   *int
	AttributeNames      []string
}

type entry struct {
	ID                string `json:"Id"`
	MessageBody       string
	MessageGroupID    string `json:"MessageGroupId"`
	DelaySeconds      int
	ReceiptHandle     string
	VisibilityTimeout int
}

// refusal is an entry of a batch that the server does not take.
type refusal struct {
	code  string
	fault bool
}

// server is a small SQS that says what a test wants it to. By default it takes everything.
type server struct {
	*httptest.Server
	// entry says of an entry of a batch what is wrong with it on its nth try; nil: all are taken.
	entry func(r request, e entry, try int) *refusal
	// whole answers a request as a whole, on its nth try of all; it reports whether it did.
	whole func(w http.ResponseWriter, r request, try int) bool
	// forget names entries that the answer does not mention.
	forget map[string]bool

	mu       sync.Mutex
	requests []request
	tries    map[string]int
	taken    []string
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{tries: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	var got request
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	_, got.Operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	s.requests = append(s.requests, got)
	s.tries[got.Operation]++
	try := s.tries[got.Operation]
	s.mu.Unlock()
	if s.whole != nil && s.whole(w, got, try) {
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(s.answer(got))
}

func (s *server) answer(r request) map[string]any {
	switch r.Operation {
	case "GetQueueUrl":
		return map[string]any{"QueueUrl": s.URL + "/1/" + r.QueueName}
	case "GetQueueAttributes":
		return map[string]any{"Attributes": map[string]string{
			"QueueArn": "arn:aws:sqs:eu-central-1:1:q", "ApproximateNumberOfMessages": "17", "ApproximateNumberOfMessagesNotVisible": "4",
		}}
	case "ReceiveMessage":
		return map[string]any{}
	}
	var taken, failed []map[string]any
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range r.Entries {
		name := e.MessageBody + e.ReceiptHandle
		s.tries[name]++
		if s.forget[name] {
			continue
		}
		if s.entry != nil {
			if no := s.entry(r, e, s.tries[name]); no != nil {
				failed = append(failed, map[string]any{"Id": e.ID, "Code": no.code, "Message": "says the test", "SenderFault": no.fault})
				continue
			}
		}
		s.taken = append(s.taken, name)
		digest := md5.Sum([]byte(e.MessageBody))
		taken = append(taken, map[string]any{"Id": e.ID, "MessageId": e.ID, "MD5OfMessageBody": hex.EncodeToString(digest[:])})
	}
	return map[string]any{"Successful": taken, "Failed": failed}
}

// says answers with an error of SQS.
func says(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"says the test"}`, code)
}

// of are the requests of an operation.
func (s *server) of(operation string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []request
	for _, r := range s.requests {
		if r.Operation == operation {
			found = append(found, r)
		}
	}
	return found
}

// queues are those of the server; the SDK's own retries wait for next to nothing.
func (s *server) queues(c sqsqueue.Config) *sqsqueue.Queues {
	c.Client = newClient(s.URL)
	return sqsqueue.New(c)
}

func newClient(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		Retryer:     retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond }),
	})
}

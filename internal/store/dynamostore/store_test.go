package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// against returns a store whose requests f answers, with a status and a body. The client has a retryer
// of its own that would try three times, were it used.
func against(t *testing.T, f func(n int64, operation string) (status int, body string)) *Store {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		status, body := f(n.Add(1), operation)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), Retryer: retry.NewStandard(),
	})
	s, err := New(Config{Client: client, Table: "jobs", Index: "due"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fault(code string) string {
	body, _ := json.Marshal(map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": "as the test wants"})
	return string(body)
}

// What AWS says when it has had enough, or is not well, is tried again.
func TestThrottlingAndConflictsOfTransactionsAreTriedAgain(t *testing.T) {
	for code, status := range map[string]int{
		"ProvisionedThroughputExceededException": 400, "ThrottlingException": 400, "RequestLimitExceeded": 400,
		"TransactionConflictException": 400, "InternalServerError": 500, "ServiceUnavailable": 503,
	} {
		t.Run(code, func(t *testing.T) {
			var requests atomic.Int64
			s := against(t, func(n int64, _ string) (int, string) {
				requests.Store(n)
				if n <= 3 {
					return status, fault(code)
				}
				return 200, "{}"
			})
			if err := s.Claim(t.Context(), store.Slot{Agent: "shop", Job: "a"}, job.Claim{Attempt: 1, LockedBy: "x"}, time.Time{}); err != nil {
				t.Errorf("got %v, want a claim at the fourth try", err)
			}
			if got := requests.Load(); got != 4 {
				t.Errorf("got %d requests, want 4", got)
			}
		})
	}
}

// What does not pass is an error that is none of the sentinels, so that the event is delivered again;
// and it ends with the time that there is.
func TestThrottlingThatLastsIsAnErrorInTime(t *testing.T) {
	s := against(t, func(int64, string) (int, string) { return 400, fault("ThrottlingException") })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := s.Save(ctx, store.Change{Job: job.Job{ID: "a", Rev: 1}})
	if err == nil {
		t.Fatal("got a save, want an error")
	}
	for _, sentinel := range []error{store.ErrConflict, store.ErrNotFound, store.ErrExists, store.ErrTaken, store.ErrWithdrawn, store.ErrDamaged} {
		if errors.Is(err, sentinel) {
			t.Errorf("got %v, which is %v", err, sentinel)
		}
	}
}

// There is one layer that tries again: without a deadline a request is made maxTries times, no more.
func TestRetriesAreNotStacked(t *testing.T) {
	var requests atomic.Int64
	s := against(t, func(n int64, _ string) (int, string) {
		requests.Store(n)
		return 400, fault("TransactionConflictException")
	})
	s.retryer = retry.AddWithMaxBackoffDelay(s.retryer, time.Millisecond)
	if _, err := s.Load(t.Context(), "a"); err == nil {
		t.Fatal("got a job, want an error")
	}
	if got := requests.Load(); got != maxTries {
		t.Errorf("got %d requests, want %d", got, maxTries)
	}
}

// A mistake of ours is not tried again.
func TestABadRequestIsMadeOnce(t *testing.T) {
	var requests atomic.Int64
	s := against(t, func(n int64, _ string) (int, string) {
		requests.Store(n)
		return 400, fault("ValidationException")
	})
	if err := s.PutPayload(t.Context(), "a", "input", []byte(`1`)); err == nil || requests.Load() != 1 {
		t.Errorf("got %v after %d requests, want an error after 1", err, requests.Load())
	}
}

func TestAPayloadCannotTakeTheJobsPlace(t *testing.T) {
	s := against(t, func(_ int64, operation string) (int, string) {
		t.Errorf("got a request to %s, want none", operation)
		return 500, ""
	})
	for _, key := range []string{"", "job", "detail#AAAA"} {
		if err := s.PutPayload(t.Context(), "a", key, []byte(`1`)); err == nil {
			t.Errorf("key %q: got no error", key)
		}
	}
}

func TestAStoreThatLacksSomethingIsRefused(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1"})
	for name, c := range map[string]Config{
		"no client": {Table: "t", Index: "i"}, "no table": {Client: client, Index: "i"}, "no index": {Client: client, Table: "t"},
		"too many shards": {Client: client, Table: "t", Index: "i", Shards: maxShards + 1}, "negative shards": {Client: client, Table: "t", Index: "i", Shards: -1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: got a store, want an error", name)
		}
	}
}

// Ids are spread over the shards, and a job's shard is always the same: it is stored, and searched for.
func TestJobsAreSpreadOverTheShards(t *testing.T) {
	s := &Store{config: Config{Shards: DefaultShards}}
	count := make([]int, DefaultShards)
	for i := range 16_000 {
		count[s.shard(job.Job{ID: fmt.Sprintf("order-%06d", i)})]++
	}
	for shard, n := range count {
		if n < 700 || n > 1300 {
			t.Errorf("shard %d has %d of 16000 jobs, want about 1000", shard, n)
		}
	}
	if got := s.shard(job.Job{ID: "order-000001"}); got != 1 {
		t.Errorf("shard of order-000001: got %d, want 1 for ever", got)
	}
}

// Jobs whose attempts wait for a backoff stand in shards of their own. With more shards these are more, too: a service that is away
// moves as many keys there as elsewhere. What was stored before is swept as before, and the number of a key is the same for ever.
func TestBeginningsAreSpreadOverAsManyShardsMore(t *testing.T) {
	at := time.UnixMilli(1000)
	begins := job.Job{CompleteBy: at, Steps: []job.StepState{{Forward: job.Activity{State: job.Backoff, At: at}}}}
	for shards, want := range map[int]int{1: 4, DefaultShards: 4, DefaultShards + 1: 5, 2 * DefaultShards: 20, maxShards: 1012} {
		s := &Store{config: Config{Shards: shards}}
		count := make(map[int64]int)
		const each = 200
		for i := range each * want {
			begins.ID = fmt.Sprintf("order-%06d", i)
			number := s.shard(begins)
			count[number]++
			if number >= 0 || !s.isShard(number) {
				t.Fatalf("%d shards: %s begins in shard %d, want one of beginnings that is swept", shards, begins.ID, number)
			}
		}
		if len(count) != want {
			t.Errorf("%d shards: got %d of beginnings, want %d", shards, len(count), want)
		}
		for number, n := range count {
			if n < each/2 || n > 2*each {
				t.Errorf("%d shards: shard %d has %d, want about %d", shards, number, n, each)
			}
		}
		numbers := make(map[int64]bool)
		for shard := range s.Shards() {
			if number := s.shardNumber(shard); s.OfBeginnings(shard) != (number < 0) || !s.isShard(number) {
				t.Errorf("%d shards: shard %d is %d in the table: of beginnings %t, swept %t", shards, shard, number, s.OfBeginnings(shard), s.isShard(number))
			} else {
				numbers[number] = true
			}
		}
		if len(numbers) != shards+want || !numbers[-1] || !numbers[-4] {
			t.Errorf("%d shards: a sweep goes through %d, want %d, and those of before among them", shards, len(numbers), shards+want)
		}
	}
	begins.ID = "order-000001"
	if got := (&Store{config: Config{Shards: DefaultShards}}).shard(begins); got != -2 {
		t.Errorf("order-000001 begins in shard %d, want -2 for ever", got)
	}
}

func TestMemoryForgetsWhatIsTooMuch(t *testing.T) {
	m := newMemory[int](3)
	for i := range 10 {
		m.put(fmt.Sprint(i), i)
		if got, ok := m.get(fmt.Sprint(i)); !ok || got != i {
			t.Errorf("what was put last: got %d %v, want %d", got, ok, i)
		}
	}
	if len(m.all) != 3 {
		t.Errorf("got %d values, want 3", len(m.all))
	}
}

// docs/architecture.md shows the writes for those who read, and for agents not written in Go.
func TestTheDocumentShowsTheWritesThatAreMade(t *testing.T) {
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(string(text)), " ")
	s := &Store{config: Config{Shards: 1}}
	at := time.UnixMilli(1)
	change := store.Change{Job: job.Job{ID: "a", CompleteBy: at.Add(time.Hour)}, Seen: at}
	for name, u := range map[string]*update{
		"claim":           claiming(store.ClaimItem{Claim: job.Claim{LockedBy: "me", StartedAt: at, CompleteBy: at}}),
		"heartbeat":       extending(store.ClaimItem{}),
		"close, replied":  replying(store.Closing{}),
		"park":            s.parking("a", at, at.Add(time.Hour), "why", nil),
		"save, key moves": s.saving(change, packed{}),
	} {
		want := "UpdateExpression: " + plain(u, u.expression()) + " ConditionExpression: " + plain(u, u.condition())
		if !strings.Contains(shown, want) {
			t.Errorf("%s: docs/architecture.md does not show\n%s", name, want)
		}
	}
}

// plain writes an expression with the names themselves.
func plain(u *update, expression string) string {
	for alias, name := range u.names {
		expression = strings.ReplaceAll(expression, alias, name)
	}
	return expression
}

// Where a condition failed and nothing came back, it is not known why: the item is read before anything is believed.
func TestAFailedConditionWithoutItsItemIsRead(t *testing.T) {
	held := `{"Item":{"PK":{"S":"claim#shop#a"},"Attempt":{"N":"1"},"LockedBy":{"S":"other"},"CompleteBy":{"N":"5000"}}}`
	slot := store.Slot{Agent: "shop", Job: "a", Birth: "b", Step: "reserve"}
	mine := job.Claim{Attempt: 1, LockedBy: "me", StartedAt: time.UnixMilli(1000), CompleteBy: time.UnixMilli(4000)}
	until := time.UnixMilli(9000)
	var asked []string
	s := against(t, func(_ int64, operation string) (int, string) {
		if asked = append(asked, operation); operation == "GetItem" {
			return 200, held
		}
		return 400, fault("ConditionalCheckFailedException")
	})
	if err := s.Claim(t.Context(), slot, mine, until); !errors.Is(err, store.ErrTaken) {
		t.Errorf("claim: got %v, want %v", err, store.ErrTaken)
	}
	if _, err := s.Heartbeat(t.Context(), slot, mine, until); !errors.Is(err, store.ErrTaken) {
		t.Errorf("heartbeat: got %v, want %v", err, store.ErrTaken)
	}
	found, err := s.Close(t.Context(), slot, store.Closing{Attempt: 1, Until: until, Now: time.UnixMilli(2000), LockedBy: "me"})
	if err != nil || found.Finding != job.FoundHeld {
		t.Errorf("close: got %v, %v, want %s", found, err, job.FoundHeld)
	}
	same(t, "requests", asked, []string{"UpdateItem", "GetItem", "UpdateItem", "GetItem", "UpdateItem", "GetItem"})
}

// Where others write a claim item without end, an operation ends with an error that is none of the sentinels.
func TestASlotThatKeepsChangingIsAnError(t *testing.T) {
	var writes int
	s := against(t, func(n int64, operation string) (int, string) {
		extended := fmt.Sprintf(`{"PK":{"S":"claim#shop#a"},"Attempt":{"N":"1"},"LockedBy":{"S":"other"},"CompleteBy":{"N":"%d"}}`, n)
		if operation == "GetItem" {
			return 200, `{"Item":` + extended + `}`
		}
		writes++
		return 400, strings.TrimSuffix(fault("ConditionalCheckFailedException"), "}") + `,"Item":` + extended + `}`
	})
	_, err := s.Close(t.Context(), store.Slot{Agent: "shop", Job: "a"}, store.Closing{Attempt: 1, Now: time.UnixMilli(5000)})
	if !errors.Is(err, errMoving) || writes != maxSlotWrites {
		t.Errorf("got %v after %d writes, want %v after %d", err, writes, errMoving, maxSlotWrites)
	}
}

// Who may only put items under job#* may submit in a transaction of their own.
func TestASubmissionInATransactionStaysInItsPartition(t *testing.T) {
	s := against(t, func(_ int64, operation string) (int, string) {
		t.Errorf("got a request to %s, want none", operation)
		return 500, ""
	})
	j := finished(0)
	for i := range limits.MaxSteps {
		j.Steps = append(j.Steps, job.StepState{Name: fmt.Sprintf("a_step_of_a_long_name_%03d", i)})
	}
	items := s.CreateItems(j, map[string]json.RawMessage{"input#0a": []byte(`1`)})
	if len(items) != 2 || *items[0].Put.ConditionExpression != "attribute_not_exists(PK)" {
		t.Fatalf("got %d items, the first on %v, want the job, if its id is free, and its input", len(items), items[0].Put.ConditionExpression)
	}
	for i, it := range items {
		if it.Put == nil || asText(it.Put.Item[attrPK]) != "job#"+j.ID {
			t.Errorf("item %d: got %+v, want a put under job#%s", i, it, j.ID)
		}
	}
	got, err := jobformat.DecodeWhole(asBytes(items[0].Put.Item[attrData]))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "job", got, inData(j))
}

// A job that is born in a transaction says what the transaction's writes of it cost: twice for each item, the index once. One that does not
// count says nothing: a part would look like all.
func TestABirthInATransactionCountsWhatItCosts(t *testing.T) {
	s := against(t, func(_ int64, operation string) (int, string) {
		t.Errorf("got a request to %s, want none", operation)
		return 500, ""
	})
	for _, c := range []struct {
		what     string
		counted  job.Spent
		payloads map[string]json.RawMessage
		steps    int
		want     job.Spent
	}{
		{"no count", job.Spent{}, nil, 0, job.Spent{}},
		{"a small job", job.Spent{HalfReads: 4}, nil, 1, job.Spent{HalfReads: 4, Writes: 3}},
		{"with a large input", job.Spent{HalfReads: 4}, map[string]json.RawMessage{"input#0a": make([]byte, 3000)}, 1, job.Spent{HalfReads: 4, Writes: 2 + 1 + 2*3}},
		{"of many steps, which are named in it", job.Spent{HalfReads: 4}, nil, limits.MaxSteps, job.Spent{HalfReads: 4, Writes: 2*6 + 1}},
	} {
		j := finished(0)
		j.ProcessState, j.CompleteBy, j.Reason, j.Spent = makegood.JobPending, time.UnixMilli(5000), "", c.counted
		for i := range c.steps {
			j.Steps = append(j.Steps, job.StepState{Name: fmt.Sprintf("a_step_of_a_long_name_%03d", i)})
		}
		items := s.CreateItems(j, c.payloads)
		got, err := jobformat.DecodeWhole(asBytes(items[0].Put.Item[attrData]))
		if err != nil {
			t.Fatal(err)
		}
		if got.Spent != c.want {
			t.Errorf("%s: got %+v, want %+v", c.what, got.Spent, c.want)
		}
	}
}

// A page of the index that ends early, for its size, is no reason to take a shard for swept.
func TestDueReadsOnUntilItsLimit(t *testing.T) {
	var asked []string
	s := against(t, func(n int64, operation string) (int, string) {
		asked = append(asked, operation)
		entry := fmt.Sprintf(`{"PK":{"S":"job#a%d"},"SK":{"S":"job"},"Shard":{"N":"0"},"CompleteBy":{"N":"%d"}}`, n, n)
		if n == 3 {
			return 200, `{"Items":[` + entry + `]}`
		}
		return 200, `{"Items":[` + entry + `],"LastEvaluatedKey":` + entry + `}`
	})
	due, err := s.Due(t.Context(), 0, time.Now(), store.Entry{}, 10)
	if err != nil || len(due) != 3 || due[2].Job != "a3" || len(asked) != 3 {
		t.Errorf("got %v after %v: %v, want a1, a2 and a3 after three queries", due, asked, err)
	}
}

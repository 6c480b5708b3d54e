//go:build aws

package dynamostore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/storetest"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
)

// table is a table of its own, gone when the test has ended.
type table struct {
	name string
	// transport stands between the SDK and DynamoDB.
	transport *transport
	config    Config
	spent     *spent
}

func newTable(t *testing.T) *table {
	t.Helper()
	tr := &transport{}
	config := standin.DynamoDB(t).Config(t)
	config.HTTPClient = tr
	client := dynamodb.NewFromConfig(config)
	tab := &table{name: "jobs-" + strings.ToLower(rand.Text()[:12]), transport: tr, spent: &spent{}}
	tab.config = Config{Client: client, Table: tab.name, Index: "due", Shards: 3, Consumed: tab.spent.add}
	if err := standin.CreateTable(t.Context(), client, Schema(tab.name, "due")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && tr.cutOff > 0 {
			t.Logf("%s: %d of %d", standin.CutOff, tr.cutOff, tr.requests.Load())
		}
		_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &tab.name})
	})
	wait := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second })
	if err := wait.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &tab.name}, time.Minute); err != nil {
		t.Fatalf("wait for the table: %v", err)
	}
	return tab
}

func (tab *table) open(t *testing.T) *Store {
	t.Helper()
	s, err := New(tab.config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// transport does what a test wants of a request: drop its answer, say.
type transport struct {
	requests atomic.Int64
	mu       sync.Mutex
	// before is called with each request, before it is sent.
	before func(operation string)
	// lose reports whether to lose the answer of a request of this operation: the server has carried it out.
	lose func(operation string) bool
	// troubled are the requests that were not answered well.
	troubled []string
	// cutOff counts the answers whose end did not come.
	cutOff int
}

func (tr *transport) Do(r *http.Request) (*http.Response, error) {
	tr.requests.Add(1)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	tr.mu.Lock()
	before := tr.before
	tr.mu.Unlock()
	if before != nil {
		before(operation)
	}
	response, err := http.DefaultClient.Do(r)
	cutOff := err == nil && !whole(response)
	tr.mu.Lock()
	if cutOff {
		tr.cutOff++
	}
	lose := tr.lose != nil && tr.lose(operation)
	if err != nil || response.StatusCode != http.StatusOK {
		tr.troubled = append(tr.troubled, fmt.Sprintf("%s: %v", operation, cmp.Or(err, statusOf(response))))
	}
	tr.mu.Unlock()
	if err == nil && lose {
		_ = response.Body.Close()
		return nil, &lost{}
	}
	return response, err
}

// whole reads the answer, and reports whether it came to its end. Its reader meets what this one met.
func whole(r *http.Response) bool {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	rest := io.Reader(bytes.NewReader(body))
	if err != nil {
		rest = io.MultiReader(rest, iotest.ErrReader(err))
	}
	r.Body = io.NopCloser(rest)
	return err == nil
}

func statusOf(r *http.Response) error {
	if r == nil {
		return nil
	}
	body, _ := io.ReadAll(r.Body) // As much as there is.
	r.Body = io.NopCloser(bytes.NewReader(body))
	return fmt.Errorf("%s: %.100s", r.Status, body)
}

// once loses the next answer of an operation.
func (tr *transport) once(operation string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lose = func(op string) bool {
		if op != operation {
			return false
		}
		tr.lose = nil
		return true
	}
}

type lost struct{}

func (*lost) Error() string   { return "connection reset by peer" }
func (*lost) Timeout() bool   { return true }
func (*lost) Temporary() bool { return true }

func TestTheContractHolds(t *testing.T) {
	tab := newTable(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return storetest.Harness{
			Open:   func() store.Store { return tab.open(t) },
			Reopen: func() store.Store { return tab.open(t) },
			Damage: func(id string) { tab.damage(t, id) }, Overwrite: func(j job.Job) { tab.overwrite(t, j) },
			Delete: func(id string) { tab.remove(t, id) },
			Fill:   func(slot store.Slot, attribute string) { tab.fill(t, slotKey(slot), attribute) },
			Full:   func(j job.Job) { tab.full(t, j) },
			Lag:    time.Minute,
		}
	})
}

func (tab *table) damage(t *testing.T, id string) {
	t.Helper()
	_, err := tab.config.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &tab.name, Key: hotKey(id), UpdateExpression: aws.String("SET #d = :d"),
		ExpressionAttributeNames: map[string]string{"#d": attrData}, ExpressionAttributeValues: item{":d": blob([]byte("\x01{"))},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// full puts a job into one item, as large as DynamoDB allows.
func (tab *table) full(t *testing.T, j job.Job) {
	t.Helper()
	tab.overwrite(t, j)
	tab.fill(t, hotKey(j.ID), "Padding")
}

// fill makes an item as large as DynamoDB allows, by one of its attributes.
func (tab *table) fill(t *testing.T, key item, attribute string) {
	t.Helper()
	size := 0
	for step := maxItem / 2; step > 0; step /= 2 {
		_, err := tab.config.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &tab.name, Key: key, UpdateExpression: aws.String("SET #a = :a"),
			ExpressionAttributeNames: map[string]string{"#a": attribute}, ExpressionAttributeValues: item{":a": text(strings.Repeat("x", size+step))},
		})
		switch {
		case err == nil:
			size += step
		case !isFull(err):
			t.Fatal(err)
		}
	}
	if size == 0 {
		t.Fatal("the item cannot be filled")
	}
}

// remove deletes a job's hot item, as its expiry does.
func (tab *table) remove(t *testing.T, id string) {
	t.Helper()
	_, err := tab.config.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.name, Key: hotKey(id)})
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite stores a job in the place of the one of its id, as a later release would.
func (tab *table) overwrite(t *testing.T, j job.Job) {
	t.Helper()
	_, err := tab.config.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &tab.name, Key: hotKey(j.ID), UpdateExpression: aws.String("SET #d = :d, Needs = :n"),
		ExpressionAttributeNames:  map[string]string{"#d": attrData},
		ExpressionAttributeValues: item{":d": blob(packData(j, nil, nil)), ":n": number(int64(j.Needs))},
	})
	must(t, "overwrite", err)
}

func aJob(id string) job.Job {
	now := domain.Instant(time.Now())
	return job.Job{
		ID: id, Workflow: "order", Definition: strings.Repeat("0a", 16), InputHash: strings.Repeat("0b", 16), Round: 1,
		ProcessState: makegood.JobPending, Desired: makegood.JobProcessed, CreatedAt: now, CompleteBy: now.Add(time.Minute),
		Input: wire.Inline([]byte(`{"sku":"abc"}`)),
		Steps: []job.StepState{{Name: "reserve1", Attempt: 1, Forward: job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: now, Cause: "submit"}}},
	}
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// The SDK tries again when an answer is lost, and finds its own write. Each write must know it (law 11).
func TestAWriteWhoseAnswerWasLostSucceeds(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := aJob("lost-1")
	tab.transport.once("PutItem")
	must(t, "create", s.Create(t.Context(), j))
	if err := s.Create(t.Context(), j); !errors.Is(err, store.ErrExists) {
		t.Errorf("another create of the same: got %v, want %v", err, store.ErrExists)
	}

	loaded, err := s.Load(t.Context(), j.ID)
	must(t, "load", err)
	loaded.LockedBy, loaded.ProcessState = "scheduler:1", makegood.JobProcessing
	tab.transport.once("UpdateItem")
	must(t, "save", s.Save(t.Context(), store.Change{Job: loaded, Seen: loaded.CompleteBy}))
	other := loaded
	other.LockedBy = "scheduler:2"
	if err := s.Save(t.Context(), store.Change{Job: other, Seen: other.CompleteBy}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another's save of the same revision: got %v, want %v", err, store.ErrConflict)
	}

	tab.transport.once("UpdateItem")
	must(t, "park", s.Park(t.Context(), j.ID, loaded.CompleteBy, "why", j.CreatedAt.Add(time.Hour)))
	if err := s.Park(t.Context(), j.ID, loaded.CompleteBy, "why", j.CreatedAt.Add(time.Hour)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another park of the same: got %v, want %v", err, store.ErrConflict)
	}
	got, err := s.Load(t.Context(), j.ID)
	must(t, "load", err)
	if got.Rev != 3 || got.ProcessState != makegood.JobError {
		t.Errorf("got revision %d, %s; want 3, Error", got.Rev, got.ProcessState)
	}
}

// spent adds up what requests have cost.
type spent struct {
	mu  sync.Mutex
	all []cost
}

type cost struct {
	operation           string
	table, index, total float64
}

func (s *spent) add(operation string, c types.ConsumedCapacity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := cost{operation: operation, total: aws.ToFloat64(c.CapacityUnits)}
	if c.Table != nil {
		got.table = aws.ToFloat64(c.Table.CapacityUnits)
	}
	for _, i := range c.GlobalSecondaryIndexes {
		got.index += aws.ToFloat64(i.CapacityUnits)
	}
	s.all = append(s.all, got)
}

// take returns what was spent since the last time.
func (s *spent) take() []cost {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// Two schedulers save at once: the details that the loser has written are nobody's. A store that has
// not loaded the job, nor seen its steps before, finds all of it, and saves it without what the others
// remember.
func TestDetailsSurviveLostRacesAndOtherProcesses(t *testing.T) {
	tab := newTable(t)
	first, second := tab.open(t), tab.open(t)
	j := finished(100)
	j.ID, j.CompleteBy = "details-1", domain.Instant(time.Now().Add(time.Minute))
	must(t, "create", first.Create(t.Context(), j))
	want := loaded(t, second, j.ID)
	same(t, "steps", want.Steps, j.Steps)

	winner, loser := want.Clone(), want.Clone()
	for i := range 20 {
		winner.Steps[i].Undo = job.Activity{State: job.Done, Attempt: 91, Tries: 1, Cause: "won"}
		loser.Steps[i].Undo = job.Activity{State: job.Done, Attempt: 91, Tries: 1, Cause: "lost"}
	}
	must(t, "save", second.Save(t.Context(), store.Change{Job: winner, Seen: winner.CompleteBy}))
	if err := first.Save(t.Context(), store.Change{Job: loser, Seen: loser.CompleteBy}); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("second save: got %v, want %v", err, store.ErrConflict)
	}
	third := tab.open(t)
	got := loaded(t, third, j.ID)
	same(t, "steps after the race", got.Steps, winner.Steps)
	got.LockedBy = "fourth:1"
	must(t, "save by one that has not loaded", tab.open(t).Save(t.Context(), store.Change{Job: got, Seen: got.CompleteBy}))
	same(t, "steps after that", loaded(t, third, j.ID).Steps, winner.Steps)
}

func loaded(t *testing.T, s *Store, id string) job.Job {
	t.Helper()
	j, err := s.Load(t.Context(), id)
	must(t, "load", err)
	return j
}

// A job that lost its parts is damaged, and not unknown: somebody must be told.
func TestAJobWithoutItsPartsIsDamaged(t *testing.T) {
	for name, part := range map[string]func(p packed) item{
		"names":   func(p packed) item { return keyItem(p.names.key, sortShape) },
		"details": func(p packed) item { return partKey("parts-1", p.details[0].key) },
	} {
		t.Run(name, func(t *testing.T) {
			tab := newTable(t)
			j := finished(100)
			j.ID = "parts-1"
			must(t, "create", tab.open(t).Create(t.Context(), j))
			loaded(t, tab.open(t), j.ID)
			gone := part(pack(j, nil, unit))
			_, err := tab.config.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.name, Key: gone})
			must(t, "delete", err)
			if _, err := tab.open(t).Load(t.Context(), j.ID); !errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("got %v, want %v", err, store.ErrDamaged)
			}
		})
	}
}

// Unfinished jobs are found by the index, at a cost that does not grow with the table.
func TestUnfinishedJobsAreListedByTheIndex(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	for i := range 30 {
		j := aJob(fmt.Sprint("listed-", i))
		if j.ProcessState = makegood.JobError; i%3 != 0 {
			j.ProcessState, j.CompleteBy = makegood.JobProcessed, time.Time{}
		}
		must(t, "create", s.Create(t.Context(), j))
	}
	tab.spent.take()
	var ids []string
	for cursor := ""; ; {
		read, err := s.ListJobs(t.Context(), store.Filter{State: makegood.JobError}, cursor, 2)
		must(t, "list", err)
		page, next := read.Jobs, read.Cursor
		if len(page) > 2 {
			t.Fatalf("got %d jobs, the limit is 2", len(page))
		}
		for _, l := range page {
			ids = append(ids, l.ID)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	var want []string
	for i := 0; i < 30; i += 3 {
		want = append(want, fmt.Sprint("listed-", i))
	}
	slices.Sort(ids)
	slices.Sort(want)
	same(t, "jobs in Error", ids, want)
	for _, c := range tab.spent.take() {
		if c.operation == "ListJobs" {
			t.Errorf("got a scan of the table for %v units, want none", c.total)
		}
	}
	for _, bad := range []string{"x", "MCAw", "LTEgMCBhIGI"} {
		if _, err := s.ListJobs(t.Context(), store.Filter{}, bad, 2); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("cursor %q: got %v, want %v", bad, err, store.ErrNotFound)
		}
	}
}

// A save knows its own write by its nonce; a nonce that somebody uses twice must not help a stale save.
func TestAStaleSaveOfTheSameNonceConflicts(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	must(t, "create", s.Create(t.Context(), aJob("nonce-1")))
	j := loaded(t, s, "nonce-1")
	j.LockedBy = "scheduler:1"
	for range 2 {
		must(t, "save", s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}))
		j.Rev++
	}
	j.Rev = 1
	if err := s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want %v", err, store.ErrConflict)
	}
}

// The attributes of the item are a contract with template.yaml and with agents not written in Go.
func TestAnItemHasTheAttributesOfTheDocument(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := aJob("attributes-1")
	must(t, "create", s.Create(t.Context(), j))
	tab.config.Retention = MinRetention
	s = tab.open(t)
	base := []string{"Data", "FailureCount", "PK", "ProcessState", "Rev", "SK", "Workflow"}
	tab.attributes(t, hotKey(j.ID), "after birth", append(base, "BornBy", "CompleteBy", "Shard"))
	must(t, "park", s.Park(t.Context(), j.ID, j.CompleteBy, "why", j.CompleteBy))
	tab.attributes(t, hotKey(j.ID), "parked", append(base, "Attention", "BornBy", "CompleteBy", "Shard", "Parked", "ParkedBy"))
	saved := loaded(t, s, j.ID)
	saved.LockedBy, saved.PausedAt, saved.ProcessState = "scheduler:1", saved.CreatedAt, makegood.JobProcessing
	must(t, "save", s.Save(t.Context(), store.Change{Job: saved, Seen: j.CompleteBy}))
	tab.attributes(t, hotKey(j.ID), "paused", append(base, "Attention", "CompleteBy", "Shard", "LockedBy"))
	saved.Rev, saved.PausedAt, saved.ProcessState, saved.CompleteBy = 3, time.Time{}, makegood.JobProcessed, time.Time{}
	saved.FinishedAt = saved.CreatedAt
	must(t, "save", s.Save(t.Context(), store.Change{Job: saved, Seen: j.CompleteBy}))
	tab.attributes(t, hotKey(j.ID), "out of the index", append(base, "ExpiresAt", "LockedBy"))

	slot, claim := claimOf(j, "agent:1")
	must(t, "claim", s.Claim(t.Context(), slot, claim, claimUntil(j)))
	base = []string{"Attempt", "CompleteBy", "ExpiresAt", "LockedBy", "PK", "SK", "StartedAt"}
	tab.attributes(t, slotKey(slot), "claimed", base)
	closing := store.Closing{Attempt: 1, Until: claimUntil(j), Now: claim.StartedAt, Ends: claim.CompleteBy}
	_, err := s.Close(t.Context(), slot, closing)
	must(t, "close", err)
	tab.attributes(t, slotKey(slot), "unwanted", append(base, "Ends"))
	must(t, "overrule", s.Overrule(t.Context(), slot, 1, "agent:1", claimUntil(j)))
	tab.attributes(t, slotKey(slot), "overruled", []string{"Attempt", "Closed", "ExpiresAt", "PK", "SK"})
}

func (tab *table) attributes(t *testing.T, key item, when string, want []string) {
	t.Helper()
	out, err := tab.config.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tab.name, Key: key, ConsistentRead: aws.Bool(true)})
	must(t, "get", err)
	same(t, "attributes "+when, slices.Sorted(maps.Keys(out.Item)), slices.Sorted(slices.Values(want)))
}

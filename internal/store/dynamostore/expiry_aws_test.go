//go:build aws

package dynamostore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// keeping is a table whose jobs are kept for ten days, and its clock.
func keeping(t *testing.T) (tab *table, s *Store, clock *time.Time) {
	t.Helper()
	tab = newTable(t)
	now := time.UnixMilli(1_800_000_000_000).UTC()
	tab.config.Retention, tab.config.Now = 10*24*time.Hour, func() time.Time { return now }
	return tab, tab.open(t), &now
}

// expires returns the ExpiresAt of all items of a job, by sort key; zero: it has none.
func (tab *table) expires(t *testing.T, job string) map[string]time.Time {
	t.Helper()
	out, err := tab.config.Client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &tab.name, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("PK = :job"), ExpressionAttributeValues: item{":job": text(jobPrefix + job)},
	})
	must(t, "query", err)
	found := map[string]time.Time{}
	for _, it := range out.Items {
		found[asText(it[attrSK])] = time.Time{}
		if _, ok := it[attrExpiresAt]; ok {
			found[asText(it[attrSK])] = time.Unix(asInt(it[attrExpiresAt]), 0).UTC()
		}
	}
	return found
}

// born is a job with a payload, born now.
func born(t *testing.T, s *Store, id string, now time.Time) job.Job {
	t.Helper()
	j := aJob(id)
	j.CreatedAt, j.CompleteBy = now, now.Add(time.Minute)
	j.Input = job.Payload{Ref: "input#1", Bytes: 300}
	must(t, "put payload", s.PutPayload(t.Context(), id, "input#1", bytes.Repeat([]byte("1"), 300)))
	must(t, "create", s.Create(t.Context(), j))
	j.Rev = 1
	return j
}

// next saves a job in a state, with this key.
func next(t *testing.T, s *Store, j job.Job, state makegood.ProcessState, key time.Time, now time.Time) job.Job {
	t.Helper()
	seen := j.CompleteBy
	j.ProcessState, j.CompleteBy, j.FinishedAt = state, key, time.Time{}
	if state.Finished() {
		j.FinishedAt = now
	}
	must(t, "save", s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
	j.Rev++
	return j
}

const day = 24 * time.Hour

// A job expires after its end; when it is wanted again, it does not. Its parts never expire before it.
func TestAJobExpiresWhenItIsAtItsEndAndTold(t *testing.T) {
	tab, s, clock := keeping(t)
	birth := *clock
	j := born(t, s, "a", birth)
	parts := birth.Add(70 * day)
	same(t, "at birth", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": parts})
	j = next(t, s, j, makegood.JobProcessed, birth.Add(time.Minute), birth)
	same(t, "at its end, untold", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": parts})
	j = next(t, s, j, makegood.JobProcessed, time.Time{}, birth)
	same(t, "at its end, told", tab.expires(t, "a"), map[string]time.Time{"job": birth.Add(10 * day), "input#1": parts})
	next(t, s, j, makegood.JobUndoing, birth.Add(time.Minute), birth)
	same(t, "wanted undone", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": parts})
}

// A job that lives long keeps its parts, and gives them its own time at its end.
func TestAJobThatLivesLongKeepsItsParts(t *testing.T) {
	tab, s, clock := keeping(t)
	j := born(t, s, "a", *clock)
	*clock = clock.Add(31 * day)
	j = next(t, s, j, makegood.JobError, clock.Add(day), *clock)
	same(t, "after 31 days", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": {}})
	*clock = clock.Add(100 * day)
	next(t, s, j, makegood.JobUndone, time.Time{}, *clock)
	end := clock.Add(10 * day)
	same(t, "at its end", tab.expires(t, "a"), map[string]time.Time{"job": end, "input#1": end})
}

// The input of a job that starts in a year is there then.
func TestAJobThatStartsLateKeepsItsInput(t *testing.T) {
	tab, s, clock := keeping(t)
	j := aJob("a")
	j.CreatedAt, j.StartAt = *clock, clock.Add(300*day)
	j.CompleteBy, j.Input = j.StartAt, job.Payload{Ref: "input#1", Bytes: 300}
	must(t, "put payload", s.PutPayload(t.Context(), "a", "input#1", []byte("1")))
	must(t, "create", s.Create(t.Context(), j))
	same(t, "ExpiresAt", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": {}})
}

// So it is when its start is moved that far ahead later; and when it is moved back, the input goes with its job.
func TestAJobWhoseStartIsMovedKeepsItsInput(t *testing.T) {
	tab, s, clock := keeping(t)
	j := aJob("a")
	j.CreatedAt, j.StartAt = *clock, clock.Add(day)
	j.CompleteBy, j.Input = j.StartAt, job.Payload{Ref: "input#1", Bytes: 300}
	must(t, "put payload", s.PutPayload(t.Context(), "a", "input#1", []byte("1")))
	must(t, "create", s.Create(t.Context(), j))
	j.Rev = 1
	same(t, "at birth", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": clock.Add(70 * day)})
	j.StartAt = clock.Add(300 * day)
	j = next(t, s, j, makegood.JobPending, j.StartAt, *clock)
	same(t, "moved ahead", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": {}})
	j.StartAt = *clock
	j = next(t, s, j, makegood.JobProcessing, clock.Add(time.Minute), *clock)
	next(t, s, j, makegood.JobProcessed, time.Time{}, *clock)
	end := clock.Add(10 * day)
	same(t, "at its end", tab.expires(t, "a"), map[string]time.Time{"job": end, "input#1": end})
}

// DynamoDB deletes what has expired within days, in no order. The id is free from the moment at which
// the job expires, and what is left of it is not mistaken for parts of the next job of that id.
func TestAnIdIsFreeAgainWhenItsJobHasExpired(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			tab, s, clock := keeping(t)
			j := born(t, s, "a", *clock)
			must(t, "put payload", s.PutPayload(t.Context(), "a", "output#x#1", []byte("old")))
			next(t, s, j, makegood.JobProcessed, time.Time{}, *clock)
			if err := s.Create(t.Context(), j); !errors.Is(err, store.ErrExists) {
				t.Fatalf("create before it has expired: got %v, want %v", err, store.ErrExists)
			}
			*clock = clock.Add(11 * day)
			if deleted {
				_, err := tab.config.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.name, Key: hotKey("a")})
				must(t, "delete", err)
			}
			again := born(t, s, "a", *clock)
			must(t, "put payload", s.PutPayload(t.Context(), "a", "output#x#1", []byte("new")))
			must(t, "put it again", s.PutPayload(t.Context(), "a", "output#x#1", []byte("newer")))
			got, err := s.Payload(t.Context(), "a", "output#x#1")
			must(t, "payload", err)
			if string(got) != "new" {
				t.Errorf("got output %q, want that of the new job, written once", got)
			}
			parts := clock.Add(70 * day)
			same(t, "ExpiresAt", tab.expires(t, "a"), map[string]time.Time{"job": {}, "input#1": parts, "output#x#1": parts})
			same(t, "birth", loaded(t, s, "a").CreatedAt, again.CreatedAt)
		})
	}
}

// Keeping jobs for a time only costs the hot path nothing, with outputs of their own or without.
func TestARetentionCostsNothing(t *testing.T) {
	for _, output := range []int{32, 1024} {
		tab := newTable(t)
		want, _, _ := sum(tab.measured(t, func(id string) { tab.reference(t, 5, output).run(id) }))
		tab.config.Retention = 10 * day
		got, _, list := sum(tab.measured(t, func(id string) { tab.reference(t, 5, output).run("kept-" + id[6:]) }))
		if got != want {
			t.Errorf("outputs of %d bytes: got %v write units, want %v as without:\n%s", output, got, want, strings.Join(list, "\n"))
		}
	}
}

func TestAShortRetentionIsRefused(t *testing.T) {
	if _, err := New(Config{Client: &dynamodb.Client{}, Table: "t", Index: "i", Retention: time.Hour}); err == nil {
		t.Error("got no error, want one")
	}
}

// A page of a history is kept as long as its job, and one that was dropped expires at once, whatever else the job keeps.
func TestPagesExpireWithTheirJobAndDroppedOnesBeforeIt(t *testing.T) {
	tab, s, clock := keeping(t)
	birth := *clock
	j := born(t, s, "a", birth)
	var first, middle string
	for n := range 4 {
		h, page := j.History.With(j.Birth, make([]job.Entry, 100))
		must(t, "put page", s.PutPayload(t.Context(), "a", page.Key, page.Body))
		j.History = h
		j = next(t, s, j, makegood.JobProcessing, clock.Add(time.Minute), *clock)
		switch n {
		case 0:
			first = page.Key
		case 1:
			middle = page.Key
		}
	}
	after, before, _ := j.History.Between()
	must(t, "drop", s.DropPages(t.Context(), "a", after, before))
	if at := tab.expires(t, "a"); at[middle] != *clock || at[first] != birth.Add(70*day) {
		t.Errorf("after the drop: got %v for the first page and %v for the dropped one, want %v and now", at[first], at[middle], birth.Add(70*day))
	}
	dropped := *clock
	*clock = clock.Add(40 * day)
	j = next(t, s, j, makegood.JobProcessing, clock.Add(time.Minute), *clock)
	if at := tab.expires(t, "a"); !at[first].IsZero() || at[middle] != dropped {
		t.Errorf("of a job that lives long: got %v for the first page and %v for the dropped one, want none and %v", at[first], at[middle], dropped)
	}
	next(t, s, j, makegood.JobProcessed, time.Time{}, *clock)
	if at := tab.expires(t, "a"); at[first] != clock.Add(10*day) || at[middle] != dropped {
		t.Errorf("at its end: got %v for the first page and %v for the dropped one, want %v and %v", at[first], at[middle], clock.Add(10*day), dropped)
	}
	entries, gaps := j.History.Read(j.Birth, pagesOf(t, s, "a"))
	if len(entries) != 200 || len(gaps) != 1 || gaps[0] != (job.Gap{From: 101, To: 300, Why: "not kept"}) {
		t.Errorf("got %d entries and %v, want 200 and that 101 to 300 are not kept", len(entries), gaps)
	}
}

func pagesOf(t *testing.T, s *Store, id string) map[string][]byte {
	t.Helper()
	pages, err := s.HistoryPages(t.Context(), id)
	must(t, "pages", err)
	return pages
}

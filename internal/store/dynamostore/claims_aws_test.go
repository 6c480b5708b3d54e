//go:build aws

package dynamostore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// claimOf returns the slot of a job's first step, and a claim on its first attempt.
func claimOf(j job.Job, lockedBy string) (store.Slot, job.Claim) {
	slot := store.Slot{Agent: "shop", Job: j.ID, Birth: "0123456789abcdef", Step: "reserve1"}
	return slot, job.Claim{Attempt: 1, LockedBy: lockedBy, StartedAt: j.CreatedAt, CompleteBy: j.CreatedAt.Add(30 * time.Second)}
}

func claimUntil(j job.Job) time.Time { return j.CreatedAt.Add(limits.MaxClaimDelay) }

// What a later release has put beside a claim, and beside the current definition, is still there after everything that
// this one writes.
func TestWhatALaterReleasePutBesideStays(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := aJob("beside-1")
	slot, claim := claimOf(j, "agent:1")
	must(t, "put definition", s.PutDefinition(t.Context(), "order", "hash-1", []byte("{}")))
	keys := []item{slotKey(slot), keyItem("workflow#order", sortDefinition)}
	must(t, "claim", s.Claim(t.Context(), slot, claim, claimUntil(j)))
	for _, key := range keys {
		_, err := tab.config.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &tab.name, Key: key, UpdateExpression: aws.String("SET Later = :x, StoreFormat = :f"),
			ExpressionAttributeValues: item{":x": text("x"), ":f": number(format + 1)},
		})
		must(t, "write as a later release", err)
	}
	_, err := s.Heartbeat(t.Context(), slot, claim, claimUntil(j))
	must(t, "heartbeat", err)
	_, err = s.Close(t.Context(), slot, store.Closing{Attempt: 1, Until: claimUntil(j), Now: j.CreatedAt, LockedBy: claim.LockedBy})
	must(t, "close", err)
	claim.Attempt = 2
	must(t, "claim of the next attempt", s.Claim(t.Context(), slot, claim, claimUntil(j)))
	must(t, "put another definition", s.PutDefinition(t.Context(), "order", "hash-2", []byte("{}")))
	for _, key := range keys {
		it, err := s.get(t.Context(), "Get", key)
		must(t, "get", err)
		if asText(it["Later"]) != "x" || asInt(it[attrFormat]) != format+1 {
			t.Errorf("got %v, want it with what a later release has put there", it)
		}
	}
	hash, err := s.CurrentDefinition(t.Context(), "order")
	if err != nil || hash != "hash-2" {
		t.Errorf("the current definition: got %s, %v", hash, err)
	}
}

// Without the tests in the old item each of them would be told of a conflict with itself.
func TestALostClaimIsNotTaken(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := aJob("lost-2")
	slot, claim := claimOf(j, "agent:1")
	before := tab.transport.requests.Load()
	tab.transport.once("UpdateItem")
	must(t, "claim", s.Claim(t.Context(), slot, claim, claimUntil(j)))
	if got := tab.transport.requests.Load() - before; got != 2 {
		t.Errorf("got %d requests, want 2: the lost one and its repetition", got)
	}
	other := claim
	other.LockedBy = "agent:2"
	if err := s.Claim(t.Context(), slot, other, claimUntil(j)); !errors.Is(err, store.ErrTaken) {
		t.Errorf("claim by another: got %v, want %v", err, store.ErrTaken)
	}

	claim.CompleteBy = claim.CompleteBy.Add(time.Minute)
	tab.transport.once("UpdateItem")
	until, err := s.Heartbeat(t.Context(), slot, claim, claimUntil(j))
	must(t, "heartbeat", err)
	same(t, "CompleteBy", until, claim.CompleteBy)
}

// Whatever a Close or an Overrule has written, its repetition gives the answer of the write.
func TestALostClosingGivesItsAnswer(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	for name, c := range map[string]struct {
		claimed bool
		after   time.Duration
		by      string
		marks   bool
		want    job.Finding
	}{
		"nobody":  {want: job.FoundNobody},
		"silent":  {claimed: true, after: time.Hour, want: job.FoundSilent},
		"replied": {claimed: true, by: "agent:1", want: job.FoundReplied},
		"marked":  {claimed: true, marks: true, want: job.FoundHeld},
	} {
		t.Run(name, func(t *testing.T) {
			j := aJob("closed-" + name)
			slot, claim := claimOf(j, "agent:1")
			want := job.Found{Finding: c.want, Claim: job.Claim{Attempt: 1}}
			if c.claimed {
				must(t, "claim", s.Claim(t.Context(), slot, claim, claimUntil(j)))
				want.Claim = claim
			}
			closing := store.Closing{Attempt: 1, Until: claimUntil(j), Now: j.CreatedAt.Add(c.after), LockedBy: c.by}
			if c.marks {
				closing.Ends = claim.CompleteBy
			}
			tab.transport.once("UpdateItem")
			for range 2 {
				found, err := s.Close(t.Context(), slot, closing)
				must(t, "close", err)
				same(t, "found", found, want)
			}
		})
	}
	j := aJob("overruled-1")
	slot, claim := claimOf(j, "agent:1")
	must(t, "claim", s.Claim(t.Context(), slot, claim, claimUntil(j)))
	tab.transport.once("UpdateItem")
	must(t, "overrule", s.Overrule(t.Context(), slot, 1, "agent:1", claimUntil(j)))
	if err := s.Overrule(t.Context(), slot, 1, "agent:1", claimUntil(j)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("overrule what is not there any more: got %v, want %v", err, store.ErrConflict)
	}
}

// Between the read of a Close and its write the attempt is claimed, or extended: the Close judges again.
func TestACloseJudgesWhatCameBetween(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	between := func(t *testing.T, do func()) {
		t.Helper()
		tab.transport.mu.Lock()
		defer tab.transport.mu.Unlock()
		tab.transport.before = func(operation string) {
			if operation != "UpdateItem" {
				return
			}
			tab.transport.mu.Lock()
			tab.transport.before = nil
			tab.transport.mu.Unlock()
			do()
		}
	}
	j := aJob("between-1")
	slot, claim := claimOf(j, "agent:1")
	between(t, func() { must(t, "claim", s.Claim(t.Context(), slot, claim, claimUntil(j))) })
	closing := store.Closing{Attempt: 1, Until: claimUntil(j), Now: j.CreatedAt}
	found, err := s.Close(t.Context(), slot, closing)
	must(t, "close", err)
	same(t, "claimed meanwhile", found, job.Found{Finding: job.FoundHeld, Claim: claim})

	closing.Now = claim.CompleteBy
	claim.CompleteBy = claim.CompleteBy.Add(time.Minute)
	between(t, func() {
		_, err := s.Heartbeat(t.Context(), slot, claim, claimUntil(j))
		must(t, "heartbeat", err)
	})
	found, err = s.Close(t.Context(), slot, closing)
	must(t, "close", err)
	same(t, "extended meanwhile", found, job.Found{Finding: job.FoundHeld, Claim: claim})

	newer := claim
	newer.Attempt, newer.LockedBy = 2, "agent:2"
	closing.Now = claim.CompleteBy
	between(t, func() { must(t, "claim", s.Claim(t.Context(), slot, newer, claimUntil(j))) })
	found, err = s.Close(t.Context(), slot, closing)
	must(t, "close", err)
	same(t, "over meanwhile", found, job.Found{Finding: job.FoundOver, Claim: newer})
}

// An agent that puts its claims into the indexes keeps nobody from what is due, nor from what waits for a person.
func TestClaimsInTheIndexesAreLeftAlone(t *testing.T) {
	tab := newTable(t)
	tab.config.Shards = 1
	s := tab.open(t)
	j := aJob("real-1")
	j.ProcessState = makegood.JobError
	must(t, "create", s.Create(t.Context(), j))
	for i := range 3 {
		it := keyItem(claimPrefix+"shop#of nobody "+fmt.Sprint(i), "x#y z")
		it[attrShard], it[attrCompleteBy] = number(0), instant(j.CompleteBy.Add(time.Duration(i-1)*time.Second))
		it[attrAttention] = text(attentionOf(waitsInError, j.CreatedAt.UnixMilli()+int64(i*2-1), j.ID))
		_, err := s.put(t.Context(), "Put", it, "", nil)
		must(t, "put", err)
	}
	due, err := s.Due(t.Context(), 0, j.CompleteBy.Add(time.Minute), store.Entry{}, 2)
	must(t, "due", err)
	same(t, "due", due, []store.Entry{{CompleteBy: j.CompleteBy, Job: j.ID}})
	for _, state := range []makegood.ProcessState{"", makegood.JobError, makegood.JobProcessing} {
		want := []string{j.ID}
		if state == makegood.JobProcessing {
			want = nil
		}
		same(t, "listed "+string(state), all(t, func(cursor string) (store.Page, error) {
			return s.ListJobs(t.Context(), store.Filter{State: state}, cursor, 2)
		}), want)
	}
}

// A table of before claims had items of their own is refused wherever it is met, with what to do.
func TestATableOfBeforeIsRefused(t *testing.T) {
	tab := newTable(t)
	tab.config.Shards = 1
	s := tab.open(t)
	old := keyItem("order-1", sortJob)
	old[attrShard], old[attrCompleteBy] = number(0), number(1)
	old[attrAttention], old[attrProcessState] = text(attentionOf(waitsInError, 1, "order-1")), text(string(makegood.JobError))
	current := keyItem("workflow#order", sortDefinition)
	current[attrDefinition] = text("0a")
	for _, it := range []item{old, current} {
		_, err := s.put(t.Context(), "Put", it, "", nil)
		must(t, "put", err)
	}
	list := func(state makegood.ProcessState) error {
		_, err := s.ListJobs(t.Context(), store.Filter{State: state}, "", 10)
		return err
	}
	_, ofDue := s.Due(t.Context(), 0, time.Now(), store.Entry{}, 10)
	_, ofCurrent := s.CurrentDefinition(t.Context(), "order")
	for what, err := range map[string]error{
		"a sweep": ofDue, "the current definition": ofCurrent,
		"a new definition": s.PutDefinition(t.Context(), "order", "0b", []byte(`{}`)),
		"a list":           list(""), "a list of Error": list(makegood.JobError), "a list of Processing": list(makegood.JobProcessing),
	} {
		if !errors.Is(err, errOfBefore) || !strings.Contains(fmt.Sprint(err), "a table of its own") {
			t.Errorf("%s: got %v, want %v", what, err, errOfBefore)
		}
	}
	must(t, "another workflow", s.PutDefinition(t.Context(), "trip", "0b", []byte(`{}`)))
	must(t, "another workflow again", s.PutDefinition(t.Context(), "trip", "0c", []byte(`{}`)))
}

package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What an item keeps beside data, with attributes of any value.
func FuzzBeside(f *testing.F) {
	f.Add("j", "order", "Processing", "12", "3", "agent:1", "1700000000000")
	f.Fuzz(func(t *testing.T, id, workflow, state, rev, failures, holder, completeBy string) {
		it := item{
			attrPK: text(jobPrefix + id), attrWorkflow: text(workflow), attrProcessState: text(state), attrRev: numeral(rev),
			attrFailureCount: numeral(failures), attrCompleteBy: numeral(completeBy), attrLockedBy: text(holder),
		}
		j := readBeside(it)
		if again := readBeside(withKey(besideItem(j, j.Rev), j)); !reflect.DeepEqual(again, j) {
			t.Errorf("got  %+v\nwant %+v", again, j)
		}
		for name := range it {
			it[name] = text(state)
		}
		readBeside(it)
		if _, err := new(Store).listed(context.Background(), it); err != nil {
			t.Errorf("listed: %v", err)
		}
	})
}

// An agent writes its claims, so whatever is in one is read, judged and, where it is to be written over, replaced by
// what is read again as it was meant.
func FuzzClaimItem(f *testing.F) {
	f.Add("2", "agent:1", "1700000000000", "1700000030000", "", "", "1701000000", "3")
	f.Add("-1", "", "99999999999999999", "-5", "replied", "1e3", "x", "1")
	f.Fuzz(func(t *testing.T, attempt, lockedBy, started, completeBy, closed, ends, expires, asked string) {
		it := item{
			attrAttempt: numeral(attempt), attrLockedBy: text(lockedBy), attrStartedAt: numeral(started), attrCompleteBy: numeral(completeBy),
			attrClosed: text(closed), attrEnds: numeral(ends), attrExpiresAt: numeral(expires),
		}
		seen := slotOf(it)
		if _, err := json.Marshal(seen.Claim); err != nil {
			t.Errorf("a claim that nobody could be shown: %v", err)
		}
		c := store.Closing{Attempt: int(asInt(numeral(asked))), Until: time.UnixMilli(1), Now: time.UnixMilli(2)}
		next, _ := store.Closed(seen, c)
		if next = written(next); next == seen || next.Attempt != c.Attempt {
			return
		}
		after := maps.Clone(it)
		for name, v := range slotValues(next) {
			if after[name] = v; v == nil {
				delete(after, name)
			}
		}
		if again := slotOf(after); again != next {
			t.Errorf("written over:\n got %+v\nwant %+v", again, next)
		}
	})
}

// numeral is a number as DynamoDB gives it, or one that it never would.
func numeral(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// withKey gives an item the key in the index that besideItem leaves out.
func withKey(it item, j job.Job) item {
	if !j.CompleteBy.IsZero() {
		it[attrCompleteBy] = instant(j.CompleteBy)
	}
	return it
}

func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Fuzz(func(t *testing.T, from string) {
		c, err := readPlace(from)
		if err != nil {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("got %v, want %v", err, store.ErrNotFound)
			}
			return
		}
		if again, err := readPlace(c.String()); err != nil || again != c {
			t.Errorf("cursor %q: got %+v, and written and read %+v, %v", from, c, again, err)
		}
	})
}

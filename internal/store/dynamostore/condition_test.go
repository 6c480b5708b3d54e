package dynamostore

import (
	"errors"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// silentOn returns a store whose conditions fail and do not come with their item, as DynamoDB does it at times.
// reads answers the read that follows, and is told what the write would have made.
func silentOn(t *testing.T, reads func(write asked) (int, any)) *Store {
	t.Helper()
	var write asked
	return offline(t, func(a asked) (int, any) {
		if a.Operation != "GetItem" {
			if a.ReturnValuesOnConditionCheckFailure != "ALL_OLD" {
				t.Errorf("%s does not ask for the item", a.Operation)
			}
			write = a
			return 400, refusal("ConditionalCheckFailedException")
		}
		if !a.ConsistentRead || a.Key["PK"] == nil || a.Key["SK"] == nil {
			t.Errorf("the read of %v is consistent: %t, want it consistent", a.Key, a.ConsistentRead)
		}
		return reads(write)
	})
}

// A failed condition that comes without its item says nothing of who wrote it: neither that there is no job,
// nor that somebody else was faster. What stands in the table says it.
func TestAFailedConditionWithoutItsItemIsReadBack(t *testing.T) {
	at := time.UnixMilli(1000)
	creates := func(s *Store) error { return s.Create(t.Context(), job.Job{ID: "a"}) }
	saves := func(s *Store) error {
		return s.Save(t.Context(), store.Change{Job: job.Job{ID: "a", Rev: 1, LockedBy: "me"}})
	}
	parks := func(s *Store) error { return s.Park(t.Context(), "a", at, "why", at.Add(time.Hour)) }
	nothing := func(asked) map[string]any { return nil }
	others := func(asked) map[string]any {
		return map[string]any{"PK": map[string]any{"S": "a"}, "LockedBy": map[string]any{"S": "another"}, "Rev": map[string]any{"N": "2"}}
	}
	for name, c := range map[string]struct {
		write  func(s *Store) error
		stands func(write asked) map[string]any
		want   error
	}{
		"a create of ours": {creates, func(w asked) map[string]any { return w.Item }, nil},
		"another's create": {creates, others, store.ErrExists},
		"a save of ours": {saves, func(w asked) map[string]any {
			v := w.ExpressionAttributeValues
			return map[string]any{"LockedBy": v[":lockedBy"], "Rev": v[":next"], "Data": v[":data"]}
		}, nil},
		"another's save": {saves, others, store.ErrConflict},
		"a park of ours": {parks, func(w asked) map[string]any {
			return map[string]any{"ParkedBy": w.ExpressionAttributeValues[":nonce"]}
		}, nil},
		"a park of a job that moved":        {parks, others, store.ErrConflict},
		"a park of a job that is not there": {parks, nothing, store.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := silentOn(t, func(write asked) (int, any) { return 200, map[string]any{"Item": c.stands(write)} })
			if err := c.write(s); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
		t.Run(name+", which cannot be read", func(t *testing.T) {
			s := silentOn(t, func(asked) (int, any) { return 400, refusal("AccessDeniedException") })
			checkUnknown(t, c.write(s))
		})
	}
}

// The same of a claim: dropped is only a task of which the table says that nobody wants it.
func TestAClaimThatFailedWithoutItsItemIsNotDropped(t *testing.T) {
	claim := job.Claim{Attempt: 1, LockedBy: "me", StartedAt: time.UnixMilli(1), CompleteBy: time.UnixMilli(2)}
	slot := store.Slot{Agent: "shop", Job: "a", Birth: "b", Step: "reserve"}
	for name, ask := range map[string]func(s *Store) error{
		"claim": func(s *Store) error { return s.Claim(t.Context(), slot, claim, time.UnixMilli(9)) },
		"heartbeat": func(s *Store) error {
			_, err := s.Heartbeat(t.Context(), slot, claim, time.UnixMilli(9))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := silentOn(t, func(asked) (int, any) { return 400, refusal("AccessDeniedException") })
			checkUnknown(t, ask(s))
		})
	}
}

// checkUnknown: an error of unknown outcome, after which the event or the task comes again.
func checkUnknown(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("got no error, want one")
	}
	for _, sentinel := range []error{store.ErrConflict, store.ErrNotFound, store.ErrExists, store.ErrTaken, store.ErrWithdrawn, store.ErrDamaged} {
		if errors.Is(err, sentinel) {
			t.Errorf("got %v, which is %v", err, sentinel)
		}
	}
}

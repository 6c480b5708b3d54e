package sqlitestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// After the log was copied it is taken for empty: the next copy is due after as much as the one before it.
func TestTheLogIsCopiedAgainAfterAsMuchAsBefore(t *testing.T) {
	s, _ := openFile(t)
	const limit = 60
	s.LimitLog(limit)
	var writes []int
	for i, since := 0, 1; len(writes) < 4; i, since = i+1, since+1 {
		before := s.Stats().Checkpoints
		check(t, s.PutPayload(t.Context(), "a", fmt.Sprint(i), make([]byte, payloadSize)))
		s.HoldWrites()()
		if s.Stats().Checkpoints > before {
			writes, since = append(writes, since), 0
		}
		if since > limit {
			t.Fatalf("%d writes, and no copy of the log; before: %v", since, writes)
		}
	}
	// Each of a payload of four pages, and a page or three of the table.
	for _, n := range writes[1:] {
		if n < limit/8 || n > limit/4 {
			t.Errorf("got copies after %v writes, want each after %d to %d", writes, limit/8, limit/4)
		}
	}
}

// A log of as many pages as the limit says is copied, one of a page less is not.
func TestTheLogIsCopiedAtItsLimit(t *testing.T) {
	s, _ := openFile(t)
	create(t, s, 1)
	s.CheckpointDue(0, 1) // The pages that were written so far are counted now.
	for pages, want := range map[int]bool{9: false, 10: true, 11: true} {
		if got := s.CheckpointDue(pages, 10); got != want {
			t.Errorf("%d pages of 10: got %v, want %v", pages, got, want)
		}
	}
}

// A heartbeat with no other times writes nothing, and is not flushed; times are whole milliseconds.
func TestAHeartbeatThatSaysNothingNewIsNotFlushed(t *testing.T) {
	s, _ := openFile(t)
	j := create(t, s, 1)
	now := domain.Instant(time.Now())
	until := now.Add(time.Hour)
	claim := job.Claim{Attempt: 1, LockedBy: job.OutsidePrefix + "a", StartedAt: now, CompleteBy: now.Add(time.Minute)}
	check(t, s.Claim(t.Context(), slotOf(j.ID), claim, until))
	extend := func(c job.Claim, until time.Time) int64 {
		before := s.Stats()
		_, err := s.Heartbeat(t.Context(), slotOf(j.ID), c, until)
		check(t, err)
		return since(s, before).Syncs
	}
	longer := claim
	longer.CompleteBy = claim.CompleteBy.Add(time.Second)
	if got := extend(longer, until); got != 1 {
		t.Errorf("a longer claim: got %d flushes, want 1", got)
	}
	longer.CompleteBy, longer.StartedAt = longer.CompleteBy.Add(time.Microsecond), longer.StartedAt.Add(time.Microsecond)
	if got := extend(longer, until.Add(time.Microsecond)); got != 0 {
		t.Errorf("a microsecond more: got %d flushes, want none", got)
	}
}

// A definition that is mended is flushed, and one that is as it should be is not written.
func TestADefinitionThatIsMendedIsFlushed(t *testing.T) {
	s, _ := openFile(t)
	check(t, s.PutDefinition(t.Context(), "order", "h", []byte(`{}`)))
	for i, c := range []struct {
		body   string
		mended bool
		syncs  int64
	}{{`[]`, true, 1}, {`[]`, false, 0}} {
		before := s.Stats()
		mended, err := s.MendDefinition(t.Context(), "h", []byte(c.body))
		if got := since(s, before).Syncs; err != nil || mended != c.mended || got != c.syncs {
			t.Errorf("%d: got mended %v, %v, with %d flushes, want %v with %d", i, mended, err, got, c.mended, c.syncs)
		}
	}
	if body, err := s.Definition(t.Context(), "h"); err != nil || string(body) != `[]` {
		t.Errorf("got %s, %v, want it mended", body, err)
	}
}

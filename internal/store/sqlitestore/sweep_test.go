package sqlitestore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// Claims are deleted when they have expired and not before, a few at each claim, so that the table does not hold much
// more than what has not.
func TestClaimsThatHaveExpiredAreDeletedAndNoOthers(t *testing.T) {
	s, _ := openFile(t)
	start := domain.Instant(time.Now())
	const days, aDay = 60, 200
	most := 0
	for day := range days {
		now := start.Add(time.Duration(day) * 24 * time.Hour)
		until := now.Add(limits.MaxClaimDelay)
		for i := range aDay {
			claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: now, CompleteBy: now.Add(time.Minute)}
			check(t, s.Claim(t.Context(), slotOf(fmt.Sprint("job-", i, "-", day)), claim, until))
		}
		most = max(most, s.ClaimRows(t))
	}
	const kept = int((limits.MaxClaimDelay+limits.KeepClaim)/(24*time.Hour)) * aDay
	if most > 2*kept+2*aDay || s.ClaimRows(t) < kept {
		t.Errorf("got at most %d claims, and %d in the end, want at most %d, and at least the %d that have not expired", most, s.ClaimRows(t), 2*kept+2*aDay, kept)
	}
	for day := days - 16; day < days; day++ {
		now := start.Add(time.Duration(day) * 24 * time.Hour)
		err := s.Claim(t.Context(), slotOf(fmt.Sprint("job-7-", day)), job.Claim{Attempt: 1, LockedBy: "y", StartedAt: now}, now)
		if !errors.Is(err, store.ErrTaken) {
			t.Errorf("claim of what was claimed on day %d: got %v, want %v", day, err, store.ErrTaken)
		}
	}
}

// What claims cost on the disk, which docs tell.
func TestAClaimIsAboutAHundredBytes(t *testing.T) {
	s, path := openFile(t)
	now := domain.Instant(time.Now())
	const many = 5000
	check(t, s.Shut())
	s = open(t, sqlitestore.Options{Path: path})
	before := fileSize(t, path)
	for i := range many {
		claim := job.Claim{Attempt: 1, LockedBy: fmt.Sprintf("agent-1234/%016x", i), StartedAt: now, CompleteBy: now.Add(time.Minute)}
		check(t, s.Claim(t.Context(), slotOf(fmt.Sprintf("order-%06d", i)), claim, now.Add(limits.MaxClaimDelay)))
	}
	check(t, s.Shut())
	each := (fileSize(t, path) - before) / many
	t.Logf("%d bytes a claim", each)
	if each > 200 {
		t.Errorf("got %d bytes a claim, want at most 200", each)
	}
}

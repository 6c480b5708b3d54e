//go:build aws

package dynamostore

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/store"
)

// What docs/cost.md says of a fire: moving a schedule on is a write and two of the index, reading it one unit.
func TestWhatAScheduleCosts(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	at := time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)
	schedule := store.Scheduled{
		Schedule: makegood.Schedule{
			Name: "nightly", Workflow: "report", Cron: "30 2 * * *", Zone: "Europe/Berlin", Input: json.RawMessage(`{"day":"${ .time[:10] }"}`),
			Missed: makegood.MissedOne, Overlap: makegood.OverlapAllow,
		},
		Key: at, Next: at, CreatedAt: at,
	}
	for _, step := range []struct {
		what  string
		do    func() error
		units float64
	}{
		{"create", func() error { return s.PutSchedule(t.Context(), schedule) }, 2},
		{"read", func() error { _, err := s.Schedule(t.Context(), "nightly"); return err }, 1},
		{"fire", func() error {
			schedule.Rev, schedule.Key, schedule.Next = 1, at.Add(24*time.Hour), at.Add(24*time.Hour)
			schedule.LastFire, schedule.LastJob = at, domain.FireID("nightly", at)
			return s.PutSchedule(t.Context(), schedule)
		}, 3},
		{"pause", func() error {
			schedule.Rev, schedule.Key, schedule.PausedAt = 2, time.Time{}, at
			return s.PutSchedule(t.Context(), schedule)
		}, 2},
		{"remove", func() error { return s.RemoveSchedule(t.Context(), "nightly", 3) }, 1},
	} {
		tab.spent.take()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if writes, reads, got := sum(tab.spent.take()); writes+reads != step.units {
			t.Errorf("%s: got %v, want %v units", step.what, got, step.units)
		}
	}
}

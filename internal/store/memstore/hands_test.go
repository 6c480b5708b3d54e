package memstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
)

// What a test does behind the back of the contract changes that alone, and no hook hears of it.
func TestWhatIsDoneBehindTheContractIsSeenByNoHook(t *testing.T) {
	s := memstore.New()
	j := job.Job{ID: "j", Workflow: "order", Reason: "first", Steps: []job.StepState{{Name: "pay"}}}
	check(t, s.Create(t.Context(), j))
	check(t, s.Create(t.Context(), job.Job{ID: "i"}))
	heard := 0
	s.Wrote = func(job.Job, job.Job) { heard++ }
	s.WroteClaim = func(store.Slot, store.ClaimItem, store.ClaimItem) { heard++ }
	slot := store.Slot{Agent: "a", Job: "j", Step: "pay"}
	s.Lay(slot, store.ClaimItem{Claim: job.Claim{Attempt: 2, LockedBy: "l"}})
	if got := s.InSlot(slot); got.Attempt != 2 || got.LockedBy != "l" || got.Bytes != 0 {
		t.Errorf("laid: got %+v", got)
	}
	s.FillClaim(slot)
	if got := s.InSlot(slot); got.Attempt != 2 || got.Bytes != 400<<10 {
		t.Errorf("filled: got %+v", got)
	}
	s.Damage("j")
	if _, err := s.Load(t.Context(), "j"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("damaged: got %v", err)
	}
	if got, ok := s.Stored("j"); !ok || got.Reason != "first" {
		t.Errorf("stored: got %+v, %v", got, ok)
	}
	if _, ok := s.Stored("none"); ok {
		t.Error("a job that is not there is stored")
	}
	j.Reason = "second"
	s.Overwrite(j)
	j.Steps[0].Name = "changed by its caller"
	if got, _ := s.Stored("j"); got.Reason != "second" || got.Steps[0].Name != "pay" {
		t.Errorf("overwritten: got %+v, want it apart from what its caller has", got)
	}
	if _, err := s.Load(t.Context(), "j"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("overwritten: got %v, want it damaged still", err)
	}
	all := s.All()
	if len(all) != 2 || all[0].ID != "i" || all[1].ID != "j" {
		t.Fatalf("got %+v, want both by their ids", all)
	}
	all[1].Steps[0].Name = "changed by who looks"
	if got, _ := s.Stored("j"); got.Steps[0].Name != "pay" {
		t.Errorf("got the step %s, want it apart from who looks", got.Steps[0].Name)
	}
	s.ForgetClaims()
	if got := s.InSlot(slot); got != (store.ClaimItem{}) {
		t.Errorf("forgotten: got %+v", got)
	}
	if heard != 0 {
		t.Errorf("hooks have heard %d writes, want none", heard)
	}
}

// A hook hears of each write of a job and of a claim, as it was and as it is, and of none that changes nothing.
func TestAHookHearsOfEachWrite(t *testing.T) {
	s := memstore.New()
	var heard []string
	s.Wrote = func(before, after job.Job) {
		heard = append(heard, fmt.Sprint(before.Rev, " ", after.Rev, " ", after.ID))
	}
	s.WroteClaim = func(slot store.Slot, before, after store.ClaimItem) {
		heard = append(heard, fmt.Sprint(slot.Step, " ", before.Attempt, " ", after.Attempt))
	}
	now := domain.Instant(time.Now())
	j := job.Job{ID: "j", CompleteBy: now}
	check(t, s.Create(t.Context(), j))
	j.Rev = 1
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: now}))
	check(t, s.Park(t.Context(), "j", now, "why", now.Add(time.Hour)))
	slot, claim := store.Slot{Agent: "a", Job: "j", Step: "pay"}, job.Claim{Attempt: 1, LockedBy: "l", StartedAt: now, CompleteBy: now.Add(time.Minute)}
	for range 2 {
		check(t, s.Claim(t.Context(), slot, claim, now.Add(time.Hour)))
	}
	want := []string{"0 1 j", "1 2 j", "2 3 j", "pay 0 1"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if err := s.Claim(t.Context(), slot, job.Claim{Attempt: 1, LockedBy: "m", StartedAt: now}, now.Add(time.Hour)); !errors.Is(err, store.ErrTaken) || len(heard) != len(want) {
		t.Errorf("a claim that is refused: got %v, and heard %q", err, heard)
	}
}

// Jobs that a hold keeps still come by their births, and by their ids where these are the same; a page has so many at
// most.
func TestHeldJobsComeByTheirBirths(t *testing.T) {
	s := memstore.New()
	now := domain.Instant(time.Now())
	for i, id := range []string{"d", "b", "c", "a", "x"} {
		j := job.Job{ID: id, ProcessState: makegood.JobProcessing, PausedAt: now, HeldBy: "workflow order", CreatedAt: now.Add(-time.Duration(i/2) * time.Hour), CompleteBy: now}
		if id == "x" {
			j.HeldBy = "workflow other"
		}
		check(t, s.Create(t.Context(), j))
	}
	for limit, want := range map[int][]string{0: nil, 1: {"a"}, 3: {"a", "c", "b"}, 4: {"a", "c", "b", "d"}, 9: {"a", "c", "b", "d"}} {
		got, err := s.HeldJobs(t.Context(), "workflow order", limit)
		if n, counted := s.CountHeld(t.Context(), "workflow order", limit); err != nil || counted != nil || !slices.Equal(got, want) || n != len(want) {
			t.Errorf("at most %d: got %v, %v, and counted %d, want %v", limit, got, err, n, want)
		}
	}
}

// A page of due entries is in order, and begins after the entry before it, also where keys are the same.
func TestWhatIsDueComesInPages(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	entries := []store.Entry{
		{CompleteBy: now, Job: "c"},
		{CompleteBy: now.Add(-time.Hour), Job: "b"},
		{CompleteBy: now, Job: "a"},
		{CompleteBy: now.Add(time.Nanosecond), Job: "later"},
		{Job: "never"},
		{CompleteBy: now, Schedule: "s"},
		{CompleteBy: now, Schedule: "r"},
	}
	var got []string
	for after := (store.Entry{}); ; {
		page := memstore.Due(slices.Values(entries), now, after, 2)
		for _, e := range page {
			got = append(got, e.Job+e.Schedule)
			after = e
		}
		if len(page) < 2 {
			break
		}
	}
	if want := []string{"b", "r", "s", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A place is kept by who has seen the one before, and a lease is given up by who has it.
func TestPlacesAndLeasesAreOfThoseWhoHaveThem(t *testing.T) {
	s, now := memstore.New(), time.Now()
	check(t, s.KeepPlace(t.Context(), "p", "", "1"))
	if err := s.KeepPlace(t.Context(), "p", "", "2"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("kept by who has not seen it: got %v", err)
	}
	check(t, s.KeepPlace(t.Context(), "p", "1", "3"))
	if got, err := s.Place(t.Context(), "p"); err != nil || got != "3" {
		t.Errorf("got %q, %v, want 3", got, err)
	}
	check(t, s.TakeLease(t.Context(), "l", "a", now, now.Add(time.Minute)))
	if err := s.TakeLease(t.Context(), "l", "b", now, now.Add(time.Minute)); err == nil {
		t.Error("a lease that another has was taken")
	}
	check(t, s.ReleaseLease(t.Context(), "l", "b"))
	if err := s.TakeLease(t.Context(), "l", "b", now, now.Add(time.Minute)); err == nil {
		t.Error("a lease was given up by who has it not")
	}
	check(t, s.ReleaseLease(t.Context(), "l", "a"))
	check(t, s.TakeLease(t.Context(), "l", "b", now, now.Add(time.Minute)))
}

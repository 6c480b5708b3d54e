package job_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// numbersOf writes the numbers of what is pending; a change that stands for lost ones with how many.
func numbersOf(c job.Changes) string {
	var all []string
	for _, one := range (job.Job{Changes: c}).After(0).Changes {
		text := fmt.Sprint(one.Number)
		if one.Lost > 0 {
			text += fmt.Sprintf("(%d lost)", one.Lost)
		}
		all = append(all, text)
	}
	return fmt.Sprint(all)
}

func TestOfTooManyChangesTheOldestBecomeOneThatSaysHowMany(t *testing.T) {
	var c job.Changes
	for i, want := range []string{"[1]", "[1 2]", "[1 2 3]", "[2(2 lost) 3 4]", "[3(3 lost) 4 5]"} {
		c.Add(job.Change{At: time.UnixMilli(int64(i))}, 3)
		if got := numbersOf(c); got != want {
			t.Fatalf("after %d: got %s, want %s", i+1, got, want)
		}
	}
	if first := c.First(); first != 1 {
		t.Errorf("the first is %d, want 1", first)
	}
	if lost := c.Pending[0]; !lost.At.Equal(time.UnixMilli(2)) {
		t.Errorf("they are said to be lost at %v, want when the last of them was", lost.At)
	}
}

func TestWhatWasPublishedIsForgottenUpToItsNumber(t *testing.T) {
	for upTo, want := range map[int]string{0: "[2(2 lost) 3 4]", 1: "[2(2 lost) 3 4]", 2: "[3 4]", 3: "[4]", 4: "[]", 9: "[]"} {
		c := job.Changes{Tries: 3, At: time.UnixMilli(1)}
		for range 4 {
			c.Add(job.Change{}, 3)
		}
		some := c.Forget(upTo)
		if got := numbersOf(c); got != want || c.Seq != 4 || some != (want != "[2(2 lost) 3 4]") || some != c.At.IsZero() {
			t.Errorf("up to %d: got %s of %d (%v, again at %v), want %s of 4", upTo, got, c.Seq, some, c.At, want)
		}
	}
}

func TestAChangeNamesItsStep(t *testing.T) {
	j := job.Job{ID: "t-1", Steps: []job.StepState{{Name: "charge"}, {Name: "ship"}}}
	for _, c := range []job.Change{
		{To: "Pending"},
		{Of: job.PlaceOfChange(1, false), To: "dispatched"},
		{Of: job.PlaceOfChange(0, true), From: "dispatched"},
		{Of: job.PlaceOfChange(5, true), Gone: "pack", To: "failed"},
	} {
		j.Changes.Add(c, 9)
	}
	var got []string
	for _, c := range j.After(0).Changes {
		got = append(got, fmt.Sprintf("%s %v %s>%s", c.Step, c.Undo, c.From, c.To))
	}
	want := []string{" false >Pending", "ship false notStarted>dispatched", "charge true dispatched>notStarted", "pack true notStarted>failed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

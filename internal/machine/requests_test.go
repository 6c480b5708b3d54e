package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// A job keeps who asked for what was granted last: a request that is refused, or comes twice, leaves it.
func TestAJobKeepsWhoWasGrantedARequestLast(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x", Action: "a"}}}
	now := time.UnixMilli(1_000_000).UTC()
	facts := machine.Facts{Secret: make([]byte, limits.SecretBytes)}
	j, _ := machine.Submit(w, machine.Submission{ID: "j"}, facts, now)
	long := strings.Repeat("x", 2*limits.MaxReasonBytes)
	for _, c := range []struct {
		asked job.Requested
		want  string
	}{
		{job.Requested{Verb: makegood.VerbPause, Request: "1", By: "ada"}, "ada"},
		{job.Requested{Verb: makegood.VerbPause, Request: "1", By: "eve"}, "ada"},
		{job.Requested{Verb: makegood.VerbResubmit, Request: "2", By: "eve"}, "ada"},
		{job.Requested{Verb: makegood.VerbResume, Request: "3"}, ""},
		{job.Requested{Verb: makegood.VerbPause, Request: "4", By: long}, limits.Clip(long)},
	} {
		j, _ = machine.Apply(w, j, c.asked, facts, now)
		if j.RequestedBy != c.want {
			t.Errorf("%+.60v: got it asked by %.20q, want %.20q", c.asked, j.RequestedBy, c.want)
		}
	}
}

// A job remembers the last requests that it was granted, and no more: each of them is a duplicate when it comes again,
// and one that is older is a new one.
func TestAJobRemembersTheLastRequests(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x", Action: "a"}}}
	now := time.UnixMilli(1_000_000).UTC()
	facts := machine.Facts{Secret: make([]byte, limits.SecretBytes)}
	j, _ := machine.Submit(w, machine.Submission{ID: "j", StartAt: now.Add(time.Hour)}, facts, now)
	ask := func(n int) machine.Verdict {
		verb := []makegood.Verb{makegood.VerbPause, makegood.VerbResume}[n%2]
		next, v := machine.Apply(w, j, job.Requested{Verb: verb, Request: fmt.Sprint(n)}, facts, now)
		j = next
		return v
	}
	for n := range limits.MaxRequests + 2 {
		if v := ask(n); v.Kind != machine.Applied {
			t.Fatalf("request %d: got %+v, want it granted", n, v)
		}
	}
	if got := len(j.Requests); got != limits.MaxRequests {
		t.Errorf("got %d requests kept, want %d", got, limits.MaxRequests)
	}
	for n := 2; n < limits.MaxRequests+2; n++ {
		if v := ask(n); v.Kind != machine.Duplicate {
			t.Errorf("request %d again: got %+v, want a duplicate", n, v)
		}
	}
	if v := ask(0); v.Kind != machine.Applied {
		t.Errorf("the first request: got %+v, want it granted, since it is forgotten", v)
	}
}

//go:build aws

package dynamostore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// A request reads a megabyte at most. A list that passes over more than that takes several, and misses
// nothing.
func TestAPageOfAListEndsAtAMegabyte(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	const jobs = 8
	for i := range jobs {
		j := aJob(fmt.Sprint("page-", i))
		must(t, "create", s.Create(t.Context(), j))
		must(t, "payload", s.PutPayload(t.Context(), j.ID, "input", []byte(`"`+strings.Repeat("x", makegood.MaxPayloadBytes-2)+`"`)))
	}
	tab.spent.take()
	seen := map[string]bool{}
	for cursor := ""; ; {
		read, err := s.ListJobs(t.Context(), store.Filter{}, cursor, 100)
		must(t, "list", err)
		page, next := read.Jobs, read.Cursor
		for _, l := range page {
			seen[l.ID] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(seen) != jobs {
		t.Errorf("got %d jobs, want %d", len(seen), jobs)
	}
	if got := len(tab.spent.take()); got < 2 {
		t.Errorf("got %d requests for 2 MB, want at least 2", got)
	}
}

// What no item can hold is an error at once, not something to be tried for ever.
func TestAnItemAboveTheLimitIsRefused(t *testing.T) {
	tab := newTable(t)
	before := tab.transport.requests.Load()
	err := tab.open(t).PutPayload(t.Context(), "large-1", "input", make([]byte, 401<<10))
	if err == nil || tab.transport.requests.Load()-before != 1 {
		t.Errorf("got %v after %d requests, want an error after one", err, tab.transport.requests.Load()-before)
	}
}

// The Supervisor goes on after an entry whose job has left the index meanwhile.
func TestDueGoesOnAfterAnEntryThatIsGone(t *testing.T) {
	tab := newTable(t)
	tab.config.Shards = 1
	s := tab.open(t)
	base := domain.Instant(time.Now())
	for i := range 6 {
		j := aJob(fmt.Sprint("gone-", i))
		j.CompleteBy = base.Add(time.Duration(i) * time.Second)
		must(t, "create", s.Create(t.Context(), j))
	}
	var got []string
	var last store.Entry
	for {
		page, err := s.Due(t.Context(), 0, base.Add(time.Minute), last, 2)
		must(t, "due", err)
		for _, e := range page {
			got, last = append(got, e.Job), e
			j := loaded(t, s, e.Job)
			seen := j.CompleteBy
			j.CompleteBy = time.Time{}
			must(t, "save", s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
		}
		if len(page) < 2 {
			break
		}
	}
	same(t, "due", got, []string{"gone-0", "gone-1", "gone-2", "gone-3", "gone-4", "gone-5"})
}

// Details of more than a megabyte come in pages, too.
func TestDetailsOfMoreThanAMegabyteAreRead(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	seed := seed.Of(t)
	dice := rand.New(rand.NewPCG(seed, 0))
	j := finished(limits.MaxSteps)
	j.ID, j.CompleteBy = "megabytes-1", domain.Instant(time.Now().Add(time.Minute))
	for i := range j.Steps {
		// Far more than a step keeps: its limits are not the store's.
		message := fmt.Sprint(dice.Uint64()) + strings.Repeat("why ", 2000)
		j.Steps[i].Forward.Error = &job.StepError{Message: message}
	}
	must(t, "create", s.Create(t.Context(), j))
	tab.spent.take()
	same(t, "steps", loaded(t, tab.open(t), j.ID).Steps, j.Steps)
	pages := 0
	for _, c := range tab.spent.take() {
		if c.operation == "LoadDetails" {
			pages++
		}
	}
	if pages < 2 {
		t.Errorf("got %d pages of details, want at least 2", pages)
	}
}

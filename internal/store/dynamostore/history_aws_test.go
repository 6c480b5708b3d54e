//go:build aws

package dynamostore

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/job"
)

// A history grows as long as a job fails, and DynamoDB deletes what was dropped within days only. However much lies there,
// dropping what falls into the middle reads no more than is new in it; and what a drop that failed has left, the next takes.
func TestWhatWasDroppedOfALongHistoryIsNotReadAgain(t *testing.T) {
	tab, s, clock := keeping(t)
	read := 0.0
	tab.config.Consumed = func(operation string, c types.ConsumedCapacity) {
		if operation == "HistoryPages" {
			read += *c.CapacityUnits
		}
	}
	s = tab.open(t)
	j := born(t, s, "a", *clock)
	dropped := 0
	for n := range 400 {
		h, page := j.History.With(j.Birth, []job.Entry{{At: *clock, Kind: "failed", Reason: strings.Repeat("x", 1000)}})
		must(t, "put page", s.PutPayload(t.Context(), "a", page.Key, page.Body))
		j.History = h
		after, before, ok := h.Between()
		if !ok || n == 300 || n == 301 {
			continue // Those that failed, too.
		}
		read = 0
		must(t, "drop", s.DropPages(t.Context(), "a", after, before))
		if dropped++; dropped > 2*dropPage && read > 4 {
			t.Fatalf("entry %d: its drop has read %v units, want what is new at most", n, read)
		}
	}
	live := 0
	for key, at := range tab.expires(t, "a") {
		if strings.HasPrefix(key, job.HistoryPrefix) && at.After(*clock) {
			live++
		}
	}
	if live != 200 {
		t.Errorf("%d pages are kept, want the first and the last hundred", live)
	}
	entries, _ := j.History.Read(j.Birth, pages(t, s, "a"))
	if len(entries) != 200 {
		t.Errorf("got %d entries, want 200", len(entries))
	}
}

func pages(t *testing.T, s *Store, id string) map[string][]byte {
	t.Helper()
	all, err := s.HistoryPages(t.Context(), id)
	must(t, "pages", err)
	return all
}

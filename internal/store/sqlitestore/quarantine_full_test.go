package sqlitestore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// There are never more messages than there may be, nor more bytes: the oldest make room, and are counted.
func TestQuarantineIsBoundedInNumberAndBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills the quarantine: make whole")
	}
	s := open(t, sqlitestore.Options{})
	const extra = 5
	for range store.MaxQuarantined + extra {
		check(t, s.Quarantine(t.Context(), "x", time.Now()))
	}
	all, dropped, _ := inQuarantine(t, s)
	if len(all) != store.MaxQuarantined || dropped != extra || all[0].ID != extra+1 {
		t.Errorf("got %d messages from %d on, %d dropped, want %d from %d on, %d dropped", len(all), all[0].ID, dropped, store.MaxQuarantined, extra+1, extra)
	}
	large := strings.Repeat("x", 1<<20)
	for range store.MaxQuarantinedBytes>>20 + 2 {
		check(t, s.Quarantine(t.Context(), large, time.Now()))
	}
	all, _, pages := inQuarantine(t, s)
	bytes := 0
	for _, q := range all {
		bytes += len(q.Body)
	}
	if bytes != store.MaxQuarantinedBytes || len(all) != store.MaxQuarantinedBytes>>20 {
		t.Errorf("got %d messages of %d bytes, want %d bytes", len(all), bytes, store.MaxQuarantinedBytes)
	}
	if most := store.MaxQuarantinedBytes/store.MaxQuarantinePageBytes + 1; pages < most-4 || pages > most {
		t.Errorf("read in %d pages, want each to end with the message that fills it", pages)
	}
	check(t, s.Shut())
}

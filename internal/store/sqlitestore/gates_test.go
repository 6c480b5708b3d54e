package sqlitestore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

func aPermit() job.Permit {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	return job.Permit{Ticket: job.Ticket{Job: "job-1", Birth: "0e0f", Step: "ship", Attempt: 1, Since: at, Rev: 1}, At: at}
}

// An attempt that was let through a gate, or stands before it, is on the disk before the caller is told; a write that
// finds itself made costs no flush.
func TestEachWriteOfAGateIsFlushedOnce(t *testing.T) {
	s, _ := openFile(t)
	free, given := job.Permit{}, aPermit()
	for i, c := range []struct {
		write func() error
		syncs int64
	}{
		{func() error { return s.PutPermit(t.Context(), "shop", free, given) }, 1},
		{func() error { return s.PutPermit(t.Context(), "shop", free, given) }, 0},
		{func() error { return s.Enter(t.Context(), "shop", given.Ticket) }, 1},
		{func() error { return s.Leave(t.Context(), "shop", given.Ticket) }, 1},
		{func() error { return s.PutPermit(t.Context(), "shop", given, free) }, 1},
		{func() error { return s.PutPermit(t.Context(), "shop", given, free) }, 0},
	} {
		before := s.Stats()
		check(t, c.write())
		same(t, fmt.Sprint("counts of write ", i), since(s, before), sqlitestore.Stats{Groups: 1, Durable: c.syncs, Syncs: c.syncs})
	}
}

func TestADamagedGateIsNotTakenForAnEmptyOne(t *testing.T) {
	for _, table := range []string{"permits", "tickets"} {
		s, path := openFile(t)
		check(t, s.PutPermit(t.Context(), "shop", job.Permit{}, aPermit()))
		check(t, s.Enter(t.Context(), "shop", aPermit().Ticket))
		execSQL(t, path, `UPDATE `+table+` SET data = x'7b'`)
		if g, err := s.Gate(t.Context(), "shop", 5); !errors.Is(err, store.ErrDamaged) || len(g.Permits)+len(g.Waiting) > 0 {
			t.Errorf("%s: got %v, %v, want %v", table, g, err, store.ErrDamaged)
		}
		if err := s.PutPermit(t.Context(), "shop", aPermit(), job.Permit{}); (table == "permits") != errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: free: got %v", table, err)
		}
	}
}

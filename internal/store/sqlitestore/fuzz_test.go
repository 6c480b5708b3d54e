package sqlitestore

import (
	"errors"
	"reflect"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// What a row keeps unpacked beside a job. The job itself is read by package wire, which has its own.
func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"reserve":1}`), []byte(`{"reserve":{"attempt":1}}`))
	f.Fuzz(func(t *testing.T, open, slots []byte) {
		var job makegood.Job
		if err := decodeHead(&job, 1, open, slots); err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("got %v, want %v", err, store.ErrDamaged)
			}
			return
		}
		openAgain, err1 := encodeMap(job.Open)
		slotsAgain, err2 := encodeMap(job.Claims.Slots)
		if err1 != nil || err2 != nil {
			t.Fatalf("read, but cannot be written: %v, %v", err1, err2)
		}
		var again makegood.Job
		err := decodeHead(&again, 1, openAgain, slotsAgain)
		if err != nil || len(again.Open) != len(job.Open) || len(again.Claims.Slots) != len(job.Claims.Slots) {
			t.Errorf("got %+v, %v, want %+v", again, err, job)
		}
		for step, attempt := range job.Open {
			if again.Open[step] != attempt {
				t.Errorf("open %q: got %d, want %d", step, again.Open[step], attempt)
			}
		}
		for step, slot := range job.Claims.Slots {
			if got := again.Claims.Slots[step]; got.Attempt != slot.Attempt || got.LockedBy != slot.LockedBy || !got.CompleteBy.Equal(slot.CompleteBy) {
				t.Errorf("claim on %q: got %+v, want %+v", step, got, slot)
			}
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add("12", "")
	f.Add("1700000000000/j", "Error")
	f.Fuzz(func(t *testing.T, cursor, state string) {
		p := page{filter: store.Filter{State: makegood.ProcessState(state)}, limit: 1}
		if !p.begin(cursor) || cursor == "" {
			return
		}
		if p.before < 1 && !p.byKey() {
			t.Errorf("cursor %q begins at row %d", cursor, p.before)
		}
		again := p
		if !again.begin(cursor) || !reflect.DeepEqual(again, p) {
			t.Errorf("cursor %q begins elsewhere when read again: %+v, %+v", cursor, p, again)
		}
	})
}

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Holds keeps which agents and workflows are paused as a whole: one item for all, changed only by conditional writes on
// its Rev. While a hold is being released, its key is in the same index as those of the jobs.
type Holds interface {
	// Holds reads them, strongly consistent if sure, else perhaps a little old. The zero value: there never were any.
	// ErrDamaged.
	Holds(ctx context.Context, sure bool) (Held, error)
	// PutHolds stores h as Rev h.Rev+1 in one durable write, if h.Rev is the Rev stored; 0: if there are none. ErrConflict.
	PutHolds(ctx context.Context, h Held) error
	// HeldJobs returns the ids of at most limit jobs that stand still because of a hold (job.Hold.String), those of one
	// shard of an index oldest first: as the returned jobs go on, the others come. It is a hint, as Index is.
	HeldJobs(ctx context.Context, hold string, limit int) ([]string, error)
	// CountHeld counts the jobs that stand still because of a hold, and stops at most.
	CountHeld(ctx context.Context, hold string, most int) (int, error)
}

// Held is the item of all holds.
type Held struct {
	// Rev counts the writes; the first is 1.
	Rev   int64
	Holds job.Holds
}

// Key is when the Supervisor must look: when the next jobs of one that is being released go on, or the gate of a limit
// is looked at. Zero: there is none of these.
func (h Held) Key() time.Time {
	var key time.Time
	for _, one := range h.Holds {
		if !one.Next.IsZero() && (key.IsZero() || one.Next.Before(key)) {
			key = one.Next
		}
	}
	return domain.Instant(key)
}

// PutOver returns what a PutHolds leaves of stored, which is the zero value where there is none.
func (h Held) PutOver(stored Held) (Held, error) {
	if stored.Rev != h.Rev {
		return stored, ErrConflict
	}
	h.Rev++
	h.Holds = slices.Clone(h.Holds)
	return h, nil
}

// HeldName returns the hold for which a job stands still (job.Hold.String); empty: no hold holds it.
func HeldName(j job.Job) string {
	if !j.Paused() || j.ProcessState.Finished() || j.ProcessState == makegood.JobError {
		return ""
	}
	return j.HeldBy
}

// EncodeHolds writes the holds, without their Rev and their Key. Fields of a hold that a later release has stored, and
// this one does not know, are written back.
func EncodeHolds(h Held) []byte {
	all := make([]map[string]json.RawMessage, len(h.Holds))
	for i, one := range h.Holds {
		all[i] = map[string]json.RawMessage{}
		if one.Kept != "" {
			mustJSON(json.Unmarshal([]byte(one.Kept), &all[i]))
		}
		body, err := json.Marshal(one)
		mustJSON(err)
		mustJSON(json.Unmarshal(body, &all[i]))
	}
	body, err := json.Marshal(all)
	mustJSON(err)
	return body
}

// mustJSON panics: values checked at the door are always JSON.
func mustJSON(err error) {
	if err != nil {
		panic(err)
	}
}

// DecodeHolds reads what EncodeHolds writes. ErrDamaged.
func DecodeHolds(body []byte) (job.Holds, error) {
	var each []json.RawMessage
	if err := json.Unmarshal(body, &each); err != nil {
		return nil, fmt.Errorf("holds: %w: %w", ErrDamaged, err)
	}
	var all job.Holds
	for _, body := range each {
		var one job.Hold
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &one); err != nil {
			return nil, fmt.Errorf("holds: %w: %w", ErrDamaged, err)
		}
		mustJSON(json.Unmarshal(body, &fields))
		for _, name := range holdFields {
			delete(fields, name)
		}
		if len(fields) > 0 {
			kept, err := json.Marshal(fields)
			mustJSON(err)
			one.Kept = string(kept)
		}
		all = append(all, one)
	}
	return all, nil
}

// holdFields are the names of all fields of a hold.
var holdFields = []string{"kind", "name", "since", "by", "reason", "releasedAt", "releasedBy", "next", "steps", "resumed", "most", "rate", "per", "burst", "key", "until", "tripped", "probe", "probes", "asked"}

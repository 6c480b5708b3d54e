package jobformat_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// What waits to be published is in the item at each save, which is paid for by the kilobyte: so of a step that went well, and the
// next that began, it is nine bytes.
func TestChangesThatGoWellAreFewBytes(t *testing.T) {
	j := corpusJobs()["done"]
	bare := len(jobformat.Encode(j, jobformat.Apart{}))
	for _, test := range []struct {
		pending []job.Change
		bytes   int
	}{
		{nil, 5},
		{heard(j).Changes.Pending[2:], 9},
		{heard(j).Changes.Pending[:2], 11},
		{heard(j).Changes.Pending, 17},
	} {
		j.Changes = job.Changes{Seq: 7, Rev: 4, Pending: test.pending}
		data := jobformat.Encode(j, jobformat.Apart{})
		if got := len(data) - bare; got > test.bytes {
			t.Errorf("%d pending: got %d bytes more, want %d at most", len(test.pending), got, test.bytes)
		}
		back, err := jobformat.DecodeWhole(data)
		must(t, "decode", err)
		same(t, "read back", back.Changes, j.Changes)
	}
}

// Whatever there is to say of one change, all of them are read back as they were.
func TestChangesAreReadAsTheyWereWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(seed.Of(t), 0))
	j := corpusJobs()["done"]
	for range 20_000 {
		at := j.CreatedAt
		j.Changes = job.Changes{Seq: 64 + r.IntN(1000), Rev: int64(r.IntN(1000))}
		if r.IntN(10) == 0 {
			j.Changes.Tries, j.Changes.At = 1+r.IntN(5), at.Add(time.Hour)
		}
		for range r.IntN(5) {
			at = at.Add(time.Duration(r.IntN(3)*(r.IntN(100_000)-100)) * time.Millisecond)
			one := job.Change{Of: job.ChangePlace(r.IntN(500)), Attempt: 1, Round: 1, At: at}
			one.From, one.To = job.ChangeState(job.Dispatched), job.ChangeState(job.Waiting)
			if one.Of == 0 {
				one.Attempt, one.From, one.To = 0, "", job.ChangeState(makegood.JobCancelled)
			}
			switch r.IntN(20) {
			case 0:
				one.Attempt += 3
			case 1:
				one.Round = 2
			case 2:
				one.Paused = true
			case 3:
				one.Outcome, one.Kind, one.Reason = makegood.EntryKind("failed"), "Timeout", "no answer"
			case 4:
				one.Lost = 12
			case 5:
				one.Gone = "charge"
			case 6:
				one.To = "newer-15"
			case 7:
				one.To = "newer-16"
			case 8:
				if one.Of > 0 {
					one.From = job.ChangeState(makegood.StepQueued)
				}
			}
			j.Changes.Pending = append(j.Changes.Pending, one)
		}
		back, err := jobformat.DecodeWhole(jobformat.Encode(j, jobformat.Apart{}))
		must(t, "decode", err)
		same(t, "read back", back.Changes, j.Changes)
	}
}

// A number is read for ever as the state that it had when it was written: behind queued come states that are not there yet.
func TestAStateOfAChangeKeepsItsNumber(t *testing.T) {
	good := jobformat.Encode(corpusJobs()["done"], jobformat.Apart{})
	for n, want := range map[uint64]job.ChangeState{8: job.ChangeState(job.Waiting), 9: job.ChangeState(makegood.StepQueued), 10: "newer-10"} {
		packed := []byte{1, 1, 2, byte(n<<1 | 1)}
		j, err := jobformat.DecodeWhole(protowire.AppendBytes(protowire.AppendTag(slices.Clip(good), 85, protowire.BytesType), packed))
		must(t, "decode", err)
		if len(j.Changes.Pending) != 1 || j.Changes.Pending[0].To != want {
			t.Errorf("state %d: got %+v, want %s", n, j.Changes.Pending, want)
		}
	}
}

// Numbers that cannot be are damage, and no panic.
func TestChangesThatCannotBeAreDamage(t *testing.T) {
	good := jobformat.Encode(corpusJobs()["done"], jobformat.Apart{})
	for name, numbers := range map[string][]uint64{
		"no rev":                    {7},
		"a change without states":   {7, 4, 2},
		"a change without its time": {7, 4, 2, 1 << 5},
		"a place below none":        {7, 4, protowire.EncodeZigZag(-1), 1<<5 | 1},
		"a time out of all years":   {7, 4, 2, 1 << 5, protowire.EncodeZigZag(1 << 60)},
	} {
		t.Run(name, func(t *testing.T) {
			var packed []byte
			for _, n := range numbers {
				packed = protowire.AppendVarint(packed, n)
			}
			data := protowire.AppendBytes(protowire.AppendTag(slices.Clip(good), 85, protowire.BytesType), packed)
			if _, err := jobformat.DecodeWhole(data); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("got %v, want damage", err)
			}
		})
	}
}

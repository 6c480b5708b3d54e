package wire

import (
	"encoding/json"

	"github.com/makegood-dev/makegood/internal/job"
)

// maxSpent bounds each number of what a reply says that it has cost, so that sums of them stay numbers: 30 days of a function
// of 10 GB are less, in its smallest unit.
const maxSpent = 1 << 45

// spentOf returns what a reply says that its attempt has cost; nil: nothing that could be read, or the message is no reply. It is
// taken as it is said, in whole numbers and within bounds: nothing rests on it, and no reply is lost for it.
func spentOf(m event) *job.Spent {
	switch m.Type {
	case typeStepSucceeded, typeStepFailed, typeStepWaiting, typeStepHeld:
	default:
		return nil
	}
	var said *struct{ Writes, HalfReads, Requests, Invocations, GBMicros float64 }
	if len(m.Spent) == 0 || json.Unmarshal(m.Spent, &said) != nil || said == nil {
		return nil
	}
	return &job.Spent{
		Writes: bounded(said.Writes), HalfReads: bounded(said.HalfReads), Requests: bounded(said.Requests),
		Invocations: bounded(said.Invocations), GBMicros: bounded(said.GBMicros),
	}
}

func bounded(n float64) int64 { return int64(min(max(0, n), maxSpent)) }

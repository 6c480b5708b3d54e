package wire

import (
	"encoding/json"

	"github.com/makegood-dev/makegood/internal/job"
)

// maxSpent bounds each number of the usage that a reply reports, so that sums stay numbers: 30 days of a function of 10
// GB are less, in its smallest unit.
const maxSpent = 1 << 45

// spentOf returns the usage that a reply reports for its attempt; nil: it cannot be read, or the message is no reply.
// It is taken as reported, in whole numbers and within bounds: no decision rests on it, and no reply is lost for it.
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

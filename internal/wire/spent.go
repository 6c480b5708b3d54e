package wire

import "github.com/makegood-dev/makegood/internal/job"

// maxSpent bounds each number of what a reply says that it has cost, so that sums of them stay numbers: 30 days of a function
// of 10 GB are less, in its smallest unit.
const maxSpent = 1 << 45

// spentOf returns what a reply says that its attempt has cost; nil: nothing, or the message is no reply. It is taken as it
// is said, within bounds: nothing rests on it.
func spentOf(m event) *job.Spent {
	switch m.Type {
	case typeStepSucceeded, typeStepFailed, typeStepWaiting, typeStepHeld:
	default:
		return nil
	}
	if m.Spent == nil {
		return nil
	}
	s := *m.Spent
	for _, n := range []*int64{&s.Writes, &s.HalfReads, &s.Requests, &s.Invocations, &s.GBMicros} {
		*n = min(max(0, *n), maxSpent)
	}
	return &s
}

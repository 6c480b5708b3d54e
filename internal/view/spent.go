package view

import (
	"math"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Spent returns the usage of a job, in whole units; nil: it was not counted.
func Spent(s job.Spent) *makegood.Spent {
	if !s.Counted() {
		return nil
	}
	return &makegood.Spent{
		WriteUnits: float64(s.Writes), ReadUnits: float64(s.HalfReads) / 2,
		Requests: parts(s.Requests), Invocations: parts(s.Invocations), GBSeconds: float64(s.GBMicros) / 1e6,
	}
}

// parts converts a count of parts, to six digits: further digits of a periodic share are meaningless.
func parts(n int64) float64 { return math.Round(float64(n)/job.SpentParts*1e6) / 1e6 }

package view

import (
	"math"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Spent returns what a job has cost, in whole units; nil: nothing was counted.
func Spent(s job.Spent) *makegood.Spent {
	if !s.Counted() {
		return nil
	}
	return &makegood.Spent{
		WriteUnits: float64(s.Writes), ReadUnits: float64(s.HalfReads) / 2,
		Requests: parts(s.Requests), Invocations: parts(s.Invocations), GBSeconds: float64(s.GBMicros) / 1e6,
	}
}

// parts returns what is counted in parts, to six digits: the last of a share that never ends are nobody's.
func parts(n int64) float64 { return math.Round(float64(n)/job.SpentParts*1e6) / 1e6 }

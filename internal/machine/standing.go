package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// The faulty ways in which a job stands still. No save of the engine leaves one; a manual edit of the store, a
// partial restore or a bug does.
const (
	nothingUnderWay = "unfinished, without an attempt under way or a wait"
	keyTooLate      = "unfinished, and its key is later than its next deadline"
)

// Standing names the faulty way in which a job stands still at now, though every step may be consistent: it should
// move on and no event would move it, or its key is so late that a sweep finds it only after a time is due. Empty: it
// stands correctly. It does not check for a missing key, which can be seen without deciding.
func Standing(w makegood.Workflow, j job.Job, now time.Time) string {
	next := j.Clone()
	return newTurn(w, &next, Facts{}, "", now).standing()
}

func (t *turn) standing() string {
	switch {
	case t.job.CompleteBy.IsZero():
		return ""
	case t.going() && !t.underWay():
		return nothingUnderWay
	case t.due().Before(t.job.CompleteBy) && !(t.job.ProcessState.Finished() && t.job.Told()):
		return keyTooLate
	default:
		return ""
	}
}

// underWay reports whether a moving job has an open attempt or a wait. Its timeout does not count: that only ends it.
func (t *turn) underWay() bool {
	if t.forwards() && t.early() || !t.job.NextRoundAt.IsZero() {
		return true
	}
	for i := range t.job.Steps {
		for _, at := range sides(i) {
			switch t.activity(at).State {
			case job.Dispatched, job.Backoff, job.Waiting:
				return true
			}
		}
	}
	return false
}

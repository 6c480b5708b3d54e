package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// The ways in which a job stands still that should not. No save of ours leaves one so; a hand in the store, a restore in
// parts or a bug does.
const (
	nothingUnderWay = "unfinished, and nothing is under way or waited for"
	keyTooLate      = "unfinished, and its key is later than what is due"
)

// Standing says in which way a job stands still at now, though every step of it may be consistent: it is to be moved on
// and nothing would, or its key is so late that a sweep finds it only after something is due. Empty: it does not. A job
// without a key is not its affair: that can be seen without deciding.
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

// underWay reports whether something of a job that is to be moved on is out or waited for. Its timeout is not: that only
// ends it.
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

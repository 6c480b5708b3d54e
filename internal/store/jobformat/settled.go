package jobformat

import "github.com/makegood-dev/makegood/internal/job"

// settled writes that an activity was settled by hand. With its reason that may be long, so it moves with the details.
func (w *writer) settled(a *job.Activity, epoch int64) {
	if a.Settled == nil {
		return
	}
	var s writer
	s.int(settledRound, a.Settled.Round)
	s.text(settledAnswer, a.Settled.Answer)
	s.text(settledBy, a.Settled.By)
	s.text(settledReason, a.Settled.Reason)
	s.time(settledAt, a.Settled.At, epoch)
	s.kept(a.Settled.Kept)
	w.message(actSettled, s.out)
}

// settled reads what writer.settled wrote.
func (r *activityReader) settled(f *field, epoch int64) bool {
	if f.num != actSettled {
		return false
	}
	var s job.Settlement
	s.Kept = f.message(func(f *field) bool {
		switch f.num {
		case settledRound:
			s.Round = f.int()
		case settledAnswer:
			s.Answer = f.text()
		case settledBy:
			s.By = f.text()
		case settledReason:
			s.Reason = f.text()
		case settledAt:
			s.At = f.time(epoch)
		default:
			return false
		}
		return true
	})
	r.Settled = &s
	return true
}

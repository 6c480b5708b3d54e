package jobformat

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"

	"google.golang.org/protobuf/encoding/protowire"
)

// encodeChanges writes what a job keeps of its transitions; nothing, where nobody hears of them. A change of a step that
// simply went well takes about ten bytes.
func encodeChanges(c job.Changes, epoch int64) []byte {
	var w writer
	w.int(changesSeq, c.Seq)
	w.int(changesRev, int(c.Rev))
	w.int(changesTries, c.Tries)
	w.time(changesAt, c.At, epoch)
	for _, one := range c.Pending {
		w.message(changesPending, encodeChange(one, epoch))
		epoch = epochOf(one.At)
	}
	w.kept(c.Kept)
	return w.out
}

func encodeChange(c job.Change, epoch int64) []byte {
	var w writer
	w.int(changeOf, int(c.Of))
	w.text(changeGone, c.Gone)
	w.uint(changeFrom, numberOf(c.From, changeStates(c.Of)))
	w.uint(changeTo, numberOf(c.To, changeStates(c.Of)))
	w.beyond(changeAttempt, c.Attempt, firstAttempt(c.Of))
	w.beyond(changeRound, c.Round, 1)
	w.flag(changePaused, c.Paused)
	w.beyond(changeAt, int(epochOf(c.At)), int(epoch))
	w.text(changeOutcome, string(c.Outcome))
	w.text(changeKind, c.Kind)
	w.text(changeReason, c.Reason)
	w.int(changeLost, c.Lost)
	w.kept(c.Kept)
	return w.out
}

// beyond writes how far a number is from what it nearly always is; nothing, where it is that.
func (w *writer) beyond(num protowire.Number, n, usual int) {
	if n != usual {
		w.signed(num, int64(n-usual))
	}
}

// firstAttempt is what the attempt of most changes is: a job has none.
func firstAttempt(of job.ChangePlace) int { return min(int(of), 1) }

// changeStates are the states of a job, or of a step, as they are numbered.
func changeStates(of job.ChangePlace) (all []job.ChangeState) {
	if of == 0 {
		for _, s := range processStates() {
			all = append(all, job.ChangeState(s))
		}
		return all
	}
	for _, s := range activityStates() {
		all = append(all, job.ChangeState(s))
	}
	return all
}

func readChanges(f *field, epoch int64) (c job.Changes) {
	c.Kept = f.message(func(f *field) bool {
		switch f.num {
		case changesSeq:
			c.Seq = f.int()
		case changesRev:
			c.Rev = int64(f.uint())
		case changesTries:
			c.Tries = f.int()
		case changesAt:
			c.At = f.time(epoch)
		case changesPending:
			one := readChange(f, epoch)
			c.Pending = append(c.Pending, one)
			epoch = epochOf(one.At)
		default:
			return false
		}
		return true
	})
	return c
}

// readChange reads a change. The states of one are numbered by what it is of, which may come after them.
func readChange(f *field, epoch int64) (c job.Change) {
	var from, to, attempt, round, at uint64
	c.Kept = f.message(func(f *field) bool {
		switch f.num {
		case changeOf:
			c.Of = job.ChangePlace(f.int())
		case changeGone:
			c.Gone = f.text()
		case changeFrom:
			from = f.uint()
		case changeTo:
			to = f.uint()
		case changeAttempt:
			attempt = f.uint()
		case changeRound:
			round = f.uint()
		case changePaused:
			c.Paused = f.flag()
		case changeAt:
			at = f.uint()
		case changeOutcome:
			c.Outcome = makegood.EntryKind(f.text())
		case changeKind:
			c.Kind = f.text()
		case changeReason:
			c.Reason = f.text()
		case changeLost:
			c.Lost = f.int()
		default:
			return false
		}
		return true
	})
	c.From, c.To = stateOf(from, changeStates(c.Of)), stateOf(to, changeStates(c.Of))
	c.Attempt = int(protowire.DecodeZigZag(attempt)) + firstAttempt(c.Of)
	c.Round = int(protowire.DecodeZigZag(round)) + 1
	t, ok := moment(epoch, protowire.DecodeZigZag(at))
	f.bad = f.bad || !ok || c.Of < 0
	c.At = t
	return c
}

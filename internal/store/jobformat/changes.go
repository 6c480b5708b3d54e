package jobformat

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"

	"google.golang.org/protobuf/encoding/protowire"
)

// changes writes what a job keeps of its transitions, if its changes are published. While all goes well that is a row
// of numbers: nine bytes of a save that ends a step and begins the next. The item is paid for by the kilobyte, and a
// change that waits to be published is in it from one save to the next.
func (e *encoder) changes(c job.Changes) {
	if numbers, ok := brief(c, e.latest); ok {
		e.bytes(jobChangesBrief, numbers)
		return
	}
	e.message(jobChanges, encodeChanges(c, e.epoch))
}

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

// The second number of a change that is written as numbers: the state it comes from, the one it comes to, and whether
// it was at the same time as the one before.
const (
	briefFrom  = 5
	briefTo    = 1
	briefState = 1<<(briefFrom-briefTo) - 1
	briefSame  = 1
)

// brief returns changes as numbers side by side: seq, rev, then of each pending change its place, counted from the one
// before; its states; and its time, unless it is that of the one before. The first is counted from latest. ok is false
// where there is more to say.
func brief(c job.Changes, latest int64) (out []byte, ok bool) {
	if c.Seq == 0 && c.Rev == 0 && len(c.Pending) == 0 && c.Tries == 0 && c.At.IsZero() && c.Kept == "" {
		return nil, true
	}
	if c.Tries != 0 || !c.At.IsZero() || c.Kept != "" {
		return nil, false
	}
	out = protowire.AppendVarint(protowire.AppendVarint(nil, uint64(c.Seq)), uint64(c.Rev))
	var place job.ChangePlace
	for _, one := range c.Pending {
		from, to := numberOf(one.From, changeStates(one.Of)), numberOf(one.To, changeStates(one.Of))
		if !plain(one) || max(from, to) > briefState {
			return nil, false
		}
		states, at := from<<briefFrom|to<<briefTo, epochOf(one.At)
		if at == latest {
			states |= briefSame
		}
		out = protowire.AppendVarint(out, protowire.EncodeZigZag(int64(one.Of-place)))
		out = protowire.AppendVarint(out, states)
		if at != latest {
			out = protowire.AppendVarint(out, protowire.EncodeZigZag(at-latest))
		}
		place, latest = one.Of, at
	}
	return out, true
}

// plain reports whether a change is only a place, two states and a time: a first attempt in the first round.
func plain(c job.Change) bool {
	return c == job.Change{Of: c.Of, From: c.From, To: c.To, At: c.At, Attempt: firstAttempt(c.Of), Round: 1}
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

// beyond writes how far a number is from its usual value; it omits a difference of zero.
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

// later is the later of a time and one that a job may have.
func later(latest int64, t time.Time) int64 {
	if t.IsZero() {
		return latest
	}
	return max(latest, t.UnixMilli())
}

// briefly reads the changes that brief wrote, once it is known what their times are counted from.
func (d *decoder) briefly() error {
	if d.changes == nil {
		return nil
	}
	latest := later(d.epoch, d.Job.FinishedAt)
	for i := range d.Job.Steps {
		latest = later(later(latest, d.Job.Steps[i].Forward.At), d.Job.Steps[i].Undo.At)
	}
	in := column{in: d.changes}
	c := job.Changes{Seq: in.int(), Rev: int64(in.next())}
	var place job.ChangePlace
	for len(in.in) > 0 {
		place += job.ChangePlace(protowire.DecodeZigZag(in.next()))
		states := in.next()
		if states&briefSame == 0 {
			latest += protowire.DecodeZigZag(in.next())
		}
		at, ok := moment(latest, 0)
		if !ok || place < 0 {
			return damaged("a change of %d at %d", place, latest)
		}
		known := changeStates(place)
		c.Pending = append(c.Pending, job.Change{
			Of: place, From: stateOf(states>>briefFrom, known), To: stateOf(states>>briefTo&briefState, known),
			At: at, Attempt: firstAttempt(place), Round: 1,
		})
	}
	d.Job.Changes = c
	return in.err
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

// readChange reads a change. Its states are numbered by the kind of its subject, which may come after them.
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

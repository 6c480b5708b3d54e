package jobformat

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"

	"google.golang.org/protobuf/encoding/protowire"
)

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
// where there is more to say. While all goes well they are nine bytes of a save that ends a step and begins the next.
// The item is paid for by the kilobyte, and a change that waits to be published is in it from one save to the next.
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

// changeNumbers are the numbers of a change: its states by the kind of its subject, and how far others are from their
// usual values.
type changeNumbers struct{ of, from, to, attempt, round, at int }

func numbersOf(c *job.Change, before int64) changeNumbers {
	known := changeStates(c.Of)
	return changeNumbers{
		of: int(c.Of), from: int(numberOf(c.From, known)), to: int(numberOf(c.To, known)),
		attempt: c.Attempt - firstAttempt(c.Of), round: c.Round - 1, at: int(epochOf(c.At) - before),
	}
}

// change has one change. Its time is counted from the one before it.
func (c *codec) change(num protowire.Number, one *job.Change, before int64) {
	var n changeNumbers
	if c.writing {
		n = numbersOf(one, before)
	}
	for m := c.open(num); c.more(&m); c.kept(&m, &one.Kept) {
		c.int(1, &n.of)
		c.text(2, &one.Gone)
		c.int(3, &n.from)
		c.int(4, &n.to)
		c.difference(5, &n.attempt)
		c.difference(6, &n.round)
		c.flag(7, &one.Paused)
		c.difference(8, &n.at)
		c.text(9, (*string)(&one.Outcome))
		c.text(10, &one.Kind)
		c.text(11, &one.Reason)
		c.int(12, &one.Lost)
	}
	if !c.writing {
		c.numbered(one, n, before)
	}
}

// numbered gives a change its numbers, once its subject is known.
func (c *codec) numbered(one *job.Change, n changeNumbers, before int64) {
	one.Of = job.ChangePlace(n.of)
	if one.Of < 0 {
		c.fail("a change of %d", one.Of)
	}
	known := changeStates(one.Of)
	one.From, one.To = stateOf(uint64(n.from), known), stateOf(uint64(n.to), known)
	one.Attempt, one.Round = n.attempt+firstAttempt(one.Of), n.round+1
	one.At = c.moment(before, int64(n.at))
}

// firstAttempt is what the attempt of most changes is: a job has none.
func firstAttempt(of job.ChangePlace) int { return min(int(of), 1) }

// changeQueued is the number of makegood.StepQueued in changes. An activity has no such state: one that comes to
// activityStates from that number on has the number after it here.
const changeQueued = 9

// changeStates are the states of a job, or of a step, as they are numbered.
func changeStates(of job.ChangePlace) []job.ChangeState {
	if of == 0 {
		return inChanges(processStates())
	}
	return slices.Insert(inChanges(activityStates()), changeQueued, job.ChangeState(makegood.StepQueued))
}

func inChanges[S ~string](states []S) (all []job.ChangeState) {
	for _, s := range states {
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
func (r *unpacker) briefly() {
	if len(r.brief.in) == 0 {
		return
	}
	latest := later(r.epoch, r.Job.FinishedAt)
	for i := range r.Job.Steps {
		latest = later(later(latest, r.Job.Steps[i].Forward.At), r.Job.Steps[i].Undo.At)
	}
	in := &r.brief
	c := job.Changes{Seq: in.int(), Rev: int64(in.next())}
	var place job.ChangePlace
	for len(in.in) > 0 {
		place += job.ChangePlace(protowire.DecodeZigZag(in.next()))
		states := in.next()
		if states&briefSame == 0 {
			latest += protowire.DecodeZigZag(in.next())
		}
		n := changeNumbers{of: int(place), from: int(states >> briefFrom), to: int(states >> briefTo & briefState)}
		c.Pending = append(c.Pending, job.Change{})
		r.numbered(&c.Pending[len(c.Pending)-1], n, latest)
	}
	r.Job.Changes = c
}

package oracle

import (
	"slices"
	"time"
)

// An inline attempt begins where it was decided on, there and then. A chain is a line of steps behind it, which its
// process may begin before it is heard of.

const (
	// longestChain is how many steps a chain has at most, and chainTime within how long they begin.
	longestChain = 20
	chainTime    = 50 * time.Millisecond
)

// runsHere: the process that decides has the right and the time to run the next attempt, which begins by then.
func (j *Job) runsHere(side *Side, now time.Time, by time.Duration) bool {
	return side.def.Inline && j.here && !side.Alone && (j.until.IsZero() || !now.Add(by+side.timeout()).After(j.until))
}

// inline: it begins there and then, beside whatever else runs there.
func (j *Job) inline(side *Side, now time.Time) {
	side.Inline, side.InCompany, side.BeganAt, side.opened = true, true, now, j.decision
	side.Claimed, side.begins = true, 0
}

// chain makes attempts of the steps behind one that runs here, as long as its success alone decides about that.
func (j *Job) chain(s *Step, now time.Time) {
	line := []*Side{&s.Forward}
	defer func() { endTogether(line) }()
	for range longestChain - 1 {
		next := j.onlyFollower(s)
		if next == nil || !chainable(s) || !chainable(next) || next.Forward.Phase != Idle || !j.runsHere(&next.Forward, now, chainTime) {
			return
		}
		side := &next.Forward
		next.Numbers++
		side.stood(later(side.At, side.SentAt), now)
		side.Phase, side.Attempt = Out, next.Numbers
		side.Tries++
		if side.Since.IsZero() {
			side.Since = now
		}
		side.SentAt, side.Resent = now, 0
		j.inline(side, now)
		side.begins = chainTime
		j.send(next, side)
		line = append(line, side)
		s = next
	}
}

// endTogether: the reply of each is heard with those of all behind it, so it has their time as well.
func endTogether(line []*Side) {
	for i := len(line) - 2; i >= 0; i-- {
		line[i].begins = max(line[i].begins, line[i+1].begins+line[i+1].timeout()-line[i].timeout())
	}
}

// onlyFollower is the one step that needs another, and needs no other than that; nil: there is none.
func (j *Job) onlyFollower(s *Step) (only *Step) {
	for _, f := range j.Steps {
		if !slices.Contains(j.before(f), s.def.Name) {
			continue
		}
		if only != nil || len(j.before(f)) > 1 || f.def.When != "" || f.def.Any || f.def.Only != "" {
			return nil
		}
		only = f
	}
	return only
}

// chainable: it may run again, and a success is its end.
func chainable(s *Step) bool {
	return s.def.Inline && s.def.Shared && s.def.Repeat == nil && s.def.Waiting == nil
}

// early: an attempt is out, and the needs of its step have not ended yet. So no word about it counts.
func (j *Job) early(side *Side) bool {
	return side.Phase == Out && side.Inline && !side.undo && !side.def.Any && slices.ContainsFunc(j.before(j.step(side.def.Name)), func(name string) bool {
		need := j.step(name).Forward.Phase
		return need != Done && need != Skipped
	})
}

// NotBegun: the process that was to run an inline attempt has not begun it, nor those behind it in its chain.
func (j *Job) NotBegun(step string, attempt int, now time.Time) {
	s := j.step(step)
	side := s.side(attempt)
	if side == nil || side.Phase != Out || !side.Inline {
		return
	}
	j.tell(func() {
		for opened := side.opened; ; {
			next := j.onlyFollower(s)
			j.unclaimed(side, now)
			if side.undo || next == nil || next.Forward.Phase != Out || !next.Forward.Inline || next.Forward.opened != opened {
				break
			}
			s, side = next, &next.Forward
		}
		j.settle(now)
	})
}

// inlineDue: an attempt that runs in the process which decided on it is silent unless it has replied by the end of its
// timeout, or of those behind it in its chain. No question is asked about it. One that is early may have run, and is
// made again in its turn.
func (j *Job) inlineDue(side *Side, now time.Time) {
	until := side.SentAt.Add(side.begins + side.timeout())
	switch {
	case now.Before(until):
	case j.early(side):
		if side.StartedAt.IsZero() {
			side.StartedAt = side.SentAt
		}
		side.Unknown, side.Claimed, side.Phase = true, false, Idle
		side.Tries--
		if !j.wants(side) {
			side.Phase = TakenBack
		}
	default:
		j.silence(side, Finding{Began: side.SentAt, Until: until, InCompany: true}, now)
	}
}

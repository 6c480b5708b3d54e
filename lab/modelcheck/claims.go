package modelcheck

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// find answers what an actor asks about a claim, as the contract of store.Closings says, and writes what that writes.
// age is that of the attempt. again says that the claim that was to be overruled is another one now.
func (m *model) find(s *state, a ask, age uint8) (f fact, again bool, broken string) {
	if m.isChild(int(a.step)) {
		f, broken = m.findChild(s, a)
		return f, false, broken
	}
	i := int(a.step)
	it := &s.items[i][m.slot(i, a.undo)]
	full, until := m.fullItem(i, *it), claimUntil(age)
	switch a.kind {
	case askLook:
		return m.factOf(a, store.Looked(full, int(a.attempt), until, base)), false, ""
	case askOverrule:
		next, err := store.Overruled(full, int(a.attempt), nameOf(a.by, it.attempt), until)
		if err != nil || it.by != a.by {
			return f, true, ""
		}
		if it.by == byAgent && it.until < minute {
			broken = fmt.Sprintf("the claim of attempt %d of s%d is overruled, and true", it.attempt, i)
		}
		// Whatever it was closed as before, the liar has written over.
		s.runs[i][a.attempt] = s.runs[i][a.attempt]&^(ranNobody|ranReplied) | ranSilent
		m.write(s, it, i, next)
		return fact{ask: a, finding: foundSilent}, false, broken
	}
	c := store.Closing{Attempt: int(a.attempt), Until: until, Now: base, LockedBy: nameOf(a.by, a.attempt)}
	if a.mark {
		c.Ends = machine.ClosingEnds(m.w, stepName(i), a.undo, base)
	}
	next, found := store.Closed(full, c)
	broken = m.misclosed(s, a, *it, next, found)
	if next != full {
		m.write(s, it, i, next)
	}
	return m.factOf(a, found), false, broken
}

// write stores an item, durably: with it all that was written before.
func (m *model) write(s *state, it *item, i int, next store.ClaimItem) {
	*it = m.compactItem(i, next)
	s.flush()
}

// flush: claims lie in the same log as saves, so whatever is durable makes them durable.
func (s *state) flush() {
	for i := range s.items {
		for k := range s.items[i] {
			s.items[i][k].soft = false
		}
	}
}

// misclosed notes how an attempt was closed, and says what is wrong with that.
func (m *model) misclosed(s *state, a ask, it item, next store.ClaimItem, found job.Found) string {
	i, n := a.step, a.attempt
	name := fmt.Sprintf("attempt %d of s%d", n, i)
	run := &s.runs[i][n]
	out, undo := s.job.steps[i].out()
	switch {
	case a.mark && out != nil && out.attempt == n && undo != s.job.forwards() && (out.word == 0 || out.how != wordHeld):
		return name + " is marked as unwanted, and is wanted"
	case it.attempt > n && small(next.Attempt) <= n:
		return fmt.Sprintf("closing %s writes over attempt %d", name, it.attempt)
	case it.attempt == n && it.ends != never && it.closed == 0 && !next.Ends.Equal(timeOf(it.ends)):
		return name + " is marked twice"
	case next.Closed == "" && !next.Ends.IsZero() && next.Ends.Before(next.CompleteBy):
		return name + " is held longer than the end that was set"
	case found.Finding == job.FoundNobody && *run&(runLife|ranSilent|ranReplied) != 0:
		return name + " is said to be nobody's, and was claimed"
	case it.attempt == n && it.closed == 0 && it.by == byAgent && it.until > 0 && found.Finding == job.FoundSilent:
		return "the claim of " + name + " is closed, and holds"
	case *run&(ranNobody|ranSilent|ranReplied) != 0 && (found.Finding == job.FoundHeld || found.Finding == job.FoundOpen && it.attempt != 0):
		return name + " was closed, and is not"
	case found.Finding == job.FoundReplied && a.by != it.by:
		return name + " is closed by a reply of another"
	}
	switch found.Finding {
	case job.FoundNobody:
		*run |= ranNobody
	case job.FoundSilent:
		switch {
		case it.attempt == 0, *run&(ranNobody|ranReplied) == 0:
			*run |= ranSilent
		case *run&ranNobody != 0 && *run&ranSilent == 0:
			return name + " was nobody's, and is silent"
		}
	case job.FoundReplied:
		*run |= ranReplied
	}
	return ""
}

// claimable returns what the slot holds when the agent that got a task claims it.
func (m *model) claimable(s *state, i, n uint8) (next store.ClaimItem, ok bool) {
	task := s.tasks[i][n]
	if m.w.Steps[i].Shared {
		return next, false // It needs no claim, and no agent of these models takes it from a queue.
	}
	it := s.items[i][m.slot(int(i), task&taskUndo != 0)]
	claim := job.Claim{
		Attempt: int(n), LockedBy: lockedBy(n), StartedAt: base, CompleteBy: base.Add(time.Duration(m.timeout(int(i))) * time.Millisecond),
	}
	if s.runs[i][n]&runLife != 0 {
		// Another delivery: its LockedBy is fresh.
		claim.LockedBy = "agent:again"
	}
	next, err := store.Claimed(m.fullItem(int(i), it), claim, claimUntil(ageOf(task)))
	return next, err == nil
}

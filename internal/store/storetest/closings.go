package storetest

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

func closeRows() []row {
	minute := time.Minute
	return []row{
		{"nothing", "close", "nobody, and the same when asked again", func(s *scene) {
			s.closes(s.closing(1, 0), nobody(1))
			s.closes(s.closing(1, time.Hour), nobody(1))
			s.closes(s.unwanted(1, time.Hour, 2*time.Hour), nobody(1))
			s.looks(1, 0, job.Found{Finding: job.FoundClosed, Claim: job.Claim{Attempt: 1}})
		}},
		{"claim", "close", "held, and the claim stays", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.closing(1, minute-time.Millisecond), s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
		}},
		{"claim", "close when CompleteBy has come", "silent, and the same when asked again", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			s.closes(s.closing(1, 0), s.found(job.FoundSilent, 1, "x", minute))
			s.closes(s.unwanted(1, 0, time.Hour), s.found(job.FoundSilent, 1, "x", minute))
			s.looks(1, 0, s.found(job.FoundClosed, 1, "x", minute))
		}},
		{"claim, heartbeat", "close when the first CompleteBy has come", "held until the later one", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundHeld, 1, "x", time.Hour))
			s.closes(s.closing(1, time.Hour), s.found(job.FoundSilent, 1, "x", time.Hour))
		}},
		{"claim of attempt 3", "close of attempt 2", "over, and attempt 3 is untouched", func(s *scene) {
			s.claims(3, "x", minute, nil)
			s.closes(s.closing(2, time.Hour), s.found(job.FoundOver, 3, "x", minute))
			s.closes(s.unwanted(2, 0, minute), s.found(job.FoundOver, 3, "x", minute))
			s.heartbeats(3, "x", time.Hour, time.Hour, nil)
		}},
		{"close of attempt 3: nobody", "close of attempt 2", "over", func(s *scene) {
			s.closes(s.closing(3, 0), nobody(3))
			s.closes(s.closing(2, 0), job.Found{Finding: job.FoundOver, Claim: job.Claim{Attempt: 3}})
			s.closes(s.closing(3, 0), nobody(3))
		}},
		{"claim of attempt 1", "close of attempt 2", "nobody, and attempt 1 is over", func(s *scene) {
			s.claims(1, "x", time.Hour, nil)
			s.closes(s.closing(2, 0), nobody(2))
			s.claims(2, "y", minute, store.ErrWithdrawn)
			s.over(1, "x")
		}},
		{"claim of attempt 1, claimUntil of attempt 2 has passed", "close of attempt 2", "silent: its item may have expired, and attempt 1 have been closed since", func(s *scene) {
			s.claims(1, "x", time.Hour, nil)
			silent := job.Found{Finding: job.FoundSilent, Claim: job.Claim{Attempt: 2}}
			s.closes(s.closing(2, limits.MaxClaimDelay+minute), silent)
			s.closes(s.closing(2, limits.MaxClaimDelay+minute), silent)
		}},
	}
}

// markRows are of closings that come late, and of unwanted attempts.
func markRows() []row {
	minute := time.Minute
	return []row{
		{"claimUntil has come", "close", "nobody: it can be claimed still", func(s *scene) {
			s.closes(s.closing(1, limits.MaxClaimDelay), nobody(1))
			s.claimsAt(limits.MaxClaimDelay, 1, "x", limits.MaxClaimDelay+minute, store.ErrWithdrawn)
		}},
		{"claimUntil has passed", "close", "silent, though nothing is there: it may have expired", func(s *scene) {
			past := limits.MaxClaimDelay + time.Millisecond
			silent := job.Found{Finding: job.FoundSilent, Claim: job.Claim{Attempt: 1}}
			s.closes(s.closing(1, past), silent)
			s.closes(s.unwanted(1, past, past+minute), silent)
			s.claimsAt(past, 1, "x", past+minute, store.ErrWithdrawn)
			// By a clock that is behind it could still be claimed.
			s.claimsAt(0, 1, "x", minute, store.ErrWithdrawn)
		}},
		{"close: nobody, claimUntil has passed", "close", "nobody", func(s *scene) {
			s.closes(s.closing(1, 0), nobody(1))
			s.closes(s.closing(1, limits.MaxClaimDelay+minute), nobody(1))
		}},
		{"claim", "close of what is not wanted", "held, and it is marked once", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.unwanted(1, 0, 2*minute), s.found(job.FoundHeld, 1, "x", minute))
			s.closes(s.unwanted(1, minute/2, time.Hour), s.found(job.FoundHeld, 1, "x", minute))
			s.closes(s.closing(1, minute/2), s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", time.Hour, 2*minute, store.ErrWithdrawn)
		}},
		{"claim, close: held and unwanted", "close when its end has come", "silent", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.unwanted(1, 0, 2*minute), s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", time.Hour, 2*minute, store.ErrWithdrawn)
			s.closes(s.unwanted(1, 2*minute, time.Hour), s.found(job.FoundSilent, 1, "x", 2*minute))
			s.over(1, "x")
		}},
		{"claim, close: held and unwanted", "claim of the next attempt", "it is held, and not marked", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.unwanted(1, 0, minute), s.found(job.FoundHeld, 1, "x", minute))
			s.claims(2, "y", minute, nil)
			s.heartbeats(2, "y", time.Hour, time.Hour, nil)
		}},
	}
}

func replyRows() []row {
	minute := time.Minute
	return []row{
		{"claim", "failure reply of its holder", "replied, and silent to anybody else", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
			s.closes(s.replied(1, "y"), s.found(job.FoundSilent, 1, "x", minute))
			s.closes(s.closing(1, 0), s.found(job.FoundSilent, 1, "x", minute))
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
		}},
		{"claim", "failure reply of another than the holder", "held, and the claim stays", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.replied(1, "y"), s.found(job.FoundHeld, 1, "x", minute))
			late := s.replied(1, "y")
			late.Now, late.Ends = s.at(time.Hour), s.at(2*time.Hour)
			s.closes(late, s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", 3*time.Hour, 3*time.Hour, nil)
		}},
		{"nothing", "failure reply", "open, and it can be claimed", func(s *scene) {
			s.closes(s.replied(1, "x"), without(job.FoundOpen))
			s.claims(1, "y", minute, nil)
		}},
		{"claim of attempt 1", "failure reply for attempt 2", "open, and attempt 1 is untouched", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.replied(2, "x"), without(job.FoundOpen))
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
		}},
		{"claim of attempt 3", "failure reply for attempt 2", "over, and attempt 3 is untouched", func(s *scene) {
			s.claims(3, "x", minute, nil)
			s.closes(s.replied(2, "x"), s.found(job.FoundOver, 3, "x", minute))
			s.heartbeats(3, "x", time.Hour, time.Hour, nil)
		}},
		{"close: nobody", "failure reply", "nobody", func(s *scene) {
			s.closes(s.closing(1, 0), nobody(1))
			s.closes(s.replied(1, "x"), nobody(1))
		}},
		{"claim, close: silent", "failure reply of its holder", "silent: a late failure is never taken", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			s.closes(s.replied(1, "x"), s.found(job.FoundSilent, 1, "x", minute))
		}},
		{"claim whose CompleteBy has passed", "failure reply of its holder", "replied: nobody has closed it", func(s *scene) {
			s.claims(1, "x", minute, nil)
			late := s.replied(1, "x")
			late.Now = s.at(time.Hour)
			s.closes(late, s.found(job.FoundReplied, 1, "x", minute))
		}},
		{"claim, close: held and unwanted", "failure reply of its holder", "replied", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.unwanted(1, 0, minute), s.found(job.FoundHeld, 1, "x", minute))
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
		}},
	}
}

func lookRows() []row {
	minute := time.Minute
	return []row{
		{"nothing", "look", "open, and it can be claimed", func(s *scene) {
			s.looks(1, 0, without(job.FoundOpen))
			s.looks(1, limits.MaxClaimDelay, without(job.FoundOpen))
			s.claims(1, "x", minute, nil)
		}},
		{"claimUntil has passed", "look", "closed, though nothing is there", func(s *scene) {
			s.looks(1, limits.MaxClaimDelay+time.Millisecond, without(job.FoundClosed))
		}},
		{"claim", "look when CompleteBy has passed", "held: a look ends nothing", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.looks(1, time.Hour, s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", 2*time.Hour, 2*time.Hour, nil)
		}},
		{"claim of attempt 3", "look at attempt 2", "over", func(s *scene) {
			s.claims(3, "x", minute, nil)
			s.looks(2, 0, s.found(job.FoundOver, 3, "x", minute))
		}},
		{"claim of attempt 1", "look at attempt 2", "open, until its claimUntil has passed", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.looks(2, 0, without(job.FoundOpen))
			s.looks(2, limits.MaxClaimDelay+minute, without(job.FoundClosed))
		}},
	}
}

func overruleRows() []row {
	minute := time.Minute
	return []row{
		{"claim of attempt 9, which is a lie", "overrule as of attempt 2", "closed, silent, and the liar is over", func(s *scene) {
			s.claims(9, "liar", 2000*time.Hour, nil)
			s.overrules(2, "liar", nil)
			s.looks(2, 0, job.Found{Finding: job.FoundClosed, Claim: job.Claim{Attempt: 2}})
			s.closes(s.closing(2, 0), job.Found{Finding: job.FoundSilent, Claim: job.Claim{Attempt: 2}})
			s.over(9, "liar")
			s.claims(2, "liar", minute, store.ErrWithdrawn)
		}},
		{"overrule", "claim of the next attempt", "it is held", func(s *scene) {
			s.claims(9, "liar", minute, nil)
			s.overrules(2, "liar", nil)
			s.claims(3, "x", minute, nil)
		}},
		{"claim by another than the liar", "overrule", "conflict, and the claim stays", func(s *scene) {
			s.claims(9, "x", minute, nil)
			s.overrules(2, "liar", store.ErrConflict)
			s.looks(9, 0, s.found(job.FoundHeld, 9, "x", minute))
		}},
		{"nothing", "overrule", "conflict", func(s *scene) {
			s.overrules(2, "liar", store.ErrConflict)
			s.looks(2, 0, without(job.FoundOpen))
		}},
		{"overrule whose answer was lost", "the same overrule again", "conflict: what is there is no lie", func(s *scene) {
			s.claims(9, "liar", minute, nil)
			s.overrules(2, "liar", nil)
			s.overrules(2, "liar", store.ErrConflict)
			s.closes(s.closing(2, 0), job.Found{Finding: job.FoundSilent, Claim: job.Claim{Attempt: 2}})
		}},
	}
}

func (s *scene) overrules(attempt int, lie string, want error) {
	s.Helper()
	s.want("overrule of "+lie, s.store.Overrule(s.ctx, s.slot, attempt, lie, s.until), want)
}

// slotRows hold slots apart from each other and from jobs.
func slotRows() []row {
	minute := time.Minute
	return []row{
		{"claim", "claims of the same attempt in the slots of another agent, job, birth and step", "each is held", func(s *scene) {
			s.claims(1, "x", minute, nil)
			for by, other := range s.others() {
				other.looks(1, 0, without(job.FoundOpen))
				other.claims(1, by, time.Hour, nil)
				other.over(1, "x")
			}
			for by, other := range s.others() {
				other.looks(1, 0, s.found(job.FoundHeld, 1, by, time.Hour))
			}
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			for by, other := range s.others() {
				other.heartbeats(1, by, 2*time.Hour, 2*time.Hour, nil)
			}
		}},
		{"load, claim", "save", "it holds, and the claim stays", func(s *scene) {
			j := s.create(s.job("a"))
			s.claims(1, "x", minute, nil)
			s.want("save", s.save(j), nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", minute))
		}},
		{"load", "claim, heartbeat, close", "the job is as it was", func(s *scene) {
			j := s.create(s.job("a"))
			s.claims(1, "x", time.Millisecond, nil)
			s.heartbeats(1, "x", 2*time.Millisecond, 2*time.Millisecond, nil)
			s.same("job", s.load(j.ID), j)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", 2*time.Millisecond))
			s.same("job", s.load(j.ID), j)
			s.sees("key in the index", s.at(time.Hour), map[string]time.Time{j.ID: j.CompleteBy})
		}},
		{"claim", "save that finishes the job", "the claim stays, and what was closed stays closed", func(s *scene) {
			j := s.create(s.job("a"))
			s.claims(1, "x", minute, nil)
			closed := s.step("charge")
			closed.closes(closed.closing(1, 0), nobody(1))
			seen := j.CompleteBy
			j.ProcessState, j.CompleteBy = makegood.JobProcessed, time.Time{}
			s.want("save", s.store.Save(s.ctx, store.Change{Job: j, Seen: seen}), nil)
			s.claims(1, "y", minute, store.ErrTaken)
			closed.claims(1, "y", minute, store.ErrWithdrawn)
		}},
	}
}

// others are slots that differ from this one in one part, by what differs.
func (s *scene) others() map[string]*scene {
	all := map[string]*scene{}
	for name, slot := range map[string]store.Slot{
		"agent": {Agent: "inventory-2", Job: s.slot.Job, Birth: s.slot.Birth, Step: s.slot.Step},
		"job":   {Agent: s.slot.Agent, Job: s.slot.Job + "-2", Birth: s.slot.Birth, Step: s.slot.Step},
		"birth": {Agent: s.slot.Agent, Job: s.slot.Job, Birth: s.slot.Birth + "-2", Step: s.slot.Step},
		"step":  {Agent: s.slot.Agent, Job: s.slot.Job, Birth: s.slot.Birth, Step: "charge"},
	} {
		all[name] = &scene{s.world, slot, s.until}
	}
	return all
}

// step is the slot of another step of the same job.
func (s *scene) step(name string) *scene {
	other := *s
	other.slot.Step = name
	return &other
}

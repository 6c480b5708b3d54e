package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// row is an interleaving: the steps before, the step now, and its outcome. docs/architecture.md has the same rows, and
// a test compares the two.
type row struct {
	first, then, happens string
	play                 func(s *scene)
}

func (r row) name() string { return r.first + ", then " + r.then + ": " + r.happens }

// interleavings are all rows.
func interleavings() []row {
	var all []row
	for _, rows := range [][]row{
		claimRows(), besideRows(), lateClaimRows(), heartbeatRows(), progressRows(), overRows(), closeRows(), markRows(), replyRows(), lookRows(), overruleRows(), filledRows(), slotRows(),
	} {
		all = append(all, rows...)
	}
	return all
}

func claimRules() []rule {
	var rules []rule
	for _, r := range interleavings() {
		rules = append(rules, rule{r.name(), func(w *world) { r.play(w.scene("a")) }})
	}
	return rules
}

// scene is one slot and the callers that meet there. Its attempts can be claimed until a fortnight after the base.
type scene struct {
	*world
	slot  store.Slot
	until time.Time
}

func (w *world) scene(name string) *scene {
	slot := store.Slot{Agent: "inventory", Job: w.id(name), Birth: "birth-" + w.prefix, Step: "reserve"}
	return &scene{w, slot, w.at(limits.MaxClaimDelay)}
}

// claims lets by claim an attempt at the base, until d after it.
func (s *scene) claims(attempt int, by string, d time.Duration, want error) {
	s.Helper()
	s.claimsAt(0, attempt, by, d, want)
}

func (s *scene) claimsAt(start time.Duration, attempt int, by string, d time.Duration, want error) {
	s.Helper()
	claim := job.Claim{Attempt: attempt, LockedBy: by, StartedAt: s.at(start), CompleteBy: s.at(d)}
	s.want("claim by "+by, s.store.Claim(s.ctx, s.slot, claim, s.until), want)
}

// heartbeats lets by ask for d, and wants now to stand unless the attempt is over.
func (s *scene) heartbeats(attempt int, by string, d, now time.Duration, want error) {
	s.Helper()
	got, err := s.store.Heartbeat(s.ctx, s.slot, s.claim(attempt, by, d), s.until)
	s.want("heartbeat of "+by, err, want)
	if !errors.Is(want, store.ErrTaken) {
		s.sameTime("CompleteBy after the heartbeat of "+by, got, s.at(now))
	}
}

// over lets by ask for an hour, and wants its attempt to be over.
func (s *scene) over(attempt int, by string) {
	s.Helper()
	s.heartbeats(attempt, by, time.Hour, 0, store.ErrTaken)
}

// closing asks, at now, for the end of an attempt that is wanted.
func (s *scene) closing(attempt int, now time.Duration) store.Closing {
	return store.Closing{Attempt: attempt, Until: s.until, Now: s.at(now)}
}

// unwanted asks, at now, for the end of an attempt that may run until ends.
func (s *scene) unwanted(attempt int, now, ends time.Duration) store.Closing {
	c := s.closing(attempt, now)
	c.Ends = s.at(ends)
	return c
}

// replied takes a failure reply.
func (s *scene) replied(attempt int, by string) store.Closing {
	c := s.closing(attempt, time.Second)
	c.LockedBy = by
	return c
}

func (s *scene) closes(c store.Closing, want job.Found) {
	s.Helper()
	got, err := s.store.Close(s.ctx, s.slot, c)
	s.want("close", err, nil)
	s.same("answer of the close", got, want)
}

func (s *scene) looks(attempt int, now time.Duration, want job.Found) {
	s.Helper()
	got, err := s.store.Look(s.ctx, s.slot, attempt, s.until, s.at(now))
	s.want("look", err, nil)
	s.same("answer of the look", got, want)
}

// found is an answer with the claim of an attempt by a holder, from the base until d after it.
func (s *scene) found(finding job.Finding, attempt int, by string, d time.Duration) job.Found {
	return job.Found{Finding: finding, Claim: s.claim(attempt, by, d)}
}

// nobody is the answer that an attempt is closed which was never claimed.
func nobody(attempt int) job.Found {
	return job.Found{Finding: job.FoundNobody, Claim: job.Claim{Attempt: attempt}}
}

// without is an answer that shows no claim.
func without(finding job.Finding) job.Found { return job.Found{Finding: finding} }

func claimRows() []row {
	minute := time.Minute
	return []row{
		{"nothing", "claim", "it is held", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", minute))
		}},
		{"claim", "claim by another", "taken, and the first stands", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.claims(1, "y", time.Hour, store.ErrTaken)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", minute))
		}},
		{"claim whose answer was lost", "the same claim again", "it holds, and nothing changes", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.claims(1, "x", time.Hour, nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", minute))
		}},
		{"claim, heartbeat", "the same claim again", "it holds, and what the heartbeat moved stays", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.claims(1, "x", minute, nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", time.Hour))
		}},
		{"claim of attempt 1", "claim of attempt 2", "attempt 2 is held, and 1 is over", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.claims(2, "y", time.Hour, nil)
			s.looks(2, 0, s.found(job.FoundHeld, 2, "y", time.Hour))
			s.over(1, "x")
		}},
		{"claim of attempt 2", "late task of attempt 1 claims", "withdrawn", func(s *scene) {
			s.claims(2, "y", minute, nil)
			s.claims(1, "x", minute, store.ErrWithdrawn)
			s.looks(2, 0, s.found(job.FoundHeld, 2, "y", minute))
		}},
		{"close: nobody", "late task claims", "withdrawn", func(s *scene) {
			s.closes(s.closing(1, 0), nobody(1))
			s.claims(1, "x", minute, store.ErrWithdrawn)
			s.closes(s.closing(1, time.Second), nobody(1))
		}},
		{"close of attempt 2: nobody", "late task of attempt 1 claims", "withdrawn", func(s *scene) {
			s.closes(s.closing(2, 0), nobody(2))
			s.claims(1, "x", minute, store.ErrWithdrawn)
			s.closes(s.closing(2, time.Second), nobody(2))
		}},
		{"close: nobody", "claim of the next attempt", "it is held", func(s *scene) {
			s.closes(s.closing(1, 0), nobody(1))
			s.claims(2, "x", minute, nil)
			s.looks(2, 0, s.found(job.FoundHeld, 2, "x", minute))
		}},
	}
}

// lateClaimRows are of claims that come when it is over, or nearly.
func lateClaimRows() []row {
	minute := time.Minute
	return []row{
		{"claim, close: silent", "the same claim again", "withdrawn", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			s.claims(1, "x", time.Hour, store.ErrWithdrawn)
		}},
		{"claim, close: silent", "claim by another", "withdrawn", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			s.claims(1, "y", time.Hour, store.ErrWithdrawn)
		}},
		{"claim, failure reply", "claim by another", "withdrawn", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
			s.claims(1, "y", time.Hour, store.ErrWithdrawn)
		}},
		{"claim, close: held and unwanted", "the same claim again", "it holds: a heartbeat tells", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.unwanted(1, 0, minute), s.found(job.FoundHeld, 1, "x", minute))
			s.claims(1, "x", time.Hour, nil)
			s.heartbeats(1, "x", time.Hour, minute, store.ErrWithdrawn)
		}},
		{"claimUntil has come", "claim", "it is held", func(s *scene) {
			s.claimsAt(limits.MaxClaimDelay, 1, "x", limits.MaxClaimDelay+minute, nil)
			s.claimsAt(limits.MaxClaimDelay, 1, "y", limits.MaxClaimDelay+minute, store.ErrTaken)
		}},
		{"claimUntil has passed", "claim", "withdrawn, though nothing is there", func(s *scene) {
			s.claimsAt(limits.MaxClaimDelay+time.Millisecond, 1, "x", limits.MaxClaimDelay+minute, store.ErrWithdrawn)
			s.looks(1, 0, without(job.FoundOpen))
		}},
		{"claim of attempt 1, claimUntil of attempt 2 has passed", "claim of attempt 2", "withdrawn", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.claimsAt(limits.MaxClaimDelay+time.Millisecond, 2, "y", limits.MaxClaimDelay+minute, store.ErrWithdrawn)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", minute))
		}},
	}
}

// besideRows are of how many others ran in the process of a claim.
func besideRows() []row {
	company := func(s *scene, attempt int, by string, beside int) {
		s.Helper()
		claim := s.claim(attempt, by, time.Hour)
		claim.Beside = beside
		s.want("claim by "+by, s.store.Claim(s.ctx, s.slot, claim, s.until), nil)
	}
	with := func(s *scene, finding job.Finding, attempt int, by string, beside int) job.Found {
		found := s.found(finding, attempt, by, time.Hour)
		found.Claim.Beside = beside
		return found
	}
	return []row{
		{"claim with nine beside", "look, close when its time has passed, close again", "each says nine", func(s *scene) {
			company(s, 1, "x", 9)
			s.looks(1, 0, with(s, job.FoundHeld, 1, "x", 9))
			s.closes(s.closing(1, 2*time.Hour), with(s, job.FoundSilent, 1, "x", 9))
			s.closes(s.closing(1, 2*time.Hour), with(s, job.FoundSilent, 1, "x", 9))
		}},
		{"claim with nine beside", "heartbeat, marked as unwanted", "it stays nine", func(s *scene) {
			company(s, 1, "x", 9)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.closes(s.unwanted(1, 0, time.Minute), with(s, job.FoundHeld, 1, "x", 9))
			s.looks(1, 0, with(s, job.FoundHeld, 1, "x", 9))
		}},
		{"claim with nobody beside", "heartbeat with nine, with none, with five", "nine came beside it, and it stays nine", func(s *scene) {
			company(s, 1, "x", 0)
			for _, beside := range []int{9, 0, 5} {
				claim := s.claim(1, "x", time.Hour)
				claim.Beside = beside
				_, err := s.store.Heartbeat(s.ctx, s.slot, claim, s.until)
				s.want("heartbeat of x", err, nil)
				s.looks(1, 0, with(s, job.FoundHeld, 1, "x", 9))
			}
		}},
		{"claim with nine beside", "claim of a newer attempt alone", "the newer one has nobody beside it", func(s *scene) {
			company(s, 1, "x", 9)
			company(s, 2, "y", 0)
			s.looks(2, 0, with(s, job.FoundHeld, 2, "y", 0))
		}},
	}
}

// progress is a report d after the base.
func (s *scene) progress(value string, d time.Duration) job.Progress {
	return job.Progress{Value: value, At: s.at(d)}
}

// reports lets by ask for an hour, and report a progress.
func (s *scene) reports(attempt int, by string, p job.Progress, want error) {
	s.Helper()
	claim := s.claim(attempt, by, time.Hour)
	claim.Progress = p
	_, err := s.store.Heartbeat(s.ctx, s.slot, claim, s.until)
	s.want("heartbeat of "+by, err, want)
}

// heldWith is the answer that an attempt is held, with the progress that was reported last.
func (s *scene) heldWith(attempt int, by string, d time.Duration, p job.Progress) job.Found {
	found := s.found(job.FoundHeld, attempt, by, d)
	found.Claim.Progress = p
	return found
}

// progressRows are of reports with heartbeats.
func progressRows() []row {
	return []row{
		{"claim", "heartbeat with progress", "it is kept", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.reports(1, "x", s.progress(`{"page":1}`, time.Second), nil)
			s.looks(1, 0, s.heldWith(1, "x", time.Hour, s.progress(`{"page":1}`, time.Second)))
			s.reports(1, "x", s.progress(`{"page":2}`, 2*time.Second), nil)
			s.looks(1, 0, s.heldWith(1, "x", time.Hour, s.progress(`{"page":2}`, 2*time.Second)))
		}},
		{"claim, heartbeat with progress", "heartbeat without, the same claim again", "the progress stays", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.reports(1, "x", s.progress(`1`, time.Second), nil)
			s.heartbeats(1, "x", 2*time.Hour, 2*time.Hour, nil)
			s.claims(1, "x", time.Minute, nil)
			s.looks(1, 0, s.heldWith(1, "x", 2*time.Hour, s.progress(`1`, time.Second)))
		}},
		{"claim, heartbeat with progress", "claim of the next attempt", "the progress stays, as one of before", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.reports(1, "x", s.progress(`1`, time.Second), nil)
			s.claimsAt(2*time.Second, 2, "y", time.Minute, nil)
			want := s.heldWith(2, "y", time.Minute, s.progress(`1`, time.Second))
			want.Claim.StartedAt = s.at(2 * time.Second)
			s.looks(2, 0, want)
			s.same("what attempt 2 has reported", want.Claim.Reported(), job.Progress{})
		}},
		{"claim, heartbeat with progress, close: silent", "close of attempt 2: nobody, claim of attempt 3", "the progress stays, as one of before", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.reports(1, "x", s.progress(`1`, time.Second), nil)
			s.closes(s.closing(1, time.Hour), job.Found{Finding: job.FoundSilent, Claim: s.heldWith(1, "x", time.Hour, s.progress(`1`, time.Second)).Claim})
			s.closes(s.closing(2, time.Hour), job.Found{Finding: job.FoundNobody, Claim: job.Claim{Attempt: 2, Progress: s.progress(`1`, time.Second)}})
			s.claims(3, "y", time.Minute, nil)
			s.looks(3, 0, s.heldWith(3, "y", time.Minute, s.progress(`1`, time.Second)))
		}},
		{"claim, close: held and unwanted", "heartbeat with progress", "withdrawn, and it is kept", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.closes(s.unwanted(1, 0, 2*time.Minute), s.found(job.FoundHeld, 1, "x", time.Minute))
			s.reports(1, "x", s.progress(`"half"`, time.Second), store.ErrWithdrawn)
			s.looks(1, 0, s.heldWith(1, "x", 2*time.Minute, s.progress(`"half"`, time.Second)))
		}},
		{"claim, heartbeat with progress", "heartbeat with progress of another", "over, and the progress stays", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.reports(1, "x", s.progress(`1`, time.Second), nil)
			s.reports(1, "y", s.progress(`2`, 2*time.Second), store.ErrTaken)
			s.looks(1, 0, s.heldWith(1, "x", time.Hour, s.progress(`1`, time.Second)))
		}},
		{"claim", "heartbeat with progress that is too large or no JSON", "CompleteBy moves, and it is left out", func(s *scene) {
			s.claims(1, "x", time.Minute, nil)
			s.reports(1, "x", s.progress(`"`+strings.Repeat("x", makegood.MaxProgressBytes)+`"`, time.Second), nil)
			s.reports(1, "x", s.progress(`{`, time.Second), nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", time.Hour))
			largest := s.progress(`"`+strings.Repeat("x", makegood.MaxProgressBytes-2)+`"`, time.Second)
			s.reports(1, "x", largest, nil)
			s.looks(1, 0, s.heldWith(1, "x", time.Hour, largest))
		}},
	}
}

func heartbeatRows() []row {
	minute, month := time.Minute, limits.MaxClaim
	return []row{
		{"claim", "heartbeat", "CompleteBy moves", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", time.Hour))
		}},
		{"heartbeat whose answer was lost", "the same heartbeat again", "the same answer", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.closes(s.unwanted(1, 0, 2*time.Hour), s.found(job.FoundHeld, 1, "x", time.Hour))
			s.heartbeats(1, "x", 3*time.Hour, 2*time.Hour, store.ErrWithdrawn)
			s.heartbeats(1, "x", 3*time.Hour, 2*time.Hour, store.ErrWithdrawn)
		}},
		{"claim, heartbeat", "a heartbeat that asks for less", "CompleteBy stays", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.heartbeats(1, "x", time.Hour, time.Hour, nil)
			s.heartbeats(1, "x", minute, time.Hour, nil)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", time.Hour))
		}},
		{"claim whose CompleteBy has passed", "heartbeat", "it holds: nobody has closed it", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.looks(1, time.Hour, s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", 2*time.Hour, 2*time.Hour, nil)
			s.closes(s.closing(1, time.Hour), s.found(job.FoundHeld, 1, "x", 2*time.Hour))
		}},
		{"claim", "heartbeat past thirty days", "CompleteBy moves to thirty days after the claim", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.heartbeats(1, "x", month, month, nil)
			s.heartbeats(1, "x", month+minute, month, nil)
			s.closes(s.closing(1, month), s.found(job.FoundSilent, 1, "x", month))
		}},
	}
}

// overRows are of heartbeats of attempts that are over, or unwanted.
func overRows() []row {
	minute := time.Minute
	return []row{
		{"nothing", "heartbeat", "over", func(s *scene) {
			s.over(1, "x")
			s.looks(1, 0, without(job.FoundOpen))
		}},
		{"claim", "heartbeat of another, or of another attempt", "over, and the claim stands", func(s *scene) {
			s.claims(2, "x", minute, nil)
			s.over(2, "y")
			s.over(1, "x")
			s.over(3, "x")
			s.looks(2, 0, s.found(job.FoundHeld, 2, "x", minute))
		}},
		{"close: nobody", "heartbeat", "over", func(s *scene) {
			s.closes(s.closing(1, 0), nobody(1))
			s.over(1, "x")
			s.over(1, "")
		}},
		{"claim, close: silent", "heartbeat", "over", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			s.over(1, "x")
			s.closes(s.closing(1, 0), s.found(job.FoundSilent, 1, "x", minute))
		}},
		{"claim, failure reply", "heartbeat", "over", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
			s.over(1, "x")
			s.looks(1, 0, s.found(job.FoundClosed, 1, "x", minute))
		}},
		{"claim, close: held and unwanted", "heartbeat", "withdrawn, and not past its end", func(s *scene) {
			s.claims(1, "x", minute, nil)
			s.closes(s.unwanted(1, 0, 10*minute), s.found(job.FoundHeld, 1, "x", minute))
			s.heartbeats(1, "x", 5*minute, 5*minute, store.ErrWithdrawn)
			s.heartbeats(1, "x", time.Hour, 10*minute, store.ErrWithdrawn)
			s.heartbeats(1, "x", minute, 10*minute, store.ErrWithdrawn)
			s.looks(1, 0, s.found(job.FoundHeld, 1, "x", 10*minute))
		}},
		{"claim, close: held and unwanted, with an end before its CompleteBy", "heartbeat", "withdrawn, and its CompleteBy stays", func(s *scene) {
			s.claims(1, "x", time.Hour, nil)
			s.closes(s.unwanted(1, 0, minute), s.found(job.FoundHeld, 1, "x", time.Hour))
			s.heartbeats(1, "x", 2*time.Hour, time.Hour, store.ErrWithdrawn)
			s.closes(s.closing(1, minute), s.found(job.FoundHeld, 1, "x", time.Hour))
		}},
	}
}

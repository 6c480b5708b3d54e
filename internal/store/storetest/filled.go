package storetest

import (
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// filled plays a row in a slot for each attribute that a thief may fill, with attempt 1 claimed by x for a minute.
func filled(play func(s *scene)) func(s *scene) {
	return func(s *scene) {
		if s.harness.Fill == nil {
			s.Skip("no agent writes to this store by itself")
		}
		for _, attribute := range []string{"Progress", "Beside"} {
			slot := s.step(attribute)
			slot.claims(1, "x", time.Minute, nil)
			s.harness.Fill(slot.slot, attribute)
			play(slot)
		}
	}
}

// fits looks at an attempt, and wants its item to be no larger than one may be.
func (s *scene) fits(attempt int, want job.Finding) {
	s.Helper()
	got, err := s.store.Look(s.ctx, s.slot, attempt, s.until, s.at(0))
	s.want("look", err, nil)
	if got.Finding != want || got.Claim.Bytes != 0 {
		s.Errorf("look: got %s, an item of %d bytes, want %s, and one that fits", got.Finding, got.Claim.Bytes, want)
	}
}

// filledRows are of claims with items that a thief of the agent's role has filled, so that no more fits into them.
func filledRows() []row {
	minute := time.Minute
	long := strings.Repeat("x", 350<<10)
	return []row{
		{"claim, filled by a thief", "look", "held, with its size: it is a lie", filled(func(s *scene) {
			got, err := s.store.Look(s.ctx, s.slot, 1, s.until, s.at(0))
			s.want("look", err, nil)
			if got.Finding != job.FoundHeld || got.Claim.Bytes <= job.MaxClaimItemBytes {
				s.Errorf("got %s, an item of %d bytes, want %s, and its size", got.Finding, got.Claim.Bytes, job.FoundHeld)
			}
			s.overrules(1, "x", nil)
			s.fits(1, job.FoundClosed)
		})},
		{"claim, filled by a thief", "close when CompleteBy has come", "silent, and what filled it is gone", filled(func(s *scene) {
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "x", minute))
			s.fits(1, job.FoundClosed)
		})},
		{"claim, filled by a thief", "close of what is not wanted", "held, with its size, and it is marked", filled(func(s *scene) {
			got, err := s.store.Close(s.ctx, s.slot, s.unwanted(1, 0, minute))
			s.want("close", err, nil)
			if got.Finding != job.FoundHeld || got.Claim.Bytes <= job.MaxClaimItemBytes {
				s.Errorf("got %s, an item of %d bytes, want %s, and its size", got.Finding, got.Claim.Bytes, job.FoundHeld)
			}
			s.fits(1, job.FoundHeld)
		})},
		{"claim, filled by a thief", "failure reply of its holder", "replied, and what filled it is gone", filled(func(s *scene) {
			s.closes(s.replied(1, "x"), s.found(job.FoundReplied, 1, "x", minute))
			s.fits(1, job.FoundClosed)
		})},
		{"claim, filled by a thief", "claim of the next attempt", "it is held, and what filled it is gone", filled(func(s *scene) {
			s.claims(2, "y", minute, nil)
			s.fits(2, job.FoundHeld)
		})},
		{"claim, filled by a thief", "heartbeat with progress", "it is kept, and what filled it is gone", filled(func(s *scene) {
			s.reports(1, "x", s.progress(`{"page":1}`, time.Second), nil)
			s.looks(1, 0, s.heldWith(1, "x", time.Hour, s.progress(`{"page":1}`, time.Second)))
		})},
		{"claim under a name that fills its item", "close when CompleteBy has come", "silent, and nobody's", func(s *scene) {
			s.claims(1, long, minute, nil)
			s.closes(s.closing(1, minute), s.found(job.FoundSilent, 1, "", minute))
			s.claims(2, "y", minute, nil)
		}},
		{"claim under a name that fills its item", "close of what is not wanted, overrule", "held, and then closed", func(s *scene) {
			s.claims(1, long, minute, nil)
			got, err := s.store.Close(s.ctx, s.slot, s.unwanted(1, 0, minute))
			s.want("close", err, nil)
			if got.Finding != job.FoundHeld || len(got.Claim.LockedBy) <= limits.MaxLockedByBytes {
				s.Errorf("close: got %s by a name of %d bytes, want %s by one that is too long", got.Finding, len(got.Claim.LockedBy), job.FoundHeld)
			}
			s.overrules(1, long, nil)
			s.fits(1, job.FoundClosed)
		}},
		{"claim under a name that fills its item", "failure reply of its holder", "silent: no agent is called that", func(s *scene) {
			s.claims(1, long, minute, nil)
			s.closes(s.replied(1, long), s.found(job.FoundSilent, 1, "", minute))
		}},
	}
}

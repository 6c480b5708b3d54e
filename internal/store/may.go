package store

import "github.com/makegood-dev/makegood"

// MaySave says whether change may be written over stored: nil, or ErrConflict. It is the condition of
// every Save, whoever the adapter is; the adapters write it in their own words and are held to it by
// storetest, the model check runs it as it stands here.
func MaySave(stored makegood.Job, change Change) error {
	switch {
	case stored.Rev != change.Job.Rev:
		return ErrConflict
	case change.OnClaims && stored.Claims.Rev != change.Job.Claims.Rev:
		return ErrConflict
	case change.MovesKey() && !stored.CompleteBy.Equal(change.Seen):
		return ErrConflict
	}
	return nil
}

// MovesKey reports whether the change writes another CompleteBy than the one that was loaded.
func (c Change) MovesKey() bool { return !c.Job.CompleteBy.Equal(c.Seen) }

// MayClaim says whether claim may be written into the slot of step as job is stored: nil,
// ErrWithdrawn or ErrTaken. It is nil for a claim that holds its slot already, and that needs no
// further write (Holds tells).
func MayClaim(job makegood.Job, step string, claim makegood.Claim) error {
	slot, held := job.Claims.Slots[step]
	switch {
	case Holds(job, step, claim):
		return nil
	case job.Open[step] != claim.Attempt:
		return ErrWithdrawn
	case held && slot.Attempt >= claim.Attempt:
		return ErrTaken
	}
	return nil
}

// Holds reports whether the slot of step is of this claim's attempt and LockedBy. Only then may it
// be extended.
func Holds(job makegood.Job, step string, claim makegood.Claim) bool {
	slot, held := job.Claims.Slots[step]
	return held && slot.Attempt == claim.Attempt && slot.LockedBy == claim.LockedBy
}

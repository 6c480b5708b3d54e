package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// maxClaimWrites bounds the writes of one claim: one, a second when the key must come down, and more
// only while others move the key between them.
const maxClaimWrites = 4

// errMoving: the key of a job moved at each try. The task comes again.
var errMoving = errors.New("its CompleteBy keeps moving")

// Claim takes an attempt; see store.Claims. A key that must come down costs a second write.
func (s *Store) Claim(ctx context.Context, job, step string, claim makegood.Claim) error {
	if err := s.claim(ctx, job, step, claim); err != nil {
		return fmt.Errorf("claim %s of job %s: %w", step, job, err)
	}
	return nil
}

func (s *Store) claim(ctx context.Context, job, step string, claim makegood.Claim) error {
	claim.StartedAt, claim.CompleteBy = makegood.Instant(claim.StartedAt), makegood.Instant(claim.CompleteBy)
	lower := false
	for range maxClaimWrites {
		old, err := s.update(ctx, "Claim", job, claiming(step, claim, lower))
		if !errors.Is(err, errCondition) {
			return err
		}
		if err := whyNotClaimed(old, step, claim); err != errOnlyKey {
			return err
		}
		lower = asTime(old[attrCompleteBy]).After(claim.CompleteBy)
	}
	return errMoving
}

// claiming is the update that takes an attempt. It leaves the key in the index, or lowers it.
func claiming(step string, claim makegood.Claim, lower bool) *update {
	u := newUpdate()
	name := u.step("step", step)
	slot := u.attr(attrClaims) + "." + name
	attempt := u.value("attempt", number(int64(claim.Attempt)))
	key, mine := u.attr(attrCompleteBy), u.value("completeBy", instant(claim.CompleteBy))
	u.set(slot, "slot", slotItem(claim))
	u.raise(u.attr(attrClaimsRev))
	u.when(u.attr(attrOpen) + "." + name + " = " + attempt)
	u.when("(attribute_not_exists(" + slot + ") OR " + slot + "." + u.attr(attrAttempt) + " < " + attempt + ")")
	if lower {
		u.sets = append(u.sets, key+" = "+mine)
		u.when(key + " > " + mine)
		return u
	}
	// A job without a key is out of the index, and no claim brings it back.
	u.when("(attribute_not_exists(" + key + ") OR " + key + " <= " + mine + ")")
	return u
}

// errOnlyKey: only the key stood in the way of a claim.
var errOnlyKey = errors.New("only the key")

// whyNotClaimed reads from the item why the condition of a claim failed. Nil: because it was claimed
// already, by an earlier try of this claim.
func whyNotClaimed(old item, step string, claim makegood.Claim) error {
	slot, held := asSlot(asMap(old[attrClaims])[step])
	switch {
	case len(old) == 0:
		return store.ErrNotFound
	case holds(old, step, claim):
		return nil
	case asInt(asMap(old[attrOpen])[step]) != int64(claim.Attempt):
		return store.ErrWithdrawn
	case held && slot.Attempt >= claim.Attempt:
		return store.ErrTaken
	}
	return errOnlyKey
}

// Beat extends a claim; see store.Claims. One that is tried again by the SDK raises ClaimsRev twice,
// which at worst makes a save decide again. A withdrawn attempt costs a second write: the first is told
// by its condition, since an agent may not read the item (template.yaml).
func (s *Store) Beat(ctx context.Context, job, step string, claim makegood.Claim) error {
	old, err := s.update(ctx, "Beat", job, beating(step, claim, true))
	withdrawn := errors.Is(err, errCondition) && holds(old, step, claim)
	if withdrawn {
		old, err = s.update(ctx, "Beat", job, beating(step, claim, false))
	}
	switch {
	case errors.Is(err, errCondition) && len(old) == 0:
		err = store.ErrNotFound
	case errors.Is(err, errCondition):
		err = store.ErrTaken
	case err == nil && withdrawn:
		err = store.ErrWithdrawn
	}
	if err != nil {
		return fmt.Errorf("beat %s of job %s: %w", step, job, err)
	}
	return nil
}

// holds reports whether the slot of a step is this claim's.
func holds(it item, step string, claim makegood.Claim) bool {
	slot, held := asSlot(asMap(it[attrClaims])[step])
	return held && slot.Attempt == claim.Attempt && slot.LockedBy == claim.LockedBy
}

// beating is the update that extends a claim; wanted: only if Open still names the attempt.
func beating(step string, claim makegood.Claim, wanted bool) *update {
	u := newUpdate()
	name := u.step("step", step)
	slot := u.attr(attrClaims) + "." + name
	attempt := u.value("attempt", number(int64(claim.Attempt)))
	u.set(slot+"."+u.attr(attrCompleteBy), "completeBy", instant(makegood.Instant(claim.CompleteBy)))
	u.raise(u.attr(attrClaimsRev))
	u.when(slot + "." + u.attr(attrLockedBy) + " = " + u.value("me", text(claim.LockedBy)))
	u.when(slot + "." + u.attr(attrAttempt) + " = " + attempt)
	if wanted {
		u.when(u.attr(attrOpen) + "." + name + " = " + attempt)
	}
	return u
}

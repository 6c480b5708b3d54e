package sqlitestore

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	updateClaims       = `UPDATE jobs SET claims_rev = ?, claims = ? WHERE row = ?`
	updateClaimsAndKey = `UPDATE jobs SET claims_rev = ?, claims = ?, complete_by = ? WHERE row = ?`
)

// Claim takes an attempt; see store.Claims.
func (s *Store) Claim(ctx context.Context, job, step string, claim makegood.Claim) error {
	claim = inMillis(claim)
	err := s.submit(ctx, 0, func(g *group) (answer, err error) { return g.claim(job, step, claim) })
	if err != nil {
		return fmt.Errorf("claim %s of job %s: %w", step, job, err)
	}
	return nil
}

func (g *group) claim(job, step string, claim makegood.Claim) (answer, err error) {
	it, err := g.item(job)
	if err != nil {
		return sift(err)
	}
	if it == nil {
		return store.ErrNotFound, nil
	}
	slot, held := it.job.Claims.Slots[step]
	switch {
	case held && slot.Attempt == claim.Attempt && slot.LockedBy == claim.LockedBy:
		return nil, nil
	case it.job.Open[step] != claim.Attempt:
		return store.ErrWithdrawn, nil
	case held && slot.Attempt >= claim.Attempt:
		return store.ErrTaken, nil
	}
	key := it.job.CompleteBy
	if key.After(claim.CompleteBy) {
		key = claim.CompleteBy
	}
	return nil, g.setSlot(it, step, claim, key)
}

// Beat extends a claim; see store.Claims.
func (s *Store) Beat(ctx context.Context, job, step string, claim makegood.Claim) error {
	claim = inMillis(claim)
	err := s.submit(ctx, 0, func(g *group) (answer, err error) { return g.beat(job, step, claim) })
	if err != nil {
		return fmt.Errorf("beat %s of job %s: %w", step, job, err)
	}
	return nil
}

func (g *group) beat(job, step string, claim makegood.Claim) (answer, err error) {
	it, err := g.item(job)
	if err != nil {
		return sift(err)
	}
	if it == nil {
		return store.ErrNotFound, nil
	}
	slot, held := it.job.Claims.Slots[step]
	if !held || slot.Attempt != claim.Attempt || slot.LockedBy != claim.LockedBy {
		return store.ErrTaken, nil
	}
	slot.CompleteBy = claim.CompleteBy
	if err := g.setSlot(it, step, slot, it.job.CompleteBy); err != nil {
		return nil, err
	}
	if it.job.Open[step] != claim.Attempt {
		return store.ErrWithdrawn, nil
	}
	return nil, nil
}

// setSlot writes a slot, raises Claims.Rev, and moves the key if it is another one.
func (g *group) setSlot(it *item, step string, claim makegood.Claim, key time.Time) error {
	next := *it
	slots := maps.Clone(it.job.Claims.Slots)
	if slots == nil {
		slots = map[string]makegood.Claim{}
	}
	slots[step] = claim
	next.job.Claims = makegood.Claims{Rev: it.job.Claims.Rev + 1, Slots: slots}
	body, err := encodeMap(slots)
	if err != nil {
		return err
	}
	if key.Equal(it.job.CompleteBy) {
		err = g.exec(updateClaims, next.job.Claims.Rev, body, it.row)
	} else {
		next.job.CompleteBy = key
		err = g.exec(updateClaimsAndKey, next.job.Claims.Rev, body, millis(key), it.row)
	}
	g.leave(&next)
	return err
}

// inMillis gives a claim whose times are whole milliseconds.
func inMillis(claim makegood.Claim) makegood.Claim {
	claim.StartedAt, claim.CompleteBy = makegood.Instant(claim.StartedAt), makegood.Instant(claim.CompleteBy)
	return claim
}

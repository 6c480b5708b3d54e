package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Claims are rows of their own, a slot a row, in the order of their jobs, so that those of one job share a page.
// Package store says how a slot changes; this file reads and writes it.
//
// A write asks for a flush only for a process outside, which lives on when this one dies. All groups are in one log,
// which a crash cuts off at one place: a Save that is on the disk has every Close there that was answered before it. So
// no job outlives a closing that it rests on, and a claim that was lost with the power is one of an engine that died:
// interrupted.
const (
	slotColumns = `attempt, locked_by, started_at, complete_by, closed, ends, expires_at, progress, progress_at, beside`
	whereSlot   = ` WHERE job = ? AND birth = ? AND step = ? AND agent = ?`

	selectSlot = `SELECT ` + slotColumns + ` FROM claims` + whereSlot
	putSlot    = `INSERT INTO claims(job, birth, step, agent, ` + slotColumns + `) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET attempt = excluded.attempt, locked_by = excluded.locked_by, started_at = excluded.started_at,
		complete_by = excluded.complete_by, closed = excluded.closed, ends = excluded.ends, expires_at = excluded.expires_at,
		progress = CASE excluded.progress WHEN '' THEN progress ELSE excluded.progress END,
		progress_at = coalesce(excluded.progress_at, progress_at), beside = excluded.beside`
	// takeSlot repeats the condition of store.Claimed for a slot that is empty or holds an older attempt, so the common
	// claim is spared a look at the slot.
	takeSlot = putSlot + ` WHERE attempt < excluded.attempt`
)

// Claim takes an attempt; see store.Claims.
func (s *Store) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	claim, until = store.Whole(claim), domain.Instant(until)
	err := s.submit(ctx, 0, func(g *group) (answer, err error) { return g.claim(slot, claim, until) })
	if err != nil {
		return fmt.Errorf("claim %s of job %s: %w", slot.Step, slot.Job, err)
	}
	return nil
}

func (g *group) claim(slot store.Slot, claim job.Claim, until time.Time) (answer, err error) {
	if fresh, err := store.Claimed(store.ClaimItem{}, claim, until); err == nil {
		result, err := g.writeSlot(takeSlot, slot, fresh)
		if err != nil {
			return nil, err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			g.durable = g.durable || claim.Outside()
			return nil, errors.Join(err, g.sweep.claimed(g.conn, claim.StartedAt))
		}
	}
	item, err := readSlot(g.conn, slot)
	if err != nil {
		return nil, err
	}
	// This decides the answer only: an attempt that could be taken was taken above.
	_, answer = store.Claimed(item, claim, until)
	return answer, nil
}

// Heartbeat extends a claim; see store.Claims.
func (s *Store) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	claim, until = store.Whole(claim), domain.Instant(until)
	var completeBy time.Time
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		item, err := readSlot(g.conn, slot)
		if err != nil {
			return nil, err
		}
		next, answer := store.Extended(item, claim, until)
		completeBy = next.CompleteBy
		g.durable = g.durable || next != item && claim.Outside()
		return answer, g.put(slot, item, next)
	})
	if err == nil {
		return completeBy, nil
	}
	if !errors.Is(err, store.ErrWithdrawn) {
		completeBy = time.Time{}
	}
	return completeBy, fmt.Errorf("heartbeat of %s of job %s: %w", slot.Step, slot.Job, err)
}

// Close ends an attempt, or names its holder; see store.Closings.
func (s *Store) Close(ctx context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	c = c.Whole()
	var found job.Found
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		item, err := readSlot(g.conn, slot)
		if err != nil {
			return nil, err
		}
		next, says := store.Closed(item, c)
		found = says
		return nil, g.put(slot, item, next)
	})
	if err != nil {
		return job.Found{}, fmt.Errorf("close attempt %d of %s of job %s: %w", c.Attempt, slot.Step, slot.Job, err)
	}
	return found, nil
}

// Look reads the state of an attempt; see store.Closings.
func (r *Reader) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	var item store.ClaimItem
	err := r.read(ctx, func(c *conn) (err error) {
		item, err = readSlot(c, slot)
		return err
	})
	if err != nil {
		return job.Found{}, fmt.Errorf("look at %s of job %s: %w", slot.Step, slot.Job, err)
	}
	return store.Looked(item, attempt, domain.Instant(until), domain.Instant(now)), nil
}

// Overrule writes over the claim of an agent that lies; see store.Closings.
func (s *Store) Overrule(ctx context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	until = domain.Instant(until)
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		item, err := readSlot(g.conn, slot)
		if err != nil {
			return nil, err
		}
		next, answer := store.Overruled(item, attempt, lie, until)
		return answer, g.put(slot, item, next)
	})
	return store.About(err, "overrule a claim on %s of job %s", slot.Step, slot.Job)
}

// put writes what a slot has become, if it has changed.
func (g *group) put(slot store.Slot, item, next store.ClaimItem) error {
	if next == item {
		return nil
	}
	result, err := g.writeSlot(putSlot, slot, next)
	return changedOne(putSlot, result, err)
}

// writeSlot runs one of the statements that write a slot.
func (g *group) writeSlot(sql string, slot store.Slot, item store.ClaimItem) (driver.Result, error) {
	return g.conn.exec(sql, slot.Job, slot.Birth, slot.Step, slot.Agent,
		int64(item.Attempt), item.LockedBy, millis(item.StartedAt), millis(item.CompleteBy), string(item.Closed), millis(item.Ends),
		millis(item.ExpiresAt), item.Progress.Value, millis(item.Progress.At), int64(item.Beside))
}

// readSlot reads a slot; the zero item when it is empty.
func readSlot(c *conn, slot store.Slot) (store.ClaimItem, error) {
	row, err := c.one(selectSlot, slot.Job, slot.Birth, slot.Step, slot.Agent)
	if err != nil || row == nil {
		return store.ClaimItem{}, err
	}
	return store.ClaimItem{
		Claim: job.Claim{
			Attempt: int(asInt(row[0])), LockedBy: asText(row[1]), StartedAt: asTime(row[2]), CompleteBy: asTime(row[3]),
			Progress: job.Progress{Value: asText(row[7]), At: asTime(row[8])}, Beside: int(asInt(row[9])),
		},
		Closed: job.Finding(asText(row[4])), Ends: asTime(row[5]), ExpiresAt: asTime(row[6]),
	}, nil
}

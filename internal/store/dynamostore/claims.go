package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// maxSlotWrites bounds the writes of one operation on a claim item: one, and more only while others write between what
// was seen and what rests on it.
const maxSlotWrites = 5

// errMoving: others wrote a claim item at each try. The call may be made again.
var errMoving = errors.New("others keep changing it")

// maxClaimMillis is later than anything that a claim may say: the end of the year 9999, the last that JSON can.
const maxClaimMillis = 253_402_300_799_999

func slotKey(slot store.Slot) item {
	return keyItem(claimPrefix+slot.Agent+"#"+slot.Job, slot.Birth+"#"+slot.Step)
}

// slotOf reads a claim item. An agent writes it, so anything may be in it.
func slotOf(it item) store.ClaimItem {
	var slot store.ClaimItem
	slot.Attempt, slot.LockedBy = int(asInt(it[attrAttempt])), asText(it[attrLockedBy])
	slot.StartedAt, slot.CompleteBy = asClaimTime(it[attrStartedAt]), asClaimTime(it[attrCompleteBy])
	slot.Closed, slot.Ends = job.Finding(asText(it[attrClosed])), asClaimTime(it[attrEnds])
	slot.Progress = asProgress(it[attrProgress])
	slot.Beside = int(max(0, asInt(it[attrBeside])))
	if size := sizeOf(it); size > job.MaxClaimItemBytes {
		slot.Bytes = size
	}
	if seconds := asInt(it[attrExpiresAt]); seconds > 0 {
		slot.ExpiresAt = time.Unix(seconds, 0).UTC()
	}
	return slot
}

// asProgress reads a progress: {"Value": JSON as text, "At": Unix ms}.
func asProgress(v types.AttributeValue) job.Progress {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return job.Progress{}
	}
	return job.Progress{Value: asText(m.Value["Value"]), At: asClaimTime(m.Value["At"])}.Fits()
}

func progress(p job.Progress) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: item{"Value": text(p.Value), "At": instant(p.At)}}
}

func asClaimTime(v types.AttributeValue) time.Time {
	if ms := asInt(v); ms > 0 {
		return time.UnixMilli(min(ms, maxClaimMillis)).UTC()
	}
	return time.Time{}
}

// slotValues returns the attributes of a claim item; nil for one that it has not.
func slotValues(slot store.ClaimItem) item {
	values := item{
		attrAttempt: number(int64(slot.Attempt)), attrLockedBy: nil, attrClosed: nil, attrBeside: nil, attrProgress: nil,
		attrExpiresAt: number(slot.ExpiresAt.Unix()),
	}
	if slot.LockedBy != "" {
		values[attrLockedBy] = text(slot.LockedBy)
	}
	if slot.Beside > 0 {
		values[attrBeside] = number(int64(slot.Beside))
	}
	if slot.Closed != "" {
		values[attrClosed] = text(string(slot.Closed))
	}
	if slot.Progress != (job.Progress{}) {
		values[attrProgress] = progress(slot.Progress)
	}
	for name, at := range map[string]time.Time{attrStartedAt: slot.StartedAt, attrCompleteBy: slot.CompleteBy, attrEnds: slot.Ends} {
		if values[name] = nil; !at.IsZero() {
			values[name] = instant(at)
		}
	}
	return values
}

// written returns a claim item as it will be read again: it expires at a whole second, and not before its time.
func written(slot store.ClaimItem) store.ClaimItem {
	if whole := time.Unix(slot.ExpiresAt.Unix(), 0).UTC(); whole.Before(slot.ExpiresAt) {
		slot.ExpiresAt = whole.Add(time.Second)
	}
	return slot
}

// Claim takes an attempt; see store.Claims. It is one write unit, however large the job is.
func (s *Store) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	return store.About(s.claim(ctx, slot, store.Whole(claim), domain.Instant(until)), "claim %s of job %s", slot.Step, slot.Job)
}

func (s *Store) claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	decide := func(seen store.ClaimItem) (store.ClaimItem, error) {
		next, err := store.Claimed(seen, claim, until)
		if err != nil {
			return seen, err
		}
		return next, nil
	}
	taken, late := decide(store.ClaimItem{})
	if late != nil {
		// No write is needed, unless this very claim is there, made before.
		return s.judge(ctx, "Claim", slot, nil, decide)
	}
	old, err := s.updateGiving(ctx, "Claim", slotKey(slot), claiming(taken), types.ReturnValueAllNew)
	if err == nil {
		hasWritten(ctx, sizeOf(old))
	}
	switch {
	case err == nil && slotOf(old).Bytes == 0:
		return nil
	case err != nil && !errors.Is(err, errCondition) && !isFull(err):
		return err
	}
	// The SDK retries, so it may be our own claim that stands there (law 11). Or what a thief put beside it.
	return s.judge(ctx, "Claim", slot, old, decide)
}

// isFull reports whether a write was refused because the item is full: a thief of its agent's role can fill it up to
// what DynamoDB allows, so that no more fits. The write that judge makes instead leaves the filling out.
func isFull(err error) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && refused.ErrorCode() == "ValidationException"
}

// claiming is the update that takes an attempt. The slot keeps attributes of a later release, and the progress.
func claiming(taken store.ClaimItem) *update {
	u := newUpdate()
	values := slotValues(written(taken))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case values[name] != nil:
			u.set(u.attr(name), "next"+name, values[name])
		case name != attrProgress:
			u.remove(u.attr(name))
		}
	}
	u.when("attribute_not_exists(" + u.attr(attrPK) + ") OR " + u.attr(attrAttempt) + " < " + u.value("attempt", values[attrAttempt]))
	return u
}

// Heartbeat extends a claim; see store.Claims.
func (s *Store) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	completeBy, err := s.heartbeat(ctx, slot, store.Whole(claim), domain.Instant(until))
	return completeBy, store.About(err, "heartbeat of %s of job %s", slot.Step, slot.Job)
}

func (s *Store) heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (completeBy time.Time, err error) {
	mine := job.Claim{Attempt: claim.Attempt, LockedBy: claim.LockedBy, StartedAt: claim.StartedAt}
	plain, _ := store.Extended(store.ClaimItem{Claim: mine}, claim, until)
	old, err := s.update(ctx, "Heartbeat", slotKey(slot), extending(written(plain)))
	if !errors.Is(err, errCondition) && !isFull(err) {
		return plain.CompleteBy, err
	}
	err = s.judge(ctx, "Heartbeat", slot, old, func(seen store.ClaimItem) (store.ClaimItem, error) {
		next, err := store.Extended(seen, claim, until)
		if completeBy = next.CompleteBy; errors.Is(err, store.ErrTaken) {
			completeBy = time.Time{}
		}
		return next, err
	})
	return completeBy, err
}

// extending is the update that extends a claim if its attempt is wanted and it does not reach further already.
func extending(next store.ClaimItem) *update {
	u := newUpdate()
	completeBy := u.attr(attrCompleteBy)
	u.set(completeBy, "completeBy", instant(next.CompleteBy))
	u.set(u.attr(attrExpiresAt), "expiresAt", number(next.ExpiresAt.Unix()))
	if next.Progress != (job.Progress{}) {
		u.set(u.attr(attrProgress), "progress", progress(next.Progress))
	}
	if next.Beside > 0 {
		beside := u.attr(attrBeside)
		u.set(beside, "beside", number(int64(next.Beside)))
		u.when("(attribute_not_exists(" + beside + ") OR " + beside + " <= :beside)")
	}
	u.holding(next.Claim)
	u.when("attribute_not_exists(" + u.attr(attrEnds) + ")")
	u.when(completeBy + " <= :completeBy")
	return u
}

// holding is the condition that a claim stands.
func (u *update) holding(claim job.Claim) {
	u.when(u.attr(attrAttempt) + " = " + u.value("attempt", number(int64(claim.Attempt))))
	u.when(u.attr(attrLockedBy) + " = " + u.value("me", text(claim.LockedBy)))
	u.when("attribute_not_exists(" + u.attr(attrClosed) + ")")
}

// Close ends an attempt, if it may be ended; see store.Closings. A failure that its claim's holder replied takes one
// write; any other closing a read, and a write if one is due.
func (s *Store) Close(ctx context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	found, err := s.close(ctx, slot, c.Whole())
	if err != nil {
		return job.Found{}, fmt.Errorf("close attempt %d of %s of job %s: %w", c.Attempt, slot.Step, slot.Job, err)
	}
	return found, nil
}

func (s *Store) close(ctx context.Context, slot store.Slot, c store.Closing) (found job.Found, err error) {
	var old item
	if c.LockedBy != "" && len(c.LockedBy) <= limits.MaxLockedByBytes {
		old, err = s.updateGiving(ctx, "Close", slotKey(slot), replying(c), types.ReturnValueAllNew)
		if err == nil {
			hasWritten(ctx, sizeOf(old))
		}
		if now := slotOf(old); err == nil && len(old) > 0 && now.Bytes == 0 {
			return job.Found{Finding: job.FoundReplied, Claim: now.Claim}, nil
		}
		if err != nil && !errors.Is(err, errCondition) && !isFull(err) {
			return found, err
		}
	}
	err = s.judge(ctx, "Close", slot, old, func(seen store.ClaimItem) (next store.ClaimItem, _ error) {
		next, found = store.Closed(seen, c)
		return next, nil
	})
	return found, err
}

// replying is the update that takes the failure that a claim's holder replied.
func replying(c store.Closing) *update {
	u := newUpdate()
	u.set(u.attr(attrClosed), "replied", text(string(job.FoundReplied)))
	u.holding(job.Claim{Attempt: c.Attempt, LockedBy: c.LockedBy})
	return u
}

// Look reads the state of an attempt; see store.Closings.
func (s *Store) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	it, err := s.getSlot(ctx, slot)
	if err != nil {
		return job.Found{}, fmt.Errorf("look at attempt %d of %s of job %s: %w", attempt, slot.Step, slot.Job, err)
	}
	return store.Looked(slotOf(it), attempt, domain.Instant(until), domain.Instant(now)), nil
}

// Overrule writes over a claim that is a lie; see store.Closings.
func (s *Store) Overrule(ctx context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	err := s.judge(ctx, "Overrule", slot, nil, func(seen store.ClaimItem) (store.ClaimItem, error) {
		return store.Overruled(seen, attempt, lie, domain.Instant(until))
	})
	return store.About(err, "overrule the claim of %s of job %s", slot.Step, slot.Job)
}

// judge writes the claim item that decide returns, conditional on the stored item being exactly the one that decide was
// given, and returns decide's answer. Where decide returns its argument, no write is made. seen is the item as it came
// back; without it, it is read: that none came back does not say that there is none.
func (s *Store) judge(ctx context.Context, operation string, slot store.Slot, seen item, decide func(store.ClaimItem) (store.ClaimItem, error)) error {
	var wrote store.ClaimItem
	var answer error
	for range maxSlotWrites {
		if len(seen) == 0 {
			var err error
			if seen, err = s.getSlot(ctx, slot); err != nil {
				return err
			}
		}
		was := slotOf(seen)
		if wrote != (store.ClaimItem{}) && was == wrote {
			return answer // It was our own write that stood in the way (law 11).
		}
		wrote, answer = decide(was)
		if wrote = written(wrote); wrote == was {
			return answer
		}
		var err error
		seen, err = s.update(ctx, operation, slotKey(slot), replacing(seen, wrote))
		switch {
		case err == nil:
			return answer
		case !errors.Is(err, errCondition) && !isFull(err):
			return err
		}
	}
	return errMoving
}

// getSlot reads a claim item, strongly consistent; nil if there is none.
func (s *Store) getSlot(ctx context.Context, slot store.Slot) (item, error) {
	it, err := s.get(ctx, "Look", slotKey(slot))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return it, err
}

// replacing is the update that replaces the claim item seen by next. Its condition is on the attributes as they are
// stored, even those that an agent may have put there.
func replacing(seen item, next store.ClaimItem) *update {
	u := newUpdate()
	values := slotValues(next)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != nil {
			u.set(u.attr(name), "next"+name, values[name])
			continue
		}
		// Also where none was seen: a thief may fill the item between the two.
		u.remove(u.attr(name))
	}
	// StartedAt, ExpiresAt, Beside and Progress change with these only, or are their holder's alone.
	for _, name := range []string{attrAttempt, attrLockedBy, attrCompleteBy, attrClosed, attrEnds} {
		if seen[name] == nil {
			u.when("attribute_not_exists(" + u.attr(name) + ")")
			continue
		}
		u.when(u.attr(name) + " = " + u.value("seen"+name, seen[name]))
	}
	return u
}

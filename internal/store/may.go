package store

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// This file has the condition of every write, and the item that the write leaves, for all adapters. SQLite and the
// store in memory call it; DynamoDB states it in its expressions, and storetest holds it to them; the model check runs
// it.

// Created returns what a Create leaves of stored, which is the zero job where the id is free.
func Created(stored, j job.Job) (job.Job, error) {
	if stored.Rev > 0 {
		return stored, ErrExists
	}
	j.Rev = 1
	return j, nil
}

// Saved returns what a Save leaves of stored, which is the zero job where there is none.
func Saved(stored job.Job, change Change) (job.Job, error) {
	if stored.Rev == 0 || stored.Rev != change.Job.Rev {
		return stored, ErrConflict
	}
	next := change.Job
	next.Rev++
	if !change.MovesKey() {
		next.CompleteBy = stored.CompleteBy
	}
	return next, nil
}

// SavedBefore reports whether stored is what a Save of job has left: its answer was lost, and it is made again.
func SavedBefore(stored, j job.Job) bool {
	return j.LockedBy != "" && stored.LockedBy == j.LockedBy && stored.Rev == j.Rev+1
}

// Parked returns the job that a Park leaves of stored; it reads only Rev and CompleteBy of stored. The caller checks
// that the job is there, and that this release may decide about it.
func Parked(stored job.Job, seen time.Time, reason string, completeBy time.Time) (job.Job, error) {
	if !stored.CompleteBy.Equal(seen) {
		return stored, ErrConflict
	}
	stored.ProcessState, stored.Reason, stored.CompleteBy = makegood.JobError, reason, completeBy
	stored.Rev++
	return stored, nil
}

// EndedAndTold reports whether a job may expire: it has ended, and every receiver was told; until then it has a key.
func EndedAndTold(j job.Job) bool {
	return j.ProcessState.Finished() && j.CompleteBy.IsZero()
}

// MovesKey reports whether the change writes another CompleteBy than the one that was loaded.
func (c Change) MovesKey() bool { return !c.Job.CompleteBy.Equal(c.Seen) }

// Claimed returns the item that a Claim leaves in a slot that holds item. The result equals item when the claim was
// made already and its item is not too large; ignore it beside an error.
func Claimed(item ClaimItem, claim job.Claim, until time.Time) (ClaimItem, error) {
	switch {
	case item.holds(claim):
		item.Bytes = 0
		return item, nil
	case item.Attempt > claim.Attempt, item.Attempt == claim.Attempt && item.Closed != "", claim.StartedAt.After(until):
		return item, ErrWithdrawn
	case item.Attempt == claim.Attempt:
		return item, ErrTaken
	}
	claim.Progress = item.Progress
	return ClaimItem{Claim: claim, ExpiresAt: expiry(until, claim.CompleteBy)}, nil
}

// Extended returns what a Heartbeat leaves in a slot that holds item; with ErrWithdrawn, too.
func Extended(item ClaimItem, claim job.Claim, until time.Time) (ClaimItem, error) {
	if !item.holds(claim) {
		return item, ErrTaken
	}
	next := item
	next.Bytes = 0
	if p := claim.Progress.Fits(); p != (job.Progress{}) {
		next.Progress = p
	}
	next.Beside = max(next.Beside, claim.Beside)
	next.CompleteBy = Longest(claim)
	if !item.Ends.IsZero() {
		next.CompleteBy = earliest(next.CompleteBy, item.Ends)
	}
	if next.CompleteBy.Before(item.CompleteBy) {
		next.CompleteBy = item.CompleteBy
	}
	next.ExpiresAt = expiry(until, next.CompleteBy)
	if !item.Ends.IsZero() {
		return next, ErrWithdrawn
	}
	return next, nil
}

// Lasting returns the CompleteBy that an attempt of a task asks for at now, which was claimed at started: as long from
// now as it may be silent, and not past the timeout of one that heartbeats.
func Lasting(task makegood.Task, started, now time.Time) time.Time {
	asked := now.Add(domain.Silence(task).Std())
	if task.Heartbeat > 0 {
		asked = earliest(asked, started.Add(task.Timeout.Std()))
	}
	return domain.Instant(asked)
}

// Longest returns the CompleteBy that a claim asks for, not past what any claim may have.
func Longest(claim job.Claim) time.Time {
	return earliest(claim.CompleteBy, claim.StartedAt.Add(limits.MaxClaim))
}

// Closed returns the item that a Close leaves in a slot that holds item, and its answer. The result equals item when
// there is no write to make.
func Closed(item ClaimItem, c Closing) (ClaimItem, job.Found) {
	switch {
	case item.Attempt > c.Attempt:
		return item, job.Found{Finding: job.FoundOver, Claim: item.Claim}
	case item.Attempt == c.Attempt && item.Closed != "":
		item.Bytes = 0
		return item, item.answer(c.LockedBy)
	case item.Attempt == c.Attempt:
		return closeHeld(item, c)
	case c.LockedBy != "":
		return item, job.Found{Finding: job.FoundOpen}
	case c.Now.After(c.Until):
		// Its item may have expired; one of an older attempt may have been written since. It is closed all the same: the
		// clock of an agent may be behind.
		next := ClaimItem{
			Claim:  job.Claim{Attempt: c.Attempt, Progress: item.Progress},
			Closed: job.FoundSilent, ExpiresAt: expiry(c.Now, time.Time{}),
		}
		return next, next.answer("")
	}
	next := ClaimItem{
		Claim:  job.Claim{Attempt: c.Attempt, Progress: item.Progress},
		Closed: job.FoundNobody, ExpiresAt: expiry(c.Until, time.Time{}),
	}
	return next, next.answer("")
}

// closeHeld is Closed of an attempt that was claimed.
func closeHeld(item ClaimItem, c Closing) (ClaimItem, job.Found) {
	next := item
	switch {
	case c.LockedBy != "" && c.LockedBy == item.LockedBy:
		next.Closed = job.FoundReplied
	case c.LockedBy == "" && !item.CompleteBy.After(c.Now):
		next.Closed = job.FoundSilent
	case c.LockedBy == "" && !c.Ends.IsZero() && item.Ends.IsZero() && len(item.LockedBy) <= limits.MaxLockedByBytes:
		next.Ends, next.Bytes = c.Ends, 0
		if item.CompleteBy.After(c.Ends) {
			next.Ends = item.CompleteBy
		}
		return next, job.Found{Finding: job.FoundHeld, Claim: item.Claim}
	default:
		return item, job.Found{Finding: job.FoundHeld, Claim: item.Claim}
	}
	next.Bytes = 0
	if len(next.LockedBy) > limits.MaxLockedByBytes {
		// A name that fills the item would keep it from being written.
		next.LockedBy = ""
	}
	return next, next.answer(c.LockedBy)
}

// answer is what a closed slot answers a Close or a Look.
func (i ClaimItem) answer(by string) job.Found {
	// An agent may write Closed: the value counts only if a Close can leave it.
	found := job.Found{Finding: job.FoundSilent, Claim: i.Claim}
	nobody := i.Closed == job.FoundNobody && i.LockedBy == ""
	replied := i.Closed == job.FoundReplied && by != "" && by == i.LockedBy
	if nobody || replied {
		found.Finding = i.Closed
	}
	return found
}

// Looked returns what a Look says of a slot that holds item.
func Looked(item ClaimItem, attempt int, until, now time.Time) job.Found {
	switch {
	case item.Attempt > attempt:
		return job.Found{Finding: job.FoundOver, Claim: item.Claim}
	case item.Attempt == attempt && item.Closed != "":
		return job.Found{Finding: job.FoundClosed, Claim: item.Claim}
	case item.Attempt == attempt:
		return job.Found{Finding: job.FoundHeld, Claim: item.Claim}
	case now.After(until):
		return job.Found{Finding: job.FoundClosed}
	}
	return job.Found{Finding: job.FoundOpen}
}

// Overruled returns what an Overrule leaves in a slot that holds item.
func Overruled(item ClaimItem, attempt int, lie string, until time.Time) (ClaimItem, error) {
	if item.Attempt == 0 || item.LockedBy != lie {
		return item, ErrConflict
	}
	return ClaimItem{
		Claim: job.Claim{Attempt: attempt, Progress: item.Progress}, Closed: job.FoundSilent, ExpiresAt: expiry(until, time.Time{}),
	}, nil
}

// holds reports whether the slot is this claim's, and was not closed.
func (i ClaimItem) holds(claim job.Claim) bool {
	return i.Attempt == claim.Attempt && i.LockedBy == claim.LockedBy && i.Closed == ""
}

// expiry is when an item may go: not before anything that it stands against can be over.
func expiry(until, completeBy time.Time) time.Time {
	if completeBy.After(until) {
		until = completeBy
	}
	return until.Add(limits.KeepClaim)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Lease is the holder of a lease, and the time it ends. The zero value: it has no holder.
type Lease struct {
	Holder string
	Until  time.Time
}

// MaxLease is how far ahead a lease may reach. One that reaches further is of a clock that was wrong, or of a thief.
const MaxLease = 5 * time.Minute

// Leased returns what a TakeLease that asks for a lease leaves of the one that is held.
func Leased(held, asked Lease, now time.Time) (Lease, error) {
	if held.Holder != asked.Holder && now.Before(held.Until) && !held.Until.After(now.Add(MaxLease)) {
		return held, ErrTaken
	}
	return asked, nil
}

// Package store has the ports of Makegood's store: one hot item a job, changed only by conditional writes, and an index
// on CompleteBy. It holds contracts; the adapters and the suite that holds them to the contracts stand beside it.
//
// # One hot item, and a claim item a step
//
// Every fact that decides about a job is in one item, which only the Scheduler's code writes: Save is conditional on
// Rev, and on no other field. The owner of an attempt stands in a claim item of its own, one a step, which agents write
// (Claim, Heartbeat) and the Scheduler ends (Close, Overrule). Each is one conditional write, and the first writer
// wins: an attempt that was closed can never be claimed or extended, so no save needs to know of a claim.
//
// Created, Saved, Parked, Claimed, Extended, Closed, Looked and Overruled are these conditions as functions.
//
// # After a failure
//
// An error that is none of the sentinels below leaves it unknown whether the write happened. The caller delivers the
// event again; every write here can be tried again without harm.
//
// Times are whole milliseconds in UTC. Every method may be called by many goroutines at once.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

var (
	// ErrNotFound: there is no such job, payload or definition.
	ErrNotFound = errors.New("not found")
	// ErrExists: Create found a job of this id.
	ErrExists = errors.New("exists already")
	// ErrConflict: the condition of a Save did not hold. Load again and decide again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrTaken: another claim holds the attempt.
	ErrTaken = errors.New("claimed by another")
	// ErrWithdrawn: the attempt cannot be claimed any more: it was closed, a newer one was claimed, or it is too late; in
	// answer to a heartbeat: the claim stands, but its result is not wanted any more.
	ErrWithdrawn = errors.New("withdrawn")
	// ErrDamaged: the item is there and cannot be decoded. Park it.
	ErrDamaged = errors.New("damaged")
	// ErrNewer: a later release wrote the job, and this one must not decide about it. Leave it as it is.
	ErrNewer = errors.New("written by a newer release: leave it")
	// ErrTooLarge: the store cannot keep a job of this size.
	ErrTooLarge = errors.New("too large to be kept")
)

// Jobs keeps the hot items. Only the Scheduler's code calls it.
type Jobs interface {
	// Create stores job as Rev 1, with its CompleteBy, in one durable write, or fails with ErrExists when the id is
	// taken, whatever by.
	Create(ctx context.Context, j job.Job) error

	// Load reads a job, strongly consistent: every Create, Save and Park that was answered before is in it.
	// ErrNotFound, ErrDamaged; ErrNewer, together with the job as far as this release knows it, to be shown.
	Load(ctx context.Context, id string) (job.Job, error)

	// Save stores change.Job as Rev change.Job.Rev+1 in one durable write. It fails with ErrConflict, without a write,
	// unless change.Job.Rev is the Rev stored; with ErrNewer, for a job that was loaded with it; and with ErrTooLarge,
	// before any write.
	Save(ctx context.Context, change Change) error

	// Park puts a job that cannot be decoded or applied in front of a person: ProcessState Error, this reason, and this
	// CompleteBy, by a raw write on the item that needs no decoding and is conditional on CompleteBy still being seen. It
	// raises Rev, as every write of the item does. ErrConflict, ErrNotFound; ErrNewer for a job with a Needs above this
	// release. The rest of the item stays, so that it can be mended; where that leaves no room, a part is kept elsewhere.
	Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error
}

// Change is what a Save writes.
type Change struct {
	// Job is the job as it is to be, but for Rev, which is as it was loaded.
	Job job.Job
	// Seen is CompleteBy as it was loaded: a key that has not moved need not be written.
	Seen time.Time
}

// Slot names the claim item of a step: one for all its attempts and those of its undo by the same agent.
type Slot struct {
	Agent string
	Job   string
	// Birth is the job's nonce: a job under an id that was used before finds no claims of the earlier job.
	Birth string
	Step  string
}

// ClaimItem is the content of a slot. The zero value is an empty slot.
type ClaimItem struct {
	job.Claim
	// Closed says how the attempt was closed: FoundNobody, FoundSilent or FoundReplied. Empty: it was not.
	Closed job.Finding
	// Ends is set once the attempt is unwanted: its CompleteBy cannot go past it.
	Ends time.Time
	// ExpiresAt is when the item may be deleted: later than its attempt can be claimed, or run.
	ExpiresAt time.Time
}

// Claims is what an agent may do, to slots that carry its name.
type Claims interface {
	// Claim takes the attempt for claim.LockedBy, if the slot is empty or holds an older attempt, and claim.StartedAt is
	// not after until, the ClaimUntil of the attempt. A claim that finds its own LockedBy, not closed, has been made
	// already, by an earlier try, and succeeds. ErrTaken: another holds the attempt. ErrWithdrawn: it is closed, or a newer
	// one was claimed, or until has passed. The write survives the death of the process; it need not survive the loss of
	// power on an embedded store, unless claim.Outside(): then, as its heartbeats, it must.
	Claim(ctx context.Context, slot Slot, claim job.Claim, until time.Time) error

	// Heartbeat moves the CompleteBy of the caller's claim to claim.CompleteBy, keeps claim.Progress if there is any (the
	// part that does not fit is left out), until a later one of the slot replaces it, raises Beside to claim.Beside, and
	// returns the CompleteBy that stands now, which may be earlier: not past limits.MaxClaim from claim.StartedAt. ErrTaken
	// when the slot is not this attempt's and this LockedBy's any more, or was closed: the attempt is over. ErrWithdrawn
	// when the attempt is unwanted: the claim still stands, until the time given, which is not past the end that was set
	// when it became so.
	Heartbeat(ctx context.Context, slot Slot, claim job.Claim, until time.Time) (completeBy time.Time, err error)
}

// Closings is what the Scheduler does to slots.
type Closings interface {
	// Close ends an attempt if it is unclaimed or its claim's CompleteBy is not after c.Now, keeps its finding, and returns
	// the same answer when it is asked again: FoundNobody or FoundSilent. Else FoundHeld with the claim, which is marked as
	// unwanted if c.Ends is set. FoundOver, without a write, if the slot is of a newer attempt. A slot without this attempt
	// or a newer one is FoundNobody before c.Until, and FoundSilent after it: its item may have expired.
	//
	// With c.LockedBy it takes the failure that this holder replied: FoundReplied, and again when asked again by the same
	// holder; FoundSilent to any other. A claim of another's is FoundHeld, and none FoundOpen, both without a write.
	Close(ctx context.Context, slot Slot, c Closing) (job.Found, error)

	// Look reads the state of an attempt, strongly consistent, and makes no write: FoundOpen, FoundHeld, FoundClosed,
	// FoundOver.
	Look(ctx context.Context, slot Slot, attempt int, until, now time.Time) (job.Found, error)

	// Overrule writes over the claim of an agent that lies: the slot is closed, FoundSilent, as of attempt, if its
	// LockedBy is still lie. ErrConflict.
	Overrule(ctx context.Context, slot Slot, attempt int, lie string, until time.Time) error
}

// Closing asks for the end of an attempt.
type Closing struct {
	Attempt int
	// Until is the ClaimUntil of the attempt, Now the Scheduler's clock.
	Until, Now time.Time
	// LockedBy is the holder that replied a failure; empty: no holder did.
	LockedBy string
	// Ends, if set, says that the attempt is unwanted: a claim that is held cannot go past it, or past the
	// CompleteBy that it has.
	Ends time.Time
}

// Whole returns a claim as every store keeps it: its times are whole milliseconds.
func Whole(claim job.Claim) job.Claim {
	claim.StartedAt, claim.CompleteBy = domain.Instant(claim.StartedAt), domain.Instant(claim.CompleteBy)
	claim.Progress.At = domain.Instant(claim.Progress.At)
	return claim
}

// Whole returns the closing with times that are whole milliseconds, as those are that it is compared with.
func (c Closing) Whole() Closing {
	c.Until, c.Now, c.Ends = domain.Instant(c.Until), domain.Instant(c.Now), domain.Instant(c.Ends)
	return c
}

// Index is the sparse, sharded index on CompleteBy, all that the Supervisor may read. It is a hint:
// it may lag behind the items, in both directions.
type Index interface {
	// Shards is how many there are; at least 1.
	Shards() int
	// Due lists jobs, and schedules, of a shard that have a CompleteBy not after now, oldest first, at most limit, going on
	// after the entry after (zero: from the start).
	Due(ctx context.Context, shard int, now time.Time, after Entry, limit int) ([]Entry, error)
}

// Entry is a job or a schedule in the index.
type Entry struct {
	CompleteBy time.Time
	// Job is the job's id; empty for a schedule, which has its name in Schedule, and for the holds.
	Job, Schedule string
	// Holds: the entry is that of the holds, one or more being released (package store's Holds).
	Holds bool
}

// Payloads keeps inputs and outputs that are too large for the hot item, in the job's partition.
type Payloads interface {
	// PutPayload stores value once: if the key is taken, the value that is there stays, and that is
	// success (it was written by an earlier try of the same thing). It is durable, at the latest,
	// together with the Create or Save of the same job that comes after it.
	PutPayload(ctx context.Context, job, key string, value []byte) error
	// Payload reads a value. ErrNotFound.
	Payload(ctx context.Context, job, key string) ([]byte, error)
	Histories
}

// Histories reads and shortens the histories of jobs: the payloads under the keys of pages (job.Page). A page is
// written as a payload, before the save that names it; a page that no save names is no part of a history.
type Histories interface {
	// HistoryPages reads all pages of a job, by their keys, strongly consistent. Those that were dropped may be among them.
	HistoryPages(ctx context.Context, job string) (map[string][]byte, error)
	// DropPages lets go of the pages of a job that lie wholly between entry after and entry before: see job.Falls. They are
	// deleted then, or a while later; keeping the other parts of the job does not keep them. Dropping pages that are gone
	// succeeds.
	DropPages(ctx context.Context, job string, after, before int) error
}

// Definitions keeps workflow definitions by their hash, and which one is current by its name.
type Definitions interface {
	// PutDefinition stores a definition if its hash is new, and makes it the current one of its name.
	PutDefinition(ctx context.Context, name, hash string, definition []byte) error
	// Definition reads a definition by its hash. ErrNotFound.
	Definition(ctx context.Context, hash string) ([]byte, error)
	// CurrentDefinition returns the hash that is current for a name. ErrNotFound.
	CurrentDefinition(ctx context.Context, name string) (hash string, err error)
}

// Leases keep several Supervisors from doing the same work at the same time (seed 002). They save cost, and correctness
// does not rest on them: two holders with different clocks may both hold a lease.
type Leases interface {
	// TakeLease returns the lease of this name to holder until until, or extends it if holder has it already. It fails with
	// ErrTaken while the lease of another has not run out at now, and reaches no further than MaxLease.
	TakeLease(ctx context.Context, name, holder string, now, until time.Time) error
	// ReleaseLease gives a lease up, if holder has it; else it has no effect.
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Store is an adapter that keeps everything.
type Store interface {
	Jobs
	Claims
	Closings
	Index
	Payloads
	Definitions
}

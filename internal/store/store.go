// Package store says what Makegood needs of a store: one hot item a job, changed only by conditional
// writes, and an index on CompleteBy. It holds contracts; the adapters and the suite that holds them
// to it stand beside it.
//
// # One hot item
//
// Everything that decides about a job is in one item. Three kinds of write change it, and each is
// one conditional write:
//
//	Save   the Scheduler's: everything but Claims; conditional on Rev
//	Claim  an agent's: one slot of Claims, Claims.Rev, and CompleteBy when it must come down;
//	       conditional on Open and the slot
//	Beat   an agent's: the CompleteBy of its own slot, and Claims.Rev; conditional on the slot
//
// MaySave, MayClaim and Holds are these conditions as functions.
//
// A Save never writes a slot; it removes those of attempts that it ends. A Claim never writes Rev.
// So neither can erase the other, and a Save that rests on what the claims were says so (OnClaims).
//
// # After a failure
//
// An error that is none of the sentinels below leaves it unknown whether the write happened. The
// caller delivers the event again; every write here can be tried again without harm.
//
// Times are whole milliseconds in UTC. Every method may be called by many goroutines at once.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood"
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
	// ErrWithdrawn: the attempt is not, or no longer, the one that may be claimed; in answer to a
	// heartbeat: the claim stands, but nobody wants the result any more.
	ErrWithdrawn = errors.New("withdrawn")
	// ErrDamaged: the item is there and cannot be decoded. Park it.
	ErrDamaged = errors.New("damaged")
)

// Jobs keeps the hot items. Only the Scheduler's code calls it.
type Jobs interface {
	// Create stores job as Rev 1, with its Open, its CompleteBy and no claims, in one durable write,
	// or fails with ErrExists when the id is taken, whatever by.
	Create(ctx context.Context, job makegood.Job) error

	// Load reads a job with its claims, strongly consistent: every Create, Save, Claim and Beat that
	// was answered before is in it. ErrNotFound, ErrDamaged.
	Load(ctx context.Context, id string) (makegood.Job, error)

	// Save stores change.Job as Rev change.Job.Rev+1 in one durable write, keeping the stored claims
	// but for the slots that it ends. It fails with ErrConflict, and writes nothing, unless
	//   - change.Job.Rev is the Rev stored, and
	//   - if change.OnClaims: change.Job.Claims.Rev is the Claims.Rev stored, and
	//   - if it moves CompleteBy: the CompleteBy stored is change.Seen.
	Save(ctx context.Context, change Change) error

	// Park puts a job that cannot be decoded or applied in front of a person: ProcessState Error,
	// this reason, and this CompleteBy, by a raw write on the item that needs no decoding and is
	// conditional on CompleteBy still being seen. ErrConflict, ErrNotFound. What else the item holds
	// stays, for whoever mends it.
	Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error
}

// Change is what a Save writes.
type Change struct {
	// Job is the job as it is to be, but for Rev and Claims, which are as they were loaded.
	Job makegood.Job
	// Seen is CompleteBy as it was loaded.
	Seen time.Time
	// Ended names the steps whose claim slots go, because their attempts are over.
	Ended []string
	// OnClaims: the change rests on an attempt being unclaimed or expired, or raises CompleteBy.
	OnClaims bool
}

// Claims is what an agent may do to a job.
type Claims interface {
	// Claim takes the attempt for claim.LockedBy, if Open names it and its slot is empty or of an
	// older attempt, and lowers the job's CompleteBy to claim.CompleteBy if it is later. Claims.Rev
	// goes up by one. A claim that finds its own LockedBy in the slot has been made already, by an
	// earlier try, and succeeds without a further write.
	// ErrTaken; ErrWithdrawn when Open does not name the attempt; ErrNotFound when there is no job.
	// The write survives the death of the process; it need not survive the loss of power on an
	// embedded store.
	Claim(ctx context.Context, job, step string, claim makegood.Claim) error

	// Beat moves the CompleteBy of the caller's slot to completeBy; Claims.Rev goes up by one. The
	// index key stays: it may be early. ErrTaken when the slot is not this attempt's and this
	// LockedBy's any more: the attempt is over. ErrWithdrawn when the slot is the caller's but Open
	// no longer names the attempt: the claim still stands, and was extended.
	Beat(ctx context.Context, job, step string, claim makegood.Claim) error
}

// Index is the sparse, sharded index on CompleteBy, all that the Supervisor may read. It is a hint:
// it may lag behind the items, in both directions.
type Index interface {
	// Shards is how many there are; at least 1.
	Shards() int
	// Due lists jobs of a shard whose CompleteBy is not after now, oldest first, at most limit of
	// them, going on after the entry after (zero: from the start).
	Due(ctx context.Context, shard int, now time.Time, after Entry, limit int) ([]Entry, error)
}

// Entry is a job in the index.
type Entry struct {
	CompleteBy time.Time
	Job        string
}

// Payloads keeps inputs and outputs that are too large for the hot item, in the job's partition.
type Payloads interface {
	// PutPayload stores value once: if the key is taken, the value that is there stays, and that is
	// success (it was written by an earlier try of the same thing). It is durable, at the latest,
	// together with the Create or Save of the same job that comes after it.
	PutPayload(ctx context.Context, job, key string, value []byte) error
	// Payload reads a value. ErrNotFound.
	Payload(ctx context.Context, job, key string) ([]byte, error)
}

// Definitions keeps workflow definitions by their hash, and which one is current by its name.
type Definitions interface {
	// PutDefinition stores a definition if its hash is new, and makes it the current one of its name.
	PutDefinition(ctx context.Context, name, hash string, definition []byte) error
	// Definition reads a definition by its hash. ErrNotFound.
	Definition(ctx context.Context, hash string) ([]byte, error)
	// CurrentDefinition gives the hash that is current for a name. ErrNotFound.
	CurrentDefinition(ctx context.Context, name string) (hash string, err error)
}

// Leases keep several Supervisors from doing the same work at the same time (seed 002). Nothing rests on
// them but economy: a lease may be held by two whose clocks differ.
type Leases interface {
	// TakeLease gives the lease of this name to holder until until, or extends it if holder has it
	// already. It fails with ErrTaken while the lease of another has not run out at now.
	TakeLease(ctx context.Context, name, holder string, now, until time.Time) error
	// ReleaseLease gives a lease up, if holder has it; else nothing happens.
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Lister lists jobs for people to look at. Lists carry no payloads and may be a little old.
type Lister interface {
	// ListJobs gives at most limit jobs that match, newest first where the store can, and the cursor
	// for the next page; empty at the end. A page may be short, or empty, before the end.
	ListJobs(ctx context.Context, filter Filter, cursor string, limit int) ([]Listed, string, error)
}

// Filter narrows a list; empty fields match everything.
type Filter struct {
	State    makegood.ProcessState
	Workflow string
}

// Listed is a job in a list.
type Listed struct {
	ID           string                `json:"id"`
	Workflow     string                `json:"workflow"`
	ProcessState makegood.ProcessState `json:"processState"`
	FailureCount int                   `json:"failureCount"`
	CompleteBy   time.Time             `json:"completeBy,omitzero"`
	CreatedAt    time.Time             `json:"createdAt"`
}

// Store is an adapter that keeps everything.
type Store interface {
	Jobs
	Claims
	Index
	Payloads
	Definitions
}

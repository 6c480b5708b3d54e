package store

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

var (
	// ErrClosed: the store was closed. No write was made.
	ErrClosed = errors.New("the store is closed")
	// ErrFailed: a commit or a flush failed, now or earlier, and its outcome is unknown. The store neither reads nor
	// writes until it goes on, or, if it is lost, is opened again.
	ErrFailed = errors.New("the store has failed")
)

// Embedded is the store of an engine in one process: a Store, and the parts that the table, the queue of quarantine
// and the platform have on AWS.
type Embedded interface {
	Store
	Schedules
	Holds
	Gates
	Lister
	Auditor
	Totaler
	Incarnations
	Upkeep
	Quarantine
	Disk
}

// Incarnation is one run of the engine on a store.
type Incarnation struct {
	// Number is 1 in a new store, and one more at each start. It is never given again.
	Number int
	// Stopped: the run before it did not die. It was told to stop.
	Stopped bool
	// Deaths is how many runs in a row before it died within minutes of their start, before an attempt had ended. Since is
	// when the first of these runs began; zero if there were none.
	Deaths int
	Since  time.Time
}

// Incarnations count the runs of the engine. A change is durable when its method has returned without an error.
type Incarnations interface {
	// NextIncarnation counts a run that begins now.
	NextIncarnation(ctx context.Context, now time.Time) (Incarnation, error)
	// Progressed keeps that an attempt has ended in this run: it is no part of a loop of deaths.
	Progressed(ctx context.Context) error
	// Stopped keeps that this run was told to stop, and does not die.
	Stopped(ctx context.Context) error
}

// Upkeep has the requests of an engine that are not about one job.
type Upkeep interface {
	// Unfinished returns at most limit jobs that are at no end, after an entry, in the order of their keys, as Due does.
	Unfinished(ctx context.Context, after Entry, limit int) ([]Entry, error)
	// NextDue returns the earliest key of a job or a schedule after a time; zero: there is none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
	// Each calls f with every job, in bounded memory, until f returns an error.
	Each(ctx context.Context, f func(job.Job) error) error
	// MendDefinition puts a definition in the place of the text that is stored under its hash, if that differs, and
	// reports whether it did. The change is durable.
	MendDefinition(ctx context.Context, hash string, definition []byte) (mended bool, err error)
	// Expire deletes some of the jobs that were at their end and told of by a time, the oldest first, with their
	// payloads. It returns their ids, which are free again, and reports whether there are more. A deletion that is
	// lost with the power is made again.
	Expire(ctx context.Context, finished time.Time) (deleted []string, more bool, err error)
	// ExpireQuarantined deletes some of the messages that came into quarantine by a time, as Expire does.
	ExpireQuarantined(ctx context.Context, by time.Time) (more bool, err error)
	// Shrink gives some room that is free back to the disk, and reports whether there is more.
	Shrink(ctx context.Context) (more bool, err error)
}

// Quarantine keeps the messages that cannot be handled.
type Quarantine interface {
	// Quarantine keeps a message, durably, and drops the oldest where there are too many (MaxQuarantined) or they are
	// too large (MaxQuarantinedBytes). After an error it is unknown whether the message is kept.
	Quarantine(ctx context.Context, body string, at time.Time) error
	// DropQuarantined deletes a message, durably. ErrNotFound.
	DropQuarantined(ctx context.Context, id int64) error
	// Quarantined reads at most limit messages after one, or after 0, the oldest first. None: there are no more.
	Quarantined(ctx context.Context, after int64, limit int) (QuarantinePage, error)
	// QuarantinedMessage reads a message. ErrNotFound.
	QuarantinedMessage(ctx context.Context, id int64) (Quarantined, error)
}

// Disk is the life of a store's files.
type Disk interface {
	// Probe writes to the store, durably. An error says that it cannot be written now.
	Probe(ctx context.Context) error
	// CheckFiles finds out whether the files are still those that were opened. If not, the store is lost.
	CheckFiles(ctx context.Context) error
	// Lost returns a channel that is closed when the store has failed and cannot go on by itself, and Failure says why.
	Lost() <-chan struct{}
	Failure() error
	// Shut ends the writes that have begun and closes the store. Calls that come later fail with ErrClosed.
	Shut() error
}

// FolderLock is the lock of a folder that an engine holds.
type FolderLock interface {
	// Say lets a process that finds the folder locked read why.
	Say(why string) error
	Release()
}

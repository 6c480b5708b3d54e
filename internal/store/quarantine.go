package store

import "time"

const (
	// MaxQuarantined is how many messages an engine in one process keeps in quarantine, and MaxQuarantinedBytes how many
	// bytes their bodies may have together. The oldest are dropped for new ones, and counted.
	MaxQuarantined      = 10_000
	MaxQuarantinedBytes = 64 << 20
	// MaxQuarantinePageBytes is the most bytes of bodies that a page may have before its last message.
	MaxQuarantinePageBytes = 4 << 20
)

// Quarantined is a message in quarantine as a store keeps it.
type Quarantined struct {
	// ID counts them from 1, and is given once.
	ID int64
	// At is when it was put there.
	At   time.Time
	Body string
}

// QuarantinePage is a part of the quarantined messages, the oldest first.
type QuarantinePage struct {
	Messages []Quarantined
	// Dropped is how many were dropped so far for newer ones.
	Dropped int64
}

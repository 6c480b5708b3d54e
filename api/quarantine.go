package api

import (
	"errors"
	"time"
)

// ErrNoMessage: there is no such message in quarantine.
var ErrNoMessage = errors.New("there is no such message in quarantine")

// PutAway is a message that was put away: into quarantine, or on a stack into dead letters.
type PutAway struct {
	ID string `json:"id"`
	// Queue is where it lies, Source where it came from and would go; empty: that is not known.
	Queue  string `json:"queue"`
	Source string `json:"source"`
	// Type, Job, Step and Attempt are what its body says, as far as it says that.
	Type    string `json:"type,omitempty"`
	Job     string `json:"job,omitempty"`
	Step    string `json:"step,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Reason says why it was put away.
	Reason string `json:"reason"`
	// Deliveries is how often it was received there before it was put away; of a dead letter, how often it was looked at here.
	Deliveries int       `json:"deliveries"`
	SentAt     time.Time `json:"sentAt,omitzero"`
	// CutFrom is how long it was in bytes, where only its beginning was kept.
	CutFrom int `json:"cutFrom,omitempty"`
	// Body is the message as it came.
	Body string `json:"body,omitempty"`
}

// ReplayResult says what becomes of a message that is replayed.
type ReplayResult string

// The results.
const (
	// ReplaySent: it went to its queue again, and is not in quarantine any more.
	ReplaySent ReplayResult = "sent"
	// ReplayAsked: it is a task whose attempt is out. Its Scheduler was told to look, and sends the task when it is due.
	ReplayAsked ReplayResult = "asked"
	// ReplayOver: it is a task of which nothing is left to do, and was deleted.
	ReplayOver ReplayResult = "over"
	// ReplayRefused: it stays where it is.
	ReplayRefused ReplayResult = "refused"
)

// Replayed is what becomes of a message that is replayed, and why.
type Replayed struct {
	Result ReplayResult `json:"result"`
	Why    string       `json:"why"`
}

// Quarantined is a message in quarantine, and what a replay would make of it.
type Quarantined struct {
	PutAway
	Replay Replayed `json:"replay"`
}

// QuarantinePage is a page of what is in quarantine, the oldest first.
type QuarantinePage struct {
	Messages []PutAway `json:"messages"`
	// Cursor is that of the next page; empty at the end.
	Cursor string `json:"cursor"`
	// Dropped is how many were dropped so far, the oldest first, because there was no room for more.
	Dropped int64 `json:"dropped"`
}

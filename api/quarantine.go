package api

import (
	"errors"
	"time"
)

// ErrNoMessage: there is no such message in quarantine.
var ErrNoMessage = errors.New("there is no such message in quarantine")

// PutAway is a message that was put into quarantine, or on a stack into dead letters.
type PutAway struct {
	ID string `json:"id"`
	// Queue is the queue that holds the message, Source the queue that it came from and would return to; empty: not known.
	Queue  string `json:"queue"`
	Source string `json:"source"`
	// Type, Job, Step and Attempt come from the body, as far as it has them.
	Type    string `json:"type,omitempty"`
	Job     string `json:"job,omitempty"`
	Step    string `json:"step,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Reason says why it was put away.
	Reason string `json:"reason"`
	// Deliveries counts the receipts at Source before the message was put away; for a dead letter, the times it was looked
	// at here.
	Deliveries int       `json:"deliveries"`
	SentAt     time.Time `json:"sentAt,omitzero"`
	// CutFrom is the full length in bytes, where only the beginning was kept.
	CutFrom int `json:"cutFrom,omitempty"`
	// Body is the message as it came.
	Body string `json:"body,omitempty"`
}

// ReplayResult is the result of a replay.
type ReplayResult string

// The results.
const (
	// ReplaySent: the message went to its queue again, and left the quarantine.
	ReplaySent ReplayResult = "sent"
	// ReplayAsked: the message is a task, and its attempt is out. Its Scheduler was told to look, and sends the task when
	// it is due.
	ReplayAsked ReplayResult = "asked"
	// ReplayOver: the message is a task with no work left to do, and was deleted.
	ReplayOver ReplayResult = "over"
	// ReplayRefused: the message stays in quarantine.
	ReplayRefused ReplayResult = "refused"
)

// Replayed is the result of a replay, and why.
type Replayed struct {
	Result ReplayResult `json:"result"`
	Why    string       `json:"why"`
}

// Quarantined is a message in quarantine, with the expected result of a replay.
type Quarantined struct {
	PutAway
	Replay Replayed `json:"replay"`
}

// QuarantinePage is a page of the quarantine, the oldest message first.
type QuarantinePage struct {
	Messages []PutAway `json:"messages"`
	// Cursor is that of the next page; empty at the end.
	Cursor string `json:"cursor"`
	// Dropped counts the messages that were dropped so far, the oldest first, because there was no room for more.
	Dropped int64 `json:"dropped"`
}

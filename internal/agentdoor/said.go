package agentdoor

import (
	"encoding/json"
	"time"
)

// The messages of an agent and the door, as JSON: internal/httpapi carries them, and onhttp is the agent's side.

// TasksAsked is the body of a request for tasks.
type TasksAsked struct {
	Instance string `json:"instance"`
	Max      int    `json:"max,omitempty"`
	Wait     int    `json:"wait,omitempty"`
	Request  string `json:"request,omitempty"`
}

// TasksGiven answers it. HeldMs is how long the request was held before this was written.
type TasksGiven struct {
	HeldMs int         `json:"heldMs"`
	Tasks  []TaskGiven `json:"tasks"`
}

// TaskGiven is a task that is the asker's: the message as it would be on a queue, its claim, and how long that holds,
// counted from when this was written. A shared task has no claim, and so no LockedBy.
type TaskGiven struct {
	Task       json.RawMessage `json:"task"`
	LockedBy   string          `json:"lockedBy,omitempty"`
	StartedAt  time.Time       `json:"startedAt"`
	CompleteBy time.Time       `json:"completeBy"`
	LeftMs     int             `json:"leftMs"`
}

// ReplyTaken answers a reply.
type ReplyTaken struct {
	// Status is applied, duplicate (it came before) or stale (it changes nothing), and Reason why.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Heartbeat is the body of a heartbeat.
type Heartbeat struct {
	Job      string `json:"job"`
	Step     string `json:"step"`
	Attempt  int    `json:"attempt"`
	Token    string `json:"token"`
	LockedBy string `json:"lockedBy"`
	// Progress is how far the work has come, for people to see.
	Progress json.RawMessage `json:"progress,omitempty"`
}

// HeartbeatTaken answers it. Status is held, withdrawn or over; with over there is no CompleteBy any more.
type HeartbeatTaken struct {
	Status     string    `json:"status"`
	CompleteBy time.Time `json:"completeBy,omitzero"`
	LeftMs     int       `json:"leftMs,omitempty"`
}

// HolderHeader is the header that names the attempt of a request for a payload: a Holder, as JSON in ASCII. It is no
// parameter, since URLs are kept in logs, and tokens must not be.
const HolderHeader = "Makegood-Holder"

// Holder names the attempt that the caller holds, as in a heartbeat. A shared task has no LockedBy.
type Holder struct {
	Job      string `json:"job"`
	Step     string `json:"step"`
	Attempt  int    `json:"attempt"`
	Token    string `json:"token"`
	LockedBy string `json:"lockedBy,omitempty"`
}

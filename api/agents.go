package api

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood"
)

// AgentPlace is where an agent works.
type AgentPlace string

// The places.
const (
	// AgentHere: in the process of the engine.
	AgentHere AgentPlace = "here"
	// AgentOutside: in other processes, which come to the engine for their tasks.
	AgentOutside AgentPlace = "outside"
	// AgentQueue: wherever the queue of its tasks is read: a function of the stack, or a process that polls.
	AgentQueue AgentPlace = "queue"
)

// Agent is the state of an agent. A field that the answering side does not know is null.
type Agent struct {
	Name  string     `json:"name"`
	Place AgentPlace `json:"place"`
	// Workflows are the names of those whose current definition asks it for something, sorted.
	Workflows []string `json:"workflows"`
	// Waiting is how many tasks wait for it, and InFlight how many it has taken and not ended; on a stack both are about so
	// many, as SQS says. InFlight of an agent outside is not known.
	Waiting  *int `json:"waiting"`
	InFlight *int `json:"inFlight"`
	// OldestAt is when the task was sent that has waited longest; null: none waits, or, on a stack, SQS does not say.
	OldestAt *time.Time `json:"oldestAt"`
	// Lately is how its attempts ended in the last minutes; null: not known, which is so of agents outside and on a stack,
	// where the metrics say it.
	Lately *AgentLately `json:"lately"`
	// Polls is how an agent outside comes for its tasks; null: it is here, or on a stack.
	Polls *AgentPolls `json:"polls"`
	// Hold says since when it is paused as a whole, by whom and why, or how far its release is; null: it is not paused.
	Hold *makegood.Hold `json:"hold"`
	// Problem is why its queue could not be asked; empty: it could.
	Problem string `json:"problem"`
}

// AgentPolls is how an agent outside comes for its tasks, as the engine's process remembers it.
type AgentPolls struct {
	// Waiting is how many requests wait for tasks now, and Instances how many processes have asked within the last 30 seconds.
	Waiting   int `json:"waiting"`
	Instances int `json:"instances"`
	// LastAt is when the last request came, or stopped waiting; null: none came since Since, when the engine began.
	LastAt *time.Time `json:"lastAt"`
	Since  time.Time  `json:"since"`
}

// AgentLately counts attempts that ended.
type AgentLately struct {
	// Since is from when on they are counted: some minutes ago, or when the engine began.
	Since     time.Time `json:"since"`
	Succeeded int       `json:"succeeded"`
	// Failed said so; Late said nothing in time. Both are failures.
	Failed int `json:"failed"`
	Late   int `json:"late"`
	// Waiting counts the attempts that left their step waiting for an answer from outside.
	Waiting int `json:"waiting"`
}

// Agents is how a program sees how agents stand, wherever they are, as Jobs is for jobs.
type Agents interface {
	// ListAgents returns the agents that tasks are sent to, by their names. The built-in agents that nothing is sent to
	// (wait, approval) are not among them.
	ListAgents(ctx context.Context) ([]Agent, error)
}

package api

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood"
)

// AgentPlace is the place where an agent works.
type AgentPlace string

// The places.
const (
	// AgentHere: in the process of the engine.
	AgentHere AgentPlace = "here"
	// AgentOutside: in other processes, which ask the engine for their tasks.
	AgentOutside AgentPlace = "outside"
	// AgentQueue: wherever the queue of its tasks is read: a function of the stack, or a process that polls.
	AgentQueue AgentPlace = "queue"
)

// Agent is the state of an agent. A field that the answering side does not know is null.
type Agent struct {
	Name  string     `json:"name"`
	Place AgentPlace `json:"place"`
	// Workflows are the names of the workflows with a step for this agent in their current definition, sorted.
	Workflows []string `json:"workflows"`
	// Waiting counts the tasks that wait for the agent; InFlight those that it has taken and not ended. On a stack both
	// are the approximate counts of SQS. InFlight of an agent outside is not known.
	Waiting  *int `json:"waiting"`
	InFlight *int `json:"inFlight"`
	// OldestAt is when the longest waiting task was sent; null: no task waits, or, on a stack, SQS does not say.
	OldestAt *time.Time `json:"oldestAt"`
	// Lately counts how the agent's attempts ended in the last minutes; null: not known, as for agents outside, and on a
	// stack, where the metrics have it.
	Lately *AgentLately `json:"lately"`
	// Polls describes how an agent outside asks for its tasks; null: the agent is here, or on a stack.
	Polls *AgentPolls `json:"polls"`
	// Hold is the pause of the whole agent (since when, by which caller, why), or the progress of its release; null: the
	// agent is not paused.
	Hold *makegood.Hold `json:"hold"`
	// Limit is the limit of its attempts that are under way at once, with how many are and how many wait; null: there is
	// none.
	Limit *makegood.Hold `json:"limit"`
	// Problem is the reason why the agent's queue could not be asked; empty: it could.
	Problem string `json:"problem"`
}

// AgentPolls describes how an agent outside asks for its tasks, as the engine's process remembers it.
type AgentPolls struct {
	// Waiting counts the requests that wait for tasks now; Instances the processes that have asked within the last 30
	// seconds.
	Waiting   int `json:"waiting"`
	Instances int `json:"instances"`
	// LastAt is when the last request came, or stopped waiting; null: no request came since Since, when the engine began.
	LastAt *time.Time `json:"lastAt"`
	Since  time.Time  `json:"since"`
}

// AgentLately counts attempts that ended.
type AgentLately struct {
	// Since is when the counting began: some minutes ago, or when the engine began.
	Since     time.Time `json:"since"`
	Succeeded int       `json:"succeeded"`
	// Failed counts the attempts that reported a failure; Late those that sent no report in time. Both are failures.
	Failed int `json:"failed"`
	Late   int `json:"late"`
	// Waiting counts the attempts that left their step waiting for an answer from outside.
	Waiting int `json:"waiting"`
}

// Agents reads the state of the agents, wherever they are, as Jobs does for jobs.
type Agents interface {
	// ListAgents returns the agents that tasks are sent to, sorted by name. It leaves out the built-in agents that get no
	// tasks (wait, approval).
	ListAgents(ctx context.Context) ([]Agent, error)
}

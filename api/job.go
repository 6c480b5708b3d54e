package api

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// Listed is a job in a list. Lists carry no payloads.
type Listed struct {
	ID           string                `json:"id"`
	Workflow     string                `json:"workflow"`
	ProcessState makegood.ProcessState `json:"processState"`
	FailureCount int                   `json:"failureCount"`
	CompleteBy   *time.Time            `json:"completeBy"`
	CreatedAt    time.Time             `json:"createdAt"`
	// Paused, Reason, FirstReason, Tenant and Labels are those of the job.
	Paused bool   `json:"paused"`
	Reason string `json:"reason"`
	// FirstReason is empty where the job has had no other reason in its round.
	FirstReason string            `json:"firstReason"`
	Tenant      string            `json:"tenant"`
	Labels      map[string]string `json:"labels"`
	// Steps are those at which it stands: see Filter.Step; Agents whom they are with. Kind is the kind of the error by which the step failed at which a
	// job in Error has stopped; empty: none.
	Steps  []string `json:"steps"`
	Agents []string `json:"agents"`
	Kind   string   `json:"kind"`
	// Spent is what it has cost on AWS so far; nil: that is not known.
	Spent *makegood.Spent `json:"spent"`
	// Job is the job itself, without payloads and history; of an engine with who holds its attempts and how far they say that they are, of a
	// stack without. Nil where details were not asked for (Client.Details).
	Job *makegood.Job `json:"job"`
	// StoppedAt is when that step failed; of a job that is paused when that was asked for; null: not so, or not known.
	StoppedAt *time.Time `json:"stoppedAt"`
}

// Workflow is a workflow that jobs can be submitted to.
type Workflow struct {
	Name string `json:"name"`
	// Definition is the hash of its current definition.
	Definition string `json:"definition"`
}

// Definition is what a hash stands for: a workflow, as its jobs keep it.
type Definition struct {
	Name string `json:"name"`
	// Definition is its hash.
	Definition string `json:"definition"`
	// Source is a workflow file that says the same, without the comments and schedules of the one that it was made of.
	Source string `json:"source"`
	// Workflow is it whole.
	Workflow makegood.Workflow `json:"workflow"`
}

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
	// Paused, Reason, FirstReason, Tenant, Labels and Priority are those of the job.
	Paused bool   `json:"paused"`
	Reason string `json:"reason"`
	// FirstReason is empty where the job has had no other reason in its round.
	FirstReason string            `json:"firstReason"`
	Tenant      string            `json:"tenant"`
	Labels      map[string]string `json:"labels"`
	Priority    makegood.Priority `json:"priority,omitempty"`
	// Steps are the steps at which the job stands: see Filter.Step; Agents the agents of these steps. Kind is the kind of
	// the error that stopped a job in Error; empty: none.
	Steps  []string `json:"steps"`
	Agents []string `json:"agents"`
	Kind   string   `json:"kind"`
	// Parent is the id of the job with the step that this job does; empty: this job was submitted.
	Parent string `json:"parent"`
	// Spent is the job's cost on AWS so far; nil: not known.
	Spent *makegood.Spent `json:"spent"`
	// Job is the job itself, without payloads and history; an engine adds the holders of its attempts and their reported
	// progress, a stack does not. Nil where details were not asked for (Client.Details).
	Job *makegood.Job `json:"job"`
	// StoppedAt is when that step failed, or when the pause of a paused job was asked for; null: neither, or not known.
	StoppedAt *time.Time `json:"stoppedAt"`
}

// Workflow is a workflow that jobs can be submitted to.
type Workflow struct {
	Name string `json:"name"`
	// Definition is the hash of the workflow's current definition.
	Definition string `json:"definition"`
}

// Definition is a definition, as its jobs keep it: a workflow.
type Definition struct {
	Name string `json:"name"`
	// Definition is the hash.
	Definition string `json:"definition"`
	// Source is an equivalent workflow file, without the comments and schedules of the original file.
	Source string `json:"source"`
	// Workflow is the whole workflow.
	Workflow makegood.Workflow `json:"workflow"`
}

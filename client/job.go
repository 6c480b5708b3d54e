package client

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
}

// Workflow is a workflow that jobs can be submitted to.
type Workflow struct {
	Name string `json:"name"`
	// Definition is the hash of its current definition.
	Definition string `json:"definition"`
}

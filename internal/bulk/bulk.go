// Package bulk makes one request of many jobs: at a bounded speed, with its progress to be looked at, and going on
// after a crash of either side. It decides nothing about jobs, and finds none: callers give their ids. The command
// carries an order out in front of its user (Resume, Run.Carry); a Keeper carries the page's orders out in the
// background.
//
// # Storage
//
// An order, the list of requests, is in a file on the disk before the first job is asked. The effects are in the jobs:
// each is asked under the order's name, and a job grants a request of one name once (decision 0027), so a repeated
// request has no second effect. The answer of each job is a line behind the order; a lost line costs a request that is
// answered by "it is so already".
package bulk

import (
	"errors"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Order is a request and the jobs to make it of.
type Order struct {
	// Name is the name of the order, and of the request to each job.
	Name string `json:"name"`
	// Says describes the order for people.
	Says string `json:"says"`
	// Answer, if it is not empty, is the answer to Step, or its Undo, with Reason as why. Else Verb is asked of each job,
	// for Reason; by Definition, where that is not empty (api.Request). With both empty, Step, or its Undo, is settled, as
	// done or as Skipped.
	Verb       makegood.Verb `json:"verb,omitempty"`
	Definition string        `json:"definition,omitempty"`
	Step       string        `json:"step,omitempty"`
	Undo       bool          `json:"undo,omitempty"`
	Skipped    bool          `json:"skipped,omitempty"`
	Answer     string        `json:"answer,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	// By is the author, which each job keeps with the request unless a login gives a better name; empty: not known.
	By string `json:"by,omitempty"`
	// PerSecond is how many jobs are asked in a second at most.
	PerSecond float64   `json:"perSecond"`
	BeganAt   time.Time `json:"beganAt"`
	Jobs      []string  `json:"jobs"`
}

// Outcome is the outcome of asking a job.
type Outcome string

// The outcomes.
const (
	Granted Outcome = "granted"
	// Already: it was so, or this order had asked before.
	Already Outcome = "already"
	Refused Outcome = "refused"
)

// Answer is the answer of a job. Without an Outcome none came, because of Err, and the job is to be asked again.
type Answer struct {
	Outcome Outcome
	// Reason is why it was refused.
	Reason string
	// State is the state of the job after its answer; empty: not known.
	State makegood.ProcessState
	Err   error
}

// AnswerOf returns the answer to a request from its result. No job has answered where the caller may not ask, either:
// that error is the same for every job.
func AnswerOf(job makegood.Job, err error) Answer {
	var refused *api.RefusedError
	var mismatch *api.MismatchError
	var invalid *api.InvalidError
	no := func(reason string) Answer { return Answer{Outcome: Refused, Reason: reason, State: job.ProcessState} }
	switch {
	case err == nil && job.Existed:
		return Answer{Outcome: Already, State: job.ProcessState}
	case err == nil:
		return Answer{Outcome: Granted, State: job.ProcessState}
	case errors.Is(err, api.ErrNotFound):
		return no(api.ErrNotFound.Error())
	case errors.Is(err, api.ErrDamaged):
		return no(api.ErrDamaged.Error()) // It stays so, and the other jobs do not wait for it.
	case errors.As(err, &refused):
		return no(refused.Reason)
	case errors.As(err, &mismatch):
		return no("its id is that of another job already")
	case errors.As(err, &invalid) && invalid.Status != http.StatusUnauthorized && invalid.Status != http.StatusForbidden:
		return no(invalid.Message)
	}
	return Answer{Err: err}
}

// Refusal is a job that was refused, and why.
type Refusal struct{ Job, Reason string }

// Progress is how far an order is.
type Progress struct {
	Order
	// Asked is how many jobs have answered: Granted, Already and Refused together.
	Asked, Granted, Already, Refused int
	// Refusals are the first refusals.
	Refusals []Refusal
	// EndedAt is when all jobs had answered, or it was stopped; zero: it goes on. Stopped: by a person.
	EndedAt time.Time
	Stopped bool
	// Elsewhere: another process carries it out.
	Elsewhere bool
	// Waits is why no answer comes; empty: answers come. The order asks again by itself.
	Waits string
	// Kept: it is in a file, and goes on after a restart. Damaged is how many lines of that cannot be read.
	Kept    bool
	Damaged int
}

// Goes reports whether it has not ended.
func (p Progress) Goes() bool { return p.EndedAt.IsZero() }

// Total is how many jobs it has.
func (p Progress) Total() int { return len(p.Jobs) }

// Left is how many jobs have not answered.
func (p Progress) Left() int { return len(p.Jobs) - p.Asked }

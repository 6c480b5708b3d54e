// Package api has the words of a program that works with jobs, wherever they are: its requests (Filter, Request,
// StepRef), the answers (Listed, Page, Groups), the errors, and the interfaces that an engine, a client and a folder
// share (Jobs, Schedules, Holds, Payloads, Agents).
//
// It imports the root package alone. Package client speaks HTTP in these words, package engine answers in the process.
package api

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/sealed"
)

// Reader reads jobs, wherever they are: an engine in the process (engine.Engine), an HTTP address (client.New), a
// deployed stack (doors.New), or a folder that no engine needs to run on (folder.Open).
//
// Errors are wrapped: use errors.Is and errors.As. Only types of this module implement it, so it may get more methods.
type Reader interface {
	sealed.Interface
	// Get reads a job with its input and outputs; Look without. There is no such job: ErrNotFound.
	Get(ctx context.Context, id string) (makegood.Job, error)
	Look(ctx context.Context, id string) (makegood.Job, error)
	// Page returns the page of a list after the one that returned cursor; empty: the first. An unknown state, a state
	// beside Paused, and a cursor from no page of such a list are an *InvalidError.
	Page(ctx context.Context, filter Filter, cursor string) (Page, error)
	// Count counts the jobs of a list by facets, as many as it can in some seconds, after the answer that returned cursor;
	// empty: from the start. Errors are those of Page; an unknown facet is an *InvalidError. CountAll counts to the end.
	Count(ctx context.Context, filter Filter, by []Facet, cursor string) (Groups, error)
	// List returns the jobs of a list, and reads pages as its caller needs them. An error ends it.
	List(ctx context.Context, filter Filter) iter.Seq2[Listed, error]
	// Wait waits until a job is finished or in Error, and returns it with its payloads. When ctx ends, it returns ctx's
	// error.
	Wait(ctx context.Context, id string) (makegood.Job, error)
	// Watch returns a job without payloads after each change, first in its present state, and ends after returning it
	// finished or in Error. Changes in close succession may appear as one.
	Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error]
	// Workflows lists the workflows that jobs can be submitted to.
	Workflows(ctx context.Context) ([]Workflow, error)
}

// Jobs works with jobs, wherever an engine runs them: in the process (engine.Engine), at an HTTP address (client.New),
// or as a deployed stack (doors.New).
//
// After ErrNotFound, ErrDamaged, ErrNewer, *MismatchError, *RefusedError and *InvalidError no state has changed. After
// *UnreachableError, or another error, the fate of the request is unknown: every request may be made again without
// harm.
type Jobs interface {
	Reader
	// Submit stores a job, with its first attempts, before it answers, and returns it without payloads. Where a job of
	// this id and content was there already, it is the same job, and Existed is set.
	Submit(ctx context.Context, s makegood.Submission) (makegood.Job, error)
	// Request asks for a verb, and returns the job as stored afterwards, without payloads. A request for a state that
	// holds already succeeds, and Existed is set. A request of the same name (Request.Name) for the same job is the same
	// request, as long as it is among the 16 that were granted last, and Existed is set. A Reschedule moves the start of a
	// job that has not begun, and its timeout counts from the new start; a start in the past is at once, the zero time an
	// *InvalidError, and a start more than makegood.MaxStartDelay ahead is refused.
	Request(ctx context.Context, id string, r Request) (makegood.Job, error)
	// Plan returns the effects of a Resubmit with its Definition and Input, and changes no state. Where the Resubmit would
	// be refused, Plan is refused with the same reason; another verb is an *InvalidError.
	Plan(ctx context.Context, id string, r Request) (makegood.Plan, error)
	// Complete ends a step that waits, with its output; nil is null. Fail reports that it has failed, and why; its
	// RetryAfter is ignored. The first answer wins; the same answer again succeeds, and another is refused with the answer
	// that stands. Heartbeat extends the wait: to until, or, with the zero time, by the length of the original wait. Each
	// returns the job as stored afterwards, without payloads.
	Complete(ctx context.Context, id string, at StepRef, output json.RawMessage) (makegood.Job, error)
	Fail(ctx context.Context, id string, at StepRef, why makegood.StepError) (makegood.Job, error)
	Heartbeat(ctx context.Context, id string, at StepRef, until time.Time) (makegood.Job, error)
	// Settle records that a person has dealt with a step, or its undo: it counts as done or skipped from then on, is
	// marked as settled by hand for ever, and the job goes on where it can. Settle is refused while a worker holds an
	// attempt (the error names the worker and the end of its hold); on a side that the job does not go; and for a step
	// that is done or settled already. The same request again succeeds, and Existed is set. Settle returns the job as
	// stored afterwards, without payloads.
	Settle(ctx context.Context, id string, at StepRef, s SettleOptions) (makegood.Job, error)
	// Completion returns the methods for the holder of a completion token. The token of an agent's task is
	// makegood.Task.Completion.
	Completion(token string) Completion
	// Offers returns, for each verb, its effect on the job in its present state, or the reason why it would be refused. It
	// changes no state. Errors: ErrNotFound.
	Offers(ctx context.Context, id string) (makegood.Offers, error)
	// SentInputs returns the inputs of the latest attempts of a job's steps and undos, with marks in the place of secrets.
	// step names one step, which comes with its whole input; empty: all steps, inputs above 4 KB without their values. It
	// changes no state. Errors: ErrNotFound.
	SentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error)
	// Definition reads a definition by its hash, as found in a job or a Workflow. Errors: ErrNoDefinition.
	Definition(ctx context.Context, hash string) (Definition, error)
}

// Request is a request for a verb on a job.
type Request struct {
	Verb makegood.Verb
	// Reason is why; it may be empty.
	Reason string
	// Name is the name of the request, at most 128 of [A-Za-z0-9._:-]; empty: a name is made.
	Name string
	// StartAt is the new start that Reschedule asks for.
	StartAt time.Time
	// Definition is the definition that Resubmit or Redrive moves the job to: the hash of a known definition, or
	// CurrentDefinition. Empty: the job keeps its own. Input is the job's new input; nil: it keeps its own.
	Definition string
	Input      json.RawMessage
	// Step is the step with a map that Redrive is for, or that Edit gives other figures to in the place of a Timeout.
	// Indexes are the failed items of its list that Redrive is for, by their places from 0, such as "3,17-20", at most 1000
	// items. Empty: all failed items, of all maps.
	Step, Indexes string `json:",omitempty"`
	// Timeout is the job's new timeout, for Edit: how long it may go forward, from now, or from its start if that is
	// ahead, or, if it is in Error, from its resubmission. makegood.NoTimeout: as long as it takes.
	Timeout makegood.Duration
	// Concurrency and Tolerate are the figures that Edit gives to the map of Step: those that are not 0, and not nil.
	Concurrency int                 `json:",omitempty"`
	Tolerate    *makegood.Tolerance `json:",omitempty"`
}

// CurrentDefinition stands for the current definition of the job's workflow name.
const CurrentDefinition = "current"

// Page is a page of a list.
type Page struct {
	Jobs []Listed `json:"jobs"`
	// Cursor is the cursor of the next page; empty at the end. A page may be short, or empty, before the end.
	Cursor string `json:"cursor"`
	// Scanned: no index leads to such jobs, so other jobs were read, and on a stack paid for, to find them.
	Scanned bool `json:"scanned"`
}

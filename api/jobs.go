// Package api has the words of a program that works with jobs, wherever they are: what it asks (Filter, Request,
// StepRef), what it gets (Listed, Page, Groups), the errors, and the interfaces that an engine, a client and a folder
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

// Reader reads jobs, wherever they are: an engine in the process (engine.Engine), an HTTP address (client.New), a deployed
// stack (doors.New), or a folder that no engine needs to run on (folder.Open).
//
// Errors are wrapped: use errors.Is and errors.As. Only types of this module implement it, so it may get more methods.
type Reader interface {
	sealed.Interface
	// Get reads a job with its input and outputs; Look without. There is no such job: ErrNotFound.
	Get(ctx context.Context, id string) (makegood.Job, error)
	Look(ctx context.Context, id string) (makegood.Job, error)
	// Page returns a page of a list, after the one that gave cursor; empty: the first. A state that there is not, a state
	// beside Paused, and a cursor of no page of such a list are an *InvalidError.
	Page(ctx context.Context, filter Filter, cursor string) (Page, error)
	// Count counts the jobs of a list by facets, as far as it comes within some seconds, after the answer that gave cursor;
	// empty: from the start. Errors are those of Page, and facets that there are not an *InvalidError. CountAll goes on.
	Count(ctx context.Context, filter Filter, by []Facet, cursor string) (Groups, error)
	// List returns jobs, and reads on as far as its caller does. An error ends it.
	List(ctx context.Context, filter Filter) iter.Seq2[Listed, error]
	// Wait waits until a job is finished or in Error, and returns it with its payloads. It ends with ctx's error when
	// ctx does.
	Wait(ctx context.Context, id string) (makegood.Job, error)
	// Watch returns a job without payloads each time something about it has changed, first as it is now, and ends after
	// giving it finished or in Error. Changes that follow closely upon each other may be seen as one.
	Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error]
	// Workflows lists the workflows that jobs can be submitted to.
	Workflows(ctx context.Context) ([]Workflow, error)
}

// Jobs works with jobs, wherever an engine runs them: in the process (engine.Engine), at an HTTP address (client.New), or as a
// deployed stack (doors.New).
//
// After ErrNotFound, ErrDamaged, ErrNewer, *MismatchError, *RefusedError and *InvalidError nothing has changed. After *UnreachableError,
// or another error, the fate of the request is unknown: every request may be made again without harm.
type Jobs interface {
	Reader
	// Submit stores a job, with its first attempts, before it answers, and returns it without payloads. Where the same id
	// with the same content was there already, which is the same job, Existed is set.
	Submit(ctx context.Context, s makegood.Submission) (makegood.Job, error)
	// Request asks for a verb, and returns the job as it is stored after it, without payloads. A request for what is so already
	// succeeds, and Existed is set. The same name (Request.Name) asked for again of the same job is the same request, as long
	// as it is among the 16 that were granted last, and Existed is set. A Reschedule moves the start of a job of which nothing
	// has begun, and its timeout counts from the new start; a start in the past is at once, the zero time an *InvalidError, and
	// a start more than makegood.MaxStartDelay ahead is refused.
	Request(ctx context.Context, id string, r Request) (makegood.Job, error)
	// Plan says what a Resubmit with its Definition and Input would do, and changes nothing. Where that would be refused, so is
	// this, with the same reason; another verb is an *InvalidError.
	Plan(ctx context.Context, id string, r Request) (makegood.Plan, error)
	// Complete ends a step that waits, with its output; nil is null. Fail says that it has failed, and why; its RetryAfter
	// is not looked at. The first answer wins, the same again is the same, and another is refused with what stands. Heartbeat
	// has it wait longer: until then, or, with the zero time, as long again as it was to wait. Each returns the job as it
	// is stored after it, without payloads.
	Complete(ctx context.Context, id string, at StepRef, output json.RawMessage) (makegood.Job, error)
	Fail(ctx context.Context, id string, at StepRef, why makegood.StepError) (makegood.Job, error)
	Heartbeat(ctx context.Context, id string, at StepRef, until time.Time) (makegood.Job, error)
	// Settle says that a person has dealt with a step, or its undo: it counts as done or skipped since, for ever marked as
	// settled by hand, and the job goes on where it can. It is refused while somebody holds an attempt of it, and says who
	// and until when; of a side that the job does not go; and of what is done or settled already. The same again is the
	// same, and Existed is set. It returns the job as it is stored after it, without payloads.
	Settle(ctx context.Context, id string, at StepRef, s SettleOptions) (makegood.Job, error)
	// Completion returns what the holder of a completion token may do. The token of an agent's task is makegood.Task.Completion.
	Completion(token string) Completion
	// Offers says what may be asked of a job as it stands: of each verb what it would do, or why it would be refused. Nothing is
	// changed. Errors: ErrNotFound.
	Offers(ctx context.Context, id string) (makegood.Offers, error)
	// SentInputs says what the steps of a job and their undos were asked: the inputs of their latest attempts, with marks in the
	// place of secrets. step names one, whose input is given whole; empty: all, those above 4 KB without their values. Nothing is
	// changed. Errors: ErrNotFound.
	SentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error)
	// Definition reads a definition by its hash, which is that of a job or of a Workflow. Errors: ErrNoDefinition.
	Definition(ctx context.Context, hash string) (Definition, error)
}

// Request is what is asked of a job.
type Request struct {
	Verb makegood.Verb
	// Reason is why; it may be empty.
	Reason string
	// Name is the name of the request, at most 128 of [A-Za-z0-9._:-]; empty: one is made.
	Name string
	// StartAt is the new start that Reschedule asks for.
	StartAt time.Time
	// Definition is what Resubmit moves the job to: the hash of a definition that is known there, or CurrentDefinition.
	// Empty: it keeps its own. Input is what it has as its input from then on; nil: it keeps its own.
	Definition string
	Input      json.RawMessage
	// Timeout is what Edit gives the job: how long it may go forward, from now or from its start if that is ahead; from when
	// it is resubmitted, if it is in Error. makegood.NoTimeout: as long as it takes.
	Timeout makegood.Duration
}

// CurrentDefinition stands for the definition that is current for the name of a job's workflow.
const CurrentDefinition = "current"

// Page is a page of a list.
type Page struct {
	Jobs []Listed `json:"jobs"`
	// Cursor is that of the next page; empty at the end. A page may be short, or empty, before the end.
	Cursor string `json:"cursor"`
	// Scanned: no index leads to such jobs, and others were read, and on a stack paid for, to find them.
	Scanned bool `json:"scanned"`
}

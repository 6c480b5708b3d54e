// Package view turns stored jobs into jobs as people and programs see them. It reads only its arguments and makes no
// decisions.
package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
)

// Source is where that is read which is not in the job's own item; see store.Payloads and store.Histories.
type Source interface {
	Payload(ctx context.Context, job, key string) ([]byte, error)
	HistoryPages(ctx context.Context, job string) (map[string][]byte, error)
}

// Of returns a job without its payloads and its history. held are the claims on its open attempts, by step; nil if
// they were not read: then an attempt is shown as sent, claimed or not.
func Of(j job.Job, held map[string]job.Claim) makegood.Job {
	times := make(moments, 0, timesOfJob+timesOfStep*len(j.Steps))
	v := makegood.Job{
		ID: j.ID, Workflow: j.Workflow, Definition: j.Definition, Round: j.Round,
		ProcessState: j.ProcessState, Desired: j.Desired, Paused: j.Paused(), PausedAt: times.show(j.PausedAt), Reason: j.Reason, FirstReason: j.FirstReason,
		Tenant: j.Tenant, Labels: j.Labels, Priority: j.Priority,
		FailureCount: j.FailureCount, LockedBy: text(j.LockedBy), CompleteBy: times.show(j.CompleteBy),
		StartAt: times.show(j.StartAt), NextRoundAt: times.show(j.NextRoundAt), CreatedAt: j.CreatedAt.UTC(), FinishedAt: times.show(j.FinishedAt),
		ExpectBy: times.show(j.ExpectBy), Warned: !j.ExpectBy.IsZero() && j.WarnAt.IsZero(),
		RequestedBy: text(j.RequestedBy), HistoryCount: j.History.Count, InputBytes: j.Input.Bytes,
		Spent:   Spent(j.Spent),
		History: []makegood.Entry{}, HistoryGaps: []makegood.HistoryGap{},
		Steps: make([]makegood.JobStep, len(j.Steps)),
	}
	if child, ok := domain.ChildOf(j.ID); ok {
		v.Parent = child.Parent
	}
	if j.Desired == makegood.JobProcessed && !j.ProcessState.Finished() {
		v.Deadline = times.show(j.Deadline)
	}
	if j.Paused() {
		v.HeldBy, v.HeldReason = j.HeldBy, j.HeldReason
	}
	for i := range j.Steps {
		s := &j.Steps[i] // By index: a step is large.
		claim := held[s.Name]
		v.Steps[i] = makegood.JobStep{Name: s.Name, Activity: activity(&times, &j, &s.Forward, claim)}
		if claim.LockedBy != "" {
			if child := domain.ChildID(j.ID, j.Birth, s.Name, s.Forward.Attempt); claim.LockedBy == domain.HolderOf(child) {
				v.Steps[i].Child = child
			}
		}
		if e := j.EditOf(s.Name); e.Step != "" {
			v.Steps[i].Edited = &makegood.MapEdit{Concurrency: e.Concurrency, Tolerate: e.Tolerate}
		}
		if s.Undo.State != job.NotStarted || s.Undo.Attempt > 0 || s.Undo.FailureCount > 0 {
			undo := activity(&times, &j, &s.Undo, claim)
			v.Steps[i].Undo = &undo
		}
	}
	return v
}

// WithPayloads returns a job, as Of does, with its input, its outputs and its history. A payload that is gone leaves
// its place null, and a page of the history a gap: the job is shown all the same. Any other error of the source is
// returned.
func WithPayloads(ctx context.Context, j job.Job, held map[string]job.Claim, from Source) (makegood.Job, error) {
	v, read := Of(j, held), from.Payload
	err := addHistory(ctx, &v, j, from)
	if err != nil {
		return v, err
	}
	if v.Input, err = value(ctx, j.ID, j.Input, read); err != nil {
		return v, err
	}
	for i, s := range j.Steps {
		if v.Steps[i].Output, err = value(ctx, j.ID, s.Forward.Output, read); err != nil {
			return v, err
		}
		if v.Steps[i].Undo == nil {
			continue
		}
		if v.Steps[i].Undo.Output, err = value(ctx, j.ID, s.Undo.Output, read); err != nil {
			return v, err
		}
	}
	return v, nil
}

// Outlined returns a job, as WithPayloads does, but only payloads of at most limits.MaxOutlineBytes each, and at most
// limits.MaxOutline bytes together.
func Outlined(ctx context.Context, j job.Job, held map[string]job.Claim, from Source) (makegood.Job, error) {
	left := limits.MaxOutline
	small := func(p *job.Payload) {
		if p.Bytes > min(limits.MaxOutlineBytes, left) {
			*p = job.Payload{Bytes: p.Bytes}
			return
		}
		left -= p.Bytes
	}
	j = j.Clone()
	small(&j.Input)
	for i := range j.Steps {
		small(&j.Steps[i].Forward.Output)
		small(&j.Steps[i].Undo.Output)
	}
	return WithPayloads(ctx, j, held, from)
}

// Listed returns jobs of a list; detail: each with the job itself.
func Listed(jobs []store.Listed, detail bool) []api.Listed { return listed(jobs, detail, noClaims) }

// Claims returns the claims on the open attempts of a job, by step. An error leaves the job without.
type Claims func(job.Job) (map[string]job.Claim, error)

func noClaims(job.Job) (map[string]job.Claim, error) { return nil, nil }

func listed(jobs []store.Listed, detail bool, claims Claims) []api.Listed {
	list := make([]api.Listed, len(jobs))
	for i, l := range jobs {
		list[i] = api.Listed{
			ID: l.ID, Workflow: l.Workflow, ProcessState: l.ProcessState, FailureCount: l.FailureCount,
			CompleteBy: moment(l.CompleteBy), CreatedAt: l.CreatedAt.UTC(), Paused: l.Paused, Reason: l.Reason, FirstReason: l.FirstReason,
			Tenant: l.Tenant, Labels: l.Labels, Priority: l.Job.Priority, Steps: l.Steps(), Agents: orEmpty(l.Agents), Kind: l.Kind, StoppedAt: moment(l.StoppedAt),
			Spent: Spent(l.Job.Spent),
		}
		child, _ := domain.ChildOf(l.ID)
		list[i].Parent = child.Parent
		if detail {
			var held map[string]job.Claim
			if !l.Job.ProcessState.Finished() {
				held, _ = claims(l.Job) // A job with unreadable claims is listed without them.
			}
			j := Of(l.Job, held)
			list[i].Job = &j
		}
	}
	return list
}

func orEmpty(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

// Page returns a page of a list; detail is what Listed says.
func Page(p store.Page, detail bool) api.Page {
	return api.Page{Jobs: Listed(p.Jobs, detail), Cursor: p.Cursor, Scanned: p.Scanned}
}

// List reads a page of a list, with jobs late or due as of now. A filter that can match no job, and a cursor that no
// page of such a list gave, is a *api.InvalidError.
func List(ctx context.Context, jobs store.Lister, filter api.Filter, cursor string, limit int) (api.Page, error) {
	page, err := list(ctx, jobs, filter, cursor, limit)
	return Page(page, false), err
}

// Details is like List, with each job itself and, unless claims is nil, the claims on its attempts.
func Details(ctx context.Context, jobs store.Lister, filter api.Filter, cursor string, limit int, claims Claims) (api.Page, error) {
	if claims == nil {
		claims = noClaims
	}
	page, err := list(ctx, jobs, filter, cursor, limit)
	return api.Page{Jobs: listed(page.Jobs, true, claims), Cursor: page.Cursor, Scanned: page.Scanned}, err
}

func list(ctx context.Context, jobs store.Lister, filter api.Filter, cursor string, limit int) (store.Page, error) {
	if err := protocol.CheckFilter(filter); err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	page, err := jobs.ListJobs(ctx, Filter(filter, time.Now()), cursor, limit)
	if errors.Is(err, store.ErrNotFound) {
		return store.Page{}, fmt.Errorf("list jobs: %w", &api.InvalidError{Message: fmt.Sprintf("the cursor %.40q is of no page of this list", cursor)})
	}
	return page, err
}

// Filter returns a filter as the stores take it, with late and due as of now.
func Filter(f api.Filter, now time.Time) store.Filter {
	state, waiting := f.State, f.State == api.JobWaiting
	if waiting {
		state = ""
	}
	return store.Filter{
		State: state, Waiting: waiting, Workflow: f.Workflow, Definition: f.Definition, Paused: f.Paused, Tenant: f.Tenant, Labels: f.Labels,
		Step: f.Step, Agent: f.Agent, ReasonPrefix: f.ReasonPrefix, ReasonKind: f.ReasonKind, IDPrefix: f.IDPrefix, Roots: f.Roots, Words: f.Words, Since: f.Since, Until: f.Until,
		Late: f.Late, LateWithin: f.LateWithin, DueWithin: f.DueWithin, Now: now,
	}
}

// Strays returns those jobs of an audit that are not as they should be.
func Strays(page []store.Audited) []api.Stray {
	strays := []api.Stray{}
	for _, a := range page {
		if why := a.Stray(); why != "" {
			strays = append(strays, api.Stray{Job: a.Job, ProcessState: a.ProcessState, CompleteBy: moment(a.CompleteBy), Why: string(why)})
		}
	}
	return strays
}

func value(ctx context.Context, job string, p job.Payload, read func(context.Context, string, string) ([]byte, error)) (json.RawMessage, error) {
	if p.Ref == "" {
		return p.Inline, nil
	}
	body, err := read(ctx, job, p.Ref)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("payload %s of job %s: %w", p.Ref, job, err)
	}
	return body, nil
}

// activity returns a step or its undo. claim is the step's, which may be the other one's.
func activity(times *moments, j *job.Job, a *job.Activity, claim job.Claim) makegood.Activity {
	v := makegood.Activity{
		State: cmp.Or(makegood.StepState(a.ChangeState()), makegood.StepNotStarted), Attempt: a.Attempt, FailureCount: a.FailureCount,
		StartedAt: times.show(a.StartedAt), FinishedAt: times.show(a.FinishedAt), OutputBytes: a.Output.Bytes,
	}
	if v.LastStartedAt = times.show(a.LastStartedAt); v.LastStartedAt == nil {
		v.LastStartedAt = v.StartedAt
	}
	switch a.State {
	case job.Backoff:
		v.NextAt = times.show(a.At)
	case job.Dispatched, job.Waiting, job.Done, job.Failed:
		if !a.Queued && (a.FinishedAt.IsZero() || !a.At.After(a.FinishedAt)) { // Else it ended before the attempt that was to be made then.
			v.SentAt = times.show(a.At)
		}
	}
	v.Error = failure(a.Error)
	if a.State == job.Waiting {
		v.CompleteBy = times.show(a.Wait.Deadline)
	}
	if a.Completion != nil && (a.State == job.Done || a.State == job.Failed || a.WentTo != "") {
		v.CompletedBy, v.CompletedWhy = text(a.Completion.By), text(a.Completion.Why)
	}
	if was := j.Settled(*a); was != nil {
		v.Settled = &makegood.Settlement{By: text(was.By), Reason: was.Reason, At: was.At.UTC()}
	}
	if a.State == job.Dispatched && a.Attempt > 0 && claim.Attempt == a.Attempt {
		v.State, v.LockedBy = makegood.StepClaimed, text(claim.LockedBy)
		v.CompleteBy, v.Inline = times.show(claim.CompleteBy), a.Inline != ""
		if p := claim.Reported(); p.Value != "" {
			v.Progress = &makegood.Progress{Value: json.RawMessage(p.Value), At: *times.show(p.At)}
		}
		v.LastStartedAt = times.show(claim.StartedAt)
		v.StartedAt = cmp.Or(v.StartedAt, v.LastStartedAt)
	}
	return v
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	said := s
	return &said
}

// moments are the times of one job, which share memory. It grows by pieces: a time that is shown stays where it is.
type moments []time.Time

// The times that most jobs and steps have.
const timesOfJob, timesOfStep = 4, 3

// show returns a time as it is shown; nil: it is not set.
func (m *moments) show(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	if len(*m) == cap(*m) {
		*m = make(moments, 0, timesOfJob)
	}
	at := t.UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		// JSON has no such year, and one job that is broken must not keep all others from being shown.
		at = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	*m = append(*m, at)
	return &(*m)[len(*m)-1]
}

func moment(t time.Time) *time.Time { return new(moments).show(t) }

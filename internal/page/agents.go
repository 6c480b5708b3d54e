package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// oldTask is how long a task may wait before its agent is in trouble; badShare is the share of ended attempts that may
	// have failed, from fewEnded attempts on.
	oldTask  = time.Minute
	badShare = 0.1
	fewEnded = 5
)

func agentsViews() []view {
	return []view{
		{pattern: "GET /agents", nav: "Agents", title: "Agents", template: "agents.html", load: (*Page).agents, regions: []string{"agents-lead", "agents", "holds"}},
		{pattern: "GET /holds/{kind}/{name}/pause", nav: "Agents", title: "Pause", template: "pause.html", load: (*Page).askPause},
		{pattern: "POST /holds/{kind}/{name}/pause", load: (*Page).pauseAll},
		{pattern: "POST /holds/{kind}/{name}/resume", load: (*Page).resumeAll},
		{pattern: "POST /holds/agent/{name}/probe", load: (*Page).probe},
		{pattern: "GET /holds/agent/{name}/limit", nav: "Agents", title: "Limit", template: "limit.html", load: (*Page).askLimit},
		{pattern: "POST /holds/agent/{name}/limit", load: (*Page).limit},
	}
}

// agentsData is how the agents stand.
type agentsData struct {
	Agents []agentRow
	// Holds are the pauses of whole agents and workflows, with those that are being released, and the limits of agents.
	Holds []makegood.Hold
	// Workflows can be paused, too.
	Workflows []string
	// Troubled, Paused and Errors are how many agents are in trouble, are paused, and how many jobs wait for a person.
	Troubled, Paused, Errors int
}

// agentRow is an agent in the list.
type agentRow struct {
	api.Agent
	// Errors is how many jobs wait for a person at a step of this agent.
	Errors int
	Now    time.Time
}

// Mark is how it stands, as a shape.
func (a agentRow) Mark() mark {
	switch {
	case a.Paused():
		return mark{Name: "paused", Shape: "paused"}
	case a.Hold != nil:
		return mark{Name: "going on", Shape: "processing"}
	case a.trouble() != "":
		return mark{Name: "in trouble", Shape: "error"}
	case a.absent() != "":
		return mark{Name: "absent", Shape: "idle"}
	}
	return mark{Name: "works", Shape: "processed"}
}

// Paused reports whether the agent gets no new tasks.
func (a agentRow) Paused() bool { return a.Hold != nil && a.Hold.ReleasedAt == nil }

// trouble describes the agent's trouble; empty: none is seen.
func (a agentRow) trouble() string {
	switch {
	case a.Problem != "":
		return "its queue cannot be asked: " + a.Problem
	case a.absent() != "" && a.Waiting != nil && *a.Waiting > 0:
		return a.absent()
	case a.Old() && a.InFlight != nil && *a.InFlight == 0:
		return "its tasks wait and it takes none"
	case a.Old():
		return "its tasks wait long"
	case a.Ended() >= fewEnded && a.share() >= badShare:
		return "many of its attempts fail"
	}
	return ""
}

// absent describes since when an agent outside has not asked for tasks; empty: it asks, or is not outside.
func (a agentRow) absent() string {
	since, absent := protocol.Absent(a.Agent, a.Now)
	switch {
	case !absent:
		return ""
	case a.Polls.LastAt == nil:
		return "no process asks for its tasks; none has since the engine began at " + moment(since)
	}
	return "no process asks for its tasks; the last request came at " + moment(since)
}

// comes describes the requests for tasks of an agent outside; empty: it is not outside, or has made none.
func (a agentRow) comes() string {
	if a.Polls == nil || a.Polls.LastAt == nil {
		return ""
	}
	if a.Polls.Waiting > 0 {
		return fmt.Sprintf("outside: %s, %s waiting now", many(a.Polls.Instances, "process"), many(a.Polls.Waiting, "request"))
	}
	return fmt.Sprintf("outside: %s, last asked at %s", many(a.Polls.Instances, "process"), moment(a.Polls.LastAt))
}

// Says is why it stands as it does.
func (a agentRow) Says() string {
	if a.Hold == nil {
		return cmp.Or(a.trouble(), a.absent(), a.comes())
	}
	if !a.Paused() {
		return "resumed: " + many(a.Hold.Resumed, "job") + " told to go on, " + jobsStill(*a.Hold)
	}
	says := strings.TrimSpace(cmp.Or("by "+a.Hold.By, "") + ": " + a.Hold.Reason)
	if a.Hold.NextAt != nil {
		says += "; " + protocol.PauseText(*a.Hold) + ", " + jobsStill(*a.Hold)
	}
	return says
}

// jobsStill is how many jobs a hold holds.
func jobsStill(h makegood.Hold) string {
	text := count(h.Jobs)
	if h.AtLeast {
		text += " or more"
	}
	return text + " stand still"
}

// Old reports whether a task waits longer than it should.
func (a agentRow) Old() bool {
	return a.OldestAt != nil && a.Now.Sub(*a.OldestAt) > oldTask && !a.Paused()
}

// Ended is how many attempts ended in the last minutes, and Failures how many of these failed.
func (a agentRow) Ended() int {
	if a.Lately == nil {
		return 0
	}
	return a.Lately.Succeeded + a.Lately.Waiting + a.Failures()
}

// Failures is how many attempts ended badly.
func (a agentRow) Failures() int {
	if a.Lately == nil {
		return 0
	}
	return a.Lately.Failed + a.Lately.Late
}

func (a agentRow) share() float64 { return float64(a.Failures()) / float64(max(1, a.Ended())) }

// Share is the share of ended attempts that failed, in per cent; Bar is the same of a bar of 96.
func (a agentRow) Share() int { return int(100*a.share() + 0.5) }

// Bar is as much of a bar of 96 as failed.
func (a agentRow) Bar() int { return int(96 * a.share()) }

// rank puts agents in trouble first, then paused ones.
func (a agentRow) rank() int {
	switch {
	case a.Hold == nil && a.trouble() != "":
		return 0
	case a.Hold != nil:
		return 1
	case a.Errors > 0:
		return 2
	}
	return 3
}

// agents loads how the agents stand, those in trouble first.
func (p *Page) agents(r *http.Request) (any, error) {
	now := p.Now().UTC()
	all, err := p.Jobs.ListAgents(r.Context())
	if err != nil {
		return nil, err
	}
	d := agentsData{}
	if d.Holds, err = p.Jobs.ListHolds(r.Context()); err != nil {
		return nil, err
	}
	if d.Workflows, err = p.workflowNames(r.Context()); err != nil {
		return nil, err
	}
	wrong, err := p.errorsByAgent(r.Context())
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		row := agentRow{Agent: a, Errors: wrong[a.Name], Now: now}
		d.Agents = append(d.Agents, row)
		d.Errors += row.Errors
		switch {
		case row.Paused():
			d.Paused++
		case row.trouble() != "":
			d.Troubled++
		}
	}
	slices.SortStableFunc(d.Agents, func(a, b agentRow) int { return cmp.Compare(a.rank(), b.rank()) })
	return d, nil
}

// waitedFor has the agents by name, while an attempt of the job waits for one of them, in its queue or before its gate.
// On a stack there are none.
func (p *Page) waitedFor(ctx context.Context, j makegood.Job, now time.Time) map[string]agentRow {
	waits := slices.ContainsFunc(activitiesOf(j), func(a activity) bool {
		return a.State == makegood.StepDispatched || a.State == makegood.StepQueued
	})
	if p.Scans || !waits {
		return nil
	}
	all, err := p.Jobs.ListAgents(ctx)
	if err != nil {
		return nil // The job is shown without the notes.
	}
	agents := map[string]agentRow{}
	for _, a := range all {
		agents[a.Name] = agentRow{Agent: a, Now: now}
	}
	return agents
}

func (p *Page) workflowNames(ctx context.Context) (names []string, err error) {
	all, err := p.Jobs.Workflows(ctx)
	for _, w := range all {
		names = append(names, w.Name)
	}
	return names, err
}

// errorsByAgent counts the jobs that wait for a person by the agent of the step that stopped.
func (p *Page) errorsByAgent(ctx context.Context) (map[string]int, error) {
	groups, _, err := p.alike(ctx, api.Filter{State: makegood.JobError}, api.ByAgent)
	by := map[string]int{}
	for _, g := range groups.Groups {
		by[g.Values[0]] = g.Jobs
	}
	return by, err
}

// pauseData is the agent or workflow to pause, or the agent to limit.
type pauseData struct {
	Kind makegood.HoldKind
	Name string
	// Fresh is how long it takes until every process knows.
	Fresh time.Duration
	// Most is the highest limit, and Limit the one that the agent has; nil: none.
	Most  int
	Limit *makegood.Hold
}

// Title names the window.
func (d pauseData) Title() string {
	if d.Most > 0 {
		return "Limit agent " + d.Name
	}
	return "Pause " + string(d.Kind) + " " + d.Name
}

// askPause asks for the reason of a pause, and explains its effect.
func (p *Page) askPause(r *http.Request) (any, error) {
	d := pauseData{Kind: makegood.HoldKind(r.PathValue("kind")), Name: r.PathValue("name"), Fresh: limits.HoldsFresh}
	if err := domain.CheckHold(d.Kind, d.Name); err != nil {
		return nil, &api.InvalidError{Message: err.Error()}
	}
	return d, nil
}

// askLimit asks for the limit of an agent, and explains its effect.
func (p *Page) askLimit(r *http.Request) (any, error) {
	d := pauseData{Kind: makegood.HoldAgent, Name: r.PathValue("name"), Fresh: limits.HoldsFresh, Most: limits.MaxPermits}
	if err := domain.CheckLimit(d.Name); err != nil {
		return nil, &api.InvalidError{Message: err.Error()}
	}
	holds, err := p.Jobs.ListHolds(r.Context())
	for i, h := range holds {
		if h.Kind == makegood.HoldLimit && h.Name == d.Name {
			d.Limit = &holds[i]
		}
	}
	return d, err
}

// limit limits an agent; a concurrency of 0 without a rate takes its limit away.
func (p *Page) limit(r *http.Request) (any, error) {
	l := makegood.Limit{Rate: r.PostFormValue("rate"), Key: r.PostFormValue("key")}
	for _, field := range []string{"concurrency", "burst"} {
		text := r.PostFormValue(field)
		n, err := strconv.Atoi(text)
		switch {
		case text == "" && (l.Rate != "" || field == "burst"):
		case err != nil:
			return nil, &api.InvalidError{Message: fmt.Sprintf("a %s of %.20q: want a number of attempts", field, text)}
		case field == "burst":
			l.Burst = n
		default:
			l.Concurrency = n
		}
	}
	_, err := p.Jobs.LimitAgent(r.Context(), r.PathValue("name"), l, r.PostFormValue("reason"))
	return goTo("agents"), err
}

// pauseAll pauses an agent or a workflow as a whole.
func (p *Page) pauseAll(r *http.Request) (any, error) {
	_, err := p.Jobs.PauseAll(r.Context(), makegood.HoldKind(r.PathValue("kind")), r.PathValue("name"), r.PostFormValue("reason"))
	return goTo("agents"), err
}

// resumeAll resumes it.
func (p *Page) resumeAll(r *http.Request) (any, error) {
	_, err := p.Jobs.ResumeAll(r.Context(), makegood.HoldKind(r.PathValue("kind")), r.PathValue("name"))
	return goTo("agents"), err
}

// probe lets a job through to an agent that the breaker has paused.
func (p *Page) probe(r *http.Request) (any, error) {
	_, err := p.Jobs.ProbeAgent(r.Context(), r.PathValue("name"))
	return goTo("agents"), err
}

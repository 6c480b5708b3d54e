package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// agentRoutes are the routes for outside agents.
func agentRoutes() []route {
	answers := func(given any, statuses ...int) map[int]any {
		return withBody(map[int]any{http.StatusOK: given}, append(statuses, http.StatusUnauthorized, http.StatusNotFound)...)
	}
	return []route{
		{
			method: "POST", path: "/api/agents/{agent}/tasks", name: "takeTasks", door: Agents, handle: (*handlers).takeTasks, body: agentdoor.TasksAsked{}, limit: maxOverhead,
			summary: fmt.Sprintf("Take tasks of an agent that runs outside: up to max (1 to %d; default 1), waiting up to wait seconds (0 to %d) for the first. Each is claimed, and the claim flushed, before this is answered. instance names the process that asks. The same request (a name of the asker's choice) again is given the same tasks, for as long as they last and are not answered.",
				limits.MaxBatch, int(limits.MaxTaskWait.Seconds())),
			answers: answers(agentdoor.TasksGiven{}, http.StatusTooManyRequests),
		},
		{
			method: "POST", path: "/api/agents/{agent}/replies", name: "reply", door: Agents, handle: (*handlers).reply, body: json.RawMessage{}, limit: maxReply,
			summary: "Reply to a task: the message that would go to the events queue (docs/messages.md). It is saved before this is answered. One without an effect is answered with stale, and why.",
			answers: answers(agentdoor.ReplyTaken{}),
		},
		{
			method: "POST", path: "/api/agents/{agent}/heartbeats", name: "heartbeat", door: Agents, handle: (*handlers).heartbeat, body: agentdoor.Heartbeat{}, limit: maxOverhead,
			summary: "Say that work on a task goes on: its CompleteBy moves to as long from now as the step may be silent, and that is flushed before this is answered. withdrawn: the result is not wanted any more, stop soon. over: the attempt has ended, stop without a reply.",
			answers: answers(agentdoor.HeartbeatTaken{}),
		},
	}
}

// maxReply is how large the body of a reply may be, in bytes.
const maxReply = limits.MaxMessageBytes

// agentOf returns the agent in the path, if the request may speak as it.
func (a *handlers) agentOf(r *http.Request) (string, error) {
	name := r.PathValue("agent")
	shown, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		shown = ""
	}
	err := agentdoor.ErrUnknown
	if a.Outside != nil {
		err = a.Outside.Allow(name, shown)
	}
	switch {
	case errors.Is(err, agentdoor.ErrUnknown):
		return "", newProblem(http.StatusNotFound, "no agent %.70q runs outside of this engine", name)
	case errors.Is(err, agentdoor.ErrToken):
		return "", newProblem(http.StatusUnauthorized, "agent %s has a token: want it in the header Authorization, behind \"Bearer \"", name)
	}
	return name, err
}

// takeTasks gives tasks to an agent.
func (a *handlers) takeTasks(r *http.Request) (answer, error) {
	began := time.Now()
	name, err := a.agentOf(r)
	if err != nil {
		return answer{}, err
	}
	var asked agentdoor.TasksAsked
	if err := decode(r, &asked); err != nil {
		return answer{}, err
	}
	ask, err := checkAsked(asked)
	if err != nil {
		return answer{}, err
	}
	tasks, err := a.Outside.Take(r.Context(), name, ask)
	switch {
	case errors.Is(err, agentdoor.ErrBusy):
		return answer{}, newProblem(http.StatusTooManyRequests, "%d requests of agent %s wait for tasks already, the limit is %d", limits.MaxTaskPolls, name, limits.MaxTaskPolls)
	case errors.Is(err, agentdoor.ErrClosed):
		return answer{}, newProblem(http.StatusServiceUnavailable, "this engine ends; ask its successor")
	case err != nil:
		return answer{}, err
	}
	given := agentdoor.TasksGiven{Tasks: []agentdoor.TaskGiven{}, HeldMs: int(time.Since(began).Milliseconds())}
	for _, t := range tasks {
		given.Tasks = append(given.Tasks, agentdoor.TaskGiven{
			Task: json.RawMessage(t.Body), LockedBy: t.Claim.LockedBy, StartedAt: t.Claim.StartedAt, CompleteBy: t.Claim.CompleteBy,
			LeftMs: int(t.Left().Milliseconds()),
		})
	}
	return ok(given)
}

func checkAsked(t agentdoor.TasksAsked) (agentdoor.Ask, error) {
	longest := int(limits.MaxTaskWait.Seconds())
	if t.Max == 0 {
		t.Max = 1
	}
	switch {
	case !namePattern.MatchString(t.Instance):
		return agentdoor.Ask{}, bad("instance is %.140q: want %s", t.Instance, namePattern)
	case t.Max < 1 || t.Max > limits.MaxBatch:
		return agentdoor.Ask{}, bad("max is %d: want 1 to %d", t.Max, limits.MaxBatch)
	case t.Wait < 0 || t.Wait > longest:
		return agentdoor.Ask{}, bad("wait is %d: want 0 to %d seconds", t.Wait, longest)
	case t.Request != "" && !namePattern.MatchString(t.Request):
		return agentdoor.Ask{}, bad("request: want %s", namePattern)
	}
	return agentdoor.Ask{Instance: t.Instance, Max: t.Max, Wait: time.Duration(t.Wait) * time.Second, Request: t.Request}, nil
}

// reply takes the reply of an agent. Unlike other bodies it may have fields that are not known here: it is a message.
func (a *handlers) reply(r *http.Request) (answer, error) {
	if _, err := a.agentOf(r); err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the body: %w", err)
	}
	verdict, err := a.Outside.Reply(r.Context(), string(body))
	switch {
	case errors.Is(err, wire.ErrPoison), errors.Is(err, wire.ErrNewer), errors.Is(err, agentdoor.ErrNoReply):
		return answer{}, bad("%v", err)
	case errors.Is(err, store.ErrNewer):
		return answer{}, newerProblem()
	case err != nil:
		return answer{}, err
	}
	taken := agentdoor.ReplyTaken{Status: string(verdict.Kind), Reason: verdict.Reason}
	if verdict.Kind == machine.Applied {
		taken.Reason = ""
	}
	return ok(taken)
}

// heartbeat moves the CompleteBy of an attempt.
func (a *handlers) heartbeat(r *http.Request) (answer, error) {
	if _, err := a.agentOf(r); err != nil {
		return answer{}, err
	}
	var h agentdoor.Heartbeat
	if err := decode(r, &h); err != nil {
		return answer{}, err
	}
	switch {
	case domain.CheckJobID(h.Job) != nil:
		return answer{}, bad("job %v", domain.CheckJobID(h.Job))
	case h.Step == "" || h.Attempt < 1 || h.Token == "" || h.LockedBy == "":
		return answer{}, bad("a heartbeat must name job, step, attempt, token and lockedBy")
	case len(h.Progress) > makegood.MaxProgressBytes:
		return answer{}, bad("progress has %d bytes as JSON, the limit is %d", len(h.Progress), makegood.MaxProgressBytes)
	}
	stands, err := a.Outside.Heartbeat(r.Context(), h.Job, job.Reply{Step: h.Step, Attempt: h.Attempt, Token: h.Token, LockedBy: h.LockedBy}, h.Progress)
	if errors.Is(err, store.ErrNewer) {
		return answer{}, newerProblem()
	}
	if err != nil {
		return answer{}, err
	}
	return ok(agentdoor.HeartbeatTaken{Status: string(stands.Held), CompleteBy: stands.CompleteBy, LeftMs: int(stands.Left.Milliseconds())})
}

func newerProblem() *problem {
	p := newProblem(http.StatusServiceUnavailable, "a newer release of Makegood wrote this job, and this one must not decide about it; ask again when the deployment is done")
	p.retryAfter = retryAfterDeployment
	return p
}

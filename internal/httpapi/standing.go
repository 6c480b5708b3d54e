package httpapi

import (
	"net/http"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
)

// AgentList is how all agents stand.
type AgentList struct {
	Agents []api.Agent `json:"agents"`
}

// standingRoutes is the route of the agents' state. The routes that agents use are in agents.go.
func standingRoutes() []route {
	return []route{{
		method: "GET", path: "/api/agents", name: "agents", door: Read, handle: allOf((*control.Service).ListAgents, func(all []api.Agent) AgentList { return AgentList{all} }),
		summary: "How the agents stand: how many tasks wait for each, since when, how many it has taken, how its attempts ended in the last minutes, whether it is paused, and which workflows ask it. An unknown figure is null.",
		answers: everywhere(map[int]any{http.StatusOK: AgentList{}, http.StatusBadRequest: Problem{}, http.StatusNotFound: Problem{}}),
	}}
}

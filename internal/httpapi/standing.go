package httpapi

import (
	"net/http"

	"github.com/makegood-dev/makegood/api"
)

// AgentList is how all agents stand.
type AgentList struct {
	Agents []api.Agent `json:"agents"`
}

// standingRoute is the route of the agents' state. The routes that agents use are in agents.go.
func standingRoute() route {
	return route{
		method: "GET", path: "/api/agents", name: "agents", door: Read, handle: bare((*handlers).agents),
		summary: "How the agents stand: how many tasks wait for each, since when, how many it has taken, how its attempts ended in the last minutes, whether it is paused, and which workflows ask it. An unknown figure is null.",
		answers: everywhere(map[int]any{http.StatusOK: AgentList{}, http.StatusBadRequest: Problem{}, http.StatusNotFound: Problem{}}),
	}
}

func (a *handlers) agents(r *http.Request) (answer, error) {
	all, err := a.Jobs.ListAgents(r.Context())
	return orError(AgentList{Agents: all}, err)
}

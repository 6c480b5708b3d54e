package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/filter"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/view"
)

// filterParameters are those by which jobs are found, as the flags of the command are.
func filterParameters() []parameter {
	var all []parameter
	for _, p := range filter.Parameters() {
		q := parameter{name: p.Name, says: p.Says, values: p.Values, many: p.Kind == filter.Label}
		switch p.Kind {
		case filter.Switch:
			q.says, q.values = "true: "+p.Says, []string{"true"}
		case filter.Time:
			q.says += "; a time as in RFC 3339"
		case filter.Duration:
			q.says += "; such as 15m or 1h30m"
		case filter.Label:
			q.says = p.Value + ": " + p.Says
		case filter.Text:
		}
		all = append(all, q)
	}
	return all
}

// listParameters are the names of the parameters by which jobs are found, and of others.
func listParameters(names ...string) []string {
	for _, p := range filter.Parameters() {
		names = append(names, p.Name)
	}
	return names
}

// countRoutes are the routes that count jobs.
func countRoutes() []route {
	cursor := parameter{name: "cursor", says: "the cursor of the answer before, of the same count"}
	return []route{
		{
			method: "GET", path: "/api/counts", name: "count", door: Read, handle: (*handlers).counts,
			summary:    "Count jobs in groups, for some seconds; where the cursor is not empty, it goes on there, and the groups of all answers add up. The values of a group are in the order of by; a job that stands at several steps counts with each. since is the time when its first job stopped, and example the id of that job.",
			parameters: append(filterParameters(), parameter{name: "by", says: fmt.Sprintf("one or more of %v, with commas between them", protocol.Facets())}, cursor),
			answers:    everywhere(map[int]any{http.StatusOK: api.Groups{}, http.StatusBadRequest: Problem{}}),
		},
		{
			method: "GET", path: "/api/totals", name: "totals", door: Read, handle: allOf((*control.Service).Totals, func(all map[makegood.ProcessState]int) TotalList { return TotalList{all} }),
			summary: "How many jobs there are in each state, without reading them. 404 where it is unknown: on a deployed stack.",
			answers: everywhere(map[int]any{http.StatusOK: TotalList{}, http.StatusNotFound: Problem{}}),
		},
		{
			method: "GET", path: "/api/errors", name: "errors", door: Read, handle: paged((*control.Service).Errors),
			summary:    fmt.Sprintf("Count the jobs in Error, which wait for a person, by %v. It goes on as a count does.", view.ErrorFacets()),
			parameters: []parameter{cursor},
			answers:    everywhere(map[int]any{http.StatusOK: api.Groups{}, http.StatusBadRequest: Problem{}}),
		},
	}
}

// TotalList is how many jobs there are.
type TotalList struct {
	Totals map[makegood.ProcessState]int `json:"totals"`
}

// list lists jobs.
func (a *handlers) list(r *http.Request) (answer, error) {
	wanted, err := listQuery(r)
	if err != nil {
		return answer{}, err
	}
	read := a.Jobs.PageOf
	if wanted.detail {
		read = a.Jobs.Details
	}
	return orError(read(r.Context(), wanted.filter, wanted.cursor, wanted.limit))
}

// counts counts jobs by facets.
func (a *handlers) counts(r *http.Request) (answer, error) {
	values, err := query(r, listParameters("by", "cursor")...)
	if err != nil {
		return answer{}, err
	}
	wanted, err := protocol.ReadFilter(values)
	if err != nil {
		return answer{}, err
	}
	var by []api.Facet
	for facet := range strings.SplitSeq(values.Get("by"), ",") {
		by = append(by, api.Facet(facet))
	}
	return orError(a.Jobs.Count(r.Context(), wanted, by, values.Get("cursor")))
}

// listing has the parameters of a list.
type listing struct {
	filter api.Filter
	cursor string
	limit  int
	// detail: each with the job itself.
	detail bool
}

// listQuery reads the parameters of a list.
func listQuery(r *http.Request) (listing, error) {
	values, err := query(r, listParameters("limit", "cursor", "detail")...)
	if err != nil {
		return listing{}, err
	}
	l := listing{cursor: values.Get("cursor")}
	if l.filter, err = protocol.ReadFilter(values); err != nil {
		return l, err
	}
	most := MaxLimit
	switch text := values.Get("detail"); text {
	case "":
	case "true":
		l.detail, most = true, MaxDetails
	default:
		return l, bad("detail is %.40q: want true, or leave it out", text)
	}
	l.limit, err = limitOf(values, "limit", most)
	return l, err
}

// limitOf reads a parameter that says how many are wanted; DefaultLimit without it.
func limitOf(values url.Values, name string, most int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return DefaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, bad("%s is %.40q: want 1 to %d", name, text, most)
	}
	return n, nil
}

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

package workflowfile

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// LimitsFile is the name of a file of limits. Beside workflow files it is not taken for a workflow.
const LimitsFile = "agents.yaml"

// AgentLimit is an entry of a file of limits: the limit of an agent.
type AgentLimit struct {
	Agent string `json:"agent"`
	// Limit is complete: its burst is never left out beside a rate.
	Limit  makegood.Limit `json:"limit"`
	Reason string         `json:"reason"`
}

// ParseLimits reads a file that maps agents to their limits, in the order of the file. file only names it in errors,
// which are of type Errors. Of the options those about names of agents count.
func ParseLimits(file string, source []byte, options ...Option) ([]AgentLimit, error) {
	c := newCheck(options)
	all := reader{c}.agentLimits(source)
	if len(c.found) > 0 {
		return nil, c.errors(file)
	}
	return all, nil
}

func (r reader) agentLimits(source []byte) (all []AgentLimit) {
	root := r.document(source, "mapping of agents")
	switch {
	case root == nil:
		return nil
	case root.Kind != yaml.MappingNode:
		r.add("", "the file must be a mapping of agents, got %s", describe(root))
		return nil
	}
	for _, m := range r.members(root, "") {
		r.lines[m.path] = m.line
		if err := domain.CheckLimit(m.key); err != nil {
			r.add(m.path, "%v", err)
		} else if r.agents != nil && !slices.Contains(r.agents, m.key) {
			r.add(m.path, "no agent %q%s", m.key, suggest(m.key, r.agents))
		}
		all = append(all, r.agentLimit(m))
	}
	if len(all) > limits.MaxHolds {
		r.add("", "%d agents, the limit is %d", len(all), limits.MaxHolds)
	}
	return all
}

// agentLimit reads the limit of an agent. Its rules are checked only if each field can be read.
func (r reader) agentLimit(m member) AgentLimit {
	l, before := AgentLimit{Agent: m.key}, len(r.found)
	limitKind(&l).read(r, m.value, m.path)
	if len(r.found) == before {
		limitKind(&l).check(rules{check: r.check}, m.path)
		complete, _ := job.LimitOf(l.Limit) // The check above has reported any error.
		l.Limit.Rate, l.Limit.Burst = complete.RateText(), complete.Burst
	}
	return l
}

// limitKind is the limit of an agent.
func limitKind(a *AgentLimit) kind {
	l := &a.Limit
	_, rate := job.LimitOf(makegood.Limit{Rate: l.Rate})
	_, key := CompileKey(l.Key)
	return object("a limit", "",
		row("concurrency", count(&l.Concurrency, limits.MaxPermits).unless(l.Concurrency == 0), ""),
		row("rate", textOf(&l.Rate).refuse(rate != nil, "%v", rate), ""),
		row("burst", count(&l.Burst, limits.MaxPermits).unless(l.Burst == 0), ""),
		row("key", expressionOf(&l.Key).refuse(l.Key != "" && key != nil, "%v", key), ""),
		row("reason", textOf(&a.Reason).refuse(len(a.Reason) > limits.MaxHoldReasonBytes, "the reason has %d bytes, the limit is %d", len(a.Reason), limits.MaxHoldReasonBytes), ""),
	).refuse(l.Burst > 0 && l.Rate == "", "a burst of %d: want a rate with it", l.Burst).
		refuse(l.Concurrency == 0 && l.Rate == "", "a limit of agent %s: want concurrency, 1 to %d, or rate", a.Agent, limits.MaxPermits)
}

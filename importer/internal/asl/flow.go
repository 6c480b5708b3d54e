package asl

import (
	"slices"
)

// edge is one way from a state to the next.
type edge struct {
	from, to *state
	// catch is which entry of Catch it is; -1: none.
	catch int
}

// flow is how the states of a machine lead to each other: those that can be reached, each after all that lead to it,
// but for the ways back.
type flow struct {
	order []*state
	into  map[*state][]edge
	// back are ways that lead to where they came from.
	back map[edge]bool
}

// edges are the ways on from a state, in the order in which they should be gone last.
func (t *translator) edges(m *machine, s *state) []edge {
	var out []edge
	if catch := s.body.get("Catch"); catch != nil {
		for i, c := range catch.items {
			if i < t.catches(s) {
				out = append(out, edge{s, m.byName[c.textOf("Next")], i})
			}
		}
	}
	if s.kind == "Choice" {
		if otherwise := s.body.textOf("Default"); otherwise != "" {
			out = append(out, edge{s, m.byName[otherwise], -1})
		}
		rules := s.body.get("Choices").items
		for i := len(rules) - 1; i >= 0; i-- {
			out = append(out, edge{s, m.byName[rules[i].textOf("Next")], -1})
		}
	}
	if s.next != "" {
		out = append(out, edge{s, m.byName[s.next], -1})
	}
	if loop := t.polls[s]; loop != nil && loop.choice == s {
		out = slices.DeleteFunc(out, func(e edge) bool { return loop.again[e.to] })
	}
	return out
}

// flow puts the states of a machine in order.
func (t *translator) flow(m *machine) flow {
	f := flow{into: map[*state][]edge{}, back: map[edge]bool{}}
	seen, open := map[*state]bool{}, map[*state]bool{}
	var walk func(s *state)
	walk = func(s *state) {
		seen[s], open[s] = true, true
		for _, e := range t.edges(m, s) {
			if open[e.to] {
				f.back[e] = true
				continue
			}
			f.into[e.to] = append(f.into[e.to], e)
			if !seen[e.to] {
				walk(e.to)
			}
		}
		open[s] = false
		f.order = append(f.order, s)
	}
	walk(m.byName[m.startAt])
	slices.Reverse(f.order)
	return f
}

// arrival makes what comes to a state: its input, and the variables that were assigned.
func (p *pool) arrival(input *value, variables map[string]*value, order []string) *value {
	names, parts := []string{"$"}, []*value{input}
	for _, name := range order {
		names, parts = append(names, name), append(parts, variables[name])
	}
	return p.make(value{form: formArrival, names: names, parts: parts})
}

// input is what an arrival brings, and variables what was assigned.
func (v *value) input() *value { return v.parts[0] }

func (v *value) variables() map[string]*value {
	all := map[string]*value{}
	for i, name := range v.names[1:] {
		all[name] = v.parts[i+1]
	}
	return all
}

// assigned is an arrival with other input, and with variables set.
func (p *pool) assigned(v, input *value, names []string, parts []*value) *value {
	all, order := v.variables(), slices.Clone(v.names[1:])
	for i, name := range names {
		if _, known := all[name]; !known {
			order = append(order, name)
		}
		all[name] = parts[i]
	}
	slices.Sort(order)
	return p.arrival(input, all, order)
}

// narrow makes one arrival of many, whose values say themselves which they are: else states with many ways to them
// would multiply.
func (p *pool) narrow(d *diagram) *diagram {
	ends := leaves(d)
	if len(ends) <= maxWays {
		return d
	}
	one := p.single(d)
	return p.mapLeaves(d, func(*value) *value { return one })
}

// single is one arrival that stands for all of d.
func (p *pool) single(d *diagram) *value {
	ends := leaves(d)
	if len(ends) == 1 {
		return ends[0]
	}
	var order []string
	for _, end := range ends {
		for _, name := range end.names[1:] {
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	slices.Sort(order)
	variables := map[string]*value{}
	for _, name := range order {
		variables[name] = p.choose(p.mapLeaves(d, func(v *value) *value {
			if known := v.variables()[name]; known != nil {
				return known
			}
			return p.constant("null")
		}))
	}
	return p.arrival(p.choose(p.mapLeaves(d, (*value).input)), variables, order)
}

package graph

import (
	"slices"
	"strconv"
	"strings"
)

// maxWords is how many bytes the order in words may have before it is cut short.
const maxWords = 1200

// Words lists the nodes in order, column by column: "quote; then flight, hotel and car side by side; then approve". A
// node that does not follow all of the column before names its needs. Long ones are cut, with the number of nodes
// left out.
func (d Drawing) Words() string {
	if d.plan == nil || len(d.Nodes) == 0 {
		return "no steps"
	}
	var text strings.Builder
	said := 0
	for c := range d.plan.layers {
		nodes := d.plan.nodesOf(c)
		clause := d.plan.clause(c, nodes)
		if text.Len()+len(clause) > maxWords {
			text.WriteString("; and " + strconv.Itoa(len(d.Nodes)-said) + " more")
			break
		}
		if c > 0 {
			text.WriteString("; then ")
		}
		text.WriteString(clause)
		said += len(nodes)
	}
	return text.String()
}

// nodesOf returns the nodes of a column, from top to bottom.
func (p *plan) nodesOf(column int) []int {
	var nodes []int
	for _, id := range p.layers[column] {
		if n := p.points[id].node; n >= 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// clause says which nodes stand in a column.
func (p *plan) clause(column int, nodes []int) string {
	var names []string
	for _, n := range nodes {
		name := p.nodes[n].Label
		if after := p.needs(n); column > 0 && !p.follows(column, after) {
			name += " (after " + list(p.labels(after)) + ")"
		}
		names = append(names, name)
	}
	text := list(names)
	if len(names) > 1 {
		text += " side by side"
	}
	return text
}

// follows reports whether nodes are all of the column before one.
func (p *plan) follows(column int, nodes []int) bool {
	before := p.nodesOf(column - 1)
	slices.Sort(before)
	return slices.Equal(before, nodes)
}

// needs are the nodes that lead to one, in the order given.
func (p *plan) needs(node int) []int {
	var needs []int
	for _, l := range p.links {
		if l.to == node {
			needs = append(needs, l.from)
		}
	}
	slices.Sort(needs)
	return needs
}

func (p *plan) labels(nodes []int) []string {
	var labels []string
	for _, n := range nodes {
		labels = append(labels, p.nodes[n].Label)
	}
	return labels
}

// list writes a, b and c.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Package graph draws the steps of a workflow, or of a job, as a graph from left to right: as SVG for a page or a
// file, as Mermaid, and as text for a terminal. It knows the look of a state and the position of a step; it reads no
// file, asks no engine, and makes no decisions about jobs.
//
// A drawing has at most MaxNodes steps, takes a bounded time, and at most MaxSVGBytes. Equal inputs give equal bytes.
package graph

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// MaxNodes is how many nodes a graph may have: as many as a workflow may have steps.
	MaxNodes = limits.MaxSteps
	// MaxSVGBytes bounds the SVG of any graph of MaxNodes, if links are as short as names. A workflow of ten steps takes
	// about 5 KB.
	MaxSVGBytes = 3 << 20
	// maxBends is how many columns the edges of a graph may pass in total and still be led around the nodes there. A
	// graph with more is a thicket in any drawing: its long edges run straight.
	maxBends = 4000
)

// Node is a step as it is drawn.
type Node struct {
	// ID names the node for edges; it is unique in its graph, and not shown.
	ID string
	// Label is its name, and Sub a second, smaller line; both are cut to what the box holds.
	Label, Sub string
	// State says its colour and shape. The zero value is Idle.
	State State
	// Word describes State in a word or two, to those that cannot see the shape. Empty: the state's own word.
	Word string
	// Href is where the node leads to; empty: it is no link.
	Href string
}

// EdgeKind says what an edge stands for.
type EdgeKind int

// The kinds of edges. The last two are the way back: from a step to one that it needed, beside the edge taken back.
const (
	// Taken is a way that the job went. It is the zero value, and how a workflow that is no job is drawn.
	Taken EdgeKind = iota
	// Off is a way that was not taken, or not yet.
	Off
	// Flow leads into a step that is under way.
	Flow
	// Back is a way back that was taken, and BackFlow one into an undo that is under way.
	Back
	BackFlow
	// Stop is where the way back ended: the undo of the step that it leads to was given up.
	Stop
)

// Edge leads from a node to another, by their IDs.
type Edge struct {
	From, To string
	Kind     EdgeKind
}

// Drawing is a graph with known positions. Lengths are CSS pixels; the origin is at the top left.
type Drawing struct {
	Width, Height int
	// Nodes are in the order in which they are read: by column, and in it from top to bottom.
	Nodes []Placed
	edges []routed
	plan  *plan
}

// Placed is a node and where its box stands; Column counts from 0.
type Placed struct {
	Node
	X, Y, Width, Height int
	Column              int
}

// Layout places nodes and edges: each node in the column after the last that it needs, so columns are the order of
// beginning, and within columns so that few edges cross. An edge that others imply (a to c beside a to b to c) is
// left out, and so is a way back beside no edge. Nodes of equal rank stand in the order given unless crossings move
// them.
//
// It refuses more than MaxNodes nodes, two of one ID, edges of nodes that are not there, and edges that run in a
// circle.
func Layout(nodes []Node, edges ...Edge) (Drawing, error) {
	index, err := indexOf(nodes)
	if err != nil {
		return Drawing{}, err
	}
	forward, back, err := sortOut(index, edges)
	if err != nil {
		return Drawing{}, err
	}
	forward, err = reduce(len(nodes), forward)
	if err != nil {
		return Drawing{}, err
	}
	p := newPlan(nodes, forward, back)
	p.order()
	return p.drawing(), nil
}

// link is an edge between nodes by their place in the list.
type link struct {
	from, to int
	kind     EdgeKind
}

func indexOf(nodes []Node) (map[string]int, error) {
	if len(nodes) > MaxNodes {
		return nil, fmt.Errorf("draw a graph of %d nodes: the limit is %d", len(nodes), MaxNodes)
	}
	index := make(map[string]int, len(nodes))
	for i, n := range nodes {
		if _, twice := index[n.ID]; twice {
			return nil, fmt.Errorf("draw a graph: two nodes have the ID %q", n.ID)
		}
		index[n.ID] = i
	}
	return index, nil
}

// sortOut returns the edges that define the order, each once, and those that lead back, by the pair that they cross.
func sortOut(index map[string]int, edges []Edge) (forward []link, back map[[2]int]EdgeKind, err error) {
	back = map[[2]int]EdgeKind{}
	seen := map[[2]int]bool{}
	for _, e := range edges {
		from, known := index[e.From]
		to, too := index[e.To]
		switch {
		case !known || !too:
			return nil, nil, fmt.Errorf("draw a graph: there is no node for the edge from %q to %q", e.From, e.To)
		case e.Kind >= Back: // It runs against the order.
			pair := [2]int{to, from}
			back[pair] = max(back[pair], e.Kind)
		case !seen[[2]int{from, to}]:
			seen[[2]int{from, to}] = true
			forward = append(forward, link{from, to, e.Kind})
		}
	}
	return forward, back, nil
}

package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// graph is the order of a workflow's steps, by their index.
type graph struct {
	order     []int   // every step behind those that it needs: by how long the longest way to it is, then as in the workflow
	needs     [][]int // whom each step needs, or who may go to it
	followers [][]int // who needs each step
}

// newGraph panics on a workflow that was not checked: an unknown need, or a circle.
func newGraph(w makegood.Workflow) graph {
	n := len(w.Steps)
	index := make(map[string]int, n)
	for i, s := range w.Steps {
		index[s.Name] = i
	}
	g := graph{order: make([]int, 0, n), needs: make([][]int, n), followers: make([][]int, n)}
	missing := make([]int, n)
	for i, s := range w.Steps {
		before := domain.Before(w, s)
		for _, name := range before {
			need, ok := index[name]
			if !ok {
				panic(fmt.Sprintf("machine: step %s needs %s, which is not there", s.Name, name))
			}
			g.needs[i] = append(g.needs[i], need)
			g.followers[need] = append(g.followers[need], i)
		}
		missing[i] = len(before)
		if missing[i] == 0 {
			g.order = append(g.order, i)
		}
	}
	for done := 0; done < len(g.order); done++ {
		for _, f := range g.followers[g.order[done]] {
			if missing[f]--; missing[f] == 0 {
				g.order = append(g.order, f)
			}
		}
	}
	if len(g.order) != n {
		panic(fmt.Sprintf("machine: the steps of %s need each other in a circle", w.Name))
	}
	g.byDepth()
	return g
}

// byDepth puts the order so that it does not hang on which need was met last: of steps that begin at the same moment, one
// of which may stop the job as it begins, it says which do begin.
func (g graph) byDepth() {
	depth := make([]int, len(g.order))
	for _, i := range g.order {
		for _, need := range g.needs[i] {
			depth[i] = max(depth[i], depth[need]+1)
		}
	}
	slices.SortFunc(g.order, func(a, b int) int { return cmp.Or(cmp.Compare(depth[a], depth[b]), cmp.Compare(a, b)) })
}

// backwards is the order with every step behind those that need it.
func (g graph) backwards() []int {
	order := slices.Clone(g.order)
	slices.Reverse(order)
	return order
}

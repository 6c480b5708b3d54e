package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// Graph is the order of a workflow's steps, by their index. It never changes.
type Graph struct {
	order     []int   // every step behind those that it needs: by how long the longest way to it is, then as in the workflow
	needs     [][]int // the needs of each step, or the steps that may go to it
	followers [][]int // the steps that need each step
}

// GraphOf panics on an unchecked workflow: an unknown need, or a cycle. A decision without one makes it, so its lists
// share memory.
func GraphOf(w makegood.Workflow) *Graph {
	n := len(w.Steps)
	lists, numbers := make([][]int, 2*n), make([]int, 8*n)
	g := Graph{order: numbers[:0:n], needs: lists[:n:n], followers: lists[n:]}
	missing, depth := numbers[n:2*n], numbers[2*n:3*n]
	g.link(w, numbers[3*n:])
	for i, needs := range g.needs {
		if missing[i] = len(needs); missing[i] == 0 {
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
	g.byDepth(depth)
	return &g
}

// link records the needs of each step and the steps that need it. room holds five numbers a step, all zero: enough
// for an average of two needs a step.
func (g Graph) link(w makegood.Workflow, room []int) {
	n := len(w.Steps)
	index := indexOf(w)
	followed, all, back := room[:n], room[n:n:3*n], room[3*n:]
	for i, s := range w.Steps {
		from := len(all)
		for _, name := range domain.Before(w, s) {
			need, ok := stepNamed(w.Steps, index, name)
			if !ok {
				panic(fmt.Sprintf("machine: step %s needs %s, which is not there", s.Name, name))
			}
			all = append(all, need)
			followed[need]++
		}
		g.needs[i] = all[from:len(all):len(all)]
	}
	if len(all) > len(back) {
		back = make([]int, len(all))
	}
	for i, many := range followed {
		g.followers[i], back = back[:0:many], back[many:]
	}
	for i, needs := range g.needs {
		for _, need := range needs {
			g.followers[need] = append(g.followers[need], i)
		}
	}
}

// fewSteps is up to how many steps one is found by looking at each: quicker than to make a map.
const fewSteps = 16

// indexOf returns the steps of a large workflow by their names; nil for another.
func indexOf(w makegood.Workflow) map[string]int {
	if len(w.Steps) <= fewSteps {
		return nil
	}
	index := make(map[string]int, len(w.Steps))
	for i := range w.Steps {
		index[w.Steps[i].Name] = i
	}
	return index
}

// stepNamed finds a step by its name.
func stepNamed(steps []makegood.Step, index map[string]int, name string) (int, bool) {
	if index != nil {
		i, ok := index[name]
		return i, ok
	}
	for i := range steps {
		if steps[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// byDepth makes the order independent of the order of the needs: if several steps begin at the same moment and one
// may stop the job as it begins, the order decides which do begin. depth is room for as many numbers, all zero.
func (g Graph) byDepth(depth []int) {
	for _, i := range g.order {
		for _, need := range g.needs[i] {
			depth[i] = max(depth[i], depth[need]+1)
		}
	}
	slices.SortFunc(g.order, func(a, b int) int { return cmp.Or(cmp.Compare(depth[a], depth[b]), cmp.Compare(a, b)) })
}

// backwards is the order with every step behind those that need it.
func (g Graph) backwards() []int {
	order := slices.Clone(g.order)
	slices.Reverse(order)
	return order
}

// behind are a step and all that follow it.
func (g Graph) behind(i int) map[int]bool {
	all := map[int]bool{i: true}
	for _, n := range g.order {
		for _, need := range g.needs[n] {
			if all[need] {
				all[n] = true
			}
		}
	}
	return all
}

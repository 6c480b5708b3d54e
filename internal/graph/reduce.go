package graph

import "errors"

// nodeSet is a set of nodes, by their place in the list.
type nodeSet [(MaxNodes + 63) / 64]uint64

func (s *nodeSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *nodeSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s *nodeSet) addAll(other *nodeSet) {
	for i := range s {
		s[i] |= other[i]
	}
}

// reduce leaves out the edges that others imply, and refuses a circle. The remaining edges keep their order.
func reduce(nodes int, edges []link) ([]link, error) {
	sequence, after, err := inSequence(nodes, edges)
	if err != nil {
		return nil, err
	}
	// reach are the nodes that a node leads to, and beyond those that it leads to by way of another.
	reach, beyond := make([]nodeSet, nodes), make([]nodeSet, nodes)
	for i := nodes - 1; i >= 0; i-- {
		u := sequence[i]
		for _, v := range after[u] {
			beyond[u].addAll(&reach[v])
		}
		reach[u] = beyond[u]
		for _, v := range after[u] {
			reach[u].add(v)
		}
	}
	var kept []link
	for _, e := range edges {
		if !beyond[e.from].has(e.to) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// inSequence returns the nodes in an order in which every edge leads ahead, and to which nodes each leads.
func inSequence(nodes int, edges []link) (sequence []int, after [][]int, err error) {
	missing := make([]int, nodes)
	after = make([][]int, nodes)
	for _, e := range edges {
		missing[e.to]++
		after[e.from] = append(after[e.from], e.to)
	}
	for i := range nodes {
		if missing[i] == 0 {
			sequence = append(sequence, i)
		}
	}
	for i := 0; i < len(sequence); i++ {
		for _, v := range after[sequence[i]] {
			if missing[v]--; missing[v] == 0 {
				sequence = append(sequence, v)
			}
		}
	}
	if len(sequence) < nodes {
		return nil, nil, errors.New("draw a graph: its edges run in a circle")
	}
	return sequence, after, nil
}

// columns returns the column of each node: the one after the last of those that lead to it.
func columns(nodes int, edges []link) []int {
	sequence, after, err := inSequence(nodes, edges)
	if err != nil {
		panic("graph: edges that were reduced run in a circle")
	}
	column := make([]int, nodes)
	for _, u := range sequence {
		for _, v := range after[u] {
			column[v] = max(column[v], column[u]+1)
		}
	}
	return column
}

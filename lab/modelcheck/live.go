package modelcheck

// checkLive goes back from the ends, over everything but faults and operators, and counts what it did
// not come to.
func (m *model) checkLive(r *Result) {
	// The edges by where they lead: those into state k are from[first[k]:first[k+1]].
	first := make([]uint32, len(m.parents)+1)
	for _, e := range m.edges {
		first[e.to+1]++
	}
	for k := range m.parents {
		first[k+1] += first[k]
	}
	from := make([]uint32, len(m.edges))
	filled := make([]uint32, len(m.parents))
	for _, e := range m.edges {
		from[first[e.to]+filled[e.to]] = e.from
		filled[e.to]++
	}
	reached := make([]bool, len(m.parents))
	queue := m.ends
	for _, k := range queue {
		reached[k] = true
	}
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		for _, before := range from[first[k]:first[k+1]] {
			if !reached[before] {
				reached[before] = true
				queue = append(queue, before)
			}
		}
	}
	for k, is := range reached {
		if is {
			continue
		}
		if r.Stuck == 0 {
			r.Violation = "from here the job cannot end"
			r.Trace = m.trace(uint32(k))
		}
		r.Stuck++
	}
}

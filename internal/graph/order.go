package graph

import (
	"cmp"
	"slices"
)

const (
	// maxSweeps is how often columns are put in order by their neighbours, and patience how many sweeps without a better
	// order end that.
	maxSweeps = 24
	patience  = 4
)

// point is an item of a column: a node, or a bend, where a long edge passes by.
type point struct {
	// node is its place in the list of nodes; -1: a bend.
	node   int
	column int
	// before and after are the points of the neighbouring columns that it is joined to.
	before, after []int
	// place counts the points of its column from the top.
	place int
}

// plan is a graph on its way to a drawing.
type plan struct {
	nodes  []Node
	links  []link
	back   map[[2]int]EdgeKind
	points []point
	// layers are the points of each column, from top to bottom.
	layers [][]int
	// ways are the points that each link passes, its ends included.
	ways [][]int
}

// newPlan puts nodes into columns, and bends into those that an edge passes by.
func newPlan(nodes []Node, links []link, back map[[2]int]EdgeKind) *plan {
	p := &plan{nodes: nodes, links: links, back: back}
	column := columns(len(nodes), links)
	if len(nodes) > 0 {
		p.layers = make([][]int, slices.Max(column)+1)
	}
	for i := range nodes {
		p.add(i, column[i])
	}
	bends := 0
	for _, l := range links {
		bends += column[l.to] - column[l.from] - 1
	}
	for _, l := range links {
		p.ways = append(p.ways, p.lead(l, bends <= maxBends))
	}
	return p
}

func (p *plan) add(node, column int) int {
	id := len(p.points)
	p.points = append(p.points, point{node: node, column: column, place: len(p.layers[column])})
	p.layers[column] = append(p.layers[column], id)
	return id
}

// lead makes the way of a link, column by column if it is to bend.
func (p *plan) lead(l link, bend bool) []int {
	from, to := l.from, l.to
	way := []int{from}
	for c := p.points[from].column + 1; bend && c < p.points[to].column; c++ {
		way = append(way, p.add(-1, c))
	}
	way = append(way, to)
	for i, a := range way[1:] {
		b := way[i]
		if p.points[a].column-p.points[b].column == 1 {
			p.points[b].after = append(p.points[b].after, a)
			p.points[a].before = append(p.points[a].before, b)
		}
	}
	return way
}

// order sorts each column so that few edges cross: by the middle of the points that each is joined to, sweeping to
// and fro, then by exchanging neighbours. The best order seen stays.
func (p *plan) order() {
	best, fewest, since := p.snapshot(), p.crossings(), 0
	for sweep := 0; sweep < maxSweeps && fewest > 0 && since < patience; sweep++ {
		p.sweep(sweep%2 == 0)
		since++
		if n := p.crossings(); n < fewest {
			best, fewest, since = p.snapshot(), n, 0
		}
	}
	p.restore(best)
	for range patience {
		if !p.exchange() {
			return
		}
	}
}

func (p *plan) snapshot() [][]int {
	copied := make([][]int, len(p.layers))
	for i, layer := range p.layers {
		copied[i] = slices.Clone(layer)
	}
	return copied
}

func (p *plan) restore(layers [][]int) {
	p.layers = layers
	for _, layer := range layers {
		p.number(layer)
	}
}

func (p *plan) number(layer []int) {
	for i, id := range layer {
		p.points[id].place = i
	}
}

// sweep sorts every column by the one before it, or by the one after it.
func (p *plan) sweep(ahead bool) {
	for i := range p.layers {
		layer := p.layers[i]
		if !ahead {
			layer = p.layers[len(p.layers)-1-i]
		}
		middle := make(map[int]float64, len(layer))
		for _, id := range layer {
			middle[id] = p.middle(id, ahead)
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		p.number(layer)
	}
}

// middle is the mean place of the points joined to a point on one side; its own place, if none is joined there.
func (p *plan) middle(id int, before bool) float64 {
	neighbours := p.points[id].after
	if before {
		neighbours = p.points[id].before
	}
	if len(neighbours) == 0 {
		return float64(p.points[id].place)
	}
	sum := 0
	for _, n := range neighbours {
		sum += p.points[n].place
	}
	return float64(sum) / float64(len(neighbours))
}

// crossings counts how often edges cross between neighbouring columns.
func (p *plan) crossings() int {
	total := 0
	for c := 1; c < len(p.layers); c++ {
		total += p.crossingsBefore(c)
	}
	return total
}

// crossingsBefore counts those between a column and the one before it: pairs of edges with ends in opposite order.
// Ends above are summed in a Fenwick tree, so a column of E edges and V points takes E log V.
func (p *plan) crossingsBefore(c int) int {
	tree := make([]int, len(p.layers[c-1])+1)
	crossings, seen := 0, 0
	for _, id := range p.layers[c] {
		ends := p.points[id].before
		for _, end := range ends {
			above := 0
			for i := p.points[end].place + 1; i > 0; i -= i & -i {
				above += tree[i]
			}
			crossings += seen - above
		}
		for _, end := range ends {
			for i := p.points[end].place + 1; i < len(tree); i += i & -i {
				tree[i]++
			}
		}
		seen += len(ends)
	}
	return crossings
}

// exchange lets neighbours in a column change places where fewer edges cross then, and reports whether any did.
func (p *plan) exchange() bool {
	changed := false
	for _, layer := range p.layers {
		for i := 1; i < len(layer); i++ {
			a, b := layer[i-1], layer[i]
			if p.inverted(b, a) < p.inverted(a, b) {
				layer[i-1], layer[i] = b, a
				p.points[a].place, p.points[b].place = i, i-1
				changed = true
			}
		}
	}
	return changed
}

// inverted counts the crossings of the edges of two neighbours, the upper first.
func (p *plan) inverted(upper, lower int) int {
	count := func(of, under []int) (n int) {
		for _, u := range of {
			for _, l := range under {
				if p.points[l].place < p.points[u].place {
					n++
				}
			}
		}
		return n
	}
	u, l := p.points[upper], p.points[lower]
	return count(u.before, l.before) + count(u.after, l.after)
}

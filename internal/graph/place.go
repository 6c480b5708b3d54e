package graph

import "math"

const (
	// rounds is how often each column is moved towards its neighbours, there and back.
	rounds = 8
	// straight is how much stronger two bends of an edge pull at each other than two nodes do.
	straight = 8
)

// spread says how far apart the middles of two neighbours in a column must be.
type spread func(upper, lower point) float64

// heights returns the height of the middle of each point: close to the middle of the points that it is joined to, and
// apart from its neighbours. The lowest value is 0.
func (p *plan) heights(apart spread) []float64 {
	y := make([]float64, len(p.points))
	for _, layer := range p.layers {
		at := 0.0
		for i, id := range layer {
			if i > 0 {
				at += apart(p.points[layer[i-1]], p.points[id])
			}
			y[id] = at
		}
		for _, id := range layer {
			y[id] -= at / 2
		}
	}
	for range rounds {
		for c := range p.layers {
			p.settle(y, p.layers[c], apart, true, false)
		}
		for c := len(p.layers) - 1; c >= 0; c-- {
			p.settle(y, p.layers[c], apart, false, true)
		}
	}
	for _, layer := range p.layers {
		p.settle(y, layer, apart, true, true)
	}
	low := math.Inf(1)
	for _, h := range y {
		low = min(low, h)
	}
	for i := range y {
		y[i] -= low
	}
	return y
}

// settle moves the points of a column as near as possible to the places that their neighbours want, keeping their
// order: without the distances, that is the nearest sequence that never falls, found by merging neighbours that fall.
func (p *plan) settle(y []float64, layer []int, apart spread, before, after bool) {
	type block struct {
		sum, weight float64
		points      int
	}
	var blocks []block
	offsets := make([]float64, len(layer))
	for i, id := range layer {
		if i > 0 {
			offsets[i] = offsets[i-1] + apart(p.points[layer[i-1]], p.points[id])
		}
		want, weight := p.wanted(y, id, before, after)
		b := block{sum: (want - offsets[i]) * weight, weight: weight, points: 1}
		for n := len(blocks); n > 0 && blocks[n-1].sum/blocks[n-1].weight > b.sum/b.weight; n-- {
			b = block{blocks[n-1].sum + b.sum, blocks[n-1].weight + b.weight, blocks[n-1].points + b.points}
			blocks = blocks[:n-1]
		}
		blocks = append(blocks, b)
	}
	i := 0
	for _, b := range blocks {
		for range b.points {
			y[layer[i]] = b.sum/b.weight + offsets[i]
			i++
		}
	}
}

// wanted is the place that a point's neighbours want, and how strongly; without neighbours its own, weakly.
func (p *plan) wanted(y []float64, id int, before, after bool) (want, weight float64) {
	pull := func(neighbours []int) {
		for _, n := range neighbours {
			strength := 1.0
			if p.points[n].node < 0 && p.points[id].node < 0 {
				strength = straight
			}
			want += y[n] * strength
			weight += strength
		}
	}
	if before {
		pull(p.points[id].before)
	}
	if after {
		pull(p.points[id].after)
	}
	if weight == 0 {
		const weak = 0.25
		return y[id], weak
	}
	return want / weight, weight
}

package graph

import (
	"math"
	"slices"
	"strconv"
)

// The measures of a drawing, in CSS pixels.
const (
	boxHeight = 52
	boxGap    = 28
	// bendGap is the distance between a passing edge and the items beside it.
	bendGap = 20
	// minBox and maxBox bound the width of a box, the same for all of a drawing; longer texts are cut.
	minBox, maxBox = 164, 268
	// minGutter and maxGutter bound the space between two columns: it grows with the edges in it.
	minGutter, maxGutter = 40, 120
	margin               = 4
	// beside is the distance between an edge and its way back, and tip the gap before a box for an edge's arrow.
	beside = 6
	tip    = 7
	// The widths of a character of the label and of the line below, and what else a box holds beside them.
	labelChar, labelRoom = 7.6, 52
	subChar, subRoom     = 6.4, 28
)

// routed is an edge and the path that it takes, as SVG writes it.
type routed struct {
	from, to int
	kind     EdgeKind
	path     string
}

// drawing gives everything its place.
func (p *plan) drawing() Drawing {
	d := Drawing{plan: p}
	if len(p.layers) == 0 {
		return d
	}
	y := p.heights(apartAsBoxes)
	width := p.boxWidth()
	left := p.lefts(width)
	for _, layer := range p.layers {
		for _, id := range layer {
			node := p.points[id].node
			if node < 0 {
				d.Height = max(d.Height, pixel(y[id])+margin)
				continue
			}
			c := p.points[id].column
			placed := Placed{Node: p.nodes[node], X: left[c], Y: pixel(y[id]) - boxHeight/2, Width: width, Height: boxHeight, Column: c}
			d.Nodes = append(d.Nodes, placed)
			d.Height = max(d.Height, placed.Y+boxHeight+margin)
		}
	}
	d.Width = left[len(left)-1] + width + margin
	for i, l := range p.links {
		kind, both := p.back[[2]int{l.from, l.to}]
		shift := 0
		if both {
			shift = beside
		}
		ahead := p.corners(p.ways[i], y, left, width, -shift)
		ahead[len(ahead)-1].x -= tip
		d.edges = append(d.edges, routed{l.from, l.to, l.kind, pathOf(ahead)})
		if both {
			behind := p.corners(p.ways[i], y, left, width, shift)
			behind[0].x += tip
			slices.Reverse(behind)
			d.edges = append(d.edges, routed{l.to, l.from, kind, pathOf(behind)})
		}
	}
	return d
}

func apartAsBoxes(upper, lower point) float64 {
	if upper.node < 0 && lower.node < 0 {
		return bendGap
	}
	if upper.node < 0 || lower.node < 0 {
		return boxHeight/2 + bendGap
	}
	return boxHeight + boxGap
}

// pixel is where the middle of a height is drawn: half a box below the top, so that a box at height 0 fits.
func pixel(y float64) int { return int(math.Round(y)) + boxHeight/2 + margin }

// boxWidth is wide enough for the longest texts, within its bounds.
func (p *plan) boxWidth() int {
	width := float64(minBox)
	for _, n := range p.nodes {
		width = max(width, labelRoom+labelChar*float64(len([]rune(n.Label))), subRoom+subChar*float64(len([]rune(n.Sub))))
	}
	return min(int(width), maxBox)
}

// lefts returns where each column begins.
func (p *plan) lefts(width int) []int {
	const perEdge = 2
	lefts := []int{margin}
	for c := 1; c < len(p.layers); c++ {
		edges := 0
		for _, id := range p.layers[c] {
			edges += len(p.points[id].before)
		}
		gutter := min(maxGutter, minGutter+perEdge*max(0, edges-len(p.layers[c])))
		lefts = append(lefts, lefts[c-1]+width+gutter)
	}
	return lefts
}

// corner is where the path of an edge touches a column.
type corner struct{ x, y int }

// corners returns where an edge leaves its first box, enters and leaves each column that it passes, and reaches its
// last box.
func (p *plan) corners(way []int, y []float64, left []int, width, shift int) []corner {
	var corners []corner
	for i, id := range way {
		at := pixel(y[id]) + shift
		column := left[p.points[id].column]
		if i > 0 {
			corners = append(corners, corner{column, at})
		}
		if i < len(way)-1 {
			corners = append(corners, corner{column + width, at})
		}
	}
	return corners
}

// pathOf writes a path: a curve from column to column, and a straight line by each that is passed.
func pathOf(corners []corner) string {
	path := appendPoint([]byte{'M'}, corners[0].x, corners[0].y)
	for i := 1; i < len(corners); i++ {
		from, to := corners[i-1], corners[i]
		if from.y == to.y {
			path = strconv.AppendInt(append(path, 'H'), int64(to.x), 10)
			continue
		}
		middle := (from.x + to.x) / 2
		path = appendPoint(append(path, 'C'), middle, from.y)
		path = appendPoint(append(path, ' '), middle, to.y)
		path = appendPoint(append(path, ' '), to.x, to.y)
	}
	return string(path)
}

func appendPoint(path []byte, x, y int) []byte {
	path = strconv.AppendInt(path, int64(x), 10)
	return strconv.AppendInt(append(path, ' '), int64(y), 10)
}

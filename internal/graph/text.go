package graph

import (
	"math"
	"slices"
	"strings"
)

const (
	// maxTextLines is how many lines a drawing in text may have.
	maxTextLines = 2 * MaxNodes
	// maxCell is how many characters of a label a drawing in text shows.
	maxCell = 24
)

// TextOptions say what a terminal can show.
type TextOptions struct {
	// Width is how many characters a line may have.
	Width int
	// Colour: states are coloured too, with SGR codes. The shapes differ without it, too.
	Colour bool
}

// Text draws a graph in lines of characters: a shape and a name for each node, and lines between them. It reports
// whether that fits; a wider graph, or one with more lines than maxTextLines, is not drawn. Every shape is one cell
// wide.
func Text(d Drawing, o TextOptions) ([]string, bool) {
	if d.plan == nil || len(d.Nodes) == 0 || d.plan.dense() {
		return nil, false
	}
	t := newTextGrid(d.plan)
	if t.width > o.Width || t.height > maxTextLines {
		return nil, false
	}
	t.draw()
	return t.lines(o.Colour), true
}

// Legend explains each shape of a text drawing, in a line each.
func Legend() []string {
	var lines []string
	for _, s := range states() {
		l := s.look()
		lines = append(lines, string(l.glyph)+" "+l.word)
	}
	return lines
}

// dense reports whether an edge passes columns without a bend in them.
func (p *plan) dense() bool {
	for i, l := range p.links {
		if len(p.ways[i]) != p.points[l.to].column-p.points[l.from].column+1 {
			return true
		}
	}
	return false
}

// textGrid is a drawing in characters.
type textGrid struct {
	p *plan
	// row is the line of each point.
	row           []int
	width, height int
	// left is where each column begins, and cell how wide its names are.
	left, cell []int
	// gutters are the lines between each column and the next.
	gutters [][]bundle
	cells   [][]rune
	// joins are the directions in which lines leave each cell.
	joins [][]join
	state [][]State
	named [][]bool
}

// join is the set of directions in which a line leaves a cell.
type join uint8

const (
	up join = 1 << iota
	down
	toLeft
	toRight
)

// lineRunes are the characters of the sets.
var lineRunes = [16]rune{' ', '╵', '╷', '│', '╴', '┘', '┐', '┤', '╶', '└', '┌', '├', '─', '┴', '┬', '┼'}

// bundle is what joins all of some points of a column to all of some of the next, by one line down the gutter.
type bundle struct{ from, to []int }

func newTextGrid(p *plan) *textGrid {
	t := &textGrid{p: p}
	for _, y := range p.heights(func(point, point) float64 { return 1 }) {
		t.row = append(t.row, int(math.Ceil(y-0.5))) // between two lines, the upper one
		t.height = max(t.height, t.row[len(t.row)-1]+1)
	}
	at := 0
	for c, layer := range p.layers {
		cell := 1
		for _, id := range layer {
			if n := p.points[id].node; n >= 0 {
				cell = max(cell, 2+len([]rune(cutTo(p.nodes[n].Label, maxCell))))
			}
		}
		t.left, t.cell = append(t.left, at), append(t.cell, cell)
		at += cell
		if c < len(p.layers)-1 {
			t.gutters = append(t.gutters, p.bundles(layer))
			at += t.gutterWidth(c)
		}
	}
	t.width = at
	return t
}

// gutterWidth is room for a line down for each bundle, and an arrow.
func (t *textGrid) gutterWidth(c int) int { return len(t.gutters[c]) + 4 }

// bundles sorts the edges after a column into bundles: points that lead to the same points share one.
func (p *plan) bundles(layer []int) []bundle {
	var found []bundle
	for _, id := range layer {
		to := slices.Clone(p.points[id].after)
		slices.Sort(to)
		to = slices.Compact(to)
		if len(to) == 0 {
			continue
		}
		same := slices.IndexFunc(found, func(b bundle) bool { return slices.Equal(b.to, to) })
		if same >= 0 {
			found[same].from = append(found[same].from, id)
			continue
		}
		found = append(found, bundle{[]int{id}, to})
	}
	return found
}

func (t *textGrid) draw() {
	for range t.height {
		t.cells = append(t.cells, slices.Repeat([]rune{' '}, t.width))
		t.joins = append(t.joins, make([]join, t.width))
		t.state = append(t.state, make([]State, t.width))
		t.named = append(t.named, make([]bool, t.width))
	}
	for c := range t.gutters {
		t.gutter(c)
	}
	for id := range t.p.points {
		t.point(id)
	}
}

// gutter draws the lines between a column and the next. A line that leaves at a height goes down before one that
// arrives there does, as far as there is such an order: else the two would lie on each other.
func (t *textGrid) gutter(c int) {
	bundles := t.inOrder(t.gutters[c])
	begin := t.left[c] + t.cell[c]
	end := begin + t.gutterWidth(c)
	for i, b := range bundles {
		track := begin + 2 + i
		low, high := t.height, 0
		for _, id := range b.from {
			t.across(t.row[id], begin+1, track)
			low, high = min(low, t.row[id]), max(high, t.row[id])
		}
		for _, id := range b.to {
			t.across(t.row[id], track, end-1)
			low, high = min(low, t.row[id]), max(high, t.row[id])
		}
		for row := low; row < high; row++ {
			t.joins[row][track] |= down
			t.joins[row+1][track] |= up
		}
	}
	for _, id := range t.p.layers[c+1] {
		if t.p.points[id].node >= 0 && len(t.p.points[id].before) > 0 {
			t.cells[t.row[id]][end-2], t.named[t.row[id]][end-2] = '▶', true
			t.joins[t.row[id]][end-1] = 0
		}
	}
}

// across draws a line from left of a cell to another.
func (t *textGrid) across(row, from, to int) {
	for x := from; x < to; x++ {
		t.joins[row][x] |= toRight
		t.joins[row][x+1] |= toLeft
	}
}

// inOrder sorts bundles so that one that leaves at a height comes before one that arrives there.
func (t *textGrid) inOrder(bundles []bundle) []bundle {
	var sorted []bundle
	rest := slices.Clone(bundles)
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(b bundle) bool { return !t.mustFollow(b, rest) })
		next = max(next, 0)
		sorted = append(sorted, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return sorted
}

// mustFollow reports whether b arrives at a height at which another leaves.
func (t *textGrid) mustFollow(b bundle, others []bundle) bool {
	for _, other := range others {
		if slices.Equal(other.from, b.from) {
			continue
		}
		for _, from := range other.from {
			for _, to := range b.to {
				if t.row[from] == t.row[to] && !slices.Contains(other.to, to) {
					return true
				}
			}
		}
	}
	return false
}

// point writes a node, and the lines that go on from it, or the line of an edge that passes by.
func (t *textGrid) point(id int) {
	pt, row := t.p.points[id], t.row[id]
	x, end := t.left[pt.column], t.left[pt.column]+t.cell[pt.column]
	if pt.node < 0 {
		t.across(row, x-1, end+1)
		return
	}
	n := t.p.nodes[pt.node]
	t.cells[row][x] = n.State.look().glyph
	t.state[row][x], t.named[row][x] = n.State, true
	x += 2
	for _, r := range cutTo(n.Label, maxCell) {
		t.cells[row][x], t.state[row][x], t.named[row][x] = r, n.State, true
		x++
	}
	if len(pt.after) > 0 && x+1 < end+1 {
		t.across(row, x+1, end+1)
	}
}

// lines writes the grid, without spaces at the ends of lines.
func (t *textGrid) lines(colour bool) []string {
	var lines []string
	for row := range t.cells {
		var b strings.Builder
		code := ""
		for x, r := range t.cells[row] {
			want := ""
			switch {
			case t.named[row][x] && r != '▶':
				want = t.state[row][x].look().colour
			case t.joins[row][x] != 0 && !t.named[row][x]:
				r = lineRunes[t.joins[row][x]]
			}
			if colour && want != code && r != ' ' {
				b.WriteString("\x1b[0m")
				if want != "" {
					b.WriteString("\x1b[" + want + "m")
				}
				code = want
			}
			b.WriteRune(r)
		}
		line := strings.TrimRight(b.String(), " ")
		if code != "" {
			line += "\x1b[0m"
		}
		lines = append(lines, line)
	}
	return lines
}

package graph

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// trip is a job that was turned round and stopped on its way back.
func trip() ([]Node, []Edge) {
	nodes := []Node{
		{ID: "quote", State: Processed},
		{ID: "flight", State: Undone},
		{ID: "hotel", State: Error, Word: "its undo failed", Sub: "bookings · its undo failed: refused"},
		{ID: "car", State: Undone},
		{ID: "approve", State: Processed},
		{ID: "loyalty", State: Skipped},
		{ID: "charge", State: Undone},
		{ID: "tickets", State: Error, Href: "#step-tickets"},
		{ID: "notify"},
	}
	for i := range nodes {
		nodes[i].Label = nodes[i].ID
	}
	return nodes, []Edge{
		{"quote", "flight", Taken},
		{"quote", "hotel", Taken},
		{"quote", "car", Taken},
		{"quote", "approve", Taken},
		{"flight", "approve", Taken},
		{"hotel", "approve", Taken},
		{"car", "approve", Taken},
		{"approve", "loyalty", Off},
		{"approve", "charge", Taken},
		{"charge", "tickets", Taken},
		{"loyalty", "notify", Off},
		{"tickets", "notify", Off},
		{"tickets", "charge", Back},
		{"charge", "approve", Back},
		{"approve", "flight", Back},
		{"approve", "hotel", Stop},
		{"approve", "car", BackFlow},
	}
}

func layout(t *testing.T, nodes []Node, edges []Edge) Drawing {
	t.Helper()
	d, err := Layout(nodes, edges...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func svgOf(t *testing.T, d Drawing, o SVGOptions) string {
	t.Helper()
	var b strings.Builder
	if err := SVG(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestANodeStandsInTheColumnAfterTheLastThatItNeeds(t *testing.T) {
	nodes, edges := trip()
	var got []string
	for _, n := range layout(t, nodes, edges).Nodes {
		got = append(got, fmt.Sprintf("%s %d", n.ID, n.Column))
	}
	slices.Sort(got)
	want := "approve 2, car 1, charge 3, flight 1, hotel 1, loyalty 3, notify 5, quote 0, tickets 4"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// What quote leads to approve by is said by the three between them.
func TestAnEdgeThatOthersImplyIsLeftOut(t *testing.T) {
	nodes, edges := trip()
	for _, e := range layout(t, nodes, edges).edges {
		if nodes[e.from].ID == "quote" && nodes[e.to].ID == "approve" {
			t.Error("got an edge from quote to approve, want none")
		}
	}
}

// A way back runs beside the edge that it takes back, and where there is none it is not drawn.
func TestTheWayBackRunsBesideTheEdgeThatItTakesBack(t *testing.T) {
	nodes, edges := trip()
	d := layout(t, nodes, append(edges, Edge{"notify", "quote", Back}))
	counts := map[EdgeKind]int{}
	for _, e := range d.edges {
		counts[e.kind]++
	}
	if want := (map[EdgeKind]int{Taken: 8, Off: 3, Back: 3, BackFlow: 1, Stop: 1}); fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", counts, want)
	}
}

func TestTheOrderIsSaidInWords(t *testing.T) {
	nodes, edges := trip()
	d := layout(t, nodes, edges)
	const want = "quote; then flight, hotel and car side by side; then approve; then loyalty and charge side by side; then tickets (after charge); then notify (after loyalty and tickets)"
	if got := d.Words(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if svg := svgOf(t, d, SVGOptions{Title: "t-1"}); !strings.Contains(svg, `role="group" aria-label="t-1: `+want+`"`) {
		t.Errorf("the SVG does not say the order: %.300s", svg)
	}
}

func TestTheWordsOfManyStepsAreCutShort(t *testing.T) {
	d := layout(t, manyNodes(MaxNodes), nil)
	if words := d.Words(); len(words) > maxWords+40 || !strings.HasSuffix(words, "and 200 more") {
		t.Errorf("got %d bytes, %q", len(words), words)
	}
}

// The page's policy forbids styles and scripts in place; the shapes are those of the page.
func TestTheSVGOfAPageHasNoStyleAndNoScript(t *testing.T) {
	nodes, edges := trip()
	svg := svgOf(t, layout(t, nodes, edges), SVGOptions{IDPrefix: "g-"})
	for _, not := range []string{"style", "script", "onload", "xmlns", "symbol"} {
		if strings.Contains(svg, not) {
			t.Errorf("got %q in it", not)
		}
	}
	for _, want := range []string{
		`<a href="#step-tickets" class="error">`, `<g class="idle">`, `<path class="edge rev" d="M`, `<path class="edge stop" d="M`, `<path class="edge rev flow" d="M`,
		`<path class="edge off" d="M`, `marker-end="url(#g-a-stop)"`, `<marker id="g-a"`, `<svg class="i"`, `aria-label="its undo failed:"><use href="#error"/>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in it:\n%s", want, svg)
		}
	}
}

func TestAStandaloneSVGIsXMLWithItsOwnStyle(t *testing.T) {
	nodes, edges := trip()
	nodes[0].Label, nodes[0].Sub, nodes[0].Href = `<b>&"quote'`+"\x00", "]]>", `javascript"`
	svg := svgOf(t, layout(t, nodes, edges), SVGOptions{Standalone: true, Title: `<"&`})
	decoder := xml.NewDecoder(strings.NewReader(svg))
	elements := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, is := token.(xml.StartElement); is {
			elements++
			if e.Name.Local == "b" {
				t.Error("a label became an element")
			}
		}
	}
	if elements < 50 || !strings.Contains(svg, "<style>") || !strings.Contains(svg, `<symbol id="undone"`) {
		t.Errorf("got %d elements of\n%s", elements, svg)
	}
}

func TestWhatIsNoGraphIsRefused(t *testing.T) {
	for _, row := range []struct {
		want  string
		nodes []Node
		edges []Edge
	}{
		{"draw a graph of 201 nodes: the limit is 200", manyNodes(MaxNodes + 1), nil},
		{`draw a graph: two nodes have the ID "a"`, []Node{{ID: "a"}, {ID: "a"}}, nil},
		{`draw a graph: there is no node for the edge from "a" to "b"`, []Node{{ID: "a"}}, []Edge{{"a", "b", Taken}}},
		{`draw a graph: there is no node for the edge from "c" to "a"`, []Node{{ID: "a"}}, []Edge{{"c", "a", Back}}},
		{"draw a graph: its edges run in a circle", []Node{{ID: "a"}, {ID: "b"}}, []Edge{{"a", "b", Taken}, {"b", "a", Taken}}},
		{"draw a graph: its edges run in a circle", []Node{{ID: "a"}}, []Edge{{"a", "a", Taken}}},
	} {
		_, err := Layout(row.nodes, row.edges...)
		if err == nil || err.Error() != row.want {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
}

func TestNothingIsAnEmptyDrawing(t *testing.T) {
	d := layout(t, nil, nil)
	if svg := svgOf(t, d, SVGOptions{}); !strings.Contains(svg, "no steps") {
		t.Errorf("got %s", svg)
	}
	if lines, fits := Text(d, TextOptions{Width: 80}); fits {
		t.Errorf("got %q, want that it is not drawn", lines)
	}
}

func manyNodes(n int) []Node {
	var nodes []Node
	for i := range n {
		name := fmt.Sprintf("step_%03d_%s", i, strings.Repeat("x", 54))
		nodes = append(nodes, Node{ID: name, Label: name, Sub: name, Href: "#step-" + name, State: states()[i%len(states())]})
	}
	return nodes
}

// worst are the graphs of MaxNodes that are largest to draw, by name.
func worst() map[string][]Edge {
	nodes := manyNodes(MaxNodes)
	random := rand.New(rand.NewPCG(1, 2))
	graphs := map[string][]Edge{}
	for i := range nodes {
		for j := range i {
			both := []Edge{{nodes[j].ID, nodes[i].ID, Flow}, {nodes[i].ID, nodes[j].ID, BackFlow}}
			graphs["all to all"] = append(graphs["all to all"], both...)
			if i >= MaxNodes/2 && j < MaxNodes/2 {
				graphs["half to half"] = append(graphs["half to half"], both...)
			}
			for _, percent := range []int{1, 3, 10, 30} {
				if random.IntN(100) < percent {
					name := fmt.Sprintf("%d in a hundred", percent)
					graphs[name] = append(graphs[name], both...)
				}
			}
			// A third leads to a third, past a chain as long as the last.
			switch a, b := j/67, i/67; {
			case a == 0 && b == 1, a == 1 && b == 1 && i == j+1, j == 132 && b == 2, a == 0 && b == 2:
				graphs["past a chain"] = append(graphs["past a chain"], both...)
			}
		}
	}
	return graphs
}

func TestTheLargestGraphsAreDrawnWithinTheBound(t *testing.T) {
	for name, edges := range worst() {
		d := layout(t, manyNodes(MaxNodes), edges)
		if bytes := len(svgOf(t, d, SVGOptions{Standalone: true})); bytes > MaxSVGBytes {
			t.Errorf("%s: %d bytes, want at most %d", name, bytes, MaxSVGBytes)
		}
		if points := len(d.plan.points); points > MaxNodes+maxBends {
			t.Errorf("%s: %d points, want at most %d: what is to be put in order is bounded, and so the time", name, points, MaxNodes+maxBends)
		}
		if len(d.Nodes) != MaxNodes {
			t.Errorf("%s: %d nodes, want all", name, len(d.Nodes))
		}
	}
}

func BenchmarkTheLargestGraphs(b *testing.B) {
	for name, edges := range worst() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d, err := Layout(manyNodes(MaxNodes), edges...)
				if err != nil {
					b.Fatal(err)
				}
				var text strings.Builder
				if err := SVG(&text, d, SVGOptions{}); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(text.Len()), "bytes")
			}
		})
	}
}

// Random graphs: no box lies on another, nothing lies outside, and no order is worse than that which was given.
func TestBoxesStandApartAndInside(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		nodes := manyNodes(1 + random.IntN(30))
		var edges []Edge
		for i := range nodes {
			for j := range i {
				if random.IntN(len(nodes)) < 3 {
					edges = append(edges, Edge{nodes[j].ID, nodes[i].ID, Taken})
				}
			}
		}
		d := layout(t, nodes, edges)
		for i, a := range d.Nodes {
			if a.X < 0 || a.Y < 0 || a.X+a.Width > d.Width || a.Y+a.Height > d.Height {
				t.Fatalf("%v lies outside %d x %d", a, d.Width, d.Height)
			}
			for _, b := range d.Nodes[:i] {
				if a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height && b.Y < a.Y+a.Height {
					t.Fatalf("%v lies on %v", a, b)
				}
			}
		}
	}
}

func TestEqualGraphsGiveEqualBytes(t *testing.T) {
	nodes, edges := trip()
	want := svgOf(t, layout(t, nodes, edges), SVGOptions{})
	for range 10 {
		if got := svgOf(t, layout(t, nodes, edges), SVGOptions{}); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// Two pairs whose edges cross as they are written: b leads to the first of the next column.
func TestEdgesAreUncrossed(t *testing.T) {
	d := layout(t, []Node{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}, []Edge{{"a", "d", Taken}, {"b", "c", Taken}})
	if n := d.plan.crossings(); n != 0 {
		t.Errorf("got %d crossings, want none", n)
	}
}

// The count that sweeps by is the one that a reader makes.
func TestCrossingsAreCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		nodes := manyNodes(12)
		var links []link
		for to := 6; to < 12; to++ {
			for from := range 6 {
				if random.IntN(3) == 0 {
					links = append(links, link{from, to, Taken})
				}
			}
		}
		p := newPlan(nodes, links, nil)
		want := 0
		for _, a := range links {
			for _, b := range links {
				if p.points[a.from].place < p.points[b.from].place && p.points[a.to].place > p.points[b.to].place {
					want++
				}
			}
		}
		if got := p.crossings(); got != want {
			t.Fatalf("%v: got %d, want %d", links, got, want)
		}
	}
}

func TestMermaidSaysTheSame(t *testing.T) {
	var b strings.Builder
	err := Mermaid(&b, []Node{{ID: "a", Label: `say "hi"`, State: Undone}, {ID: "b", Label: "b", Sub: "x; y", State: Error}}, Edge{"a", "b", Taken}, Edge{"b", "a", Stop})
	want := `flowchart LR
  s0["say #34;hi#34;"]:::undone
  s1["b<br/>x#59; y"]:::error
  s0 --> s1
  s1 -. undo failed .-x s0
  classDef error stroke:#b3241d
  classDef undone stroke:#6b3dbd
`
	if got := b.String(); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestTheColoursAreWrittenTwiceAndAreTheSame(t *testing.T) {
	for _, s := range states() {
		if colour := mermaidColours[s]; colour == "" || !strings.Contains(standaloneCSS, "."+s.Class()) || !strings.Contains(standaloneCSS, "{color:"+colour+"}") {
			t.Errorf("%s: got %q, want that of standalone.css", s.Class(), colour)
		}
	}
	if len(looks) != len(states()) {
		t.Errorf("%d looks and %d states", len(looks), len(states()))
	}
}

func TestShapesDifferWithoutColour(t *testing.T) {
	glyphs, symbols := map[rune]State{}, map[string]State{}
	for _, s := range states() {
		if other, same := glyphs[s.look().glyph]; same {
			t.Errorf("%q and %q look the same on a terminal", s, other)
		}
		if other, same := symbols[s.look().symbol]; same {
			t.Errorf("%q and %q look the same", s, other)
		}
		glyphs[s.look().glyph], symbols[s.look().symbol] = s, s
	}
}

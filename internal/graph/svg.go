package graph

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
)

// standaloneCSS gives an SVG that stands in a file of its own the colours that the page's style sheet gives it there.
//
//go:embed standalone.css
var standaloneCSS string

// wideFrom and wideTo are the widths, in pixels, of a drawing of class wide: slightly shrunk it is still readable.
const wideFrom, wideTo = 1000, 1400

// maxTitle is how many characters a text that was cut has in the title of its node.
const maxTitle = 200

// SVGOptions say where an SVG will stand.
type SVGOptions struct {
	// Standalone: in a file of its own, so it brings its style and its symbols. Otherwise both are those of the page: the
	// classes are graph, wide, box, t2, i, edge and af, the state of a node (State.Class), and on an edge off, flow, rev
	// and stop; the symbols have the ids of the states (Symbols).
	Standalone bool
	// Title is what the picture is of; it begins its description. Empty: "The steps".
	Title string
	// IDPrefix begins the ids that the SVG defines itself, so that two stand in one page.
	IDPrefix string
}

// SVG writes a drawing as one svg element, of at most MaxSVGBytes: presentation attributes and classes, and no style
// attribute or script, so it works under a strict content security policy. Texts are escaped; a link is as it was
// given. It writes to w once, at the end; the error is that of w.
func SVG(w io.Writer, d Drawing, o SVGOptions) error {
	var b bytes.Buffer
	s := svg{&b}
	title := cmp.Or(o.Title, "The steps")
	class := "graph"
	if d.Width > wideFrom && d.Width <= wideTo {
		class += " wide"
	}
	s.printf(`<svg class="%s" width="%d" height="%d" viewBox="0 0 %d %d" role="group" aria-label="%s"`, class, d.Width, d.Height, d.Width, d.Height, escaped(title+": "+d.Words()))
	if o.Standalone {
		s.printf(` xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif">`+"\n<style>\n%s</style>\n", standaloneCSS)
		s.printf("%s", Symbols())
	} else {
		s.printf(">\n")
	}
	s.markers(o.IDPrefix)
	for _, e := range d.edges {
		s.edge(e, o.IDPrefix)
	}
	for _, n := range d.Nodes {
		s.node(n)
	}
	s.printf("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// Symbols are the shapes of the states, as symbol elements for an svg element of the page.
func Symbols() string {
	var b bytes.Buffer
	for _, s := range states() {
		fmt.Fprintf(&b, `<symbol id="%s" viewBox="0 0 16 16">%s</symbol>`+"\n", s.Class(), s.look().symbol)
	}
	return b.String()
}

// svg writes the parts of one.
type svg struct{ b *bytes.Buffer }

func (s svg) printf(format string, args ...any) { fmt.Fprintf(s.b, format, args...) }

// edgeLooks has every kind of edge: in SVG its class behind "edge" and the name of its arrow, and its arrow in Mermaid.
var edgeLooks = map[EdgeKind]struct{ class, arrow, mermaid string }{
	Taken:    {"", "a", "-->"},
	Off:      {" off", "", "-.->"},
	Flow:     {" flow", "a", "==>"},
	Back:     {" rev", "a-rev", "-. undo .->"},
	BackFlow: {" rev flow", "a-rev", "-. undo .->"},
	Stop:     {" stop", "a-stop", "-. undo failed .-x"},
}

func (s svg) markers(prefix string) {
	s.printf("<defs>\n")
	for _, m := range []struct{ id, class string }{{"a", ""}, {"a-rev", " rev"}, {"a-stop", " stop"}} {
		s.printf(`<marker id="%s%s" viewBox="0 0 8 8" refX="3" refY="4" markerWidth="8" markerHeight="8" orient="auto" markerUnits="userSpaceOnUse"><path d="M0 .5 7 4 0 7.5z" class="af%s"/></marker>`+"\n",
			escaped(prefix), m.id, m.class)
	}
	s.printf("</defs>\n")
}

func (s svg) edge(e routed, prefix string) {
	l := edgeLooks[e.kind]
	s.printf(`<path class="edge%s" d="%s"`, l.class, e.path)
	if l.arrow != "" {
		s.printf(` marker-end="url(#%s%s)"`, escaped(prefix), l.arrow)
	}
	s.printf("/>\n")
}

func (s svg) node(n Placed) {
	element := "g"
	if n.Href != "" {
		element = "a"
	}
	s.printf("<%s", element)
	if n.Href != "" {
		s.printf(` href="%s"`, escaped(n.Href))
	}
	label, sub := cutTo(n.Label, int(float64(n.Width-labelRoom)/labelChar)), cutTo(n.Sub, int(float64(n.Width-subRoom)/subChar))
	s.printf(` class="%s"><rect class="box" x="%d" y="%d" width="%d" height="%d" rx="9"/>`, n.State.Class(), n.X, n.Y, n.Width, n.Height)
	s.printf(`<svg class="i" x="%d" y="%d" width="16" height="16" role="img" aria-label="%s:"><use href="#%s"/></svg>`,
		n.X+13, n.Y+11, escaped(n.word()), n.State.Class())
	s.printf(`<text x="%d" y="%d">%s</text>`, n.X+38, n.Y+23, escaped(label))
	if sub != "" {
		s.printf(`<text class="t2" x="%d" y="%d">%s</text>`, n.X+13, n.Y+42, escaped(sub))
	}
	if label != n.Label || sub != n.Sub {
		s.printf(`<title>%s</title>`, escaped(cutTo(n.Label+" "+n.Sub, maxTitle)))
	}
	s.printf("</%s>\n", element)
}

// escaped makes a text safe in XML and HTML, inside an attribute too. Characters that XML cannot hold become U+FFFD.
func escaped(text string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic("graph: a buffer refused a text: " + err.Error())
	}
	return b.String()
}

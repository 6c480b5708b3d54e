package graph

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Mermaid writes nodes and edges as a Mermaid flowchart from left to right, which Markdown shows on GitHub and
// elsewhere. It checks them and leaves out implied edges like Layout, and dots the way back. The error is Layout's,
// or that of w.
func Mermaid(w io.Writer, nodes []Node, edges ...Edge) error {
	d, err := Layout(nodes, edges...)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "flowchart LR\n")
	for i, n := range nodes {
		text := mermaidText(n.Label)
		if n.Sub != "" {
			text += "<br/>" + mermaidText(n.Sub)
		}
		fmt.Fprintf(&b, "  s%d[\"%s\"]:::%s\n", i, text, n.State.Class())
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  s%d %s s%d\n", e.from, edgeLooks[e.kind].mermaid, e.to)
	}
	for _, s := range states() {
		if slices.ContainsFunc(nodes, func(n Node) bool { return n.State.Class() == s.Class() }) {
			fmt.Fprintf(&b, "  classDef %s stroke:%s\n", s.Class(), mermaidColours[s])
		}
	}
	_, err = w.Write(b.Bytes())
	return err
}

// mermaidColours are those of standalone.css, which a test compares.
var mermaidColours = map[State]string{
	Idle: "#5c6169", Pending: "#5c6169", Cancelled: "#5c6169", Skipped: "#5c6169", Paused: "#5c6169", Processing: "#1f5bc4",
	Processed: "#17764a", Waiting: "#845400", Undoing: "#6b3dbd", Undone: "#6b3dbd", Error: "#b3241d",
}

// mermaidText writes a text for the quotes of a label, with the special characters of Mermaid and HTML as codes.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < ' ':
			b.WriteByte(' ')
		case strings.ContainsRune("\"#<>&;`\\[]{}|", r):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

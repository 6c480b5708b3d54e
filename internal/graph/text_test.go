package graph

import (
	"strings"
	"testing"
)

func TestAGraphInText(t *testing.T) {
	nodes, edges := trip()
	lines, fits := Text(layout(t, nodes, edges), TextOptions{Width: 80})
	want := `         ┌▶ ◀ flight ╶┐             ┌▶ » loyalty ╶───────────────┐
● quote ╶┼▶ ◆ hotel ╶─┼▶ ● approve ╶┴▶ ◀ charge ╶───▶ ◆ tickets ╶┴▶ ○ notify
         └▶ ◀ car ╶───┘`
	if got := strings.Join(lines, "\n"); !fits || got != want {
		t.Errorf("got %t\n%s\nwant\n%s", fits, got, want)
	}
}

func TestWhatIsTooWideIsNotDrawnInText(t *testing.T) {
	nodes, edges := trip()
	if lines, fits := Text(layout(t, nodes, edges), TextOptions{Width: 70}); fits {
		t.Errorf("got %q, want that it does not fit", lines)
	}
}

// Two lines that do not belong together do not lie on each other: the one of b to d goes down before a's arrives.
func TestLinesThatShareAGutterDoNotLieOnEachOther(t *testing.T) {
	nodes := []Node{{ID: "a", Label: "a"}, {ID: "b", Label: "b"}, {ID: "c", Label: "c"}, {ID: "d", Label: "d"}, {ID: "e", Label: "e"}}
	edges := []Edge{{"a", "c", Taken}, {"a", "d", Taken}, {"b", "d", Taken}, {"b", "e", Taken}}
	lines, fits := Text(layout(t, nodes, edges), TextOptions{Width: 80})
	want := `○ a ╶┬─▶ ○ c
○ b ╶┴┬▶ ○ d
      └▶ ○ e`
	if got := strings.Join(lines, "\n"); !fits || got != want {
		t.Errorf("got %t\n%s\nwant\n%s", fits, got, want)
	}
}

func TestColourIsOnlyAddedWhereItIsAskedFor(t *testing.T) {
	nodes, edges := trip()
	d := layout(t, nodes, edges)
	plain, _ := Text(d, TextOptions{Width: 80})
	coloured, _ := Text(d, TextOptions{Width: 80, Colour: true})
	if strings.Contains(strings.Join(plain, ""), "\x1b") {
		t.Errorf("got escape codes in %q", plain)
	}
	if !strings.Contains(coloured[1], "\x1b[31m◆ hotel") {
		t.Errorf("got %q, want hotel in red", coloured[1])
	}
	for i, line := range coloured {
		for _, code := range []string{"0", "2", "31", "32", "33", "34", "35", "37"} {
			line = strings.ReplaceAll(line, "\x1b["+code+"m", "")
		}
		if line != plain[i] {
			t.Errorf("without codes got %q, want %q", line, plain[i])
		}
	}
}

// The largest graphs are refused as text, or are within the bound; none breaks it.
func TestTheLargestGraphsInText(t *testing.T) {
	for name, edges := range worst() {
		lines, fits := Text(layout(t, manyNodes(MaxNodes), edges), TextOptions{Width: 200})
		if fits && len(lines) > maxTextLines {
			t.Errorf("%s: %d lines, want at most %d", name, len(lines), maxTextLines)
		}
	}
}

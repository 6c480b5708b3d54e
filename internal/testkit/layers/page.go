package layers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// names are the layers, as the columns of the table have them.
func names() []string {
	return []string{"stories", "random world", "model check", "oracle", "simulation", "crashes"}
}

const (
	heading = "## What each layer plays"
	nobody  = "No layer plays: "
	yes, no = "x", ""
)

// Column fails the test unless the table of docs/proof.md has in a layer's column what it has played. With
// MAKEGOOD_LAYERS=write it writes the column there.
func (s *Seen) Column(t *testing.T, layer string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(names(), layer)
	if at < 0 {
		t.Fatalf("there is no layer %q", layer)
	}
	page := proof.Page(t)
	have := read(page)
	var wrong []string
	for _, r := range table() {
		cells := have[r.name]
		if len(cells) != len(names()) {
			cells = make([]string, len(names()))
		}
		want := no
		if s.played[r.name] {
			want = yes
		}
		if cells[at] != want {
			wrong = append(wrong, string(r.name)+": "+cells[at]+" -> "+want)
		}
		cells[at] = want
		have[r.name] = cells
	}
	switch {
	case os.Getenv("MAKEGOOD_LAYERS") == "write":
		proof.Write(t, write(page, have))
	case len(wrong) > 0:
		t.Errorf("docs/proof.md: what the layer %s plays: %s\nIf it is meant, write it with MAKEGOOD_LAYERS=write.", layer, strings.Join(wrong, "; "))
	}
}

// read returns the cells of the table by their features.
func read(page string) map[Feature][]string {
	cells := map[Feature][]string{}
	_, rest, _ := strings.Cut(page, heading)
	for line := range strings.SplitSeq(rest, "\n") {
		if strings.HasPrefix(line, "## ") {
			break
		}
		parts := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(parts) != len(names())+1 {
			continue
		}
		name := Feature(strings.TrimSpace(parts[0]))
		for _, cell := range parts[1:] {
			cells[name] = append(cells[name], strings.TrimSpace(cell))
		}
	}
	return cells
}

// write puts the table into the page, and behind it what no layer plays.
func write(page string, cells map[Feature][]string) string {
	before, rest, _ := strings.Cut(page, "| feature |")
	_, after, _ := strings.Cut(rest, nobody)
	if _, behind, more := strings.Cut(after, "\n"); more {
		after = behind
	}
	return before + render(cells) + "\n" + after
}

// render writes the table, and what no layer plays.
func render(cells map[Feature][]string) string {
	var b strings.Builder
	b.WriteString("| feature | " + strings.Join(names(), " | ") + " |\n|---|" + strings.Repeat(":-:|", len(names())) + "\n")
	var none []string
	for _, r := range table() {
		row := cells[r.name]
		if len(row) != len(names()) {
			row = make([]string, len(names()))
		}
		b.WriteString("| " + string(r.name) + " | " + strings.Join(row, " | ") + " |\n")
		if !slices.Contains(row, yes) {
			none = append(none, string(r.name))
		}
	}
	if len(none) == 0 {
		none = []string{"nothing of these"}
	}
	return b.String() + "\n" + nobody + strings.Join(none, "; ") + "."
}

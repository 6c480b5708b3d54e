package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// table is a table of Markdown that the figures of a suite give, between two comments of a file.
type table struct {
	name, file, suite string
	make              func([]figure) string
}

var tables = []table{
	{"works", "docs/performance.md", "works", worksTable},
	{"since", "docs/performance.md", "since", sinceTable},
	{"peers", "docs/performance.md", "peers", peersTable},
	{"losses", "docs/performance.md", "peers", losses},
	{"peers", "README.md", "peers", shortTable},
}

// writeTables writes all tables anew, in the tree at root.
func writeTables(root string) error {
	for _, t := range tables {
		file := filepath.Join(root, t.file)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		made, err := t.in(root, string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", t.file, err)
		}
		if err := os.WriteFile(file, []byte(made), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// in returns the text of the file with the table as the figures give it now.
func (t table) in(root, text string) (string, error) {
	open, end := fmt.Sprintf("<!-- figures of %s: made by lab/bench -->\n", t.name), "<!-- end -->"
	before, rest, found := strings.Cut(text, open)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		return "", fmt.Errorf("there is no place for the table: want %q, and %q after it", strings.TrimSpace(open), end)
	}
	stored, err := os.ReadFile(filepath.Join(root, kept, t.suite+".txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return before + open + "No figures are kept.\n" + end + after, nil
	}
	if err != nil {
		return "", err
	}
	figures, err := parse(string(stored))
	if err != nil {
		return "", err
	}
	return before + open + t.make(figures) + end + after, nil
}

// row is a line of a table: which figures it is of, and how their spread is shown.
type row struct {
	w, name, says, unit string
}

var workRows = []row{
	{"W1", "ManyJobs/queued", "jobs of three steps, 64 submitters: jobs a second", "jobs/s"},
	{"W7", "ManyJobs/inline", "the same, inline", "jobs/s"},
	{"W8", "ManyJobs/chains", "the same, in chains", "jobs/s"},
	{"W2", "TenInARow/queued", "ten steps in a row, one job after the other: ms a job", "ms/op"},
	{"W7", "TenInARow/inline", "the same, inline", "ms/op"},
	{"W8", "TenInARow/chains", "the same, in chains", "ms/op"},
	{"W3", "Kill", "`kill -9` over 100 running jobs: ms to the first next attempt", "first-ms"},
	{"", "Kill", "ms until each has its next attempt", "ms/op"},
	{"W4", "Branches/queued", "a step, 100 branches, a join: ms a job", "ms/op"},
	{"W7", "Branches/inline", "the same, inline", "ms/op"},
	{"W5", "Million/submit", "1,000,000 jobs in the file: jobs of three steps a second", "jobs/s"},
	{"", "Million/list", "ms a page of a list", "ms/op"},
	{"", "Million/sweep", "1,000 jobs due in one second: ms until the last is done", "all-ms"},
	{"", "Million/restart", "ms to open it", "open-ms"},
	{"", "Million/restart", "ms to open it, and to have a new job done", "ms/op"},
	{"W6", "Waiting/begin", "steps that come to wait, a second", "jobs/s"},
	{"", "Waiting/complete", "steps completed and their jobs done, a second", "jobs/s"},
	{"", "Waiting/restart", "10,000 wait: ms to open it, complete one, and have its job done", "ms/op"},
}

func worksTable(figures []figure) string {
	text := "| | | min | median | max | CPU a step | allocations | bytes |\n|---|---|--:|--:|--:|--:|--:|--:|\n"
	for _, r := range workRows {
		of := named(figures, r.name)
		text += fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", r.w, r.says, spread(of, r.unit),
			median(of, "cpu-µs/step", "µs"), median(of, "allocs/step", ""), median(of, "B/step", ""))
	}
	return text + "\n" + about(figures)
}

func sinceTable(figures []figure) string {
	text := "| | commit | min | median | max | CPU a step | allocations | bytes |\n|---|---|--:|--:|--:|--:|--:|--:|\n"
	for _, r := range workRows[:6] {
		for _, commit := range []string{base, "HEAD"} {
			of := slices.DeleteFunc(named(figures, r.name), func(f figure) bool { return f.config["of"] != commit })
			if len(of) == 0 {
				continue
			}
			text += fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", spoken(r), commit, spread(of, r.unit),
				median(of, "cpu-µs/step", "µs"), median(of, "allocs/step", ""), median(of, "B/step", ""))
		}
	}
	return text + "\n" + about(figures)
}

// spoken names the work of a row where the rows above it may be missing.
func spoken(r row) string {
	work, lane, _ := strings.Cut(r.name, "/")
	return map[string]string{"ManyJobs": "jobs of three steps, jobs a second", "TenInARow": "ten steps in a row, ms a job"}[work] + ", " + lane
}

// peerRows are the rows of the table of peers, with the form of a step there.
var peerRows = [][2]string{
	{"makegood-queued", "**Makegood**, steps by the queue"},
	{"makegood-inline", "**Makegood**, inline steps"},
	{"makegood-chains", "**Makegood**, chains"},
	{"restate-run", "Restate, steps journaled in the handler"},
	{"restate-calls", "Restate, steps as calls"},
	{"dbos-sqlite", "DBOS on SQLite, `synchronous=FULL`"},
	{"dbos-postgres", "DBOS on Postgres"},
	{"river", "River on Postgres, a job a step"},
}

func peersTable(figures []figure) string {
	text := "| | three steps: jobs a second, min | median | max | ten in a row: ms a job, min | median | max | flushes a job |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|\n"
	for _, r := range peerRows {
		many, inRow := ofPeer(figures, r[0])
		text += fmt.Sprintf("| %s | %s | %s | %s |\n", r[1], spread(many, "jobs/s"), spread(inRow, "ms/op"), flushCount(inRow))
	}
	text += "\n" + about(figures) + "\n"
	for _, r := range peerRows[3:] {
		if many, _ := ofPeer(figures, r[0]); len(many) > 0 {
			text += fmt.Sprintf("- %s: %s\n", r[1], many[0].config["versions"])
		}
	}
	return text
}

func shortTable(figures []figure) string {
	text := "| | jobs of three steps a second | ten steps in a row |\n|---|--:|--:|\n"
	for _, r := range peerRows {
		many, inRow := ofPeer(figures, r[0])
		text += fmt.Sprintf("| %s | %s | %s |\n", r[1], median(many, "jobs/s", ""), median(inRow, "ms/op", "ms"))
	}
	if len(figures) == 0 {
		return text
	}
	c := figures[0].config
	return text + fmt.Sprintf("\nMedians; commit %s, %s; rounds: %d. Others used %s of the processors before each run.\n", c["commit"], c["machine"], rounds(figures), beside(figures))
}

// losses lists the peers whose median is better than one of ours.
func losses(figures []figure) string {
	text := ""
	for _, ours := range peerRows[:3] {
		many, inRow := ofPeer(figures, ours[0])
		for _, peer := range peerRows[3:] {
			theirMany, theirInRow := ofPeer(figures, peer[0])
			if us, them := sorted(many, "jobs/s"), sorted(theirMany, "jobs/s"); len(us)*len(them) > 0 && middle(them) > middle(us) {
				text += fmt.Sprintf("- %s: %s does %s jobs of three steps a second, we %s.\n", ours[1], peer[1], number(middle(them)), number(middle(us)))
			}
			if us, them := sorted(inRow, "ms/op"), sorted(theirInRow, "ms/op"); len(us)*len(them) > 0 && middle(them) < middle(us) {
				text += fmt.Sprintf("- %s: %s takes %s ms for ten steps in a row, we %s ms.\n", ours[1], peer[1], number(middle(them)), number(middle(us)))
			}
		}
	}
	if text == "" {
		return "In no row of that table.\n"
	}
	return text
}

func ofPeer(figures []figure, peer string) (many, inRow []figure) {
	for _, f := range figures {
		switch {
		case f.config["peer"] != peer:
		case strings.HasPrefix(f.name, "ManyJobs"):
			many = append(many, f)
		case strings.HasPrefix(f.name, "TenInARow"):
			inRow = append(inRow, f)
		}
	}
	return many, inRow
}

func flushCount(figures []figure) string {
	if len(figures) == 0 {
		return "-"
	}
	return figures[0].config["flushes"]
}

func named(figures []figure, name string) []figure {
	var some []figure
	for _, f := range figures {
		if f.name == name {
			some = append(some, f)
		}
	}
	return some
}

// about names, in one line, the commit and the machine of the figures, and the load by others.
func about(figures []figure) string {
	if len(figures) == 0 {
		return ""
	}
	c := figures[0].config
	return fmt.Sprintf("Commit %s, %s UTC, %s, %s; a flush of 4 KB takes %s; rounds: %d. Others used %s of the processors before each run.\n",
		c["commit"], c["date"], c["go"], c["machine"], c["flush"], rounds(figures), beside(figures))
}

// rounds is how often the work that was done most often was done.
func rounds(figures []figure) int {
	most, times := 0, map[string]int{}
	for _, f := range figures {
		of := f.name + f.config["peer"] + f.config["of"]
		times[of]++
		most = max(most, times[of])
	}
	return most
}

// beside is how much of the processors others used before each run.
func beside(figures []figure) string {
	var busy []float64
	for _, f := range figures {
		if percent, err := strconv.ParseFloat(f.config["busy"], 64); err == nil {
			busy = append(busy, percent)
		}
	}
	if len(busy) == 0 {
		return "an unknown share"
	}
	slices.Sort(busy)
	return fmt.Sprintf("%.0f to %.0f %%, median %.0f %%", busy[0], busy[len(busy)-1], middle(busy))
}

// spread is the least, the median and the largest of a unit, as three cells.
func spread(figures []figure, unit string) string {
	values := sorted(figures, unit)
	if len(values) == 0 {
		return "- | - | -"
	}
	return fmt.Sprintf("%s | **%s** | %s", number(values[0]), number(middle(values)), number(values[len(values)-1]))
}

func median(figures []figure, unit, as string) string {
	values := sorted(figures, unit)
	if len(values) == 0 {
		return ""
	}
	return strings.TrimSpace(number(middle(values)) + " " + as)
}

// middle is the median of values that are sorted.
func middle(values []float64) float64 {
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func sorted(figures []figure, unit string) []float64 {
	var values []float64
	for _, f := range figures {
		v, has := f.values[unit]
		if unit == "ms/op" {
			v, has = f.values["ns/op"]/1e6, true
		}
		if has {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return values
}

// number shows three digits of a number, and no fewer than stand before its point.
func number(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

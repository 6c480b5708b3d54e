package page

import (
	"slices"
	"strings"
)

// maxCompared is how many lines of each of two texts are compared one by one, without their common start and end.
// Longer ones are shown as replaced.
const maxCompared = 2000

// diffLine is a line of two compared texts: Mark is "+" if only the second has it, "-" if only the first does, and " "
// if both do.
type diffLine struct{ Mark, Text string }

// Class is the class of the line.
func (l diffLine) Class() string {
	switch l.Mark {
	case "+":
		return "added"
	case "-":
		return "removed"
	default:
		return "same"
	}
}

// diffLines compares two texts line by line.
func diffLines(from, to string) []diffLine {
	a, b := strings.Split(strings.TrimSuffix(from, "\n"), "\n"), strings.Split(strings.TrimSuffix(to, "\n"), "\n")
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	middle := replaced
	if max(len(a), len(b))-begin-end <= maxCompared {
		middle = longestCommon
	}
	return slices.Concat(marked(" ", a[:begin]), middle(a[begin:len(a)-end], b[begin:len(b)-end]), marked(" ", a[len(a)-end:]))
}

func marked(mark string, lines []string) []diffLine {
	var all []diffLine
	for _, text := range lines {
		all = append(all, diffLine{mark, text})
	}
	return all
}

func replaced(a, b []string) []diffLine { return slices.Concat(marked("-", a), marked("+", b)) }

// longestCommon keeps as many lines as both have in the same order.
func longestCommon(a, b []string) []diffLine {
	// common[i][j] is how many lines a[i:] and b[j:] have in common.
	common := make([][]uint16, len(a)+1)
	for i := range common {
		common[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var all []diffLine
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			all = append(all, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			all = append(all, diffLine{"-", a[i]})
			i++
		default:
			all = append(all, diffLine{"+", b[j]})
			j++
		}
	}
	return slices.Concat(all, replaced(a[i:], b[j:]))
}

// folded replaces common lines that are more than three away from a difference with a line "…".
func folded(lines []diffLine) []diffLine {
	const around = 3
	near := make([]bool, len(lines))
	for i, l := range lines {
		for j := max(0, i-around); l.Mark != " " && j <= min(len(lines)-1, i+around); j++ {
			near[j] = true
		}
	}
	var all []diffLine
	for i, l := range lines {
		switch {
		case near[i]:
			all = append(all, l)
		case i == 0 || near[i-1]:
			all = append(all, diffLine{" ", "…"})
		}
	}
	return all
}

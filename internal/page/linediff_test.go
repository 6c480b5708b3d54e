package page

import (
	"strings"
	"testing"
)

func written(lines []diffLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Mark + l.Text + "\n")
	}
	return b.String()
}

func TestLinesAreCompared(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"a\nb\nc\n", "a\nb\nc\n", " a\n b\n c\n"},
		{"a\nb\nc", "a\nx\nc", " a\n-b\n+x\n c\n"},
		{"a\nc", "a\nb\nc", " a\n+b\n c\n"},
		{"a\nb\nc", "b", "-a\n b\n-c\n"},
		{"x\na\nb\ny", "a\nz\nb", "-x\n a\n+z\n b\n-y\n"},
		{"a\na", "a", " a\n-a\n"},
	} {
		if got := written(diffLines(row.from, row.to)); got != row.want {
			t.Errorf("%q, %q: got\n%swant\n%s", row.from, row.to, got, row.want)
		}
	}
}

// More than is compared is replaced as a whole: the time and the memory are bounded.
func TestLongTextsAreReplaced(t *testing.T) {
	long := strings.Repeat("a\nb\n", maxCompared)
	got := diffLines("x\n"+long, long+"y")
	if removed, added := strings.Count(written(got), "\n-"), strings.Count(written(got), "\n+"); removed < maxCompared || added < maxCompared {
		t.Errorf("got %d removed and %d added, want all of them", removed, added)
	}
}

func TestWhatBothHaveIsFoldedAwayFromWhatDiffers(t *testing.T) {
	same := "1\n2\n3\n4\n5\n"
	if got, want := written(folded(diffLines(same+"x\n"+same, same+"y\n"+same))), " …\n 3\n 4\n 5\n-x\n+y\n 1\n 2\n 3\n …\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

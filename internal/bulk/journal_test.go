package bulk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An answer is read back as it was given, the first of a job; another process waits for none of it, and is refused.
func TestARunGoesOnWithTheAnswersOfItsJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	o := Order{Name: "monday", Says: "cancel", Jobs: []string{"a", "b", "c"}}
	open := func(o Order) (*Run, map[string]Answer, error) {
		heard := map[string]Answer{}
		r, err := Resume(path, o, func(id string, a Answer) { heard[id] = a })
		return r, heard, err
	}
	r, heard, err := open(o)
	if err != nil || len(heard) > 0 || r.Progress().Left() != 3 {
		t.Fatalf("got %v, %v, want it begun", heard, err)
	}
	if _, _, err := open(o); err == nil || !strings.Contains(err.Error(), "another process has it") {
		t.Errorf("got %v of a second run of the same, want it refused", err)
	}
	no := Answer{Outcome: Refused, Reason: "it is Undone"}
	for range 2 {
		must(t, r.heard("b", no))
	}
	must(t, r.Close())
	for _, other := range []Order{{Name: "tuesday", Says: "cancel"}, {Name: "monday", Says: "undo"}} {
		if _, _, err := open(other); err == nil || !strings.Contains(err.Error(), `it is of "cancel" under the name "monday"`) {
			t.Errorf("%v: got %v, want it refused", other, err)
		}
	}
	o.Jobs = []string{"c", "d"}
	r, heard, err = open(o)
	if err != nil || len(heard) != 1 || heard["b"] != no {
		t.Fatalf("got %v, %v, want the answer of b", heard, err)
	}
	if p := r.Progress(); p.Total() != 3 || p.Left() != 2 || p.Refused != 1 || p.Damaged != 0 {
		t.Errorf("got %+v, want c and d left of three", p)
	}
	for _, id := range r.left() {
		must(t, r.heard(id, Answer{Outcome: Granted}))
	}
	must(t, r.Close())
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) > 0 {
		t.Errorf("got %v, %v, want that all files are gone", files, err)
	}
}

// A journal that has grown to its limit takes its end, and no more answers: their jobs are asked again.
func TestAJournalGrowsToALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	r := Begin(Order{Name: "n"})
	must(t, r.keep(path))
	r.file.size = maxJournal - 1
	for _, id := range []string{"a", "b", "c"} {
		must(t, r.heard(id, Answer{Outcome: Granted}))
	}
	must(t, r.end(true))
	text, err := os.ReadFile(path)
	must(t, err)
	if got := string(text); strings.Count(got, "granted") != 1 || !strings.Contains(got, `"job":"a"`) || !strings.Contains(got, "endedAt") {
		t.Errorf("got %s, want the first answer and the end", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

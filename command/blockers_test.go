package command

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// orderOfOrders is an engine with workflows whose innermost job asks a person: order, box, line.
func orderOfOrders(t *testing.T) (url string) {
	t.Helper()
	engine, err := embedded.Open(t.Context(), embedded.Config{})
	must(t, err)
	for _, source := range []string{
		"name: line\nsteps: [{name: rest, agent: wait, needs: [], with: {for: 3s}, undo: none}, {name: approve, agent: approval, needs: [], with: {choices: [\"yes\", stop]}, onAnswer: {stop: stop}}]\n",
		"name: box\nsteps: [{name: fill, agent: workflow, action: line}]\n",
		"name: order\nsteps: [{name: pack, agent: workflow, action: box}]\n",
	} {
		c, err := workflowfile.Parse("a.yaml", []byte(source))
		must(t, err)
		must(t, engine.Define(t.Context(), c))
	}
	return runs(t, engine)
}

// follow runs the command beside the test, and returns the lines that it writes as they come, and its exit code.
func follow(t *testing.T, args ...string) (next func(has string) string, code <-chan int) {
	t.Helper()
	r, w := io.Pipe()
	root := newRoot("makegood", nil, nil)
	root.SetArgs(args)
	root.SetOut(w)
	root.SetErr(w)
	ended, lines := make(chan int, 1), make(chan string, 100)
	go func() { ended <- execute(t.Context(), root, w); _ = w.Close() }()
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return func(has string) string {
		t.Helper()
		for late := time.After(2 * time.Minute); ; {
			select {
			case line, more := <-lines:
				if strings.Contains(line, has) {
					return line
				}
				if !more {
					t.Fatalf("%q ended without a line with %q", args, has)
				}
			case <-late:
				t.Fatalf("%q wrote no line with %q", args, has)
			}
		}
	}, ended
}

// A job whose innermost child stands before a person says so while it is waited for, with the child and its reason, and
// goes on when that does.
func TestACommandThatWaitsForAJobNamesTheOneBelowItThatStands(t *testing.T) {
	url := orderOfOrders(t)
	submitted, submitCode := follow(t, "submit", "order", "--id", "o-1", "--wait", "--addr", url)
	line := submitted("waits for job o-1~pack~1~")
	child, why, _ := strings.Cut(strings.TrimPrefix(line, "o-1 waits for job "), ": ")
	if !strings.HasPrefix(why, "step approve waits until 2") || strings.Count(child, "~") != 6 {
		t.Errorf("got %q, want the innermost job, and that its step waits", line)
	}
	watchLine, watchCode := follow(t, "watch", "o-1", "--addr", url)
	watchLine("[pack claimed]  waits for job " + child + ": step approve waits until")
	watchJSON, jsonCode := follow(t, "watch", "o-1", "--json", "--addr", url)
	var seen watched
	must(t, json.Unmarshal([]byte(watchJSON("waitsFor")), &seen))
	if len(seen.WaitsFor) != 1 || seen.WaitsFor[0].Job != child || seen.ID != "o-1" {
		t.Errorf("got %+v, want that it waits for %s", seen.WaitsFor, child)
	}
	wants(t, 0, "Error", "answer", child, "approve", "stop", "--why", "no tea", "--addr", url)
	watchLine("waits for job " + child + ": Error: step approve was answered")
	submitted("o-1 waits for job " + child + ": Error: step approve was answered")
	wants(t, 0, "Process", "settle", child, "approve", "--done", "--output", `"yes"`, "--reason", "found", "--addr", url)
	if last := watchLine("  Processed  "); strings.Contains(last, "waits for") {
		t.Errorf("got %q after its end", last)
	}
	submitted("o-1  order  Processed")
	for _, code := range []<-chan int{submitCode, watchCode, jsonCode} {
		if got := <-code; got != 0 {
			t.Errorf("got exit code %d", got)
		}
	}
}

package command

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// births are the parts of ids that differ from run to run.
var births = regexp.MustCompile(`~[0-9a-f]{8}\b`)

// orderWithin is an engine with a job o-1 whose second step is done by a job of its own, which waits for a person.
func orderWithin(t *testing.T) (url, child string) {
	t.Helper()
	engine, err := embedded.Open(t.Context(), embedded.Config{})
	must(t, err)
	for _, source := range []string{
		"name: line\nsteps: [{name: approve, agent: approval, with: {choices: [approve, reject], question: \"Is it so?\"}}]\n",
		"name: order\nsteps: [{name: rest, agent: wait, with: {for: 10ms}}, {name: reserve, agent: workflow, action: line}]\n",
	} {
		c, err := workflowfile.Parse("a.yaml", []byte(source))
		must(t, err)
		must(t, engine.Define(t.Context(), c))
	}
	url = runs(t, engine)
	_, _, err = engine.SubmitCurrent(t.Context(), "order", scheduler.Submission{ID: "o-1", Input: json.RawMessage("{}")})
	must(t, err)
	for end := time.Now().Add(2 * time.Minute); child == "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, stdout, _ := ask(t, "get", "o-1", "--tree", "--json", "--addr", url)
		var all tree
		must(t, json.Unmarshal([]byte(stdout), &all))
		if len(all.Children) == 1 && all.Children[0].Job != nil && all.Children[0].Job.Steps[0].State == makegood.StepWaiting {
			child = all.Children[0].ID
		}
	}
	if child == "" {
		t.Fatal("no step of o-1 was begun by a job that waits")
	}
	return url, child
}

func TestATreeShowsTheJobsThatDoStepsOfAJob(t *testing.T) {
	url, child := orderWithin(t)
	at := func(args ...string) []string { return append(args, "--addr", url) }
	shows := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := ask(t, at(args...)...)
		got := regexp.MustCompile(` (until|at) \S+Z`).ReplaceAllString(births.ReplaceAllString(stdout, "~BIRTH"), "")
		if code != 0 || got != want {
			t.Errorf("%q: got %d, %s\n%swant\n%s", args, code, stderr, got, want)
		}
	}
	shows(`o-1  order  Processing, wanted Processed  [rest done; reserve claimed]
  reserve: o-1~reserve~1~BIRTH  line  Pending, wanted Processed  [approve waiting]
`, "get", "o-1", "--tree")
	shows("no jobs\n", "list", "--id-prefix", "o-1~reserve~2")
	wants(t, 0, "reserve  claimed, attempt 1, by job "+child+"\n", at("get", "o-1")...)
	wants(t, 0, "  does step reserve of job o-1\n", at("get", child)...)
	wants(t, 0, child, at("list", "--id-prefix", "o-1")...)
	wants(t, 0, child, at("list", "o-1~reserve~1")...)
	wants(t, codeUsage, "there is no such job", at("get", "o-2", "--tree")...)

	wants(t, 0, "Processed", at("answer", child, "approve", "approve")...)
	wants(t, 0, "Processed", at("watch", "o-1")...)
	shows(`o-1  order  Processed  [rest done; reserve done]
  reserve: o-1~reserve~1~BIRTH  line  Processed  [approve done]
`, "get", "o-1", "--tree")
	wants(t, 0, "reserve  done, attempt 1, by job "+child+"\n", at("get", "o-1")...)
	wants(t, codeUsage, "refused: no step of its workflow has an undo", at("undo", child)...)
}

func TestATreeSaysOfAChildThatItIsNotStored(t *testing.T) {
	var out strings.Builder
	printTree(&out, tree{
		ID: "o", Job: &makegood.Job{ID: "o", Workflow: "order", ProcessState: makegood.JobProcessed, Desired: makegood.JobProcessed},
		Children: []tree{{ID: "o~a~1~0a1b2c3d", Step: "a", Missing: "is not stored: it never began, or its time is over"}},
	}, "")
	if _, known := (tree{Job: &makegood.Job{Spent: new(makegood.Spent)}, Children: []tree{{}}}).spent(); known {
		t.Error("the cost of a job that is not stored is known")
	}
	if spent, known := (tree{Job: &makegood.Job{Spent: &makegood.Spent{WriteUnits: 1}}, Children: []tree{{Job: &makegood.Job{Spent: &makegood.Spent{WriteUnits: 2}}}}}).spent(); !known || spent.WriteUnits != 3 {
		t.Errorf("got %+v, %v, want the sum", spent, known)
	}
	want := "o  order  Processed  []\n  a: job o~a~1~0a1b2c3d is not stored: it never began, or its time is over\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// A list has jobs that do steps of others where it is asked for them, or for jobs by what children have of their own.
func TestAListLeavesOutJobsThatDoStepsOfOthers(t *testing.T) {
	url, child := orderWithin(t)
	for args, shown := range map[string]bool{
		"": false, "--state Processing": false, "--roots": false, "--since 1h": false, "--workflow line --roots": false, "due-within:100d": false,
		"--children": true, "--workflow line": true, "--state waiting": true, "--id-prefix o-1": true, "o-1": true, "--step approve": true,
		"--state Pending --children": true,
	} {
		code, stdout, stderr := ask(t, append(append([]string{"list"}, strings.Fields(args)...), "--addr", url)...)
		if code != 0 || strings.Contains(stdout, child) != shown {
			t.Errorf("list %s: got %d, %s%swant the child: %v", args, code, stdout, stderr, shown)
		}
	}
	wants(t, 0, `"parent":"o-1"`, "list", "--workflow", "line", "--json", "--addr", url)
	wants(t, codeUsage, "roots: a job with an id that begins with", "list", "--roots", "--id-prefix", "o-1~", "--addr", url)
	wants(t, codeUsage, "children roots", "list", "--roots", "--children", "--addr", url)
	wants(t, 0, "1 job\n", "count", "--roots", "--addr", url)
	wants(t, 0, "2 jobs\n", "count", "--addr", url)
}

// A switch that is given a value says so, without the words of a library; a dry run of an undo says what the undo would.
func TestSmallMistakesAreNamed(t *testing.T) {
	url, child := orderWithin(t)
	at := func(args ...string) []string { return append(args, "--addr", url) }
	wants(t, codeUsage, "--done takes no value, got \"{\\\"lot\\\":7}\": an output is given with --output", at("settle", child, "approve", `--done={"lot":7}`)...)
	wants(t, codeUsage, "--all takes no value, got \"50\"\n", at("list", "--all=50")...)
	wants(t, 0, "Processed", at("answer", child, "approve", "approve")...)
	wants(t, 0, "Processed", at("watch", "o-1")...)
	for _, verb := range []string{"undo", "redo"} {
		wants(t, codeOtherwise, "refused           1\n           1  no step of its workflow has an undo", at(verb, child, "--dry-run")...)
		wants(t, codeUsage, "no step of its workflow has an undo", at(verb, child)...)
	}
	wants(t, 0, "o-1  Processed: undoes its steps", at("undo", "o-1", "--dry-run")...)
}

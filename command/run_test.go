package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/batch"
)

// shop answers refused for jobs whose input says so, and everybody else well; called, if set, sees each call.
func shop(t *testing.T, called func(*http.Request)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if called != nil {
			called(r)
		}
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "refused") && r.URL.Path == "/pay" {
			http.Error(w, "card declined for "+string(body), http.StatusPaymentRequired)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// bought writes a workflow that buys at a shop, and an input file of these lines.
func bought(t *testing.T, url string, lines ...string) (workflow, input string) {
	t.Helper()
	yaml := "name: buy\nsteps:\n" +
		"  - {name: reserve, agent: http, with: {url: '" + url + "/reserve'}, undo: {with: {url: '" + url + "/release'}}}\n" +
		"  - {name: pay, agent: http, with: {url: '" + url + "/pay', body: '${ .input.card }'}}\n"
	return write(t, "buy.yaml", yaml), write(t, "input.jsonl", strings.Join(lines, "\n")+"\n")
}

func TestRunSaysWhyJobsWereUndoneAndNamesThemInJSON(t *testing.T) {
	workflow, input := bought(t, shop(t, nil),
		`{"id":"job-1","card":"refused"}`, `{"id":"job-2","card":"good"}`, `{"id":"job-3","card":"refused"}`, `{"id":"job-4","card":"refused job-4"}`)
	code, stdout, _ := command(t, "", "run", workflow, "--input", input)
	for _, want := range []string{
		"4 jobs in ", "\n  Processed       1\n  Undone          3\n",
		"\n         2  step pay failed: ", ": card declined for \"refused\"", "\n         1  step pay failed: ", `"refused ID"`,
	} {
		if !strings.Contains(stdout, want) || code != codeOtherwise {
			t.Errorf("got code %d\n%s\nwant %d and %q", code, stdout, codeOtherwise, want)
		}
	}
	_, stdout, _ = command(t, "", "run", workflow, "--input", input, "--json")
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || string(got["undoneIds"]) != `["job-1","job-3","job-4"]` {
		t.Errorf("got %s, %v; want the three ids", stdout, err)
	}
}

// Where all went well there is nothing to name, and the object has the keys that it always had.
func TestOneJobIsOneJob(t *testing.T) {
	workflow, input := bought(t, shop(t, nil), `{"id":"job-1","card":"good"}`)
	if code, stdout, _ := command(t, "", "run", workflow, "--input", input); code != 0 || !strings.HasPrefix(stdout, "1 job in ") {
		t.Errorf("got code %d, %s; want 0 and 1 job", code, stdout)
	}
	code, stdout, _ := command(t, "", "run", workflow, "--input", input, "--json")
	if want := `{"jobs":1,"processed":1,"undone":0,"cancelled":0,"error":0,"seconds":`; code != 0 || !strings.HasPrefix(stdout, want) || strings.Count(stdout, ",") != 5 {
		t.Errorf("got code %d, %s; want 0 and %s... and nothing else", code, stdout, want)
	}
}

func TestASummaryGivesTheMostFrequentReasonsOnly(t *testing.T) {
	s := batch.Summary{Jobs: 100, Undone: 100}
	for i := range maxReasons + 3 {
		s.Reasons = append(s.Reasons, batch.Reason{State: makegood.JobUndone, Reason: fmt.Sprint("reason ", i), Jobs: 20 - i})
	}
	var out strings.Builder
	if err := printSummary(&out, s, false); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "        11  reason 9\n        27  for other reasons\n") {
		t.Errorf("got\n%swant ten reasons, and the rest in a line", out.String())
	}
}

// Ctrl-C is nothing that went wrong: what is logged below a bar as ERROR would say so.
func TestARunThatIsInterruptedSaysWhatStandsAndHowToGoOn(t *testing.T) {
	calls := make(chan bool, 1)
	url := shop(t, func(*http.Request) {
		select {
		case calls <- true:
		default:
		}
	})
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf(`{"id":"job-%d","card":"good"}`, i))
	}
	workflow, input := bought(t, url, lines...)
	data := filepath.Join(t.TempDir(), "data")
	process := exec.CommandContext(t.Context(), os.Args[0], "run", workflow, "--input", input, "--data", data)
	process.Env = append(os.Environ(), asCommand+"=1")
	var stderr strings.Builder
	process.Stderr = &stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	<-calls
	signalTo(t, process, syscall.SIGINT)
	err := process.Wait()
	if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.ExitCode() != codeFailed {
		t.Errorf("it ended with %v, want exit code %d", err, codeFailed)
	}
	said := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(said) != 4 || said[1] != "stopped" || !strings.Contains(said[2], " of 2000 jobs are at their end (") ||
		said[3] != "The same command goes on with them: everything is kept in "+data+"." || slices.ContainsFunc(said, func(l string) bool { return strings.Contains(l, "ERROR") }) {
		t.Errorf("it said\n%s\nwant four lines, and no error", stderr.String())
	}
}

// A run does not wait for ever for a job whose child, or a child of that, stands in Error: no person can mend it while the
// run lasts. It says which job it is, and so does the same run again, which finds the children as they were left.
func TestARunEndsWhereAChildStandsInError(t *testing.T) {
	child, input := bought(t, shop(t, nil), `{"id":"job-1","card":"good"}`, `{"id":"job-2","card":"refused"}`)
	source, err := os.ReadFile(child)
	must(t, err)
	must(t, os.WriteFile(child, append([]byte("onFailure: stop\n"), source...), 0o600))
	box := write(t, "box.yaml", "name: box\nsteps: [{name: fill, agent: workflow, action: buy}]\n")
	order := write(t, "order.yaml", "name: order\nsteps: [{name: purchase, agent: workflow, action: box}, {name: rest, agent: wait, needs: [], with: {for: 300ms}}]\n")
	data := t.TempDir()
	for range 2 {
		code, stdout, stderr := command(t, "", "run", order, box, child, "--input", input, "--data", data)
		if code != codeOtherwise || !strings.Contains(stdout, "  Processed       1\n  Error           1\n  job-2: it waits for job job-2~purchase~1~") ||
			!strings.Contains(stdout, ": step pay failed") || strings.Count(stdout, "waits for job") != 1 {
			t.Errorf("got %d, %s%s", code, stdout, stderr)
		}
	}
}

// The same holds where the job of an item of a map stands in Error: below the part, which is below the job.
func TestARunEndsWhereAnItemOfAMapStandsInError(t *testing.T) {
	child, _ := bought(t, shop(t, nil))
	source, err := os.ReadFile(child)
	must(t, err)
	must(t, os.WriteFile(child, append([]byte("onFailure: stop\n"), source...), 0o600))
	each := write(t, "each.yaml", "name: each\nsteps: [{name: pay, agent: workflow, action: buy, map: {over: '${ .input.cards }'}, with: {card: '${ .item }'}}]\n")
	input := write(t, "input.jsonl", `{"id":"job-1","cards":["good"]}`+"\n"+`{"id":"job-2","cards":["good","refused"]}`+"\n")
	code, stdout, stderr := command(t, "", "run", each, child, "--input", input)
	if code != codeOtherwise || !strings.Contains(stdout, "  Processed       1\n  Error           1\n  job-2: it waits for job job-2~pay~1~") || strings.Count(stdout, "waits for") != 1 {
		t.Errorf("got %d, %s%s", code, stdout, stderr)
	}
}

// Jobs that were undone for the same reason are told as one group, also where their children failed.
func TestARunGroupsReasonsOfChildren(t *testing.T) {
	child, _ := bought(t, shop(t, nil))
	each := write(t, "each.yaml", "name: each\nsteps: [{name: pay, agent: workflow, action: buy, map: {over: '${ .input.cards }'}, with: {card: '${ .item }'}}]\n")
	input := write(t, "input.jsonl", `{"id":"job-1","cards":["refused"]}`+"\n"+`{"id":"job-2","cards":["refused"]}`+"\n")
	code, stdout, stderr := command(t, "", "run", each, child, "--input", input)
	if code != codeOtherwise || strings.Count(stdout, "failed: its job") != 1 || !strings.Contains(stdout, "  Undone          2\n         2  step pay failed: its job ID~pay") {
		t.Errorf("got %d, %s%s", code, stdout, stderr)
	}
}

// Further files are the workflows of child jobs. One that is missing is said before a line is submitted.
func TestRunTakesTheWorkflowsOfChildren(t *testing.T) {
	child, input := bought(t, shop(t, nil), `{"id":"job-1","card":"good"}`, `{"id":"job-2","card":"refused"}`)
	parent := write(t, "order.yaml", "name: order\nsteps: [{name: purchase, agent: workflow, action: buy}]\n")
	code, stdout, stderr := command(t, "", "run", parent, "--input", input)
	want := `there is no workflow "buy", which does step purchase of workflow order: name its file, too` + "\n"
	if code != codeUsage || stdout != "" || stderr != want {
		t.Errorf("without the child: got %d, %s%s; want %d, %s", code, stdout, stderr, codeUsage, want)
	}
	code, stdout, stderr = command(t, "", "run", parent, child, "--input", input, "--json")
	var got batch.Summary
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != codeOtherwise || got.Jobs != 2 || got.Processed != 1 || got.Undone != 1 {
		t.Errorf("got %d, %s%s; want a job Processed, and one Undone", code, stdout, stderr)
	}
}

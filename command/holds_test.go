package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// paused is the API of an engine that does not run: what is sent stays where it is.
func paused(t *testing.T, outside ...embedded.Outside) (url string, submit func(id string)) {
	t.Helper()
	engine := idle(t, t.TempDir(), outside...)
	return serves(t, engine, "name: order\nsteps: [{name: charge, agent: deaf}]\n"), func(id string) {
		t.Helper()
		if _, _, err := engine.SubmitCurrent(t.Context(), "order", scheduler.Submission{ID: id, Input: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
}

// The commands of docs/holds.md, in their order, do what it says they do.
func TestAnOutageAsTheDocsTellIt(t *testing.T) {
	url, submit := paused(t)
	if ran := saysAsTyped(t, "../docs/holds.md", url, func() { submit("order-17") }); ran < 6 {
		t.Errorf("ran %d commands", ran)
	}
}

// The commands of docs/limit-an-agent.md about a limit over all processes print the output that the page shows.
func TestALimitAsTheDocsTellIt(t *testing.T) {
	url, submit := paused(t, embedded.Outside{Name: "mail"})
	page, err := filepath.Abs("../docs/limit-an-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(text), "```yaml\n# agents.yaml")
	file, _, _ = strings.Cut(file, "```")
	inFolder(t, "agents.yaml", strings.ReplaceAll(file, "payments", "deaf"))
	ran := saysAsTyped(t, page, url, func() {
		for i := range 23 {
			submit(fmt.Sprint("order-", i))
		}
	})
	if ran < 8 {
		t.Errorf("ran %d commands", ran)
	}
}

// inFolder makes a folder with one file the current one.
func inFolder(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// saysAsTyped types the commands of a page, calls begun after the first, and holds their output against the page's. It
// returns the number of commands.
func saysAsTyped(t *testing.T, page, url string, begun func()) (ran int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	moment := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	by := regexp.MustCompile(`by [^ :)]+`)
	column := regexp.MustCompile(`\s{2,}`)
	who := regexp.MustCompile(`T  \S+  `)
	plain := func(line string) string {
		line = column.ReplaceAllString(by.ReplaceAllString(moment.ReplaceAllString(strings.TrimSpace(line), "T"), "by WHO"), "  ")
		return who.ReplaceAllString(line, "T  WHO  ")
	}
	for _, block := range strings.Split(string(text), "```") {
		if !strings.HasPrefix(block, "\n$ makegood") {
			continue
		}
		for _, said := range strings.Split(block, "\n$ makegood ")[1:] {
			line, wants, _ := strings.Cut(strings.TrimRight(said, "\n"), "\n")
			line = strings.ReplaceAll(line, "payments", "deaf")
			_, stdout, stderr := ask(t, append(words(line), "--addr", url)...)
			got := plain(strings.ReplaceAll(stdout+stderr, "deaf", "payments"))
			for want := range strings.Lines(wants) {
				if want = plain(want); !strings.Contains(got, want) {
					t.Errorf("makegood %s\nsays %q\nwant %q", line, got, want)
				}
			}
			if ran++; ran == 1 {
				begun()
			}
		}
	}
	return ran
}

// What pause and resume take as an agent or a workflow as a whole, and what they refuse.
func TestPauseOfAnAgentOrAWorkflowAsAWhole(t *testing.T) {
	url, submit := paused(t)
	for _, step := range []struct {
		line string
		code int
		says string
	}{
		{"holds", 0, "no agent and no workflow is paused, and no agent has a limit"},
		{"pause --agent deff", codeUsage, `there is no agent "deff"; there are [deaf]`},
		{"pause --whole-agent approval", codeUsage, "no task is ever sent to it"},
		{"pause --whole-agent deaf --state Processing", codeUsage, "neither ids nor a filter"},
		{"pause order-1 --whole-agent deaf", codeUsage, "neither ids nor a filter"},
		{"pause --whole-agent deaf --whole-workflow order", codeUsage, "want one"},
		{"pause --whole-agent=", codeUsage, "want the name of the agent"},
		{"pause --workflow orders", codeUsage, `there is no workflow "orders"`},
		{"pause --agent deaf --state Processing", 0, "pause: 0 jobs"},
		{"pause order-1 --agent deaf", codeUsage, "ids or a filter, not both"},
		{"resume --agent deaf", codeUsage, "refused: agent deaf is not paused"},
		{"resume --whole-agent deaf", codeUsage, "refused: agent deaf is not paused"},
		{"agents probe", codeUsage, "NAME"},
		{"agents probe deaf", codeUsage, "refused: agent deaf is not paused by the breaker"},
		{"agents probe No_Such!", codeUsage, "No_Such!"},
		{"pause --whole-workflow order --json", 0, `"kind":"workflow","name":"order"`},
		{"pause --workflow order --reason again", 0, "workflow order  paused since"},
		{"holds --json", 0, `"jobs":0`},
		{"resume --workflow order", 0, "workflow order  resumed: new work flows"},
		{"holds", 0, "told to go on"},
		{"pause --workflow order --state Pending --yes", 0, "1"},
		{"holds", 0, "told to go on"},
	} {
		if strings.Contains(step.line, "--state Pending") {
			submit("one")
		}
		code, stdout, stderr := ask(t, append(words(step.line), "--addr", url)...)
		if code != step.code || !strings.Contains(stdout+stderr, step.says) {
			t.Errorf("makegood %s: got %d, %q, %q, want %d and %q", step.line, code, stdout, stderr, step.code, step.says)
		}
	}
	_, stdout, _ := ask(t, "get", "one", "--json", "--addr", url)
	var job makegood.Job
	if err := json.Unmarshal([]byte(stdout), &job); err != nil || !job.Paused || job.HeldBy != "" {
		t.Errorf("got %s, %v, want a job that a person has paused", stdout, err)
	}
}

// What agents limit and agents unlimit take, what they say, and what they refuse.
func TestALimitOfAnAgent(t *testing.T) {
	url, submit := paused(t)
	for _, step := range []struct {
		line string
		code int
		says string
	}{
		{"agents limit deaf", codeUsage, "agents limit needs --concurrency, 1 to 100"},
		{"agents limit deaf --concurrency 1 --key=", codeUsage, "agents limit --key : want a value, or leave it out"},
		{"agents limit deaf --rate 1/s --burst 0", codeUsage, "agents limit --burst 0: want a value"},
		{"agents limit --concurrency 2", codeUsage, "NAME"},
		{"agents limit deff --concurrency 2", codeUsage, `there is no agent "deff"; there are [deaf]`},
		{"agents limit deaf --concurrency 101", codeUsage, "want 1 to 100"},
		{"agents limit deaf --concurrency -1", codeUsage, "want 1 to 100"},
		{"agents limit deaf --rate 5/h", codeUsage, `a rate of "5/h": want 1/s to 1000/s, or 1/m to 1000/m`},
		{"agents limit deaf --burst 2", codeUsage, "--rate"},
		{"agents limit deaf --rate 90/m --concurrency 3", 0, "limit 90/m, 2 at one moment and 3: 0 under way, 0 wait; known"},
		{"agents limit deaf --rate 5/s --burst 1", 0, "limit 5/s, 1 at one moment, 0 wait; known"},
		{"agents limit deaf --concurrency 2 --key account", codeUsage, "want one expression over the job's input"},
		{"agents limit deaf --key .input.a", codeUsage, "agents limit needs --concurrency"},
		{"agents limit deaf --concurrency 2 --rate 5/s --key ${.input.account}", 0, "limit 5/s, 5 at one moment and 2 for each ${.input.account}: 0 under way, 0 wait; known"},
		{"agents unlimit deaf", 0, "agent deaf  has no limit any more"},
		{"agents limit approval --concurrency 2", codeUsage, "agent approval cannot have a limit: no task is ever sent to it"},
		{"agents unlimit deaf", codeUsage, "refused: agent deaf has no limit"},
		{"agents limit deaf --concurrency 1 --json", 0, `"limit":1,"underWay":0,"jobs":0`},
		{"agents permits deaf --json", 0, `{"permits":[]}`},
		{"agents permits deff", codeUsage, "agent deff has no limit"},
		{"agents limit deaf --concurrency 2 --reason narrow --who anna", 0, "by anna: narrow; limit 2: 0 under way, 0 wait; known everywhere 5s later"},
		{"submit", 0, ""},
		{"agents", 0, "; limit 2: 2 under way, 1 wait"},
		{"agents --json", 0, `"limit":2,"underWay":2,"jobs":1`},
		{"holds", 0, "limit 2: 2 under way, 1 wait"},
		{"agents permits deaf", 0, "job-1  charge  1        "},
		{"agents permits deaf --json", 0, `{"permits":[{"job":"job-0","step":"charge","attempt":1,"undo":false,"since":"`},
		{"get job-2", 0, "queued, attempt 1, stands before the gate of its agent"},
		{"get job-2", 0, "charge would be asked now  {}  (the attempt stands before the gate of its agent: nothing was sent)"},
		{"agents unlimit deaf", 0, "agent deaf  has no limit any more"},
		{"holds", 0, "no agent has a limit"},
	} {
		if step.line == "submit" {
			for i := range 3 {
				submit(fmt.Sprint("job-", i))
			}
			continue
		}
		code, stdout, stderr := ask(t, append(words(step.line), "--addr", url)...)
		if code != step.code || !strings.Contains(stdout+stderr, step.says) {
			t.Errorf("makegood %s: got %d, %q, %q, want %d and %q", step.line, code, stdout, stderr, step.code, step.says)
		}
	}
}

// A pause of an agent as a whole shows the token of --token-file, as every request does.
func TestAPauseAsAWholeShowsItsToken(t *testing.T) {
	shown := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	inFolder(t, "token", "a-token-of-a-person-that-is-long-enough")
	ask(t, "pause", "--whole-agent", "deaf", "--token-file", "token", "--addr", server.URL)
	if shown != "Bearer a-token-of-a-person-that-is-long-enough" {
		t.Errorf("got %q, want the token of the file", shown)
	}
}

// What agents probe says of an agent that the breaker has paused.
func TestAnAgentIsProbedByHand(t *testing.T) {
	engine := idle(t, t.TempDir())
	url := serves(t, engine, "name: order\nsteps: [{name: charge, agent: deaf}]\n")
	if _, err := engine.Parts().Holds.Trip(t.Context(), "deaf", "its last 10 attempts failed"); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := ask(t, "agents", "probe", "deaf", "--addr", url)
	if code != 0 || !strings.Contains(stdout, "by breaker: its last 10 attempts failed; jobs that stand still: 0; paused, 0 probes so far, the next at 2") {
		t.Errorf("got %d, %q, %q, want how its pause stands", code, stdout, stderr)
	}
}

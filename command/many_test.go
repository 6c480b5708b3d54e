package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// broken is a workflow whose jobs are in Error at once.
const broken = "name: broken\nonFailure: stop\nsteps: [{name: a, agent: clerk, undo: none}]\n"

// clerk does nothing for anybody.
type clerk struct{}

func (clerk) Name() string { return "clerk" }

func (clerk) Handle(context.Context, makegood.Task) (json.RawMessage, error) {
	return nil, agent.Final(agent.NotApplied(errors.New("not today")))
}

// crowd is a process with many jobs, which notes what each request came to.
type crowd struct {
	engine *embedded.Engine
	url    string
	mu     sync.Mutex
	// applied counts the requests that changed a job, by verb and job; asked all that were made.
	applied map[string]int
	asked   int
}

// Enabled, Handle, WithAttrs and WithGroup make it the API's log.
func (c *crowd) Enabled(context.Context, slog.Level) bool { return true }
func (c *crowd) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *crowd) WithGroup(string) slog.Handler            { return c }
func (c *crowd) Handle(_ context.Context, r slog.Record) error {
	said := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = a.Value.String()
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Message == "request" {
		c.asked++
	}
	if r.Message == "request" && said["verdict"] == "applied" {
		c.applied[said["verb"]+" "+said["job"]]++
	}
	return nil
}

// most returns how many requests have changed something, and how many of them the same at most.
func (c *crowd) most() (all, same int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.applied {
		all, same = all+n, max(same, n)
	}
	return all, same
}

// requests returns how many requests were made.
func (c *crowd) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// newCrowd is a process with so many jobs of each workflow: approvals-0 and so on wait, broken-0 and so on are in Error.
func newCrowd(t *testing.T, waiting, inError int) *crowd {
	t.Helper()
	c := &crowd{applied: map[string]int{}}
	var err error
	c.engine, err = embedded.Open(t.Context(), embedded.Config{Agents: []agent.Handler{clerk{}}, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	for name, source := range map[string]string{"approvals": approvals, "broken": broken} {
		compiled, err := workflowfile.Parse(name+".yaml", []byte(source))
		must(t, err)
		must(t, c.engine.Define(t.Context(), compiled))
	}
	parts := c.engine.Parts()
	parts.Logger = slog.New(c)
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: control.New(parts)}))
	c.url = server.URL
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- c.engine.Run(ctx) }()
	t.Cleanup(func() {
		server.Close()
		cancel()
		must(t, <-ran)
		must(t, c.engine.Close())
	})
	c.submit(t, "approvals", waiting)
	c.submit(t, "broken", inError)
	c.until(t, "broken", inError, func(s makegood.ProcessState) bool { return s == makegood.JobError })
	return c
}

func (c *crowd) submit(t *testing.T, workflow string, n int) {
	t.Helper()
	for i := range n {
		_, _, err := c.engine.SubmitCurrent(t.Context(), workflow, scheduler.Submission{ID: fmt.Sprintf("%s-%d", workflow, i), Input: json.RawMessage("{}")})
		must(t, err)
	}
}

// until waits until all jobs of a workflow are in a state.
func (c *crowd) until(t *testing.T, workflow string, n int, is func(makegood.ProcessState) bool) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("%s-%d", workflow, i)
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
			j, err := c.engine.Job(t.Context(), id)
			must(t, err)
			if is(j.ProcessState) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("job %s: got %s", id, j.ProcessState)
			}
		}
	}
}

// said is what a verb printed in JSON: a line a job, and the summary.
type said struct {
	outcomes map[string]outcome
	summary  tally
}

func readSaid(t *testing.T, stdout string) said {
	t.Helper()
	s := said{outcomes: map[string]outcome{}}
	for line := range strings.Lines(stdout) {
		var o struct {
			outcome
			Summary *tally `json:"summary"`
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if o.Summary != nil {
			s.summary = *o.Summary
			continue
		}
		if _, twice := s.outcomes[o.Job]; twice {
			t.Errorf("%s is there twice", o.Job)
		}
		s.outcomes[o.Job] = o.outcome
	}
	return s
}

func counts(t tally) []int { return []int{t.Jobs, t.Granted, t.Duplicate, t.Refused, t.Failed} }

// A verb takes ids, ids on standard input in every form in which this command prints them, and the filters of list.
func TestAVerbTakesManyJobs(t *testing.T) {
	c := newCrowd(t, 5, 3)
	listed := func(args ...string) string {
		_, stdout, _ := ask(t, append([]string{"list", "--json", "--addr", c.url}, args...)...)
		return stdout
	}
	for _, s := range []struct {
		args  []string
		stdin string
		code  int
		want  []int // jobs, granted, duplicate, refused, failed
	}{
		{[]string{"pause", "approvals-0", "approvals-1", "approvals-0", "nobody", "broken-0"}, "", codeOtherwise, []int{4, 2, 0, 2, 0}},
		{[]string{"pause", "-"}, "approvals-1\n\n  approvals-2\n", 0, []int{2, 1, 1, 0, 0}},
		{[]string{"pause", "-"}, listed("--workflow", "approvals"), 0, []int{5, 2, 3, 0, 0}},
		{[]string{"resume", "--paused", "--yes"}, "", 0, []int{5, 5, 0, 0, 0}},
		{[]string{"resume", "--paused", "--yes"}, "", 0, []int{0, 0, 0, 0, 0}},
		{[]string{"pause", "-"}, `{"job":"approvals-0","outcome":"failed"}` + "\n" + `{"id":"approvals-1"}` + "\n" + `{"summary":{}}`, 0, []int{2, 2, 0, 0, 0}},
		{[]string{"cancel", "--workflow", "approvals", "--yes", "--rate", "500/s", "--reason", "closed"}, "", 0, []int{5, 5, 0, 0, 0}},
		{[]string{"resume", "--state", "Error", "--reason-prefix", "step b", "--yes"}, "", 0, []int{0, 0, 0, 0, 0}},
		{[]string{"resume", "--state", "Error", "--reason-prefix", "step a failed: not", "--yes"}, "", codeOtherwise, []int{3, 0, 0, 3, 0}},
		{[]string{"undo", "--state", "error", "--yes"}, "", 0, []int{3, 3, 0, 0, 0}},
		{[]string{"reschedule", "--at", "2027-01-01T00:00:00Z", "--workflow", "broken", "--yes"}, "", codeOtherwise, []int{3, 0, 0, 3, 0}},
	} {
		code, stdout, stderr := askWith(t, s.stdin, append(s.args, "--json", "--addr", c.url)...)
		if got := readSaid(t, stdout).summary; code != s.code || !slices.Equal(counts(got), s.want) {
			t.Errorf("%v: got %d, %v\n%s%s\nwant %d, %v", s.args, code, counts(got), stdout, stderr, s.code, s.want)
		}
	}
}

// For people it says how many came to what, and why, with examples.
func TestASummaryCountsByOutcomeAndReason(t *testing.T) {
	c := newCrowd(t, 2, 5)
	_, stdout, _ := ask(t, "pause", "--addr", c.url, "approvals-0", "approvals-1", "nobody", "broken-0", "broken-1", "broken-2", "broken-3")
	lines := strings.Split(stdout, "\n")
	want := []string{
		"  granted           2",
		"  refused           5",
		"           4  it is in Error and waits already (broken-",
		"           1  there is no such job (nobody)",
		"",
	}
	if len(lines) != len(want)+1 || !strings.HasPrefix(lines[0], "pause: 7 jobs in ") {
		t.Fatalf("got\n%s\nwant a first line and\n%s", stdout, strings.Join(want, "\n"))
	}
	for i, line := range want {
		if !strings.HasPrefix(lines[i+1], line) {
			t.Errorf("got %q, want %q", lines[i+1], line)
		}
	}
}

// What cannot be meant is refused before anything is asked of any job.
func TestWhatManyCannotMeanIsRefusedBeforeAnythingIsDone(t *testing.T) {
	c := newCrowd(t, 2, 1)
	at := func(args ...string) []string { return append(args, "--addr", c.url) }
	wants(t, codeUsage, "cancel 2 jobs? Nobody can be asked here: --yes does it, --dry-run shows it", at("cancel", "--workflow", "approvals")...)
	wants(t, codeUsage, "pause needs an ID, several, - for standard input, or a filter", at("pause")...)
	wants(t, codeUsage, "takes ids or a filter, not both: got a and --state", at("pause", "a", "--state", "Error")...)
	wants(t, codeUsage, "takes ids, or - for those on standard input, not both", at("pause", "approvals-0", "-")...)
	wants(t, codeUsage, "--state asleep: want one of", at("pause", "--state", "asleep", "--yes")...)
	wants(t, codeUsage, "--rate 0/s: want N/s, such as 20/s", at("pause", "approvals-0", "--rate", "0/s")...)
	wants(t, codeUsage, "--rate fast: want N/s", at("pause", "approvals-0", "--rate", "fast")...)
	wants(t, codeUsage, `--request "two words": want what`, at("pause", "approvals-0", "--request", "two words")...)
	wants(t, codeUsage, "a b", at("pause", "approvals-0", "a b")...)
	for stdin, want := range map[string]string{
		"approvals-0\na b\n":                      "standard input: line 2: ",
		"approvals-0\n{\"id\":\n":                 "standard input: line 2: not JSON",
		"approvals-0\n{\"name\":\"approvals\"}\n": "standard input: line 2: an object with neither id nor jobs in it",
	} {
		code, stdout, stderr := askWith(t, stdin, at("pause", "-")...)
		if code != codeUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: got %d, %q, %q, want %q", stdin, code, stdout, stderr, want)
		}
	}
	if all, _ := c.most(); all != 0 {
		t.Errorf("%d requests were granted, want none", all)
	}
}

// A dry run says of each what would be done, by the table of verbs, and changes nothing.
func TestADryRunSaysWhatWouldBeDone(t *testing.T) {
	c := newCrowd(t, 1, 1)
	wants(t, 0, "broken-0  Error: goes on from what failed, forwards\nresubmit --dry-run, no job was changed: 1 job in ", "resubmit", "--state", "Error", "--dry-run", "--addr", c.url)
	wants(t, codeOtherwise, "1  it has not stopped (approvals-0)", "resubmit", "approvals-0", "--dry-run", "--addr", c.url)
	wants(t, codeOtherwise, "1  there is no such job (nobody)", "cancel", "nobody", "--dry-run", "--addr", c.url)
	wants(t, 0, ": settles step approve, which is waiting", "settle", "--workflow", "approvals", "approve", "--done", "--dry-run", "--addr", c.url)
	wants(t, codeOtherwise, "it has no step nothing (approvals-0)", "settle", "approvals-0", "nothing", "--done", "--dry-run", "--addr", c.url)
	if all, _ := c.most(); all != 0 {
		t.Errorf("%d requests were granted, want none", all)
	}
}

// What a person has dealt with, for many jobs at once, they say once.
func TestManyStepsAreSettledByOneCommand(t *testing.T) {
	c := newCrowd(t, 4, 0)
	at := func(args ...string) []string { return append(args, "--json", "--addr", c.url) }
	for _, s := range []struct {
		stdin string
		args  []string
		code  int
		want  []int
	}{
		{"approvals-0\napprovals-1\nnobody\n", at("settle", "-", "approve", "--done", "--output", `"approve"`), codeOtherwise, []int{3, 2, 0, 1, 0}},
		{"", at("settle", "approvals-0", "approvals-2", "approve", "--done", "--output", `"approve"`), 0, []int{2, 1, 1, 0, 0}},
		{"", at("settle", "--workflow", "approvals", "approve", "--skipped", "--reason", "the fair is over", "--yes"), codeOtherwise, []int{4, 1, 0, 3, 0}},
		{"", at("settle", "--workflow", "approvals", "approve", "--skipped", "--reason", "no", "--yes"), codeOtherwise, []int{4, 0, 1, 3, 0}},
	} {
		code, stdout, stderr := askWith(t, s.stdin, s.args...)
		if got := readSaid(t, stdout).summary; code != s.code || !slices.Equal(counts(got), s.want) {
			t.Errorf("%v: got %d, %v\n%s%s\nwant %d, %v", s.args, code, counts(got), stdout, stderr, s.code, s.want)
		}
	}
	wants(t, codeUsage, "both to be read from standard input", "settle", "-", "approve", "--done", "--output", "-", "--addr", c.url)
	wants(t, codeUsage, "takes ids or a filter, not both", "settle", "a", "approve", "--done", "--paused", "--addr", c.url)
}

// start runs the command as a process, with ids on standard input, and returns what it prints.
func (c *crowd) start(t *testing.T, ids []string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], append(args, "--addr", c.url)...)
	command.Env = append(os.Environ(), asCommand+"=1")
	command.Stdin = strings.NewReader(strings.Join(ids, "\n"))
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command, bufio.NewReader(out)
}

// Killed on the way, the same command goes on, and no job is granted it twice: by its filter, which finds what is left, and
// by the name of the request, though all have come back to where they were meanwhile.
func TestCutOffTheSameCommandGoesOnAndDoesNothingTwice(t *testing.T) {
	const jobs, before = 120, 30
	c := newCrowd(t, 0, jobs)
	ids := brokenIDs(jobs)
	command, out := c.start(t, ids, "resubmit", "-", "--request", "monday", "--rate", "40/s", "--json")
	for range before {
		_, err := out.ReadString('\n')
		must(t, err)
	}
	must(t, command.Process.Kill())
	_ = command.Wait() // it was killed
	if at, _ := c.most(); at < before || at >= jobs {
		t.Fatalf("killed after %d of %d, want it to have been on its way", at, jobs)
	}
	// What was resubmitted fails again, and is in Error again.
	c.until(t, "broken", jobs, func(s makegood.ProcessState) bool { return s == makegood.JobError })
	code, stdout, stderr := askWith(t, strings.Join(ids, "\n"), "resubmit", "-", "--request", "monday", "--json", "--addr", c.url)
	got := readSaid(t, stdout).summary
	if all, same := c.most(); code != 0 || all != jobs || same != 1 || got.Duplicate < before || got.Granted+got.Duplicate != jobs {
		t.Errorf("run again: got %d, %s, %+v; %d granted in all, %d times the same, want each once", code, stderr, got, all, same)
	}
}

// One signal lets it bring to an end what it has begun, and say how far it came.
func TestASignalStopsItAndItSaysHowFarItCame(t *testing.T) {
	const jobs = 120
	c := newCrowd(t, jobs, 0)
	command, out := c.start(t, nil, "pause", "--workflow", "approvals", "--yes", "--rate", "20/s", "--json")
	for range 20 {
		_, err := out.ReadString('\n')
		must(t, err)
	}
	signalTo(t, command, syscall.SIGINT)
	var rest strings.Builder
	_, _ = out.WriteTo(&rest)
	_ = command.Wait() // the code says it
	s := readSaid(t, rest.String())
	all, same := c.most()
	if code := command.ProcessState.ExitCode(); code != codeFailed || s.summary.Granted != all || same != 1 || all >= jobs {
		t.Errorf("got %d, %+v; %d granted, want what it says to be what is so", code, s.summary, all)
	}
	wants(t, 0, fmt.Sprintf("granted         %3d", jobs-all), "pause", "--workflow", "approvals", "--yes", "--addr", c.url)
}

// When nobody answers any more it stops, and does not wait for each of them to be unreachable.
func TestWhenNobodyAnswersItStops(t *testing.T) {
	asked := 0
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	var ids strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&ids, "job-%d\n", i)
	}
	code, stdout, stderr := askWith(t, ids.String(), "pause", "-", "--addr", server.URL, "--rate", "10000/s")
	if code != codeFailed || !strings.Contains(stderr, "stopped: the API does not answer") || !strings.Contains(stderr, "not gone through; the same command goes on") || asked > 3*atOnce {
		t.Errorf("got %d, %s%s after %d requests, want it to stop", code, stdout, stderr, asked)
	}
}

// Whoever may not knock at a door may not for any job.
func TestWhatIsForbiddenStopsItAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":"the policy does not let you"}`)
	}))
	defer server.Close()
	code, stdout, stderr := askWith(t, "a\nb\n"+strings.Repeat("c\n", 10), "pause", "-", "--addr", server.URL)
	if code != codeFailed || !strings.Contains(stdout+stderr, "the policy does not let you") {
		t.Errorf("got %d, %s%s", code, stdout, stderr)
	}
}

// The same command takes up to a million jobs, and no more.
func TestMoreJobsThanTheLimitAreRefused(t *testing.T) {
	found := &gathered{all: make([]target, maxMany), seen: map[string]bool{}}
	if err := found.add("one-more", ""); err == nil || !strings.Contains(err.Error(), "more than 1,000,000 jobs") {
		t.Errorf("got %v, want the limit named", err)
	}
}

func FuzzIDsOnALine(f *testing.F) {
	for _, line := range []string{"order-17", " a\t", `{"id":"a"}`, `{"jobs":[{"id":"a"},{"id":"b"}],"scan":true}`, `{"job":"a","outcome":"granted"}`, `{"summary":{}}`, "{", "", "\x00"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := &gathered{seen: map[string]bool{}}
		err := readIDs(strings.NewReader(text), found)
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("got %v, want the line named", err)
		}
		seen := map[string]bool{}
		for _, job := range found.all {
			if makegood.CheckJobID(job.id) != nil || seen[job.id] {
				t.Errorf("got %q of %q", job.id, text)
			}
			seen[job.id] = true
		}
	})
}

// Reasons that differ in an id alone are one, whose examples have the ids; a reason of one job alone has its own.
func TestAReasonOfOneJobHasItsID(t *testing.T) {
	of := newTally("resubmit")
	of.add(outcome{Job: "o-17", Outcome: broke, Reason: "definition 5b3 of job o-17: damaged"})
	for _, id := range []string{"o-18", "o-19"} {
		of.add(outcome{Job: id, Outcome: broke, Reason: "save job " + id + ": the disk is full"})
	}
	of.close(1)
	var out strings.Builder
	of.print(&out)
	for _, want := range []string{"1  definition 5b3 of job o-17: damaged (o-17)", "2  save job ID: the disk is full (o-18, o-19)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %s", out.String(), want)
		}
	}
}

// A reason that nobody foresaw is counted with the others once there are too many.
func TestReasonsAreCountedUpToALimit(t *testing.T) {
	of := newTally("pause")
	for i := range 10 * maxWhys {
		of.add(outcome{Job: fmt.Sprintf("job-%d", i), Outcome: refused, Reason: fmt.Sprintf("because of %d", i)})
	}
	of.close(1)
	if len(of.Reasons) != maxWhys+1 || of.Reasons[0].Jobs != 9*maxWhys || of.Refused != 10*maxWhys {
		t.Errorf("got %d reasons, the first of %d jobs, want %d and %d", len(of.Reasons), of.Reasons[0].Jobs, maxWhys+1, 9*maxWhys)
	}
	var out strings.Builder
	of.print(&out)
	if got := strings.Count(out.String(), "\n"); got > maxWhysShown+5 {
		t.Errorf("got %d lines, want few", got)
	}
}

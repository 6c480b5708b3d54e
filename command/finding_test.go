package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// thriftyBank are the agents of docs/finding-jobs.md: the bank declines what is more than a thousand.
func thriftyBank() []agent.Handler {
	type nothing struct{}
	type order struct{ Total int }
	return []agent.Handler{
		agent.New("stock", agent.Do("reserve", func(context.Context, order) (nothing, error) { return nothing{}, nil })),
		agent.New("bank", agent.Do("charge", func(_ context.Context, o order) (nothing, error) {
			if o.Total > 1000 {
				return nothing{}, agent.Final(agent.Kind("declined", errors.New("too dear")))
			}
			return nothing{}, nil
		})),
	}
}

// thrifty serves an engine that runs, with the workflow of the page.
func thrifty(t *testing.T) (url string) {
	t.Helper()
	engine, err := embedded.Open(t.Context(), embedded.Config{Agents: thriftyBank()})
	must(t, err)
	c, err := workflowfile.Parse("order.yaml", []byte(docBlocks(t, "finding-jobs.md", "yaml")[0]))
	must(t, err)
	must(t, engine.Define(t.Context(), c))
	return runs(t, engine)
}

// What docs/finding-jobs.md shows happens as it says: each command is run, and prints the lines that stand below it.
func TestThePageOnFindingJobs(t *testing.T) {
	url := thrifty(t)
	for _, block := range docBlocks(t, "finding-jobs.md", "console") {
		out := ""
		for line := range strings.Lines(block) {
			line = strings.TrimRight(line, "\n")
			command, is := strings.CutPrefix(line, "$ makegood ")
			if !is {
				if !strings.Contains(out, line) {
					t.Errorf("the page shows\n%s\nand there is\n%s", line, out)
				}
				continue
			}
			code, stdout, stderr := ask(t, append(shellWords(command), "--addr", url)...)
			if out = stdout + stderr; code == codeUsage || code == codeFailed {
				t.Fatalf("%s: %d, %s", line, code, out)
			}
		}
	}
}

// A list says that there is more, shows all when it is asked to, and each job once.
func TestAListSaysThatThereIsMore(t *testing.T) {
	url := thrifty(t)
	c, err := client.New(url)
	must(t, err)
	for i := range 60 {
		_, err := c.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: fmt.Sprint("o-", i), Input: json.RawMessage(`{"total":1}`), StartAt: time.Now().Add(time.Hour)})
		must(t, err)
	}
	wants(t, 0, "50 shown, and there are more", "list", "--addr", url)
	wants(t, 0, `"more":true`, "list", "--addr", url, "--json", "--limit", "59")
	for _, args := range [][]string{{"--all"}, {"--limit", "60"}, {"--all", "--due-within", "2h"}, {"--all", "--state", "pending"}} {
		code, stdout, stderr := ask(t, append([]string{"list", "--addr", url}, args...)...)
		if code != 0 || strings.Count(stdout, "\no-") != 60 || strings.Contains(stderr, "more") {
			t.Errorf("%v: got %d, %d jobs, %s, want all 60", args, code, strings.Count(stdout, "\no-"), stderr)
		}
	}
	wants(t, 0, "Pending  60\n60 jobs", "count", "--addr", url)
	wants(t, 0, "no job waits for a person", "errors", "--addr", url)
	wants(t, 0, `"groups":[]`, "errors", "--addr", url, "--json")
}

// Who follows changes where nobody serves them is told what to do, as of any other verb.
func TestChangesOfNobodySayWhatToDo(t *testing.T) {
	wants(t, codeFailed, "cannot reach http://127.0.0.1:1: dial", "changes", "--addr", "127.0.0.1:1")
	wants(t, codeFailed, "is `makegood dev` running? --addr names it", "changes", "--addr", "127.0.0.1:1")
}

// A filter that can match nothing is refused, with what is wrong.
func TestAFilterThatCanMatchNothingIsRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag: --stat: did you mean --state?": {"--stat", "Error"},
		"begins no job's id":                          {"--id-prefix", "a/b"},
		"want one of [Pending":                        {"--state", "done"},
		`cannot be the name of a tenant`:              {"--tenant", "a b"},
		"want NAME=VALUE":                             {"--label", "region"},
		"cannot be both":                              {"--label", "a=1", "--label", "a=2"},
		"the label a has no value":                    {"--label", "a="},
		"is at its end: it is not late":               {"--state", "Processed", "--late"},
		"only a job in Error has one":                 {"--state", "Pending", "--reason-kind", "timeout"},
		"--since \"soon\": want so long ago, such as 2h or 7d, or a time": {"--since", "soon"},
		"--until \"7x\": want so long ago":                                {"--until", "7x"},
		"late-within: \"-1h\"":                                            {"--late-within", "-1h"},
		"no job was created then or later":                                {"--since", "1h", "--until", "2h"},
		"none of the others can be":                                       {"--paused", "--state", "Error"},
		"--by colour: want one or more of [s":                             {"--by", "colour"},
	} {
		wants(t, codeUsage, want, append([]string{"count", "--data", t.TempDir()}, args...)...)
	}
	wants(t, codeUsage, "--label \"x\": want NAME=VALUE", "submit", "order", "--label", "x")
}

// A search finds ids by their beginning and reasons by their words, and shows nothing that it did not find.
func TestASearchFindsIDsByTheirBeginningAndReasonsByWords(t *testing.T) {
	url := thrifty(t)
	for id, input := range map[string]string{"o-1": `{"total":1}`, "o-12": `{"total":9000}`, "p-1": `{"total":9000}`} {
		ask(t, "submit", "order", "--id", id, "--input", input, "--wait", "--addr", url)
	}
	for search, want := range map[string][]string{
		"o-1":                          {"o-1", "o-12"},
		"o-12":                         {"o-12"},
		"id:o- state:error":            {"o-12"},
		"DEAR":                         {"o-12", "p-1"},
		"dear too workflow:order":      {"o-12", "p-1"},
		"dear --id-prefix p":           {"p-1"},
		"--words dear --id-prefix o-1": {"o-12"},
		"o-2":                          nil,
		"nothing-of-this":              nil,
	} {
		code, stdout, stderr := ask(t, append(append([]string{"search"}, strings.Fields(search)...), "--addr", url)...)
		var got []string
		for line := range strings.Lines(stdout) {
			if id := strings.Fields(line)[0]; strings.Contains(id, "-") {
				got = append(got, id)
			}
		}
		slices.Sort(got)
		if code != 0 || !slices.Equal(got, want) {
			t.Errorf("search %s: got %d, %v, want %v; %s", search, code, got, want, stderr)
		}
	}
	wants(t, codeUsage, `unknown filter "stat": did you mean "state"?`, "list", "stat:Error", "--addr", url)
	wants(t, 0, "no id begins with dear: searched in reasons", "list", "dear", "--addr", url)
}

// serves defines a workflow, and serves the API of an engine that does not run until the test ends; then it closes it.
func serves(t *testing.T, engine *embedded.Engine, workflow string) (url string) {
	t.Helper()
	c, err := workflowfile.Parse("workflow.yaml", []byte(workflow))
	must(t, err)
	must(t, engine.Define(t.Context(), c))
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: control.New(engine.Parts())}))
	t.Cleanup(func() {
		server.Close()
		must(t, engine.Close())
	})
	return server.URL
}

// runs lets an engine run, serves its API until the test ends, and then closes it.
func runs(t *testing.T, engine *embedded.Engine) (url string) {
	t.Helper()
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: control.New(engine.Parts())}))
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	t.Cleanup(func() {
		server.Close()
		cancel()
		must(t, <-ran)
		must(t, engine.Close())
	})
	return server.URL
}

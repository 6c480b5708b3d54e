package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
)

// countedStack answers as a stack does whose jobs were counted: two of order, one of which has two agents, one of trip, and one
// of which nothing is known.
func countedStack(t *testing.T) (url string) {
	t.Helper()
	spent := func(writes float64) *makegood.Spent {
		return &makegood.Spent{WriteUnits: writes, ReadUnits: 5, Requests: 30, Invocations: 10, GBSeconds: 0.125}
	}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	step := func(name string, attempts int, took time.Duration) makegood.JobStep {
		end := at.Add(took)
		return makegood.JobStep{Name: name, Activity: makegood.Activity{State: "done", Attempt: attempts, LastStartedAt: &at, FinishedAt: &end}}
	}
	listed := func(id, workflow string, s *makegood.Spent, steps ...makegood.JobStep) api.Listed {
		return api.Listed{
			ID: id, Workflow: workflow, ProcessState: makegood.JobProcessed, Spent: s,
			Job: &makegood.Job{ID: id, Workflow: workflow, Definition: "d", Spent: s, Steps: steps},
		}
	}
	jobs := []api.Listed{
		listed("o-1", "order", spent(13), step("reserve", 1, time.Second), step("charge", 3, 3*time.Second)),
		listed("o-2", "order", spent(26), step("reserve", 1, time.Second)),
		listed("t-1", "trip", spent(1), step("reserve", 1, time.Second)),
		listed("old", "trip", nil, step("reserve", 1, time.Second)),
	}
	mux := http.NewServeMux()
	answer := func(pattern string, value any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { must(t, json.NewEncoder(w).Encode(value)) })
	}
	answer("GET /api/jobs", api.Page{Jobs: jobs})
	answer("GET /api/counts", api.Groups{Jobs: 4, Groups: []api.Group{
		{Values: []string{"order"}, Jobs: 2, Counted: 2, Spent: spent(13).Plus(*spent(26))},
		{Values: []string{"trip"}, Jobs: 2, Counted: 1, Spent: *spent(1)},
	}})
	answer("GET /api/definitions/d", api.Definition{Definition: "d", Workflow: makegood.Workflow{Name: "order", OnFailure: makegood.OnFailure{Action: makegood.FailureStop}, Steps: []makegood.Step{
		{Name: "reserve", Agent: "stock"}, {Name: "charge", Agent: "bank"},
	}}})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func costsOf(t *testing.T, args ...string) costs {
	t.Helper()
	code, stdout, stderr := ask(t, append([]string{"cost", "--json", "--addr", countedStack(t)}, args...)...)
	var c costs
	if err := json.Unmarshal([]byte(stdout), &c); code != 0 || err != nil {
		t.Fatalf("%v: %d, %v, %s", args, code, err, stderr)
	}
	return c
}

func TestCostsAreSummedUpByWorkflowTheDearestFirst(t *testing.T) {
	c := costsOf(t, "--by", "workflow")
	if len(c.Rows) != 2 || c.Rows[0].Of != "order" || c.Rows[0].Spent.WriteUnits != 39 || c.Rows[1].Jobs != 2 || c.Rows[1].Counted != 1 {
		t.Errorf("got %+v", c.Rows)
	}
	if c.All.Jobs != 4 || c.All.Counted != 3 || c.All.Spent.WriteUnits != 40 || c.All.Dollars != makegood.ListPrices().Dollars(c.All.Spent) {
		t.Errorf("all: got %+v", c.All)
	}
	wants(t, 0, "of 1 job the cost is unknown", "cost", "--addr", countedStack(t))
}

// What a job has cost is split among its agents, and nothing of it is lost or doubled.
func TestByAgentIsASplitOfWhatTheJobsHaveCost(t *testing.T) {
	c := costsOf(t, "--by", "agent")
	var sum makegood.Spent
	for _, row := range c.Rows {
		sum = sum.Plus(row.Spent)
	}
	if sum != c.All.Spent {
		t.Errorf("together the agents have %+v, all jobs %+v", sum, c.All.Spent)
	}
	by := map[string]costRow{}
	for _, row := range c.Rows {
		by[row.Of] = row
	}
	// Three of four attempts of o-1, and three of its four seconds.
	if got := by["bank"]; got.Jobs != 1 || got.Spent.WriteUnits != 9.75 || got.Spent.GBSeconds != 0.125*3/4 {
		t.Errorf("bank: got %+v", got)
	}
	if got := by["stock"]; got.Jobs != 3 || got.Spent.WriteUnits != 30.25 {
		t.Errorf("stock: got %+v", got)
	}
}

func TestByJobTheDearestAreShown(t *testing.T) {
	c := costsOf(t, "--by", "job", "--limit", "1")
	if len(c.Rows) != 1 || c.Rows[0].Of != "o-2" || c.More != 2 || c.All.Jobs != 4 {
		t.Errorf("got %+v", c)
	}
}

// A list of prices of one's own is whole, and of the region that was named.
func TestPricesOfAFileAreTaken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	_, list, _ := ask(t, "cost", "--list")
	dear := file("dear.json", strings.ReplaceAll(strings.ReplaceAll(list, "us-east-1", "moon-1"), "0.625", "625"))
	if c := costsOf(t, "--prices", dear, "--region", "moon-1"); c.Prices.Region != "moon-1" || c.Rows[0].Dollars < 39*625/1e6 {
		t.Errorf("got %+v", c)
	}
	for says, args := range map[string][]string{
		"--region eu-west-1: these are the prices of us-east-1": {"--region", "eu-west-1"},
		"millionWrites is missing":                              {"--prices", file("a.json", `{"region":"r","date":"d"}`)},
		"unknown field":                                         {"--prices", file("b.json", strings.Replace(list, "region", "regoin", 1))},
		"millionWrites is -1":                                   {"--prices", file("c.json", strings.Replace(list, "0.625", "-1", 1))},
		"no such file":                                          {"--prices", filepath.Join(dir, "none.json")},
		"--by \"step\": want one of":                            {"--by", "step"},
		"--limit 0: want at least 1":                            {"--limit", "0"},
	} {
		wants(t, codeUsage, says, append([]string{"cost", "--addr", "127.0.0.1:1"}, args...)...)
	}
}

// An engine in a process asks nothing of AWS: nothing is known, which is not zero.
func TestOfAnEngineInAProcessNothingIsCounted(t *testing.T) {
	url := thrifty(t)
	c, err := client.New(url)
	must(t, err)
	for i := range 2 {
		_, err := c.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: fmt.Sprint("o-", i), Input: json.RawMessage(`{"total":1}`)})
		must(t, err)
	}
	wants(t, 0, "of 2 jobs the cost is unknown: their use was not counted", "cost", "--addr", url)
}

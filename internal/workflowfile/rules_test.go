package workflowfile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// three is a workflow that is right: a, then b, then c, all of which are undone.
func three() makegood.Workflow {
	undo := func() *makegood.Undo { return &makegood.Undo{Action: "un"} }
	return makegood.Workflow{Name: "three", Steps: []makegood.Step{
		{Name: "a", Agent: "x", Undo: undo()},
		{Name: "b", Agent: "x", Undo: undo()},
		{Name: "c", Agent: "x", Undo: undo()},
	}}
}

// broken returns what w breaks of the rules, in a line each: where, and what.
func broken(w makegood.Workflow) string {
	c := newCheck(nil)
	c.rules(w)
	var lines []string
	for _, f := range c.found {
		lines = append(lines, f.path+": "+f.message)
	}
	return strings.Join(lines, "\n")
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func TestARuleThatIsBrokenIsSaidWithItsPlace(t *testing.T) {
	long := strings.Repeat("n", limits.MaxNameBytes+1)
	for _, c := range []struct {
		rule   string
		change func(w *makegood.Workflow)
		want   string
	}{
		{"nothing is wrong", func(*makegood.Workflow) {}, ``},
		{"a name is wanted", func(w *makegood.Workflow) { w.Name = "" }, `name: the name of a workflow is missing: want [a-z][a-z0-9-]{0,62}`},
		{"a workflow's name has dashes", func(w *makegood.Workflow) { w.Name = "a-1" }, ``},
		{"a workflow's name has no underscores", func(w *makegood.Workflow) { w.Name = "a_1" }, `name: "a_1" cannot be the name of a workflow: want [a-z][a-z0-9-]{0,62}`},
		{"a name begins with a letter", func(w *makegood.Workflow) { w.Name = "-a" }, `name: "-a" cannot be the name of a workflow: want [a-z][a-z0-9-]{0,62}`},
		{"a name is no longer than the limit", func(w *makegood.Workflow) { w.Name = long }, `name: the name of a workflow has 64 characters, the limit is 63`},
		{"a name at the limit", func(w *makegood.Workflow) { w.Name = long[1:] }, ``},
		{"a step's name has no dashes", func(w *makegood.Workflow) { w.Steps[2].Name = "c-1" }, `steps[2].name: "c-1" cannot be the name of a step: want [a-z][a-z0-9_]{0,62}`},
		{"a step has a name", func(w *makegood.Workflow) { w.Steps[0].Name = "" }, `steps[0].name: the name of a step is missing: want [a-z][a-z0-9_]{0,62}`},
		{"an agent is wanted", func(w *makegood.Workflow) { w.Steps[0].Agent = "" }, `steps[0].agent: the name of an agent is missing: want [A-Za-z][A-Za-z0-9_-]{0,62}`},
		{"an agent's name", func(w *makegood.Workflow) { w.Steps[0].Agent = "X-1_a" }, ``},
		{"an agent's name has no dots", func(w *makegood.Workflow) { w.Steps[0].Agent = "x.y" }, `steps[0].agent: "x.y" cannot be the name of an agent: want [A-Za-z][A-Za-z0-9_-]{0,62}`},
		{"an action's name", func(w *makegood.Workflow) { w.Steps[0].Action = "do it" }, `steps[0].action: "do it" cannot be the name of an action: want [A-Za-z][A-Za-z0-9_-]{0,62}`},
		{"steps are wanted", func(w *makegood.Workflow) { w.Steps = nil }, `steps: a workflow must have at least one step`},
		{"a step's name is its own", func(w *makegood.Workflow) { w.Steps[2].Name = "a" }, `steps[2].name: a step is called "a" already: step 1`},
		{"what is needed is there", func(w *makegood.Workflow) { w.Steps[1].Needs = []string{"a", "z"} }, `steps[1].needs[1]: no step is called "z": known are a, b, c`},
		{"a step does not need itself", func(w *makegood.Workflow) { w.Steps[1].Needs = []string{"b"} }, `steps[1].needs[0]: step "b" needs itself`},
		{"a step is needed once", func(w *makegood.Workflow) { w.Steps[2].Needs = []string{"a", "b", "a"} }, `steps[2].needs[2]: "a" is needed twice`},
		{"no more is needed than there can be", func(w *makegood.Workflow) { w.Steps[1].Needs = make([]string, 201) }, `steps[1].needs: 201 needs, the limit is 200`},
		{"no circle", func(w *makegood.Workflow) { w.Steps[0].Needs = []string{"c"} }, `steps[1].needs[0]: steps wait for each other in a circle: a -> c -> b -> a`},
		{"a timeout of the job is optional", func(w *makegood.Workflow) { w.Timeout = 0 }, ``},
		{"a timeout of the job is not too short", func(w *makegood.Workflow) { w.Timeout = 9 * makegood.Millisecond }, `timeout: timeout 9ms is out of range: 10ms to 8760h`},
		{"a timeout of the job is not too long", func(w *makegood.Workflow) {
			w.Timeout = makegood.Duration(limits.MaxJobTimeout) + makegood.Millisecond
		}, `timeout: timeout 8760h0m0.001s is out of range: 10ms to 8760h`},
		{"a timeout of the job at the limit", func(w *makegood.Workflow) { w.Timeout = makegood.Duration(limits.MaxJobTimeout) }, ``},
		{"a timeout is not negative", func(w *makegood.Workflow) { w.Timeout = -makegood.Second }, `timeout: timeout -1s is out of range: 10ms to 8760h`},
		{"a duration is whole milliseconds", func(w *makegood.Workflow) { w.Timeout = makegood.Duration(1500*time.Microsecond) * 1000 }, ``},
		{"a duration is no finer", func(w *makegood.Workflow) { w.Timeout = makegood.Second + 1 }, `timeout: timeout 1.000000001s is finer than a millisecond`},
		{"a step's timeout", func(w *makegood.Workflow) { w.Steps[0].Timeout = makegood.Hour + makegood.Second }, `steps[0].timeout: timeout 1h0m1s is over 1h, so the agent must heartbeat: say how often, such as heartbeat: 1m`},
		{"a step's startBy", func(w *makegood.Workflow) { w.Steps[0].StartBy = 73 * makegood.Hour }, `steps[0].startBy: startBy 73h is out of range: 10ms to 72h`},
		{"attempts are not negative", func(w *makegood.Workflow) { w.Steps[0].Retry.Attempts = -1 }, `steps[0].retry.attempts: attempts -1 is out of range: 1 to 100`},
		{"attempts are not too many", func(w *makegood.Workflow) { w.Steps[0].Retry.Attempts = 101 }, `steps[0].retry.attempts: attempts 101 is out of range: 1 to 100`},
		{"attempts at the limit", func(w *makegood.Workflow) { w.Steps[0].Retry.Attempts = 100 }, ``},
		{"a backoff may be a millisecond", func(w *makegood.Workflow) { w.Steps[0].Retry.Backoff = makegood.Millisecond }, ``},
		{"a backoff is not over its maximum", func(w *makegood.Workflow) {
			w.Steps[0].Retry = makegood.Retry{Backoff: makegood.Minute, Max: makegood.Second}
		}, `steps[0].retry.backoff: backoff 1m is over max 1s`},
		{"a backoff alone raises its maximum", func(w *makegood.Workflow) { w.Steps[0].Retry.Backoff = makegood.Hour }, ``},
		{"a backoff has a limit", func(w *makegood.Workflow) { w.Steps[0].Retry.Backoff = 721 * makegood.Hour }, "steps[0].retry.backoff: backoff 721h is out of range: 1ms to 720h\nsteps[0].retry.max: max 721h is out of range: 1ms to 720h"},
		{"stop", func(w *makegood.Workflow) { w.OnFailure = makegood.OnFailure{Action: makegood.FailureStop} }, ``},
		{"wait", func(w *makegood.Workflow) {
			w.OnFailure = makegood.OnFailure{Action: makegood.FailureWait, Wait: makegood.Hour}
		}, ``},
		{"a wait is long enough", func(w *makegood.Workflow) { w.OnFailure = makegood.OnFailure{Action: makegood.FailureWait, Wait: 0} }, `onFailure: wait 0s is out of range: 10ms to 720h`},
		{"only wait waits", func(w *makegood.Workflow) {
			w.OnFailure = makegood.OnFailure{Action: makegood.FailureStop, Wait: makegood.Hour}
		}, `onFailure: stop does not wait: only wait and restart have a duration`},
		{"a word for a failure", func(w *makegood.Workflow) { w.OnFailure = makegood.OnFailure{Action: "panic"} }, `onFailure: "panic" is not one of undo, stop, wait DURATION and restart ROUNDS`},
		{"restart", func(w *makegood.Workflow) { w.OnFailure = restart(2, 0) }, ``},
		{"restart with a wait", func(w *makegood.Workflow) { w.OnFailure = restart(100, makegood.Hour) }, ``},
		{"one round is no restart", func(w *makegood.Workflow) { w.OnFailure = restart(1, 0) }, `onFailure: 1 rounds are out of range: 2 to 100, the first one counted too`},
		{"rounds have a limit", func(w *makegood.Workflow) { w.OnFailure = restart(101, 0) }, `onFailure: 101 rounds are out of range: 2 to 100, the first one counted too`},
		{"the wait of a restart has a limit", func(w *makegood.Workflow) { w.OnFailure = restart(2, 721*makegood.Hour) }, `onFailure: wait 721h is out of range: 10ms to 720h`},
		{"only restart has rounds", func(w *makegood.Workflow) {
			w.OnFailure = makegood.OnFailure{Action: makegood.FailureUndo, Rounds: 3}
		}, `onFailure: undo makes no rounds: only restart has a number of rounds`},
		{"restart needs an undo", func(w *makegood.Workflow) {
			w.OnFailure = restart(2, 0)
			for i := range w.Steps {
				w.Steps[i].Undo = &makegood.Undo{None: true}
			}
		}, `onFailure: restart undoes before it tries again, but no step has an undo`},
		{"undo needs an undo", func(w *makegood.Workflow) {
			w.OnFailure = makegood.OnFailure{Action: makegood.FailureUndo}
			for i := range w.Steps {
				w.Steps[i].Undo = &makegood.Undo{None: true}
			}
		}, `onFailure: undo is wanted, but no step has an undo`},
		{"a step that others follow says undo: none", func(w *makegood.Workflow) { w.Steps[1].Undo = nil }, `steps[1].undo: step "b" has no undo, and others follow it: say how it is undone, or undo: none`},
		{"and then it is right", func(w *makegood.Workflow) { w.Steps[1].Undo = &makegood.Undo{None: true} }, ``},
		{"it is not asked of the last", func(w *makegood.Workflow) { w.Steps[2].Undo = nil }, ``},
		{"nor where nothing is undone", func(w *makegood.Workflow) { w.Steps[0].Undo, w.Steps[1].Undo, w.Steps[2].Undo = nil, nil, nil }, ``},
		{"none is nothing else", func(w *makegood.Workflow) { w.Steps[0].Undo.None = true }, `steps[0].undo: an undo is none or says how, not both`},
		{"not even attempts", func(w *makegood.Workflow) {
			w.Steps[0].Undo = &makegood.Undo{None: true, Retry: makegood.Retry{Attempts: 2}}
		}, `steps[0].undo: an undo is none or says how, not both`},
		{"an undo has an action", func(w *makegood.Workflow) { w.Steps[0].Undo.Action = "" }, `steps[0].undo.action: the action of an undo is missing`},
		{"an undo's own values", func(w *makegood.Workflow) {
			*w.Steps[0].Undo = makegood.Undo{Agent: "!", Action: "?", With: raw(`{`), StartBy: 100 * makegood.Hour, Timeout: 2 * makegood.Hour, Retry: makegood.Retry{Attempts: 500}}
		}, `steps[0].undo.agent: "!" cannot be the name of an agent: want [A-Za-z][A-Za-z0-9_-]{0,62}
steps[0].undo.action: "?" cannot be the name of an action: want [A-Za-z][A-Za-z0-9_-]{0,62}
steps[0].undo.with: not JSON
steps[0].undo.startBy: startBy 100h is out of range: 10ms to 72h
steps[0].undo.timeout: timeout 2h is over 1h, so the agent must heartbeat: say how often, such as heartbeat: 1m
steps[0].undo.retry.attempts: attempts 500 is out of range: 1 to 100`},
		{"what an undo inherits is said once", func(w *makegood.Workflow) { w.Steps[0].Timeout, w.Steps[0].Agent = 2*makegood.Hour, "!" }, `steps[0].agent: "!" cannot be the name of an agent: want [A-Za-z][A-Za-z0-9_-]{0,62}
steps[0].timeout: timeout 2h is over 1h, so the agent must heartbeat: say how often, such as heartbeat: 1m`},
		{"with is JSON", func(w *makegood.Workflow) { w.Steps[0].With = raw(`{"a"`) }, `steps[0].with: not JSON`},
		{"with has a limit", func(w *makegood.Workflow) {
			w.Steps[0].With = raw(`"` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"`)
		}, `steps[0].with: 262146 bytes as JSON, the limit is 262144`},
	} {
		w := three()
		c.change(&w)
		if got := broken(domain.WithDefaults(w)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.rule, got, c.want)
		}
	}
}

// What the request must be stands with the http agent; here it is asked of each step, and of its undo.
func TestTheRequestOfAnHTTPStepAndThatOfItsUndoAreChecked(t *testing.T) {
	const url = `"url": "https://a.example/x"`
	for _, c := range []struct{ with, undo, want string }{
		{``, ``, `steps[0].with: an http step must say its request: with must be an object with a url`},
		{`{` + url + `, "method": "get"}`, ``, `steps[0].with.method: "get" is not a method: want one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{` + url + `}`, `{"url": "https://a.example/undo"}`, ``},
		{`{` + url + `}`, `{"uri": "https://a.example/undo"}`, "steps[0].undo.with.uri: an http request has no \"uri\": known are method, url, headers and body\nsteps[0].undo.with: an http request must have a url"},
		{`{` + url + `}`, `same`, `steps[0].undo.with: an http undo must say its own with: else it repeats the request of the step`},
	} {
		s := makegood.Step{Name: "a", Agent: makegood.HTTPAgent, With: raw(c.with)}
		switch c.undo {
		case "":
		case "same":
			s.Undo = &makegood.Undo{}
		default:
			s.Undo = &makegood.Undo{With: raw(c.undo)}
		}
		if c.with == "" {
			s.With = nil
		}
		w := makegood.Workflow{Name: "w", Steps: []makegood.Step{s}}
		if got := broken(domain.WithDefaults(w)); got != c.want {
			t.Errorf("with %s, undo %s:\n got %s\nwant %s", c.with, c.undo, got, c.want)
		}
	}
}

func TestAWorkflowOfTooManyStepsHasThatOneProblem(t *testing.T) {
	w := makegood.Workflow{Name: "w"}
	for i := range limits.MaxSteps {
		w.Steps = append(w.Steps, makegood.Step{Name: fmt.Sprintf("s%d", i), Agent: "x"})
	}
	if got := broken(domain.WithDefaults(w)); got != "" {
		t.Errorf("%d steps: got %s, want nothing", limits.MaxSteps, got)
	}
	w.Steps = append(w.Steps, makegood.Step{Name: "Bad"})
	if got, want := broken(domain.WithDefaults(w)), "steps: 201 steps, the limit is 200"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Random graphs: there is a circle exactly when steps cannot be taken away one by one, each after
// those that it needs.
func TestACircleIsFoundExactlyWhenThereIsOne(t *testing.T) {
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	circles := 0
	for range 2000 {
		w := makegood.Workflow{Name: "w"}
		n := 1 + random.IntN(7)
		for i := range n {
			s := makegood.Step{Name: fmt.Sprintf("s%d", i), Agent: "x", Needs: []string{}}
			for j := range n {
				if j != i && random.IntN(n+1) == 0 {
					s.Needs = append(s.Needs, fmt.Sprintf("s%d", j))
				}
			}
			w.Steps = append(w.Steps, s)
		}
		found := strings.Contains(broken(w), "circle")
		if want := !sortable(w); found != want {
			t.Fatalf("seed %d: found a circle: %t, want %t, in %+v", seed, found, want, w.Steps)
		} else if want {
			circles++
		}
	}
	if circles < 100 || circles > 1900 {
		t.Errorf("seed %d: %d of 2000 graphs have circles; want many of both kinds", seed, circles)
	}
}

func sortable(w makegood.Workflow) bool {
	taken := map[string]bool{}
	for range w.Steps {
		for _, s := range w.Steps {
			free := true
			for _, need := range s.Needs {
				free = free && taken[need]
			}
			if free {
				taken[s.Name] = true
			}
		}
	}
	return len(taken) == len(w.Steps)
}

func restart(rounds int, wait makegood.Duration) makegood.OnFailure {
	return makegood.OnFailure{Action: makegood.FailureRestart, Rounds: rounds, Wait: wait}
}

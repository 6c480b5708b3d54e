package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// What an engine could only stumble over later is refused when it is opened, in the words of who wrote it.
func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	desk := agent.New("desk", agent.Do("write", func(context.Context, any) (any, error) { return nil, nil }))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listen := func(context.Context, engine.Notice) error { return nil }
	for name, c := range map[string]struct {
		options engine.Options
		want    string
	}{
		"no agent":       {engine.Options{Agents: []agent.Handler{nil}}, "Options.Agents: the agent at 0 is nil"},
		"a nil agent":    {engine.Options{Agents: []agent.Handler{desk, (*agent.Agent)(nil)}}, "Options.Agents: the agent at 1 is nil"},
		"twice":          {engine.Options{Agents: []agent.Handler{desk, desk}}, `Options.Agents: the agent "desk" is given twice`},
		"built in":       {engine.Options{Agents: []agent.Handler{named{desk, "http"}}}, `Options.Agents: "http" is built in`},
		"a bad name":     {engine.Options{Agents: []agent.Handler{named{desk, "a b"}}}, `Options.Agents: "a b" cannot be the name of an agent`},
		"a nil listener": {engine.Options{Notify: engine.Notify{Listeners: map[string]func(context.Context, engine.Notice) error{"shop": nil}}}, `Options.Notify.Listeners: "shop" is nil`},
		"a listener's":   {engine.Options{Notify: engine.Notify{Listeners: map[string]func(context.Context, engine.Notice) error{"Bad Name": listen}}}, `Options.Notify.Listeners: "Bad Name" cannot be the name of`},
		"no such folder": {engine.Options{Workflows: os.DirFS("/nonexistent")}, "Options.Workflows: "},
		"dir is a file":  {engine.Options{Dir: file}, "Options.Dir: "},
		"no webhook":     {engine.Options{Notify: engine.Notify{Alerts: engine.Alerts{PageURL: "https://jobs.example"}}}, "Options.Notify.Alerts.Webhook is empty"},
		"a bad webhook":  {engine.Options{Notify: engine.Notify{Alerts: engine.Alerts{Webhook: "hooks.example/secret"}}}, "Options.Notify.Alerts.Webhook: the URL cannot be read"},
		"a bad page":     {engine.Options{Notify: engine.Notify{Alerts: engine.Alerts{Webhook: "https://hooks.example", PageURL: "jobs.example"}}}, "Options.Notify.Alerts.PageURL: "},
		"told twice": {
			engine.Options{Notify: engine.Notify{Alerts: engine.Alerts{Webhook: "https://hooks.example"}, AgentSilent: func(context.Context, string) error { return nil }}},
			"want one or the other",
		},
		"no concurrency":       {engine.Options{Agents: []agent.Handler{desk}, Concurrency: engine.Concurrency{Agents: map[string]int{"desk": 0}}}, `Options.Concurrency: 0 attempts of agent "desk", want 1 to 10000`},
		"too much concurrency": {engine.Options{Concurrency: engine.Concurrency{All: 10_001}}, "Options.Concurrency: 10001 attempts of all agents, want 1 to 10000"},
		"of no agent":          {engine.Options{Agents: []agent.Handler{desk}, Concurrency: engine.Concurrency{Agents: map[string]int{"dock": 3, "http": 3}}}, `Options.Concurrency: no agent "dock" is among Options.Agents; there are http, desk`},
		"a breaker of none":    {engine.Options{Agents: []agent.Handler{desk}, Breakers: []string{"dock"}}, `a breaker of agent "dock": want one of ["desk"], or * for all`},
		"a breaker of http":    {engine.Options{Agents: []agent.Handler{desk}, Breakers: []string{"http"}}, `a breaker of agent "http": want one of ["desk"], or * for all`},
		"of a nil agent":       {engine.Options{Agents: []agent.Handler{(*agent.Agent)(nil)}, Concurrency: engine.Concurrency{All: -1, Agents: map[string]int{"dock": 3}}}, "Options.Concurrency: -1 attempts"},
		"too high a limit":     {engine.Options{Limits: map[string]makegood.Limit{"http": {Concurrency: 101}}}, "Options.Limits: agent http: "},
		"a limit of no agent":  {engine.Options{Limits: map[string]makegood.Limit{"dock": {Rate: "1/s"}}}, `there is no agent "dock"`},
		"short retention":      {engine.Options{Dir: t.TempDir(), Retention: 1}, "etention"},
	} {
		t.Run(name, func(t *testing.T) {
			eng, err := engine.Open(t.Context(), c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if eng != nil {
				_ = eng.Close()
			}
		})
	}
}

// Open sets the limits that differ from those in the folder: one that stands keeps its time, one that a person has set
// in its place is replaced, and an agent without an entry keeps its limit.
func TestLimitsOfTheOptionsAreSetWhereTheyDiffer(t *testing.T) {
	ctx := api.As(t.Context(), "anna")
	o := engine.Options{Dir: t.TempDir(), Outside: []engine.Outside{{Name: "desk"}}, Limits: map[string]makegood.Limit{
		"desk": {Rate: "90/m"}, "http": {Concurrency: 3},
	}}
	opened := func() (eng *engine.Engine, limits map[string]makegood.Hold) {
		t.Helper()
		eng, err := engine.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		all, err := eng.ListHolds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		limits = map[string]makegood.Hold{}
		for _, h := range all {
			limits[h.Name] = h
		}
		return eng, limits
	}
	eng, first := opened()
	if desk, http := first["desk"], first["http"]; desk.Rate != "90/m" || desk.Burst != 2 || desk.By != "engine" || http.Limit != 3 {
		t.Errorf("got %+v, want both limits", first)
	}
	if _, err := eng.LimitAgent(ctx, "http", makegood.Limit{Concurrency: 1}, "INC-4711"); err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng, second := opened()
	if !reflect.DeepEqual(second["desk"], first["desk"]) || second["http"].Limit != 3 || second["http"].By != "engine" {
		t.Errorf("got %+v after %+v, want that of desk as it was and that of http set again", second, first)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	o.Limits = map[string]makegood.Limit{"desk": {}}
	for range 2 { // The second time there is none to take away.
		eng, third := opened()
		if len(third) != 1 || !reflect.DeepEqual(third["http"], second["http"]) {
			t.Errorf("got %+v after %+v, want that of http alone, as it was", third, second)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// named is an agent under another name.
type named struct {
	agent.Handler
	name string
}

func (n named) Name() string { return n.name }

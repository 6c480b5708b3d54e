package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/agent"
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

// named is an agent under another name.
type named struct {
	agent.Handler
	name string
}

func (n named) Name() string { return n.name }

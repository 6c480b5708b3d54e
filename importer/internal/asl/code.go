package asl

import (
	"bytes"
	_ "embed" // for agents.go.tmpl
	"fmt"
	"go/format"
	"go/token"
	"slices"
	"strings"
	"text/template"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

//go:embed agents.go.tmpl
var agentsCode string

// builtIn reports whether an agent needs no code.
func builtIn(name string) bool {
	return name == makegood.HTTPAgent || name == makegood.AgentWorkflow || domain.WaitsByItself(name)
}

// agents are the names of those that need code.
func agents(steps []*step) []string {
	var all []string
	for _, s := range steps {
		for _, name := range []string{s.agent, s.undoAgent()} {
			if name != "" && !builtIn(name) && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (s *step) undoAgent() string {
	if s.undo == nil {
		return ""
	}
	return s.undo.agent
}

// agentCode is one agent as its code says it.
type agentCode struct {
	Name, Variable string
	Actions        []*actionCode
}

// actionCode is one action: a function, and what is said of it.
type actionCode struct {
	Name, Func string
	// About says what it stands for.
	About []string
	// Do is the kind of the stub. Wait is its waiting time, and Missing names the code that a person has to write.
	Do            stubKind
	Wait, Missing string
}

// Code is the source of the agents, of a package of this name. It is formatted, and compiles.
func (i *Imported) Code(packageName string) ([]byte, error) {
	parsed, err := template.New("agents").Delims("<<", ">>").Parse(agentsCode)
	if err != nil {
		return nil, err
	}
	agents := i.agentCodes()
	has := map[stubKind]bool{}
	for _, a := range agents {
		for _, c := range a.Actions {
			has[c.Do] = true
			has[stubMissing] = has[stubMissing] || c.Missing != ""
		}
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]any{
		"Package": packageName, "Workflow": i.Workflow, "Agents": agents,
		"Waits": has[stubWait], "Fails": has[stubFail], "Missing": has[stubMissing], "Batches": has[stubBatch],
	})
	if err != nil {
		return nil, err
	}
	code, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the code of the agents is no Go, which is a mistake of makegood-import: %w", err)
	}
	return code, nil
}

func (i *Imported) agentCodes() []*agentCode {
	taken := map[string]bool{}
	for _, word := range []string{"agent", "context", "errors", "fmt", "json", "time", "makegood", "Agents", "Files", "failure", "missing", "batched", "batchOf"} {
		taken[word] = true
	}
	var all []*agentCode
	for _, name := range i.Agents {
		a := &agentCode{Name: name, Variable: goName(name, taken)}
		for _, s := range i.steps {
			if s.agent == name {
				a.action(s.action, taken).take(s)
			}
		}
		for _, s := range i.steps {
			if s.undoAgent() == name {
				a.undo(s, taken)
			}
		}
		all = append(all, a)
	}
	return all
}

// action returns the action of a name, and adds it if it is new.
func (a *agentCode) action(name string, taken map[string]bool) *actionCode {
	if i := slices.IndexFunc(a.Actions, func(c *actionCode) bool { return c.Name == name }); i >= 0 {
		return a.Actions[i]
	}
	c := &actionCode{Name: name, Func: goName(name, taken), Do: stubEcho}
	a.Actions = append(a.Actions, c)
	return c
}

// take takes over what is said of a step.
func (c *actionCode) take(s *step) {
	of := "It does the step " + s.name
	if s.do == stubGive {
		of = "It gives what an item of a Map gives, as the output of its job: that of the last step, " + s.name
	}
	if s.state != nil {
		of += ", which was the " + s.state.kind + " " + oneLine(s.state.name)
	}
	c.say(of + ".")
	for _, text := range s.about {
		c.say(oneLine(text))
	}
	if s.do != stubEcho {
		c.Do, c.Wait, c.Missing = s.do, s.wait, oneLine(s.missing)
	}
}

func (c *actionCode) say(text string) {
	if !slices.Contains(c.About, text) {
		c.About = append(c.About, text)
	}
}

func (a *agentCode) undo(s *step, taken map[string]bool) {
	known := slices.ContainsFunc(a.Actions, func(c *actionCode) bool { return c.Name == s.undo.action })
	c := a.action(s.undo.action, taken)
	if !known {
		c.Do = stubUndo
	}
	if s.undo.agent == agentByHand {
		c.Missing = "the undo " + oneLine(s.undo.state.name)
	}
	if s.undo.state == nil {
		c.say("The state machine did not undo the step " + s.name + ": this does nothing. Without an undo an item that fails would wait for a person (docs/children.md).")
		return
	}
	c.say("It undoes the step " + s.name + ", as the Task " + oneLine(s.undo.state.name) + " did.")
}

// predeclared names would hide those that the code uses.
var predeclared = []string{"error", "nil", "string", "init", "main", "any", "ctx", "in", "done", "items", "i", "err"}

// goName makes a name of Go that nothing else has.
func goName(name string, taken map[string]bool) string {
	var out strings.Builder
	for i, word := range strings.Split(snake(name), "_") {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		out.WriteString(word)
	}
	base := out.String()
	if base == "" {
		base = "do"
	}
	wanted := base
	for i := 2; taken[wanted] || token.IsKeyword(wanted) || slices.Contains(predeclared, wanted); i++ {
		wanted = fmt.Sprintf("%s%d", base, i)
	}
	taken[wanted] = true
	return wanted
}

package workflowfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Wait is the evaluated with of an agent that waits by itself.
type Wait struct {
	// Until is when it ends; zero: For is how long it waits.
	Until time.Time
	For   makegood.Duration
	// Question is the text of an approval, shown to those asked.
	Question string
}

// waitFields are the members of such a with.
type waitFields struct {
	For      *string         `json:"for"`
	Until    *string         `json:"until"`
	Choices  json.RawMessage `json:"choices"`
	Question json.RawMessage `json:"question"`
}

// WaitOf reads the with of an agent that waits by itself.
func WaitOf(agent string, with json.RawMessage) (Wait, error) {
	var f waitFields
	if err := json.Unmarshal(with, &f); err != nil {
		return Wait{}, errors.New("with: for and until must be texts")
	}
	w, err := f.time(agent)
	if err != nil {
		return Wait{}, err
	}
	if f.Question != nil && json.Unmarshal(f.Question, &w.Question) != nil {
		w.Question = string(f.Question)
	}
	if len(w.Question) > limits.MaxQuestionBytes {
		return Wait{}, fmt.Errorf("with.question: %d bytes, the limit is %d", len(w.Question), limits.MaxQuestionBytes)
	}
	return w, nil
}

func (f waitFields) time(agent string) (w Wait, err error) {
	switch {
	case f.For != nil:
		if w.For, err = waitFor(*f.For); err != nil {
			return w, fmt.Errorf("with.for: %w", err)
		}
	case f.Until != nil:
		if w.Until, err = waitUntil(*f.Until); err != nil {
			return w, fmt.Errorf("with.until: %w", err)
		}
	case agent == makegood.AgentApproval:
		w.For = domain.DefaultApproval
	default:
		return w, errors.New("with says neither for nor until")
	}
	return w, nil
}

func waitFor(text string) (makegood.Duration, error) {
	d, err := makegood.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if d.Std() > makegood.MaxWait {
		return 0, fmt.Errorf("%s is out of range: at most %s", short(d), short(makegood.Duration(makegood.MaxWait)))
	}
	return d, nil
}

func waitUntil(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time: want RFC 3339, such as 2026-12-24T18:00:00Z", clip(text))
	}
	return domain.Instant(t), nil
}

// waits checks the with of an agent that waits by itself. Values with expressions are checked once evaluated.
func (r rules) waits(path, agent string, with json.RawMessage) {
	var members map[string]json.RawMessage
	if with == nil || json.Unmarshal(with, &members) != nil || members == nil {
		r.add(path, "agent %s is missing its with: %s", agent, waitExample(agent))
		return
	}
	known := []string{"for", "until"}
	if agent == makegood.AgentApproval {
		known = append(known, "choices", "question", "why")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			r.add(inside(path, name), "agent %s has no %q%s", agent, name, suggest(name, known))
		}
	}
	r.waitTime(path, agent, members)
	if agent == makegood.AgentApproval {
		r.choices(path+".choices", members["choices"])
		r.why(path+".why", members["why"], choicesOf(with))
	}
}

func waitExample(agent string) string {
	if agent == makegood.AgentApproval {
		return "{choices: [approve, reject]}"
	}
	return `{for: 3h} or {until: "${ .input.departure }"}`
}

// waitTime checks for and until.
func (r rules) waitTime(path, agent string, members map[string]json.RawMessage) {
	length, hasFor := members["for"]
	until, hasUntil := members["until"]
	switch {
	case hasFor && hasUntil:
		r.add(path, "with says both for and until: leave one out")
	case !hasFor && !hasUntil && agent == makegood.AgentWait:
		r.add(path, "with says neither for nor until: %s", waitExample(agent))
	}
	r.constantText(path+".for", length, func(text string) error { _, err := waitFor(text); return err })
	r.constantText(path+".until", until, func(text string) error { _, err := waitUntil(text); return err })
}

// constantText checks a text unless it holds an expression, and that it is one.
func (r rules) constantText(path string, value json.RawMessage, check func(text string) error) {
	var text string
	switch {
	case value == nil:
	case json.Unmarshal(value, &text) != nil:
		r.add(path, "must be a text, got %s", clip(string(value)))
	case strings.Contains(text, "${"):
	case check(text) != nil:
		r.add(path, "%v", check(text))
	}
}

// choices checks the answers of an approval. They are constants, so that an answer can be checked without evaluation.
func (r rules) choices(path string, value json.RawMessage) {
	var choices []string
	switch {
	case value == nil:
		r.add(path, "an approval must say which answers it takes, such as [approve, reject]")
		return
	case json.Unmarshal(value, &choices) != nil:
		r.add(path, "must be a list of texts, such as [approve, reject], got %s", clip(string(value)))
		return
	case len(choices) == 0 || len(choices) > limits.MaxChoices:
		r.add(path, "%d choices are out of range: 1 to %d", len(choices), limits.MaxChoices)
		return
	}
	for i, choice := range choices {
		place := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case choice == "" || len(choice) > limits.MaxChoiceBytes:
			r.add(place, "a choice of %d bytes is out of range: 1 to %d", len(choice), limits.MaxChoiceBytes)
		case strings.Contains(choice, "${"):
			r.add(place, "a choice cannot be an expression: answers are checked against it")
		case slices.Index(choices, choice) < i:
			r.add(place, "%q is there twice", choice)
		}
	}
}

// remind checks that reminders come one after the other.
func (r rules) remind(path string, w makegood.WaitRules, i int) {
	if i > 0 && w.Remind[i] <= w.Remind[i-1] {
		r.add(path, "remind %s is not after the one before it, %s", short(w.Remind[i]), short(w.Remind[i-1]))
	}
}

// onTimeout checks the meaning of a deadline of an agent's wait.
func (r rules) onTimeout(path, agent string, o *makegood.OnTimeout) {
	switch {
	case o == nil:
	case agent == makegood.AgentWait:
		r.add(path, "agent wait ends at its time: it has no other timeout")
	default:
		onTimeoutKind(o).check(r, path)
	}
}

// idleTimes warns of useless times: a step that waits by itself has no agent at work. w is as it was written; a stored
// definition has its defaults.
func (c *check) idleTimes(w makegood.Workflow) {
	if c.stored {
		return
	}
	for i, s := range w.Steps {
		if domain.GetsTasks(s.Agent) {
			continue
		}
		instead := "for in with says how long it waits"
		if s.Agent == makegood.AgentWorkflow {
			instead = "give its workflow a timeout"
		}
		for _, of := range []struct {
			name string
			is   makegood.Duration
		}{{"timeout", s.Timeout}, {"startBy", s.StartBy}, {"heartbeat", s.Heartbeat}} {
			if of.is != 0 {
				c.doubt(fmt.Sprintf("steps[%d].%s", i, of.name), "%s does not hold for agent %s, which works on no task: %s", of.name, s.Agent, instead)
			}
		}
	}
}

// waitsByItself reports whether a step, or its undo, has no task.
func waitsByItself(s makegood.Step) bool {
	return domain.WaitsByItself(s.Agent) || domain.CanUndo(s) && domain.WaitsByItself(s.Undo.Agent)
}

// CheckAsked refuses a workflow that asks a name that is not registered: the question would reach no person.
func (c *Compiled) CheckAsked(registered []string) error {
	for _, s := range c.Workflow.Steps {
		for _, name := range askedBy(s) {
			if !slices.Contains(registered, name) {
				return fmt.Errorf("workflow %s, step %s: no receiver is registered as %q, which is asked: register it (makegood dev --reply %s=URL, "+
					"engine.Options.Notify.Questions, a reply queue of the stack); registered are %q", c.Workflow.Name, s.Name, name, name, registered)
			}
		}
	}
	return nil
}

// Asked lists the names that a workflow asks, each once, in the order of its steps.
func (c *Compiled) Asked() []string { return c.each(askedBy) }

// askedBy lists the names that a step asks, and its undo.
func askedBy(s makegood.Step) (names []string) {
	s = domain.ItemOf(s)
	rules := []*makegood.WaitRules{s.Waiting}
	if domain.CanUndo(s) {
		rules = append(rules, s.Undo.Waiting)
	}
	for _, w := range rules {
		if w == nil {
			continue
		}
		names = append(names, w.Ask...)
		if w.Escalate != nil {
			names = append(names, w.Escalate.Ask...)
		}
	}
	return names
}

func (r reader) onTimeout(n *yaml.Node, path string) *makegood.OnTimeout {
	if kindOf(n) == kindText {
		if text := r.text(n, path); text != "fail" && text != "" {
			r.wrong(path, "%q is not what a timeout can mean: want fail, or a mapping such as {output: {answer: reject}}", text)
		}
		return nil
	}
	var o makegood.OnTimeout
	onTimeoutKind(&o).read(r, n, path)
	if o.Output == nil && !r.spoiled[path+".output"] {
		r.wrong(path, "onTimeout says no output: want fail, or a mapping such as {output: null}")
	}
	return &o
}

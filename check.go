package makegood

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// HTTPAgent is the agent that is built in.
const HTTPAgent = "http"

// Problem is something that is wrong with a workflow.
type Problem struct {
	// Path says where, by the names of the workflow file: "steps[2].needs[0]".
	Path string
	// Message says what is wrong, and the limit.
	Message string
}

// String writes the place and the message.
func (p Problem) String() string { return p.Path + ": " + p.Message }

// Problems lists all that is wrong with w, which came through WithDefaults, as far as it can be told
// without reading expressions. The order depends on w alone; none means that nothing is wrong.
func (w Workflow) Problems() []Problem {
	c := checker{workflow: w, first: map[string]int{}, followed: map[string]bool{}}
	c.head()
	if len(w.Steps) > MaxSteps {
		// A file of so many steps is not meant seriously, and its other problems would fill the screen.
		return c.problems
	}
	for i, s := range w.Steps {
		if _, known := c.first[s.Name]; !known {
			c.first[s.Name] = i
		}
		for _, need := range s.Needs {
			c.followed[need] = true
		}
	}
	for i, s := range w.Steps {
		c.step(i, s)
	}
	c.circles()
	return c.problems
}

// checker collects the problems of one workflow.
type checker struct {
	workflow Workflow
	// first is where each step's name stands first; followed are the names that a step needs.
	first    map[string]int
	followed map[string]bool
	problems []Problem
}

func (c *checker) add(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) head() {
	w := c.workflow
	c.name("name", WorkflowName, w.Name)
	if w.Timeout != 0 {
		c.duration("timeout", "timeout", w.Timeout, MinTimeout, MaxJobTimeout)
	}
	c.onFailure(w.OnFailure)
	switch n := len(w.Steps); {
	case n == 0:
		c.add("steps", "a workflow must have at least one step")
	case n > MaxSteps:
		c.add("steps", "%d steps, the limit is %d", n, MaxSteps)
	}
}

func (c *checker) onFailure(o OnFailure) {
	switch {
	case o.Action == FailureWait:
		c.duration("onFailure", "wait", o.Wait, MinTimeout, MaxBackoff)
	case o.Action != FailureUndo && o.Action != FailureStop:
		c.add("onFailure", "%q is not one of undo, stop and wait DURATION", o.Action)
	case o.Wait != 0:
		c.add("onFailure", "%s does not wait: only wait has a duration", o.Action)
	case o.Action == FailureUndo && !c.workflow.HasUndo():
		c.add("onFailure", "undo is wanted, but no step has an undo")
	}
}

func (c *checker) name(path string, of NameOf, name string) {
	if err := of.Check(name); err != nil {
		c.add(path, "%v", err)
	}
}

func (c *checker) duration(path, name string, d Duration, least, most time.Duration) {
	switch {
	case d.Std()%time.Millisecond != 0:
		c.add(path, "%s %s is finer than a millisecond", name, d)
	case d.Std() < least || d.Std() > most:
		c.add(path, "%s %s is out of range: %s to %s", name, short(d), short(Duration(least)), short(Duration(most)))
	}
}

// short writes a duration without the zeros at its end: 1h, not 1h0m0s.
func short(d Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (c *checker) step(i int, s Step) {
	path := fmt.Sprintf("steps[%d]", i)
	c.name(path+".name", StepName, s.Name)
	if first := c.first[s.Name]; first != i && s.Name != "" {
		c.add(path+".name", "a step is called %q already: step %d", s.Name, first+1)
	}
	c.name(path+".agent", AgentName, s.Agent)
	if s.Action != s.Name {
		// A good name of a step is a good one of an action, and of a bad one enough was said.
		c.name(path+".action", ActionName, s.Action)
	}
	c.needs(path, s)
	c.with(path+".with", s.Agent, s.With)
	c.duration(path+".startBy", "startBy", s.StartBy, MinTimeout, MaxStartBy)
	c.duration(path+".timeout", "timeout", s.Timeout, MinTimeout, MaxTimeout)
	c.retry(path+".retry", s.Retry)
	c.undo(path+".undo", s)
}

func (c *checker) retry(path string, r Retry) {
	if r.Attempts < 1 || r.Attempts > MaxAttempts {
		c.add(path+".attempts", "attempts %d is out of range: 1 to %d", r.Attempts, MaxAttempts)
	}
	c.duration(path+".backoff", "backoff", r.Backoff, time.Millisecond, MaxBackoff)
	c.duration(path+".max", "max", r.Max, time.Millisecond, MaxBackoff)
	if r.Backoff > r.Max && r.Max > 0 {
		c.add(path+".backoff", "backoff %s is over max %s", short(r.Backoff), short(r.Max))
	}
}

func (c *checker) needs(path string, s Step) {
	if len(s.Needs) > MaxSteps {
		c.add(path+".needs", "%d needs, the limit is %d", len(s.Needs), MaxSteps)
		return
	}
	for j, need := range s.Needs {
		place := fmt.Sprintf("%s.needs[%d]", path, j)
		_, known := c.first[need]
		switch {
		case need == s.Name:
			c.add(place, "step %q needs itself", s.Name)
		case slices.Index(s.Needs, need) < j:
			c.add(place, "%q is needed twice", need)
		case !known:
			c.add(place, "no step is called %q: known are %s", need, c.known())
		}
	}
}

// known lists the names of the steps, not too many of them.
func (c *checker) known() string {
	const most = 10
	var names []string
	for _, s := range c.workflow.Steps {
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (c *checker) undo(path string, s Step) {
	switch u := s.Undo; {
	case u == nil:
		if c.workflow.HasUndo() && c.followed[s.Name] {
			c.add(path, "step %q has no undo, and others follow it: say how it is undone, or undo: none", s.Name)
		}
	case u.None:
		if u.Agent+u.Action != "" || u.With != nil || u.StartBy != 0 || u.Timeout != 0 || u.Retry != (Retry{}) {
			c.add(path, "an undo is none or says how, not both")
		}
	default:
		c.undoing(path, s, *u)
	}
}

// undoing checks an undo that does something. What it inherited was checked with its step.
func (c *checker) undoing(path string, s Step, u Undo) {
	if u.Agent != s.Agent {
		c.name(path+".agent", AgentName, u.Agent)
	}
	switch {
	case u.Action == "" && u.Agent != HTTPAgent:
		c.add(path+".action", "the action of an undo is missing")
	case u.Action != "":
		c.name(path+".action", ActionName, u.Action)
	}
	same := string(u.With) == string(s.With)
	switch {
	case same && u.Agent == HTTPAgent:
		c.add(path+".with", "an http undo must say its own with: else it repeats the request of the step")
	case !same:
		c.with(path+".with", u.Agent, u.With)
	}
	if u.StartBy != s.StartBy {
		c.duration(path+".startBy", "startBy", u.StartBy, MinTimeout, MaxStartBy)
	}
	if u.Timeout != s.Timeout {
		c.duration(path+".timeout", "timeout", u.Timeout, MinTimeout, MaxTimeout)
	}
	if u.Retry != s.Retry {
		c.retry(path+".retry", u.Retry)
	}
}

func (c *checker) with(path, agent string, with json.RawMessage) {
	switch {
	case len(with) > MaxPayloadBytes:
		c.add(path, "%d bytes as JSON, the limit is %d", len(with), MaxPayloadBytes)
	case with != nil && !json.Valid(with):
		c.add(path, "not JSON")
	case agent == HTTPAgent:
		c.request(path, with)
	}
}

// circles looks for steps that wait for each other, depth first, and names one circle of each start.
func (c *checker) circles() {
	done := map[string]bool{}
	for _, s := range c.workflow.Steps {
		c.follow(s.Name, nil, done)
	}
}

// follow goes down from name, which trail led to, and reports whether it came back to the trail.
func (c *checker) follow(name string, trail []string, done map[string]bool) bool {
	i, known := c.first[name]
	if !known || done[name] {
		return false
	}
	done[name] = true
	trail = append(trail, name)
	for j, need := range c.workflow.Steps[i].Needs {
		if need == name {
			continue
		}
		if at := slices.Index(trail, need); at >= 0 {
			circle := strings.Join(append(slices.Clone(trail[at:]), need), " -> ")
			c.add(fmt.Sprintf("steps[%d].needs[%d]", i, j), "steps wait for each other in a circle: %s", circle)
			return true
		}
		if c.follow(need, trail, done) {
			return true
		}
	}
	return false
}

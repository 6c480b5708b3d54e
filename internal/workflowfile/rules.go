package workflowfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpagent/httprules"
	"github.com/makegood-dev/makegood/internal/limits"
)

// rules check one complete workflow against every rule that needs neither its expressions nor the linked agents.
// limits.NameOf limits names, the limits of makegood limit amounts.
type rules struct {
	*check
	workflow makegood.Workflow
	// first is where each step's name stands first; followed are the names that a step needs.
	first    map[string]int
	followed map[string]bool
}

// rules adds the violations in w. The order depends on w alone.
func (c *check) rules(w makegood.Workflow) {
	r := rules{check: c, workflow: w, first: map[string]int{}, followed: map[string]bool{}}
	r.head()
	if len(w.Steps) > limits.MaxSteps {
		// A file of so many steps is not meant seriously, and its other problems would fill the screen.
		return
	}
	for i, s := range w.Steps {
		if _, known := r.first[s.Name]; !known {
			r.first[s.Name] = i
		}
		for _, before := range domain.Before(w, s) {
			r.followed[before] = true
		}
	}
	for i, s := range w.Steps {
		r.step(i, s)
	}
	r.circles()
}

func (r rules) head() {
	w := r.workflow
	r.name("name", limits.WorkflowName, w.Name)
	if w.Timeout != 0 {
		r.duration("timeout", "timeout", w.Timeout, limits.MinTimeout, limits.MaxJobTimeout)
	}
	if w.Expect != 0 {
		r.duration("expect", "expect", w.Expect, limits.MinTimeout, limits.MaxJobTimeout)
	}
	if w.Timeout > 0 && w.Expect >= w.Timeout {
		r.add("expect", "expect %s is not below timeout %s: nobody would hear of it before the job is given up", short(w.Expect), short(w.Timeout))
	}
	r.onFailure(w.OnFailure)
	switch n := len(w.Steps); {
	case n == 0:
		r.add("steps", "a workflow must have at least one step")
	case n > limits.MaxSteps:
		r.add("steps", "%d steps, the limit is %d", n, limits.MaxSteps)
	}
}

func (r rules) onFailure(o makegood.OnFailure) {
	switch {
	case o.Action == makegood.FailureRestart:
		r.restart(o)
	case o.Rounds != 0:
		r.add("onFailure", "%s makes no rounds: only restart has a number of them", o.Action)
	case o.Action == makegood.FailureWait:
		r.duration("onFailure", "wait", o.Wait, limits.MinTimeout, limits.MaxBackoff)
	case o.Action != makegood.FailureUndo && o.Action != makegood.FailureStop:
		r.add("onFailure", "%q is not one of undo, stop, wait DURATION and restart ROUNDS", o.Action)
	case o.Wait != 0:
		r.add("onFailure", "%s does not wait: only wait and restart have a duration", o.Action)
	case o.Action == makegood.FailureUndo && !domain.HasUndo(r.workflow):
		r.add("onFailure", "undo is wanted, but no step has an undo")
	}
}

// restart checks an onFailure that undoes and tries again.
func (r rules) restart(o makegood.OnFailure) {
	r.level = max(r.level, levelRounds)
	if o.Rounds < 2 || o.Rounds > limits.MaxRounds {
		r.add("onFailure", "%d rounds are out of range: 2 to %d, the first one counted too", o.Rounds, limits.MaxRounds)
	}
	r.duration("onFailure", "wait", o.Wait, limits.MinTimeout, limits.MaxBackoff)
	if !domain.HasUndo(r.workflow) {
		r.add("onFailure", "restart undoes before it tries again, but no step has an undo")
	}
}

func (r rules) name(path string, of limits.NameOf, name string) {
	if err := of.Check(name); err != nil {
		r.add(path, "%v", err)
	}
}

func (r rules) duration(path, name string, d makegood.Duration, least, most time.Duration) {
	switch {
	case d.Std()%time.Millisecond != 0:
		r.add(path, "%s %s is finer than a millisecond", name, d)
	case d.Std() < least || d.Std() > most:
		r.add(path, "%s %s is out of range: %s to %s", name, short(d), short(makegood.Duration(least)), short(makegood.Duration(most)))
	}
}

// short writes a duration without the zeros at its end: 1h, not 1h0m0s.
func short(d makegood.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (r rules) step(i int, s makegood.Step) {
	path := stepPath(i)
	r.name(path+".name", limits.StepName, s.Name)
	if first := r.first[s.Name]; first != i && s.Name != "" {
		r.add(path+".name", "a step is called %q already: step %d", s.Name, first+1)
	}
	r.name(path+".agent", limits.AgentName, s.Agent)
	if s.Action != s.Name {
		// A good name of a step is a good one of an action, and of a bad one enough was said.
		r.name(path+".action", limits.ActionName, s.Action)
	}
	r.needs(path, s)
	r.anyOf(path, s)
	r.only(path, s)
	r.onError(path+".onError", s)
	r.onAnswer(path+".onAnswer", s)
	r.repeat(path+".repeat", s)
	r.with(path+".with", s.Agent, s.With)
	r.duration(path+".startBy", "startBy", s.StartBy, limits.MinTimeout, limits.MaxStartBy)
	r.lasts(path, lasting{s.Agent, s.Timeout, s.Heartbeat, s.Shared})
	r.inline(path+".inline", s)
	r.retry(path+".retry", s.Retry)
	r.waiting(path+".waiting", s.Agent, s.Waiting)
	r.undo(path+".undo", s)
	if waitsByItself(s) {
		r.level = max(r.level, levelWaits)
	}
}

// inline checks a step that is to run in the process which decides.
func (r rules) inline(path string, s makegood.Step) {
	switch {
	case !s.Inline:
	case domain.WaitsByItself(s.Agent):
		r.add(path, "the agent %s does not run: a step that waits by itself cannot be inline", s.Agent)
	case s.Heartbeat > 0 || domain.CanUndo(s) && s.Undo.Heartbeat > 0:
		r.add(path, "a step with a heartbeat takes long: run it by the queue of its agent, without inline")
	}
}

// lasting has the fields that limit the duration of an attempt.
type lasting struct {
	agent              string
	timeout, heartbeat makegood.Duration
	shared             bool
}

// lasts checks how long an attempt may take, and be silent.
func (r rules) lasts(path string, l lasting) {
	if l.heartbeat == 0 {
		if over := l.timeout.Std(); over > limits.MaxTimeout && over <= limits.MaxClaim {
			r.add(path+".timeout", "timeout %s is over %s, so the agent must heartbeat: say how often, such as heartbeat: 1m",
				short(l.timeout), short(makegood.Duration(limits.MaxTimeout)))
			return
		}
		r.duration(path+".timeout", "timeout", l.timeout, limits.MinTimeout, limits.MaxTimeout)
		return
	}
	heartbeat := path + ".heartbeat"
	r.duration(heartbeat, "heartbeat", l.heartbeat, limits.MinTimeout, limits.MaxTimeout)
	r.duration(path+".timeout", "timeout", l.timeout, limits.MinTimeout, limits.MaxClaim)
	switch {
	case l.agent == makegood.HTTPAgent:
		r.add(heartbeat, "the agent http makes one request, and does not heartbeat")
	case domain.WaitsByItself(l.agent):
		r.add(heartbeat, "nothing is sent to the agent %s, so nobody heartbeats", l.agent)
	case l.shared:
		r.add(heartbeat, "nobody claims what is not exclusive, so there is nothing that a heartbeat could move")
	case l.heartbeat > l.timeout:
		r.add(heartbeat, "heartbeat %s is over timeout %s", short(l.heartbeat), short(l.timeout))
	}
}

func (r rules) retry(path string, retry makegood.Retry) {
	r.retryEnds(path, retry)
	r.retryWaits(path, retry)
}

func (r rules) retryEnds(path string, retry makegood.Retry) {
	r.attempts(path+".attempts", retry.Attempts, strconv.Itoa(retry.Attempts))
	if retry.For != 0 {
		r.duration(path+".for", "for", retry.For, time.Millisecond, limits.MaxRetryFor)
	}
	if retry.Attempts == limits.MaxAttempts && retry.Max > 0 && retry.For > retry.Max*limits.RetryPaces {
		r.add(path+".for", "for %s at waits of at most %s may take more than %d attempts: say max: %s, or how many attempts at most",
			short(retry.For), short(retry.Max), limits.MaxAttempts, short(retry.For/limits.RetryPaces))
	}
}

func (r rules) retryWaits(path string, retry makegood.Retry) {
	r.duration(path+".backoff", "backoff", retry.Backoff, time.Millisecond, limits.MaxBackoff)
	r.duration(path+".max", "max", retry.Max, time.Millisecond, limits.MaxBackoff)
	if retry.Backoff > retry.Max && retry.Max > 0 {
		r.add(path+".backoff", "backoff %s is over max %s", short(retry.Backoff), short(retry.Max))
	}
}

// attempts checks a number of attempts, which was written so.
func (c *check) attempts(path string, attempts int, written string) {
	if attempts < 1 || attempts > limits.MaxAttempts {
		c.add(path, "attempts %s is out of range: 1 to %d", written, limits.MaxAttempts)
	}
}

func (r rules) needs(path string, s makegood.Step) {
	if len(s.Needs) > limits.MaxSteps {
		r.add(path+".needs", "%d needs, the limit is %d", len(s.Needs), limits.MaxSteps)
		return
	}
	for j, need := range s.Needs {
		place := fmt.Sprintf("%s.needs[%d]", path, j)
		_, known := r.first[need]
		switch {
		case need == s.Name:
			r.add(place, "step %q needs itself", s.Name)
		case slices.Index(s.Needs, need) < j:
			r.add(place, "%q is needed twice", need)
		case !known:
			r.add(place, "no step is called %q: known are %s", need, r.known())
		}
	}
}

// known lists the names of the steps, up to a limit.
func (r rules) known() string {
	const most = 10
	var names []string
	for _, s := range r.workflow.Steps {
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (r rules) undo(path string, s makegood.Step) {
	switch u := s.Undo; {
	case u == nil:
		if domain.HasUndo(r.workflow) && r.followed[s.Name] && !domain.WaitsByItself(s.Agent) {
			r.add(path, "step %q has no undo, and others follow it: say how it is undone, or undo: none", s.Name)
		}
	case u.None:
		if u.Agent+u.Action != "" || u.With != nil || u.StartBy != 0 || u.Timeout != 0 || u.Heartbeat != 0 || u.Waiting != nil || u.Retry != (makegood.Retry{}) {
			r.add(path, "an undo is none or says how, not both")
		}
	default:
		r.undoing(path, s, *u)
	}
}

// undoing checks an undo with an action. Inherited values were checked with its step.
func (r rules) undoing(path string, s makegood.Step, u makegood.Undo) {
	if u.Agent != s.Agent {
		r.name(path+".agent", limits.AgentName, u.Agent)
	}
	switch {
	case u.Action == "" && u.Agent != makegood.HTTPAgent:
		r.add(path+".action", "the action of an undo is missing")
	case u.Action != "":
		r.name(path+".action", limits.ActionName, u.Action)
	}
	same := string(u.With) == string(s.With)
	switch {
	case same && u.Agent == makegood.HTTPAgent:
		r.add(path+".with", "an http undo must say its own with: else it repeats the request of the step")
	case !same:
		r.with(path+".with", u.Agent, u.With)
	}
	if u.StartBy != s.StartBy {
		r.duration(path+".startBy", "startBy", u.StartBy, limits.MinTimeout, limits.MaxStartBy)
	}
	if own := (lasting{u.Agent, u.Timeout, u.Heartbeat, s.Shared}); own != (lasting{s.Agent, s.Timeout, s.Heartbeat, s.Shared}) {
		r.lasts(path, own)
	}
	if u.Retry.Attempts != s.Retry.Attempts || u.Retry.For != s.Retry.For {
		r.retryEnds(path+".retry", u.Retry)
	}
	if u.Retry.Backoff != s.Retry.Backoff || u.Retry.Max < s.Retry.Max {
		r.retryWaits(path+".retry", u.Retry)
	}
	r.waiting(path+".waiting", u.Agent, u.Waiting)
}

func (r rules) with(path, agent string, with json.RawMessage) {
	switch {
	case len(with) > makegood.MaxPayloadBytes:
		r.add(path, "%d bytes as JSON, the limit is %d", len(with), makegood.MaxPayloadBytes)
	case with != nil && !json.Valid(with):
		r.add(path, "not JSON")
	case domain.WaitsByItself(agent):
		r.waits(path, agent, with)
	case agent == makegood.HTTPAgent:
		for _, p := range httprules.Check(with) {
			r.add(inside(path, p.Path), "%s", p.Message)
		}
	}
}

// inside is a place within path; empty: path itself.
func inside(path, place string) string {
	if place == "" {
		return path
	}
	return path + "." + place
}

// circles looks for steps that wait for each other, depth first, and names one circle of each start.
func (r rules) circles() {
	done := map[string]bool{}
	for _, s := range r.workflow.Steps {
		r.follow(s.Name, nil, done)
	}
}

// follow goes down from name, which trail led to, and reports whether it came back to the trail.
func (r rules) follow(name string, trail []string, done map[string]bool) bool {
	i, known := r.first[name]
	if !known || done[name] {
		return false
	}
	done[name] = true
	trail = append(trail, name)
	step := r.workflow.Steps[i]
	for j, need := range domain.Before(r.workflow, step) {
		if need == name {
			continue
		}
		if at := slices.Index(trail, need); at >= 0 {
			circle := strings.Join(append(slices.Clone(trail[at:]), need), " -> ")
			place := fmt.Sprintf("steps[%d].needs[%d]", i, j)
			if step.Only != "" {
				place = fmt.Sprintf("steps[%d].only", i)
			}
			r.add(place, "steps wait for each other in a circle: %s", circle)
			return true
		}
		if r.follow(need, trail, done) {
			return true
		}
	}
	return false
}

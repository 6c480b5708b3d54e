package workflowfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpagent/httprules"
	"github.com/makegood-dev/makegood/internal/limits"
)

// rules check one complete workflow against every rule that needs neither its expressions nor the linked agents. The
// table of fields has the rules of one field, and calls those below.
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
	// A file of more steps is not meant seriously, and its other problems would fill the screen.
	if len(w.Steps) <= limits.MaxSteps {
		r.index()
	}
	workflowKind(&file{Workflow: w}).check(r, "")
	r.circles()
}

// index notes the names of the steps, and the level that they need.
func (r rules) index() {
	for i, s := range r.workflow.Steps {
		if waitsByItself(s) {
			r.level = max(r.level, levelWaits)
		}
		if _, known := r.first[s.Name]; !known {
			r.first[s.Name] = i
		}
		for _, before := range domain.Before(r.workflow, s) {
			r.followed[before] = true
		}
	}
}

func (r rules) onFailure(path string, o makegood.OnFailure) {
	switch {
	case o.Action == makegood.FailureRestart:
		r.restart(path, o)
	case o.Rounds != 0:
		r.add(path, "%s makes no rounds: only restart has a number of rounds", o.Action)
	case o.Action == makegood.FailureWait:
		r.duration(path, "wait", o.Wait, limits.MinTimeout, limits.MaxBackoff)
	case o.Action != makegood.FailureUndo && o.Action != makegood.FailureStop:
		r.add(path, "%q is not one of undo, stop, wait DURATION and restart ROUNDS", o.Action)
	case o.Wait != 0:
		r.add(path, "%s does not wait: only wait and restart have a duration", o.Action)
	case o.Action == makegood.FailureUndo && !domain.HasUndo(r.workflow) && r.workflow.Part == nil:
		r.add(path, "undo is wanted, but no step has an undo")
	}
}

// restart checks an onFailure that undoes and tries again.
func (r rules) restart(path string, o makegood.OnFailure) {
	r.level = max(r.level, levelRounds)
	if o.Rounds < 2 || o.Rounds > limits.MaxRounds {
		r.add(path, "%d rounds are out of range: 2 to %d, the first one counted too", o.Rounds, limits.MaxRounds)
	}
	r.duration(path, "wait", o.Wait, limits.MinTimeout, limits.MaxBackoff)
	if !domain.HasUndo(r.workflow) {
		r.add(path, "restart undoes before it tries again, but no step has an undo")
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

// unique checks that no step above has the name of this one.
func (r rules) unique(path, name string, i int) {
	if first := r.first[name]; first != i && name != "" {
		r.add(path, "a step is called %q already: step %d", name, first+1)
	}
}

// lasting has the fields that limit the duration of an attempt.
type lasting struct {
	agent              string
	timeout, heartbeat makegood.Duration
	shared             bool
}

// heartbeat checks that the agent of an attempt can heartbeat in time.
func (r rules) heartbeat(path string, l lasting) {
	switch {
	case l.heartbeat == 0:
	case l.agent == makegood.HTTPAgent:
		r.add(path, "the agent http makes one request, and does not heartbeat")
	case !domain.GetsTasks(l.agent):
		r.add(path, "no task is sent to the agent %s, so there are no heartbeats", l.agent)
	case l.shared:
		r.add(path, "an attempt that is not exclusive is not claimed, so a heartbeat could move no claim")
	case l.heartbeat > l.timeout:
		r.add(path, "heartbeat %s is over timeout %s", short(l.heartbeat), short(l.timeout))
	}
}

// retryFor checks that a retry reaches its end with the attempts that there may be.
func (r rules) retryFor(path string, retry makegood.Retry) {
	if retry.Attempts == limits.MaxAttempts && retry.Max > 0 && retry.For > retry.Max*limits.RetryPaces {
		r.add(path, "for %s at waits of at most %s may take more than %d attempts: say max: %s, or how many attempts at most",
			short(retry.For), short(retry.Max), limits.MaxAttempts, short(retry.For/limits.RetryPaces))
	}
}

// retryMax checks that the first wait of a retry is not longer than any.
func (r rules) retryMax(path string, retry makegood.Retry) {
	if retry.Backoff > retry.Max && retry.Max > 0 {
		r.add(around(path)+".backoff", "backoff %s is over max %s", short(retry.Backoff), short(retry.Max))
	}
}

// count checks a number of attempts, which was written so.
func (c *check) count(path string, n int, written string, most int) {
	if n < 1 || n > most {
		c.add(path, "%s %s is out of range: 1 to %d", last(path), written, most)
	}
}

// need checks one step that a step needs.
func (r rules) need(path string, s makegood.Step, i int) {
	need := s.Needs[i]
	_, known := r.first[need]
	switch {
	case need == s.Name:
		r.add(path, "step %q needs itself", s.Name)
	case slices.Index(s.Needs, need) < i:
		r.add(path, "%q is needed twice", need)
	case !known:
		r.add(path, "no step is called %q: known are %s", need, r.known())
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
	case u.Agent == makegood.AgentWorkflow && s.Agent != u.Agent:
		r.add(path+".agent", "only a step of agent workflow is undone by it: its undo is that of its own job")
	case u.None:
		if !reflect.DeepEqual(*u, makegood.Undo{None: true}) {
			r.add(path, "an undo is none or says how, not both")
		}
	case s.Agent == makegood.AgentWorkflow && (u.Agent != s.Agent || u.Action != s.Action || u.With != nil):
		r.add(path, "the undo of step %q is that of its own job: leave it out, or say undo: none", s.Name)
	default:
		undoKind(u, &s).check(r, path)
	}
}

// undoWith checks the task's input of an undo. An inherited one was checked with its step.
func (r rules) undoWith(path string, u makegood.Undo, s makegood.Step) {
	switch same := string(u.With) == string(s.With); {
	case same && u.Agent == makegood.HTTPAgent:
		r.add(path, "an http undo must say its own with: else it repeats the request of the step")
	case !same:
		r.with(path, u.Agent, u.With)
	}
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

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// The services keep a ledger: what was done for a step in a round, under which key, and by what description of the
// step. What a job says of its end agrees with it. A step may be described otherwise by a corrected definition, and
// done by another agent: the undo that is described beside one takes back what that one did, and nothing else.

// body is what a step asks of its service, as a definition describes it.
type body struct{ agent, action, with string }

func bodyOf(s makegood.Step) body { return body{s.Agent, s.Action, string(s.With)} }

// account is what a service knows of an idempotency key and a body.
type account struct {
	key, step       string
	round           int
	body            body
	applied, undone bool
	// input is what the step was asked with when it was done. chained: that was in a chain; it may be asked with another.
	input   string
	chained bool
	// left: a person has said that it is to stand.
	left bool
}

func (a *account) stands() bool { return a.applied && !a.undone && !a.left }

// accountOf returns what a service knows of a key. w.mu is held.
func (w *world) accountOf(id, key, step string, round int, b body) *account {
	name := fmt.Sprint(key, b)
	a := w.ledger[name]
	if a == nil {
		a = &account{key: key, step: step, round: round, body: b}
		w.ledger[name] = a
		w.accounts[id] = append(w.accounts[id], a)
		w.oneEffect(id, a)
	}
	return a
}

// describes notes how a step is described whose attempt, or the attempt of whose undo, is out: when it works, the job
// may have another definition.
func (c change) describes(s job.StepState, def makegood.Step) {
	for _, a := range directions(s) {
		name := on(c.after.ID, s.Name, a.Attempt)
		if _, known := c.bodies[name]; !known && a.State == job.Dispatched {
			c.bodies[name] = bodyOf(def)
		}
	}
}

// apply has the service do a task: of a batch, each item.
func (w *world) apply(l *life, task makegood.Task) (err error) {
	items, wrong := task.Items()
	if wrong != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.violate(task.Job, "%v", wrong)
	}
	for _, item := range items {
		err = errors.Join(err, w.applyOne(l, item, task.Batch != nil))
	}
	return err
}

// applyOne has the service do a task, or an item: a thing once under its key, and none that was undone.
func (w *world) applyOne(l *life, task makegood.Task, inBatch bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := task.Key
	if task.Undo != nil {
		key = task.Undo.ForwardKey
	}
	barred := w.barred[key]
	if inBatch {
		barred = w.barred[keyIn(task.Job, task.Step, task.Round)]
	}
	a := w.accountOf(task.Job, key, task.Step, task.Round, w.bodies[on(task.Job, task.Step, task.Attempt)])
	switch {
	case task.Undo != nil:
		w.overInput(task, a)
		a.undone = true
	case a.undone:
		w.note(l.name, "remote refuses "+key+", which was undone")
		if !inBatch { // Other items of a batch may be tried again.
			w.referee(task.Job).SaidFinal(task.Step, false)
		}
		return agent.Final(agent.NotApplied(errors.New("undone already")))
	case task.Attempt <= barred:
		w.note(l.name, "remote refuses "+key+", which a person has stopped")
		return agent.Final(agent.NotApplied(errors.New("stopped by hand")))
	case a.applied && a.input != "" && a.input != string(task.Input) && !a.chained:
		w.violate(task.Job, "I6: %s is asked for with %s, and was done with %s", task.Key, task.Input, a.input)
	default:
		a.applied, a.input = true, string(task.Input)
		_, chained := w.chained[on(task.Job, task.Step, task.Attempt)]
		a.chained = a.chained || chained
	}
	w.note(l.name, "remote applies "+task.Key)
	return nil
}

// overInput: what was done with the job's input is undone with the input that it was done with. w.mu is held.
func (w *world) overInput(task makegood.Task, a *account) {
	def, _ := w.stepOf(task.Job, task.Step)
	same := def.With == nil && domain.CanUndo(def) && def.Undo.With == nil && a.applied && a.input != ""
	if over := string(task.Input); same && a.input != over {
		w.violate(task.Job, "I11: %s was done with %s, and is undone with %s", a.key, a.input, over)
	}
}

// ofStep are the accounts of a step in the round that the job was in.
func (c change) ofStep(step string) (all []*account) {
	for _, a := range c.accounts[c.after.ID] {
		if a.step == step && a.round == max(c.before.Round, 1) {
			all = append(all, a)
		}
	}
	return all
}

// applied reports whether a step was done, as it is described.
func (c change) applied(def makegood.Step) bool {
	return slices.ContainsFunc(c.accounts[c.after.ID], func(a *account) bool {
		return a.step == def.Name && a.round == c.after.Round && a.body == bodyOf(def) && a.applied
	})
}

// saidAgain reports whether people outside have done a step whose work a person had taken back meanwhile. They say two
// things, and the later word counts, as the word of a person does that settles the step as done.
func (c change) saidAgain(s job.StepState, def makegood.Step) bool {
	var said struct {
		A       int
		Outside string
	}
	key := keyIn(c.after.ID, s.Name, c.after.Round)
	if err := json.Unmarshal(s.Forward.Output.Inline, &said); err != nil || said.Outside == "" || !c.notDone[key] || said.A > c.barred[key] {
		return false
	}
	c.accountOf(c.after.ID, key, s.Name, c.after.Round, bodyOf(def)).applied = true
	return true
}

// undone: what is said to be undone was undone, or a person says so.
func (c change) undone(s job.StepState, def makegood.Step) {
	if c.after.Settled(s.Undo) != nil || domain.CanUndo(def) && domain.WaitsByItself(def.Undo.Agent) {
		return
	}
	b, known := c.bodies[on(c.after.ID, s.Name, s.Undo.Attempt)]
	if !known {
		b = bodyOf(def) // The attempt was made and ended within this save, by the late success of the one before.
	}
	if !slices.ContainsFunc(c.ofStep(s.Name), func(a *account) bool { return a.body == b && a.undone }) {
		c.wrong("I11: %s is said to be undone, and is not", s.Name)
	}
}

// byHand notes what a person has dealt with: done a step, taken it back, undone it, or let it stand.
func (c change) byHand(s, was job.StepState, def makegood.Step) {
	if c.before.Rev == 0 || c.before.Round != c.after.Round {
		return
	}
	key := keyIn(c.after.ID, s.Name, c.after.Round)
	settled := c.after.Settled(s.Forward) != nil && c.before.Settled(was.Forward) == nil && s.Forward.State == job.Done
	if settled && domain.GetsTasks(def.Agent) { // An approval is no service, and keeps no account.
		c.accountOf(c.after.ID, key, s.Name, c.after.Round, bodyOf(def)).applied = true
	}
	if was.Forward.Unknown && !s.Forward.Unknown && c.notDone[key] {
		// An attempt that this save made is not stopped: the step may begin again at once, if its start has come meanwhile.
		c.barred[key] = was.Attempt
		for _, a := range c.ofStep(s.Name) {
			a.applied, a.input = false, ""
		}
	}
	if u := s.Undo; c.after.Settled(u) != nil && (c.before.Settled(was.Undo) == nil || was.Undo.State != u.State) {
		for _, a := range c.ofStep(s.Name) {
			a.undone, a.left = a.undone || u.State == job.Done, u.State != job.Done
		}
		c.barred[key] = s.Attempt
	}
}

// ledger: what the job says of its end agrees with what the services did.
func (c change) ledger() {
	j := c.after
	if c.before.Rev > 0 && c.before.Round < j.Round {
		for _, was := range c.before.Steps {
			def := defOf(c.definition(c.before.Definition), was.Name)
			c.listed[keyIn(j.ID, was.Name, max(c.before.Round, 1))] = named(was, def) || c.cutOff(was, def)
		}
	}
	for _, a := range c.accounts[j.ID] {
		s, there := j.Step(a.step)
		switch {
		case !a.stands():
		case a.round < j.Round && c.listed[keyIn(j.ID, a.step, a.round)]:
			// It was named when its round ended, even if it was done later: nobody knew of its attempt's end.
		case a.round < j.Round:
			c.wrong("I11: is %s in round %d, and %s by %s of round %d stands", j.ProcessState, j.Round, a.key, a.body.agent, a.round)
		case !there:
			c.wrong("I11: %s by %s stands, and its step is gone", a.key, a.body.agent)
		case (j.ProcessState == makegood.JobUndone || j.ProcessState == makegood.JobCancelled) && !named(s, defOf(c.w, a.step)):
			c.wrong("I11: is %s, and %s by %s stands and is not listed", j.ProcessState, a.key, a.body.agent)
		}
	}
	if j.ProcessState == makegood.JobProcessed {
		c.processed()
	}
}

// undoneOfRound reports whether a remote service has undone a step of the job in the current round.
func (c change) undoneOfRound() bool {
	return slices.ContainsFunc(c.accounts[c.after.ID], func(a *account) bool { return a.round == c.after.Round && a.undone })
}

// named reports whether a job says of a step that what it did stands.
func named(s job.StepState, def makegood.Step) bool {
	return s.Undo.State == job.Irreversible && !domain.CanUndo(def)
}

// cutOff reports whether a step of a job that is undone was cut off by the death of the engine within this save: its
// round ended by that, in the same save in which somebody had a new one begin, and no save says what it named.
func (c change) cutOff(was job.StepState, def makegood.Step) bool {
	// Where a child was looked at in that save, it may be any step: the child's end ended the round.
	cut := was.Forward.State == job.Dispatched || c.world.children
	return c.before.Incarnation < c.after.Incarnation && c.before.ProcessState == makegood.JobUndoing && cut && !domain.CanUndo(def)
}

func defOf(w makegood.Workflow, step string) makegood.Step {
	for i := range w.Steps { // By index: a step is large.
		if w.Steps[i].Name == step {
			return w.Steps[i]
		}
	}
	return makegood.Step{Name: step}
}

// processed: of a job that is done stands what its steps did, and nothing else of them.
func (c change) processed() {
	for n, s := range c.after.Steps {
		def, state := c.w.Steps[n], s.Forward.State
		if state != job.Done && state != job.Skipped {
			c.wrong("I3: is Processed, and %s is %q", s.Name, state)
		}
		if !domain.GetsTasks(def.Agent) || state != job.Done {
			continue // It does nothing that a service would know of, or what is known of it was said when it was skipped.
		}
		stands := false
		for _, a := range c.accounts[c.after.ID] {
			if a.step != s.Name || a.round != c.after.Round || !a.stands() {
				continue
			}
			if stands = true; a.body != bodyOf(def) {
				c.wrong("I11: is Processed, and %s by %+v stands beside what %+v did", a.key, a.body, bodyOf(def))
			}
		}
		if !stands {
			c.wrong("I11: is Processed, and %s does not stand", s.Name)
		}
	}
}

// keyOf is the key that a task is to have; of a step that is repeated, without what tells its repetitions from one another.
func keyOf(task makegood.Task) string {
	key := keyIn(task.Job, task.Step, task.Round)
	if task.Undo != nil {
		key += "/undo"
	}
	return key
}

// keyIn is the key of a step of a job in one of its rounds.
func keyIn(job, step string, round int) string { return fmt.Sprintf("%s/%s/%d", job, step, round) }

package sim

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// The rules here are about attempts and the items of their claims: who may write one, how an attempt ends, and when it
// is looked at.

// maxLooks is how often an attempt is looked at, at most, between two saves that say when it is looked at next: once,
// and again for each time that what was found could not be saved. A part of a map looks at its items together, and one
// look that fails is enough for that.
const (
	maxLooks       = 25
	maxLooksOfPart = 10 * maxLooks
)

// directions are a step going forward, and its undo (true).
func directions(s job.StepState) iter.Seq2[bool, job.Activity] {
	return func(yield func(bool, job.Activity) bool) {
		_ = yield(false, s.Forward) && yield(true, s.Undo)
	}
}

// plan is what the workflow says of a step, or of its undo.
type plan struct {
	startBy, silence time.Duration
	// total is how long after its claim an attempt may last; zero: it heartbeats as it likes.
	total time.Duration
}

func planOf(def makegood.Step, undo bool) plan {
	if undo && domain.CanUndo(def) {
		return lasting(def.Undo.StartBy, def.Undo.Timeout, def.Undo.Heartbeat)
	}
	return lasting(def.StartBy, def.Timeout, def.Heartbeat)
}

func lasting(startBy, timeout, heartbeat makegood.Duration) plan {
	if heartbeat > 0 {
		return plan{startBy: startBy.Std(), silence: heartbeat.Std(), total: timeout.Std()}
	}
	return plan{startBy: startBy.Std(), silence: timeout.Std()}
}

// wroteClaim looks at every write of a claim item. w.mu is held.
func (w *world) wroteClaim(slot store.Slot, before, after store.ClaimItem) {
	if w.over {
		return
	}
	name := on(slot.Job, slot.Step, after.Attempt)
	j, _ := w.store.Stored(slot.Job)
	overruled := w.doing == "overrule"
	taken := after.LockedBy != "" && (before.Attempt != after.Attempt || before.LockedBy != after.LockedBy)
	switch {
	case overruled:
		w.mayOverrule(slot, j, before)
	case !w.mayWrite(after, taken):
		w.violate(slot.Job, "law 4: the claim of %s is written by a %s of %s", name, w.doing, w.writer.name)
	case after.Attempt < before.Attempt:
		w.violate(slot.Job, "I5: the claim of %s is written over that of attempt %d", name, before.Attempt)
	case before.Attempt == after.Attempt && before.Closed != "":
		w.violate(slot.Job, "I5: %s was closed, and its claim is written", name)
	case taken && before.Attempt == after.Attempt:
		w.violate(slot.Job, "I5: %s is claimed twice", name)
	case before.Ends.IsZero() && !after.Ends.IsZero() && !w.unwanted(j, slot.Step, after.Attempt):
		w.violate(slot.Job, "law 4: %s is marked as unwanted, and its job does not say so", name)
	case before.Attempt == after.Attempt && !before.Ends.IsZero() && !after.Ends.Equal(before.Ends):
		w.violate(slot.Job, "law 4: %s is marked as unwanted twice", name)
	case w.doing != lies && after.Closed == "" && w.outlives(slot, after):
		w.violate(slot.Job, "law 4: %s goes on past the timeout of its step", name)
	case !after.Ends.IsZero() && after.CompleteBy.After(after.Ends):
		w.violate(slot.Job, "law 4: %s goes past the end that was set for it", name)
	}
	if after.Closed == job.FoundNobody {
		w.nobodys[name] = true
		w.closesGated(j, slot.Step, after.Attempt)
	}
	t := w.tales[slot.Job]
	switch {
	case taken:
		w.claimed[name]++
		w.referee(slot.Job).Took(slot.Step, after.Attempt, after.Beside)
		w.written[name] = time.Now()
		w.started[slot.Job]++
		t.lines = append(t.lines, w.at(after.StartedAt), fmt.Sprintf("claim %s attempt=%d by=%s beside=%d", slot.Step, after.Attempt, nick(after.LockedBy), after.Beside))
	case after.Closed == "" && !after.CompleteBy.Equal(before.CompleteBy):
		t.lines = append(t.lines, w.at(time.Now()), "heartbeat "+slot.Step)
	}
}

// mayWrite: agents claim and send heartbeats, the Scheduler closes.
func (w *world) mayWrite(after store.ClaimItem, taken bool) bool {
	switch w.doing {
	case "claim":
		return taken && after.Closed == ""
	case "heartbeat":
		return !taken && after.Closed == ""
	case "close":
		return !taken && (after.Closed != "" || !after.Ends.IsZero())
	case lies:
		return true
	}
	return false
}

// outlives reports whether a claim that is kept alive by heartbeats is to last longer than its step allows. A liar's
// goes on as it was written.
func (w *world) outlives(slot store.Slot, item store.ClaimItem) bool {
	def, known := w.stepOf(slot.Job, slot.Step)
	total := max(planOf(def, false).total, planOf(def, true).total)
	held, claimed := w.leases[item.LockedBy]
	lied := claimed && held.timeout == 0 || strings.HasPrefix(item.LockedBy, "liar:")
	return known && total > 0 && !lied && item.CompleteBy.After(item.StartedAt.Add(total))
}

// mayOverrule: only what cannot be true is written over.
func (w *world) mayOverrule(slot store.Slot, j job.Job, before store.ClaimItem) {
	// Who overrules has loaded the job since they saw the claim; another may have opened an attempt of that number since.
	if known, ok := w.writer.seen[slot.Job]; ok {
		j = known
	}
	s, _ := j.Step(slot.Step)
	def, _ := w.stepOf(slot.Job, slot.Step)
	forward, undo := planOf(def, false), planOf(def, true)
	longest := max(forward.silence, undo.silence) + limits.MaxClaimAhead
	if total := max(forward.total, undo.total); total > 0 && before.CompleteBy.After(before.StartedAt.Add(total+limits.MaxClaimAhead)) {
		return
	}
	// A clock that is wrong by an hour and another that is wrong the other way take each other for liars.
	if w.exact && before.Attempt <= s.Attempt && !before.CompleteBy.After(w.writer.looked.Add(longest)) {
		w.violate(slot.Job, "law 4: the claim of %s is overruled, and is no lie", on(slot.Job, slot.Step, before.Attempt))
	}
}

func (w *world) stepOf(job, step string) (makegood.Step, bool) {
	def := defOf(w.workflowOf(job), step)
	return def, def.Agent != ""
}

// unwanted reports whether a job, as it is stored, does not want an attempt any more: it has ended, or goes the other way.
func (w *world) unwanted(j job.Job, step string, attempt int) bool {
	s, _ := j.Step(step)
	forwards := j.Desired == makegood.JobProcessed
	return s.Forward.State != job.Dispatched && s.Undo.State != job.Dispatched ||
		!forwards && s.Forward.Attempt == attempt || s.Attempt > attempt || s.Forward.Held() || s.Undo.Held()
}

// attempts: how they end, and that they end once.
func (c change) attempts(s, was job.StepState, def makegood.Step) {
	for undo, a := range directions(s) {
		b := was.Forward
		if undo {
			b = was.Undo
		}
		name := on(c.after.ID, s.Name, a.Attempt)
		out := a.State == job.Dispatched
		switch {
		case out && b.State != job.Dispatched && a.Attempt == b.Attempt && c.before.Rev > 0:
			c.wrong("I4: attempt %d of %s has ended, and is out again", a.Attempt, s.Name)
		case out && a.Closing && (!b.Closing || b.Cause != a.Cause || !a.LookAt.Equal(b.LookAt)):
			// What was known of it before does not count.
			delete(c.closings, name)
			delete(c.answered, name)
		case out && a.Attempt == b.Attempt && !b.Closing && !b.Queued && !a.LookAt.Equal(b.LookAt) && c.writer != nil && !c.told(name):
			c.seen(name)
		}
		if out && !a.Queued && c.after.Incarnation > 0 && c.engine != nil {
			c.ofThisRun(name, a)
		}
		if c.before.Rev > 0 && !def.Shared && b.State == job.Dispatched && (!out || a.Attempt != b.Attempt) {
			c.ended(s.Name, undo, a, b)
		}
		if a.Error != nil && strings.Contains(a.Error.Message, forged) {
			c.wrong("I4: SEC-1: %s failed by a reply that a stranger made", s.Name)
		}
	}
}

// seen: what a save rests on was looked at after the job was loaded that it is written over.
func (c change) seen(name string) {
	l := c.writer
	if loaded, looked := l.loaded[on(c.after.ID, "", int(c.before.Rev))], l.lookedAt[name]; looked < loaded {
		c.wrong("law 4: what is known of %s was looked at before the job was loaded", name)
	}
}

// ofThisRun: the embedded engine never waits for an attempt of an earlier run of it.
func (c change) ofThisRun(name string, a job.Activity) {
	if c.runOf[name] == 0 {
		c.runOf[name] = c.engine.incarnation
	}
	if c.runOf[name] != c.after.Incarnation {
		c.wrong("law 4: EMB-1: %s was opened by run %d of the engine, and is out in run %d", name, c.runOf[name], c.after.Incarnation)
	}
}

// ended: an attempt ends by a reply, by Close, or with the engine that sent it; never by a look. What the job makes of
// it is what Close found.
func (c change) ended(step string, undo bool, a, b job.Activity) {
	if a.State == job.Done || c.after.Incarnation != c.before.Incarnation || c.after.Round != c.before.Round {
		return
	}
	item := c.store.InSlot(c.slot(c.definition(c.before.Definition), step, undo))
	counted := a.FailureCount > b.FailureCount
	if b.Queued {
		if counted && a.Attempt <= b.Attempt {
			c.wrong("I9: attempt %d of %s stood before its gate, and is counted", b.Attempt, step)
		}
		return // No task of it was sent, so it needs no closing.
	}
	if c.handed[on(c.after.ID, step, b.Attempt)] || a.Completion != nil {
		return // It ended by the answer that the step waits, or as somebody outside had said.
	}
	switch {
	case b.Inline != "":
		// Its claim is the job's, and no item of its own says how it ended.
	case item.Attempt < b.Attempt, item.Attempt == b.Attempt && item.Closed == "":
		c.wrong("law 4: attempt %d of %s ends as %q, and its claim is not closed", b.Attempt, step, a.State)
	case item.Attempt > b.Attempt || a.Attempt > b.Attempt+1 || a.Attempt == b.Attempt+1 && a.State != job.Dispatched:
		// More than one ended in this save.
	case item.Closed == job.FoundNobody && counted:
		c.wrong("I9: nobody ever claimed attempt %d of %s, and it is counted", b.Attempt, step)
	case item.Closed == job.FoundSilent && item.Beside > 0 && c.after.Incarnation == 0 && !b.Alone && a.State == job.Backoff && a.Tries >= b.Tries:
		c.wrong("law 7: attempt %d of %s fell silent with %d beside it, and uses up one of those granted", b.Attempt, step, item.Beside)
	case a.Deferred > b.Deferred:
		if counted || a.Tries >= b.Tries {
			c.wrong("BRK-2: attempt %d of %s is put off, and uses up one of those granted", b.Attempt, step)
		}
	case item.Closed != job.FoundNobody && !counted:
		c.wrong("I9: attempt %d of %s was claimed and failed, and is not counted", b.Attempt, step)
	}
}

// closed: the answers to the closings that an event asked for are brought to the job in one save. Where a call of the
// process has failed, that may have been the save of the others.
func (c change) closed() {
	if c.writer == nil || c.late || c.before.Rev == 0 || c.writer.troubled {
		return
	}
	answered := map[string]bool{}
	for _, s := range c.before.Steps {
		now, _ := c.after.Step(s.Name)
		for undo, b := range directions(s) {
			if a := activity(now, undo); b.Closing && !(a.Closing && a.Cause == b.Cause) {
				answered[b.Cause] = true
			}
		}
	}
	for _, s := range c.after.Steps {
		for _, a := range directions(s) {
			name := on(c.after.ID, s.Name, a.Attempt)
			if asked, told := c.answered[name][c.writer.name]; told && asked == a.Cause && a.Closing && answered[a.Cause] {
				c.wrong("law 4: the closings of %s take more than one save: that of %s was answered", a.Cause, name)
			}
		}
	}
}

// told reports whether the writer was told how the closing of an attempt went.
func (c change) told(attempt string) bool {
	_, told := c.answered[attempt][c.writer.name]
	return told
}

func activity(s job.StepState, undo bool) job.Activity {
	if undo {
		return s.Undo
	}
	return s.Forward
}

// asksFor notes that the end of an attempt was asked for. w.mu is held.
func (w *world) asksFor(attempt string) { w.closings[attempt] = true }

// knows notes that a process was told how the closing of an attempt went, and who had asked for it as far as it knew:
// for another who asks meanwhile it is no answer.
func (w *world) knows(l *life, slot store.Slot, attempt int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := on(slot.Job, slot.Step, attempt)
	if w.answered[name] == nil {
		w.answered[name] = map[string]string{}
	}
	w.answered[name][l.name], l.told = "", append(l.told, name)
	s, _ := l.seen[slot.Job].Step(slot.Step)
	for _, a := range directions(s) {
		if a.Attempt == attempt {
			w.answered[name][l.name] = a.Cause
		}
	}
}

// looks: an attempt is looked at when it is time, or a little early together with another, and not again and again.
// w.mu is held.
func (w *world) looks(l *life, slot store.Slot, attempt int) {
	if w.late {
		return // Nobody waits for what it finds.
	}
	name := on(slot.Job, slot.Step, attempt)
	l.answers++
	l.lookedAt[name] = l.answers
	j := l.seen[slot.Job]
	if l.engine != nil && j.Incarnation < l.engine.incarnation {
		return
	}
	s, _ := j.Step(slot.Step)
	for _, a := range directions(s) {
		if a.State != job.Dispatched || a.Attempt != attempt {
			continue
		}
		key := fmt.Sprintf("%s at %d", name, a.LookAt.UnixMilli())
		w.looked[key]++
		if n := w.looked[key]; n > maxLooksOfPart || n > maxLooks && len(j.Steps) < limits.PartItems {
			w.violate(slot.Job, "law 10: %s is looked at %d times between two saves", name, w.looked[key])
		}
		early := time.Until(a.LookAt)
		if w.exact && !l.asks && !l.letGo(slot.Job, slot.Step) && early > a.LookAt.Sub(a.At)/4 {
			w.violate(slot.Job, "law 10: %s is looked at %s before it is time", name, early)
		}
	}
}

// letGo reports whether the batch of a process has the word of an agent that it has not begun an attempt of a step:
// whether that is so, is seen at once.
func (l *life) letGo(id, step string) bool {
	return slices.ContainsFunc(l.batch[id], func(e job.Event) bool {
		held, is := e.(job.StepHeld)
		return is && held.Step == step
	})
}

// silenceSeen is until when it must be seen that nobody has claimed an attempt, or that its claim has run out: at its
// StartBy, or one look later than its CompleteBy.
func (c change) silenceSeen(a job.Activity, step string, undo bool, p plan) time.Time {
	at := a.At.Add(p.startBy << min(a.Resent, 20))
	item := c.store.InSlot(c.slot(c.w, step, undo))
	switch {
	case item.Attempt > a.Attempt:
		// A liar has written over what the job goes by. A clock may be an hour ahead without being one's lie.
		return latest(at, time.Now().Add(10*p.silence+limits.MaxClaimAhead))
	case item.Attempt != a.Attempt || item.LockedBy == "":
		return at
	}
	if !c.exact {
		// Whose clock was wrong how much is not asked: a Scheduler's may have set the look, and a save by a right one
		// kept it.
		return latest(at, item.CompleteBy.Add(10*p.silence+limits.MaxClaimAhead))
	}
	// A claim may be written long after it was begun: before that there is no silence to be seen.
	silent := latest(item.CompleteBy, c.written[on(c.after.ID, step, a.Attempt)])
	// Nobody knew of the claim: the waits are four times as long as the one before, and one may be cut by a quarter.
	blind := a.At.Add(max(silent.Sub(a.At), p.silence, c.period) * 16 / 3)
	if at.Before(blind) {
		blind = at
	}
	// It was seen alive: as long as it has lived, up to ten heartbeats.
	lived := min(max(silent.Sub(a.Opened()), p.silence), 10*p.silence)
	return latest(blind, silent.Add(lived))
}

// slot is where the claim of a step is, or of its undo, as a workflow describes it.
func (c change) slot(of makegood.Workflow, step string, undo bool) store.Slot {
	return store.Slot{Agent: machine.AgentOf(of, step, undo), Job: c.after.ID, Birth: c.after.Birth, Step: step}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lasts is until when a claim may reply, and for how long each heartbeat lets it go on.
type lasts struct {
	until   time.Time
	timeout time.Duration
}

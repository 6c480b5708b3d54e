package asl

import (
	"maps"
	"slices"
	"strings"
)

// saga is a machine whose tasks catch what fails by undoing what was done before, one task after the other.
type saga struct {
	// undoes is the task that undoes another.
	undoes map[*state]*state
}

// findSaga looks whether the machine is one: a row of tasks, each of which leads, when it fails, into the same row of
// other tasks at the place from which what was done is taken back.
func (t *translator) findSaga(m *machine) {
	var tasks []*state
	rows := map[*state][]*state{}
	all, round := m.from(m.byName[m.startAt])
	if round {
		return
	}
	for _, s := range all {
		if s.kind == "Pass" || s.kind == "Wait" {
			continue
		}
		if s.kind != "Task" {
			break
		}
		row, ends := t.taking(m, s)
		if !ends {
			return
		}
		tasks, rows[s] = append(tasks, s), row
	}
	pairs := paired(tasks, rows)
	if pairs == nil {
		return
	}
	t.saga = &saga{undoes: map[*state]*state{}}
	for task, undo := range pairs {
		t.saga.undoes[task] = undo
		t.tell(undo).becomes("the undo of the step of " + task.name)
		t.tell(undo).note("an undo runs also when nobody knows whether its step was done, when a timeout of the job has passed, and after a cancel; " +
			"its input is what was there behind its step, without the error")
	}
	for _, s := range tasks {
		if catch := s.body.get("Catch"); catch != nil {
			t.dropped[s] = len(catch.items)
		}
		for _, next := range rows[s] {
			t.endOfRow(m, next)
		}
	}
}

// endOfRow tells of what stands between and behind the tasks that undo.
func (t *translator) endOfRow(m *machine, s *state) {
	behind, _ := m.from(m.byName[s.next])
	for _, next := range behind {
		if next.kind == "Task" {
			return
		}
		t.tell(next).becomes("no step: a job whose steps are undone ends Undone")
	}
}

// taking is the row of tasks that a failure of s leads into. false: it leads somewhere else, too, so there is no saga.
func (t *translator) taking(m *machine, s *state) (row []*state, ends bool) {
	catch := s.body.get("Catch")
	if catch == nil || len(catch.items) == 0 {
		return nil, true
	}
	first := catch.items[0].textOf("Next")
	for _, c := range catch.items {
		if c.textOf("Next") != first {
			return nil, false
		}
	}
	behind, round := m.from(m.byName[first])
	if round {
		return nil, false
	}
	for _, next := range behind {
		switch {
		case next.kind == "Task" && next.body.get("Catch") == nil:
			row = append(row, next)
		case next.kind == "Fail" || next.kind == "Succeed":
			return row, true
		case next.kind != "Pass":
			return nil, false
		}
	}
	return row, true
}

// paired finds which task undoes which: each row must be an end of the longest. Whether the first of a row undoes the
// task that failed or the one before it is told by their names. nil: it is no saga, or that cannot be told.
func paired(tasks []*state, rows map[*state][]*state) map[*state]*state {
	var longest []*state
	for _, s := range tasks {
		if len(rows[s]) > len(longest) {
			longest = rows[s]
		}
	}
	if len(longest) == 0 {
		return nil
	}
	own, before := map[*state]*state{}, map[*state]*state{}
	for i, s := range tasks {
		row := rows[s]
		if !slices.Equal(row, longest[len(longest)-len(row):]) || slices.Contains(longest, s) {
			return nil
		}
		if len(row) == 0 {
			continue
		}
		if !slices.Contains(slices.Collect(maps.Values(own)), row[0]) {
			own[s] = row[0]
		}
		if i > 0 && !slices.Contains(slices.Collect(maps.Values(before)), row[0]) {
			before[tasks[i-1]] = row[0]
		}
	}
	best := own
	if alike(before) > alike(own) {
		best = before
	}
	if alike(best) == 0 || alike(own) == alike(before) || len(best) != len(longest) {
		return nil
	}
	return best
}

// alike counts the pairs that have a word of their names in common.
func alike(pairs map[*state]*state) int {
	n := 0
	for task, undo := range pairs {
		words := strings.Split(snake(task.name), "_")
		if slices.ContainsFunc(strings.Split(snake(undo.name), "_"), func(word string) bool { return slices.Contains(words, word) }) {
			n++
		}
	}
	return n
}

// compensated gives a step its undo, if it has one.
func (w walk) compensated(s *step, here comes, result func(*value) *value) {
	if w.saga == nil || w.saga.undoes[w.state] == nil {
		return
	}
	at := w
	at.state = w.saga.undoes[w.state]
	done := w.apply(here.arrivals, func(arrival *value) (*value, error) {
		return w.after(arrival, result(w.path(".steps."+s.name+".output")))
	})
	r := resourceOf(at.state)
	with := at.inputOf(r, at.valueOf(done, at.effective))
	if len(at.tell(at.state).Left) > 0 || strings.Contains(w.expression(with), "error(") {
		r, with = resource{agent: agentByHand, action: s.name + "_undo"}, w.object(nil, nil)
	}
	if r.http || r.token || r.sync {
		w.tell(at.state).left("an undo of this kind: write it as an undo of the step " + s.name + " by hand")
		r = resource{agent: agentByHand, action: s.name + "_undo"}
	}
	u := &step{state: at.state, name: s.name}
	at.retries(u)
	if len(u.routes) > 0 {
		w.tell(at.state).note("an undo has no routes by kind of error: each error of it is tried again alike")
		u.retry = u.routes[0].retry
	}
	s.undo = &undo{agent: or(r.agent, agentFunctions), action: or(r.action, or(snake(at.state.name), "undo")), with: with, retry: u.retry, state: at.state}
}

// undosByHand leaves all undos to be written by hand, because they cannot do without the output of their steps.
func (t *translator) undosByHand() {
	for _, s := range t.steps {
		if s.undo != nil && s.undo.state != nil {
			t.tell(s.undo.state).left("its input cannot be made where nobody knows what the step gave: write the undo of " + s.name + " by hand")
			s.undo.agent, s.undo.action, s.undo.with = agentByHand, s.name+"_undo", t.object(nil, nil)
		}
	}
}

package asl

import (
	"slices"
	"strconv"
	"strings"
)

// poll is a loop in which a task is asked until it is ready: task, choice, wait, and the task again. It becomes a repeat.
type poll struct {
	task, choice *state
	// again are the states by which the choice leads back.
	again map[*state]bool
	every string
}

// findPolls finds such loops in a machine and in its branches.
func (t *translator) findPolls(m *machine) {
	for _, s := range m.states {
		if s.kind == "Choice" {
			t.findPoll(m, s)
		}
		for _, b := range s.branches {
			t.findPolls(b)
		}
	}
}

func (t *translator) findPoll(m *machine, choice *state) {
	for _, target := range targets(m, choice) {
		task, every := target, "1s"
		if target.kind == "Wait" {
			seconds := target.body.get("Seconds")
			if seconds == nil || seconds.kind != isNumber || target.next == "" {
				continue
			}
			n, err := strconv.Atoi(seconds.text)
			if err != nil || n < 1 || n > 30*24*3600 {
				continue
			}
			task, every = m.byName[target.next], length(n)
		}
		if task.kind != "Task" || m.byName[task.next] != choice || t.polls[task] != nil || !onlyFrom(m, choice, task) {
			continue
		}
		p := &poll{task: task, choice: choice, again: map[*state]bool{target: true}, every: every}
		t.polls[task], t.polls[choice] = p, p
		t.tell(task).note("the loop back to it is a repeat: each round is an attempt of one step, at most 10000, for a year at most")
		if target.kind == "Wait" {
			t.tell(target).becomes("the every of the repeat of " + strconv.Quote(task.name))
		}
		return
	}
}

// targets are the states that a choice leads to.
func targets(m *machine, choice *state) []*state {
	var all []*state
	for _, rule := range choice.body.get("Choices").items {
		all = append(all, m.byName[rule.textOf("Next")])
	}
	if otherwise := choice.body.textOf("Default"); otherwise != "" {
		all = append(all, m.byName[otherwise])
	}
	return all
}

// onlyFrom reports whether nothing but one state leads to another.
func onlyFrom(m *machine, to, from *state) bool {
	return to.name != m.startAt && !slices.ContainsFunc(m.states, func(s *state) bool {
		return s != from && leadsTo(m, s, to)
	})
}

func leadsTo(m *machine, s, to *state) bool {
	if s.next == to.name || s.kind == "Choice" && slices.Contains(targets(m, s), to) {
		return true
	}
	catch := s.body.get("Catch")
	return catch != nil && slices.ContainsFunc(catch.items, func(c *node) bool { return c.textOf("Next") == to.name })
}

// repeat says how a step is repeated: until the choice leads on.
func (w walk) repeat(s *step, here comes, p *poll, result func(*value) *value) {
	at := w
	at.state = p.choice
	ready := w.apply(here.arrivals, func(arrival *value) (*value, error) { return w.after(arrival, result(w.path(".output"))) })
	rules := p.choice.body.get("Choices").items
	d := &decision{ordered: len(rules) > 1}
	var on []int
	for i, rule := range rules {
		condition := at.valueOf(ready, func(arrival *value) (*value, error) { return at.ruleOf(arrival, rule) })
		d.outcomes = append(d.outcomes, outcome{yes: condition, no: w.opposite(condition)})
		if !p.again[w.machine.byName[rule.textOf("Next")]] {
			on = append(on, i)
		}
	}
	d.outcomes = append(d.outcomes, outcome{})
	if !p.again[w.machine.byName[p.choice.body.textOf("Default")]] {
		on = append(on, len(rules))
	}
	if len(on) == 0 {
		w.tell(w.state).left("the loop back to it never ends")
		return
	}
	until := w.anyOf(d, on)
	if !strings.Contains(until, ".") {
		w.tell(w.state).left("the loop back to it does not depend on what the task gives")
		return
	}
	s.repeat = &repeat{until: bare(until), every: p.every}
}

// bare leaves out the parentheses around all of an expression.
func bare(text string) string {
	for strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		open, inText := 0, false
		for i := 0; i < len(text)-1; i++ {
			switch c := text[i]; {
			case c == '\\':
				i++
			case c == '"':
				inText = !inText
			case c == '(' && !inText:
				open++
			case c == ')' && !inText:
				open--
			}
			if open == 0 {
				return text
			}
		}
		text = text[1 : len(text)-1]
	}
	return text
}

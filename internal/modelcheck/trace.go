package modelcheck

import (
	"fmt"
	"slices"
	"strings"
)

// trace gives the shortest way to a state, a line an action.
func (m *model) trace(id uint32) []string {
	var way []uint8
	for ; id != 0; id = m.parents[id].from {
		way = append(way, m.parents[id].action)
	}
	slices.Reverse(way)
	s := m.first()
	lines := []string{"the job is stored" + m.told(&state{}, &s)}
	for _, k := range way {
		f := m.next(&s)[k]
		lines = append(lines, m.line(&s, &f))
		s = f.state
	}
	return lines
}

// line says what an action did.
func (m *model) line(before *state, f *found) string {
	return m.describe(f.action) + m.told(before, &f.state)
}

func (m *model) describe(a action) string {
	scheduler, attempt := fmt.Sprintf("scheduler %d", a.actor), fmt.Sprintf("s%d#%d", a.step, a.n)
	switch a.kind {
	case doLoad:
		event := a.ev.String()
		if a.ev.kind == evRequest {
			event = string(m.config.Verbs[a.ev.n])
		}
		return scheduler + " loads, for " + event
	case doDecide:
		return scheduler + " decides"
	case doSave:
		return scheduler + " saves"
	case doSend:
		if a.to == sendNotice {
			return fmt.Sprintf("%s announces %d", scheduler, a.n)
		}
		return scheduler + " sends the task " + attempt
	case doRefuse:
		return "the queue refuses the task " + attempt
	case doCrash:
		return scheduler + " crashes"
	case doClaim:
		return "an agent claims " + attempt
	case doEffect:
		return "the remote answers " + attempt
	case doReply:
		return "the agent of " + attempt + " replies: " + replyNames[a.to]
	case doBeat:
		return "the agent of " + attempt + " beats"
	case doTick:
		return "a tick"
	case doMinute:
		return "a minute"
	case doWipe:
		return "all but the store goes down"
	default:
		panic(fmt.Sprintf("modelcheck: action %d", a.kind))
	}
}

// told says how the job looks, if it has changed.
func (m *model) told(before, s *state) string {
	if before.job == s.job {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n    %s, wanted %s, round %d, key %s", states[s.job.state], states[s.job.desired], s.job.round, s.job.key)
	for i := range m.w.Steps {
		st := s.job.steps[i]
		fmt.Fprintf(&b, "\n    s%d: %s, undo %s", i, m.say(st.forward), m.say(st.undo))
		if st.slot > 0 {
			fmt.Fprintf(&b, ", #%d claimed until %s", st.slot, st.slotBy)
		}
	}
	return b.String()
}

func (m *model) say(a activity) string {
	if a.attempt == 0 && a.state == 0 {
		return "not started"
	}
	text := fmt.Sprintf("%s #%d", activities[a.state], a.attempt)
	if a.due != never {
		text += " until " + a.due.String()
	}
	if a.unknown {
		text += ", unknown"
	}
	return text
}

func (at when) String() string {
	switch at {
	case never:
		return "none"
	case far:
		return "a day"
	case minute:
		return "a minute"
	default:
		return fmt.Sprintf("%+d", int8(at))
	}
}

package modelcheck

import (
	"fmt"
	"slices"
	"strings"
)

// trace returns the shortest way to a state, a line an action.
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
	scheduler, attempt := fmt.Sprintf("scheduler %d", a.actor), name(a.step, a.n)
	switch a.kind {
	case doLoad:
		event := a.ev.String()
		if a.ev.kind == evRequest {
			event = string(m.config.Verbs[a.ev.n])
		}
		if a.ev.kind == evSettle {
			event = m.config.Settlements[a.ev.n].String()
		}
		if a.second.kind != evNone {
			event += ", and " + a.second.String()
		}
		return scheduler + " loads, for " + event
	case doAsk:
		return fmt.Sprintf("%s asks: %s %s", scheduler, asks[a.to], attempt)
	case doClose:
		return scheduler + " closes " + attempt
	case doDecide:
		return scheduler + " decides"
	case doSave:
		return scheduler + " saves"
	case doSend:
		return scheduler + describeSend(a)
	case doHand:
		return "the agent of " + attempt + " hands it to somebody outside"
	case doSay:
		return fmt.Sprintf("somebody outside gives word %d", a.n)
	case doRefuse:
		return "the queue refuses the task " + attempt
	case doCrash:
		return scheduler + " crashes"
	case doClaim:
		return "an agent claims " + attempt
	case doClaimFar:
		return "an agent claims " + attempt + " for a day"
	case doLie:
		return "a liar claims " + attempt
	case doEffect:
		return "the remote answers " + attempt
	case doReply:
		return "the agent of " + attempt + " replies: " + replyNames[a.to]
	case doHeartbeat:
		return "the agent of " + attempt + " sends a heartbeat"
	case doTick:
		return "a tick"
	case doMinute:
		return "a minute"
	case doWeeks:
		return "weeks"
	case doExpire:
		return "the claim item of " + attempt + " is deleted"
	case doChild, doAskChild, doLate, doStall, doHalf:
		return m.describeChild(a)
	case doLookAtGate, doOther:
		return describeGate(a)
	case doRestart:
		return "the engine starts again"
	case doPowerLoss:
		return "the engine starts again, without the claims that were not flushed"
	case doWipe:
		return "all but the store goes down"
	default:
		panic(fmt.Sprintf("modelcheck: action %d", a.kind))
	}
}

func describeSend(a action) string {
	switch a.to {
	case sendNotice:
		return fmt.Sprintf(" announces %d", a.n)
	case sendLeft:
		return " takes " + name(a.step, a.n) + " from the gate"
	}
	return " sends the task " + name(a.step, a.n)
}

// told says how the job and its claims look, if they have changed.
func (m *model) told(before, s *state) string {
	if before.job == s.job && before.items == s.items && before.children == s.children && before.gate == s.gate {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n    %s, wanted %s, round %d, key %s", states[s.job.state], states[s.job.desired], s.job.round, s.job.key)
	if s.job.paused {
		b.WriteString(", paused")
	}
	if m.config.Gate {
		fmt.Fprintf(&b, "\n    at the gate: %+v", s.gate)
	}
	for i := range m.w.Steps {
		st := s.job.steps[i]
		fmt.Fprintf(&b, "\n    s%d: %s, undo %s", i, m.say(st.forward), m.say(st.undo))
		for _, it := range s.items[i] {
			b.WriteString(it.say())
		}
		for n, c := range s.children[i] {
			if c != 0 {
				fmt.Fprintf(&b, "; child #%d %s", n, c.say())
			}
		}
	}
	return b.String()
}

func (it item) say() string {
	if it.attempt == 0 {
		return ""
	}
	text := fmt.Sprintf("; #%d", it.attempt)
	switch {
	case it.closed != 0:
		text += " closed: " + string(findings[it.closed])
	case it.by == byLiar:
		text += " a liar's until " + it.until.String()
	default:
		text += " claimed until " + it.until.String()
	}
	if it.ends != never {
		text += ", unwanted, ends " + it.ends.String()
	}
	return text
}

func (m *model) say(a activity) string {
	if a.attempt == 0 && a.state == 0 {
		return "not started"
	}
	text := fmt.Sprintf("%s #%d", activities[a.state], a.attempt)
	if a.due != never {
		text += " until " + a.due.String()
	}
	if a.look != never {
		text += " look " + a.look.String()
	}
	if a.word > 0 {
		text += fmt.Sprintf(", word %d %s", a.word-1, [...]string{"taken", "held"}[a.how])
	}
	if a.settled > 0 {
		text += ", settled"
	}
	if a.queued {
		text += ", queued"
	}
	if a.closing {
		text += ", closing"
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

// name is an attempt, for people.
func name(step, n uint8) string { return fmt.Sprintf("s%d#%d", step, n) }

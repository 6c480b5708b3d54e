package machine_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/wire"
)

// rules are what holds while a step waits, or its undo.
func (s *story) rules(a args, prefix string) *makegood.WaitRules {
	var r makegood.WaitRules
	names := func(name string) []string {
		if text := a.or(prefix+name, ""); text != "" {
			return strings.Split(text, ",")
		}
		return nil
	}
	r.Ask = names("ask")
	for _, after := range names("remind") {
		r.Remind = append(r.Remind, s.duration(after))
	}
	if after := a.or(prefix+"escalate", ""); after != "" {
		r.Escalate = &makegood.Escalate{After: s.duration(after), Ask: names("others")}
	}
	if output, ok := a.values[prefix+"onTimeout"]; ok {
		r.OnTimeout = &makegood.OnTimeout{Output: json.RawMessage(output)}
	}
	if r.Ask == nil && r.Escalate == nil && r.OnTimeout == nil {
		return nil
	}
	return &r
}

func jsonOf(t *testing.T, value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// place is the step that a line names, as whoever holds its completion token knows it, or, with address, an operator.
func (s *story) place(a args) job.Place {
	p := job.Place{Step: a.words[1], Undo: a.has("undo")}
	if a.has("address") {
		p.Round = s.number(a.or("round", "0"))
		return p
	}
	of := s.ofGeneration(p, a)
	of.Round = s.number(a.or("round", strconv.Itoa(s.job.Round)))
	token := machine.CompletionToken(of, p.Step, p.Undo)
	if a.has("forged") {
		token = token[:len(token)-4] + "AAAA"
	}
	_, p, err := job.ReadCompletionToken(token)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// ofGeneration is the job with the step as it was in the generation that a line names.
func (s *story) ofGeneration(p job.Place, a args) job.Job {
	of := s.job.Clone()
	generation, says := a.values["generation"]
	for i := range of.Steps {
		if is := &of.Steps[i]; is.Name == p.Step && says {
			is.Forward.Generation, is.Undo.Generation = s.number(generation), s.number(generation)
		}
	}
	return of
}

// waits makes an event of steps that wait.
func (s *story) waits(verb string, a args) (e job.Event, ok bool) {
	switch verb {
	case "ended":
		state, _ := s.job.Step(a.words[1])
		return job.ChildEnded{Step: a.words[1], Attempt: s.number(a.or("attempt", strconv.Itoa(state.Forward.Attempt)))}, true
	case "wait":
		e := job.StepWaiting{Reply: s.reply(a)}
		if until, ok := a.values["until"]; ok {
			e.Deadline = s.start.Add(s.duration(until).Std())
		}
		return e, true
	case "complete":
		return job.StepCompleted{
			Place: s.place(a), Output: wire.Inline(json.RawMessage(a.or("output", "null"))),
			Request: a.or("request", ""), By: a.or("by", ""), Why: a.or("why", ""), Early: a.has("early"),
		}, true
	case "give":
		return job.StepCompleted{Place: s.place(a), Request: a.or("request", ""), Early: a.has("early"), Error: &job.StepError{
			Message: a.or("message", "it was refused"), Kind: a.or("kind", ""), Retryable: !a.has("final"), Applied: makegood.Applied(a.or("applied", "unknown")),
		}}, true
	case "settle":
		return job.Settled{
			Place: job.Place{Step: a.words[1], Undo: a.has("undo"), Round: s.number(a.or("round", "0"))},
			Done:  a.has("done"), NotDone: a.has("notDone"), Output: wire.Inline(json.RawMessage(a.or("output", "null"))),
			Reason: a.or("reason", ""), By: a.or("by", ""), Request: a.or("request", ""), Attempt: s.number(a.or("attempt", "0")),
		}, true
	case "extend":
		e := job.WaitExtended{Place: s.place(a)}
		if until, ok := a.values["until"]; ok {
			e.Until = s.start.Add(s.duration(until).Std())
		}
		return e, true
	case "asked", "unasked":
		a1, n := s.activityOf(a.words[1], a.has("undo")), 0
		if a1.Wait != nil {
			n = a1.Wait.Asked
		}
		n = s.number(a.or("n", strconv.Itoa(n)))
		if verb == "asked" {
			return job.Asked{Step: a.words[1], Attempt: a1.Attempt, N: n}, true
		}
		return job.NotAsked{Step: a.words[1], Attempt: a1.Attempt, N: n}, true
	default:
		return nil, false
	}
}

// asks says that people are to be asked to complete a step.
func (s *story) asks(c job.Ask) string {
	q, ok := machine.QuestionOf(s.w, s.job, c)
	if !ok {
		s.t.Fatalf("%+v asks nothing", c)
	}
	line := fmt.Sprintf("  -> ask %s to complete %s#%d, %d", strings.Join(q.To, " and "), named(c.Step, c.Undo), c.Attempt, c.N)
	if q.Choices != nil {
		line += ": " + strings.Join(q.Choices, " or ")
	}
	return line + ", until " + s.when(q.Deadline) + "\n"
}

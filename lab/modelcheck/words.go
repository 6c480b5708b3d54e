package modelcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// Word is an answer from outside that completes the first step of a model, by whoever an agent handed it to.
type Word struct {
	// Address: they name the step by its address. Else they hold its completion token.
	Address bool
	// Fails: the step has failed, and nobody knows what was done. Else it is done; what it gave is the word's number.
	Fails bool
}

// How a word is remembered.
const (
	wordTaken uint8 = iota
	wordHeld
)

// waitFor is how long an agent lets its step wait.
const waitFor = 2 * tick

// words lets those outside say what they have to say, once an agent has handed the step to them.
func (m *model) words(s *state) {
	for k, w := range m.config.Words {
		if s.said&(1<<k) != 0 || s.handed&1 == 0 {
			continue
		}
		next := *s
		next.said |= 1 << k
		if ledger := &next.remote[0][1]; !w.Fails {
			if *ledger&ledgerUndone != 0 {
				continue // The remote refuses it, as it does an agent.
			}
			*ledger |= ledgerApplied
		}
		m.add(action{kind: doSay, n: uint8(k), fault: true}, next, "")
	}
}

// hand lets the agent of an attempt hand its step to somebody outside, who may answer from then on.
func (m *model) hand(s *state, i, n uint8) {
	if !m.config.Waits || i > 0 {
		return
	}
	next := *s
	next.become(i, n, runHanded)
	next.handed |= 1 << i
	m.add(action{kind: doHand, step: i, n: n, fault: true}, next, "")
}

// completion is the event of a word.
func (m *model) completion(n uint8) job.StepCompleted {
	w := m.config.Words[n]
	e := job.StepCompleted{Place: job.Place{Step: stepName(0), Round: 1}}
	if !w.Address {
		e.Token = machine.CompletionToken(job.Job{ID: "j", Secret: secret, Round: 1}, e.Step, false)
	}
	if w.Fails {
		e.Error = &job.StepError{Message: "no", Retryable: true, Applied: makegood.AppliedUnknown}
		return e
	}
	output := json.RawMessage(fmt.Sprint(n))
	e.Output = job.Payload{Inline: output, Bytes: len(output)}
	return e
}

func (m *model) wordOf(cause string) (event, bool) {
	if !strings.HasPrefix(cause, "completed:") {
		return event{}, false
	}
	for k := range m.config.Words {
		if m.completion(uint8(k)).Cause() == cause {
			return event{kind: evWord, n: uint8(k)}, true
		}
	}
	panic(fmt.Sprintf("modelcheck: cause %q", cause))
}

// fullWord and compactWord translate what is remembered of a word: its number, from 1, and how it is.
func (m *model) fullWord(word, how uint8) *job.Completion {
	if word == 0 {
		return nil
	}
	e := m.completion(word - 1)
	c := &job.Completion{Answer: e.Answer()}
	if how == wordHeld {
		c.Held, c.Output, c.Error = true, e.Output, e.Error
	}
	return c
}

func (m *model) compactWord(c *job.Completion) (word, how uint8) {
	if c == nil {
		return 0, wordTaken
	}
	for k := range m.config.Words {
		if m.completion(uint8(k)).Answer() != c.Answer {
			continue
		}
		if c.Held {
			how = wordHeld
		}
		if c.Early {
			panic(fmt.Sprintf("modelcheck: the word %+v", c))
		}
		return uint8(k) + 1, how
	}
	panic(fmt.Sprintf("modelcheck: the word %+v", c))
}

// waitingActivity fills in what is known of a side that waits.
func waitingActivity(a *job.Activity, until when) {
	a.At, a.LookAt = base.Add(-time.Second), timeOf(until)
	a.Wait = &job.Wait{Deadline: timeOf(until), For: waitFor}
}

// keepsKey reports whether the end of a wait has left the key where it was, since what follows has often ended before
// the next sweep: the same deadline again only moves it.
func keepsKey(before, after job.Job, e job.Event) bool {
	due, ok := e.(job.DeadlinePassed)
	if !ok || !due.Key.Equal(after.CompleteBy) {
		return false
	}
	for i, s := range before.Steps {
		if s.Forward.State == job.Waiting && after.Steps[i].Forward.State != job.Waiting {
			return true
		}
	}
	return false
}

// judgeWords holds what must be true of one decision about words: the first stands, and is never lost.
func judgeWords(before, after job.Job, e job.Event) string {
	if after.Round != before.Round {
		return ""
	}
	c, isWord := e.(job.StepCompleted)
	for i, s := range after.Steps {
		was, is := before.Steps[i].Forward, s.Forward
		switch {
		case isWord && c.Step == s.Name && (was.Held() || was.State == job.Done):
			return fmt.Sprintf("%s was completed, and is completed again", s.Name)
		case was.Held() && !is.Held() && was.Completion.Error == nil:
			if is.State != job.Done || !bytes.Equal(is.Output.Inline, was.Completion.Output.Inline) {
				return fmt.Sprintf("%s was completed with %s, and that is lost", s.Name, was.Completion.Output.Inline)
			}
		case was.Held() && !is.Held() && is.FailureCount == was.FailureCount:
			return fmt.Sprintf("%s was said to have failed, and that is lost", s.Name)
		case was.Held() && is.Held() && was.Completion.Answer != is.Completion.Answer:
			return fmt.Sprintf("%s was completed, and then otherwise", s.Name)
		case isWord && c.Step == s.Name && is.State == job.Done && !bytes.Equal(is.Output.Inline, c.Output.Inline):
			return fmt.Sprintf("%s was completed with %s, and gave %s", s.Name, c.Output.Inline, is.Output.Inline)
		case is.State == job.Waiting && after.Desired != makegood.JobProcessed:
			return fmt.Sprintf("%s waits in a job that is to be %s", s.Name, after.Desired)
		}
	}
	return ""
}

package page

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// question is the question of an approval, which stands first on the job's page.
type question struct {
	Step, Question string
	Undo           bool
	Round          int
	// Of names the receivers of the question, as the workflow has them; empty: none.
	Of           string
	Since, Until *time.Time
	// Else describes the outcome without an answer in time.
	Else    string
	Answers []order
	// WhyFor are the answers that must say why.
	WhyFor string
}

// questionsOf are the questions of a job that wait for an answer.
func questionsOf(s seen) []question {
	var all []question
	for _, o := range s.offers.Steps {
		answer, _ := domain.StepOffer(o, domain.AskComplete)
		longer, _ := domain.StepOffer(o, domain.AskHeartbeat)
		if len(o.Choices) == 0 || !answer.Granted() || !longer.Granted() {
			continue
		}
		q := question{Step: o.Step, Undo: o.Undo, Round: s.job.Round, Question: o.Question, Else: "Without an answer the step has failed then."}
		for _, step := range s.job.Steps {
			if step.Name == o.Step {
				a := &step.Activity
				if o.Undo && step.Undo != nil {
					a = step.Undo
				}
				q.Since, q.Until = a.SentAt, a.CompleteBy
			}
		}
		for _, choice := range o.Choices {
			q.Answers = append(q.Answers, order{Value: choice})
		}
		if def := stepOf(s, o.Step); def != nil {
			q.describe(*def)
		}
		all = append(all, q)
	}
	return all
}

// describe takes the receivers, the deadline and the consequences of the answers from the definition of a step.
func (q *question) describe(def makegood.Step) {
	rules, with := def.Waiting, def.With
	if q.Undo && def.Undo != nil {
		rules, with = def.Undo.Waiting, def.Undo.With
	}
	if rules != nil {
		q.Of = strings.Join(rules.Ask, ", ")
		if rules.OnTimeout != nil {
			q.Else = "Without an answer its output is " + cut(string(rules.OnTimeout.Output), 80) + " then."
		}
	}
	for i, a := range q.Answers {
		if do, says := def.OnAnswer[a.Value]; says && !q.Undo {
			q.Answers[i].Says = do.String()
		}
	}
	var says struct{ Why json.RawMessage }
	var some []string
	switch {
	case json.Unmarshal(with, &says) != nil || says.Why == nil:
	case json.Unmarshal(says.Why, &some) == nil:
		q.WhyFor = strings.Join(some, ", ")
	default:
		q.WhyFor = "every answer"
	}
}

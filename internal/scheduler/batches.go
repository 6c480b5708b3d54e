package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/wire"
)

// A batch of items of a map is one step, and its agent answers for each item. The Scheduler keeps the answers as the
// output of the step. The task of the next attempt has the other items alone.

// readAnswers reads the answers for the items of a batch that are kept as an output. Another output, such as one that a
// person gave, has none.
func readAnswers(output json.RawMessage) []makegood.Answer {
	var answers []makegood.Answer
	if json.Unmarshal(output, &answers) != nil {
		return nil
	}
	return answers
}

// doneIn has the answer for each item that is done.
func doneIn(answers []makegood.Answer) map[int]makegood.Answer {
	done := make(map[int]makegood.Answer, len(answers))
	for _, a := range answers {
		if a.Error == nil {
			done[a.Item] = a
		}
	}
	return done
}

// batchOf is how many items the step of a batch has; 0: it is none.
func (m *moved) batchOf(step string) int {
	i := slices.IndexFunc(m.compiled.Workflow.Steps, func(s makegood.Step) bool { return s.Name == step })
	return domain.BatchSize(m.compiled.Workflow, i)
}

// answersFor returns the kept answers of the activity that an attempt of a step belongs to, and the items that are not
// tried again.
func (m *moved) answersFor(ctx context.Context, j job.Job, step string, attempt int) (answers []makegood.Answer, refused int, err error) {
	s, _ := j.Step(step)
	a := &s.Forward
	if attempt == s.Undo.Attempt || attempt == s.Undo.Silence().Attempt {
		a = &s.Undo
	}
	kept, err := m.values.get(ctx, j.ID, a.Output)
	return readAnswers(kept), a.Refused, err
}

// leaveOut takes the items out of the task of a batch that are done, or that are not tried again. An undo is told the
// outputs of the items that are known to be done.
func (m *moved) leaveOut(ctx context.Context, t *makegood.Task) error {
	answers, refused, err := m.answersFor(ctx, m.job, t.Step, t.Attempt)
	if err != nil {
		return err
	}
	var inputs, left []json.RawMessage
	if err := json.Unmarshal(t.Input, &inputs); err != nil {
		return fmt.Errorf("the inputs of the batch: %w", err)
	}
	done := doneIn(answers)
	for item, input := range inputs {
		if _, is := done[item]; !is && refused&(1<<item) == 0 {
			left, t.Batch = append(left, input), append(t.Batch, item)
		}
	}
	if t.Input, err = json.Marshal(left); err != nil || t.Undo == nil {
		return err
	}
	known := slices.DeleteFunc(readAnswers(t.Undo.Output), func(a makegood.Answer) bool { return a.Error != nil })
	if known == nil {
		known = []makegood.Answer{}
	}
	t.Undo.Output, err = json.Marshal(known)
	return err
}

// answered takes the answers of an agent for the items of a batch: its success is a failure, unless all items are done.
func (m *moved) answered(ctx context.Context, j job.Job, e job.Event) (job.Event, error) {
	said, ok := e.(job.StepSucceeded)
	if !ok {
		return e, nil
	}
	size := m.batchOf(said.Step)
	if size == 0 {
		return e, nil
	}
	kept, refused, err := m.answersFor(ctx, j, said.Step, said.Attempt)
	if err != nil {
		return e, err
	}
	b := itemAnswers{answers: make([]makegood.Answer, size), refused: refused}
	wrong := b.take(kept, said.Output.Inline)
	output, err := json.Marshal(b.answers)
	if wrong == "" {
		wrong = misfit(output)
	}
	switch {
	case err != nil:
		return e, fmt.Errorf("the answers for a batch: %w", err)
	case wrong != "":
		return job.StepFailed{Reply: said.Reply, Error: job.StepError{Message: limits.Clip(wrong), Applied: makegood.AppliedUnknown}}, nil
	}
	said.Output = wire.Inline(output)
	if done := b.done(); done < size {
		return job.StepFailed{Reply: said.Reply, Error: b.failure(), Batch: &job.BatchAnswers{Output: said.Output, Done: done, Refused: b.refused}}, nil
	}
	return said, nil
}

// itemAnswers has the latest answer for each item of a batch, and a bit for each that is not tried again.
type itemAnswers struct {
	answers []makegood.Answer
	refused int
}

// take puts the answers of a reply over those that are kept, and says what is wrong with them; empty: they can be read.
// An item without an answer has failed, perhaps with an effect.
func (b *itemAnswers) take(kept []makegood.Answer, output json.RawMessage) (wrong string) {
	var said []makegood.Answer
	if err := json.Unmarshal(output, &said); err != nil {
		return fmt.Sprintf(`the output of a batch is a list of answers, such as [{"item":0,"output":{}},{"item":1,"error":{"message":"no stock"}}]: %v`, err)
	}
	known := make([]bool, len(b.answers))
	for item := range b.answers {
		b.answers[item] = makegood.Answer{Item: item, Error: &makegood.AnswerError{StepError: makegood.StepError{
			Message: "the agent gave no answer", Retryable: true, Applied: makegood.AppliedUnknown,
		}}}
	}
	for _, a := range kept {
		if a.Item < 0 || a.Item >= len(known) || a.Error != nil && b.refused&(1<<a.Item) == 0 {
			continue
		}
		b.answers[a.Item], known[a.Item] = a, true
		if a.Error == nil {
			b.refused &^= 1 << a.Item
		}
	}
	for _, a := range said {
		switch {
		case a.Item < 0 || a.Item >= len(b.answers):
			return fmt.Sprintf("an answer for item %d of a batch of %d: they count from 0", a.Item, len(b.answers))
		case a.Error == nil:
			b.answers[a.Item] = a
			b.refused &^= 1 << a.Item
		case !known[a.Item]:
			a.Error.Message = limits.Clip(a.Error.Message)
			b.answers[a.Item] = a
			if !a.Error.Retryable {
				b.refused |= 1 << a.Item
			}
		}
	}
	return ""
}

func (b *itemAnswers) done() (n int) {
	for _, a := range b.answers {
		if a.Error == nil {
			n++
		}
	}
	return n
}

// failure says why items of a batch have failed. It is tried again if one of them may be, after the longest pause that
// was asked for; it had no effect if none of its items had one.
func (b *itemAnswers) failure() job.StepError {
	all := job.StepError{Applied: makegood.AppliedNo}
	var reasons []string
	for _, a := range b.answers {
		e := a.Error
		if e == nil || e.Applied != makegood.AppliedNo {
			all.Applied = makegood.AppliedUnknown
		}
		if e == nil {
			continue
		}
		if len(reasons) == 0 {
			all.Kind = e.Kind
		}
		reasons = append(reasons, fmt.Sprintf("item %d: %s", a.Item, e.Message))
		if b.refused&(1<<a.Item) == 0 {
			all.Retryable, all.SlowDown = true, all.SlowDown || e.SlowDown
		}
		all.RetryAfter = max(all.RetryAfter, makegood.Duration(e.RetryAfterMs)*makegood.Millisecond)
	}
	all.Message = limits.Clip(fmt.Sprintf("%d of %d items of the batch failed: %s", len(reasons), len(b.answers), strings.Join(reasons, "; ")))
	return all
}

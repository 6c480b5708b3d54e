package machine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// child is a child as it is seen, and how it has ended.
type child struct {
	seen machine.ChildSeen
	end  job.ChildEnd
	// wrong is why items that a redrive names are not redriven; empty: all of them have failed.
	wrong string
}

func (s *story) childOf(step string) string {
	return domain.ChildID(s.job.ID, s.job.Birth, step, s.activityOf(step, false).Attempt)
}

// answerChild does what the Scheduler does to answer a question about a child.
func (s *story) answerChild(ask machine.Ask) job.Found {
	id := s.childOf(ask.Step)
	if ask.Kind == machine.AskItems {
		found := job.Found{Refused: s.children[id].wrong}
		s.answers = append(s.answers, fmt.Sprintf("  ? items %s of %s#%d: %s\n", ask.Indexes, ask.Step, ask.Attempt, cmp.Or(found.Refused, "have failed")))
		return found
	}
	finding, act := s.children[id].seen.Answer(ask)
	switch act {
	case machine.NeverBegin:
		s.children[id] = child{seen: machine.ChildSeen{State: makegood.JobCancelled, Never: true, Back: true}}
	case machine.CancelChild:
		s.children[id] = child{seen: machine.ChildSeen{State: makegood.JobUndoing, Back: true}}
	}
	c := s.children[id]
	switch act {
	case machine.NeverRedrive:
		c.seen.Redrives = ask.Redrives
		s.children[id] = c
	case machine.TakeEdit:
		c.seen.Edited = ask.Edited
		s.children[id] = c
	}
	found := job.Found{Finding: finding}
	if finding == job.FoundEnded {
		end := s.children[id].end
		found.Child = &end
	}
	said, by := string(finding), ""
	if act != "" {
		said += ", " + string(act)
	}
	if ask.Mark {
		by = " (unwanted)"
	}
	s.answers = append(s.answers, fmt.Sprintf("  ? %s %s#%d%s: %s\n", ask.Kind, named(ask.Step, ask.Undo), ask.Attempt, by, said))
	return found
}

// begin says that the child of an attempt is to be put there, or undone. A line "child" says what came of it.
func (s *story) begin(d job.Dispatch) string {
	verb := "begin"
	switch n := s.activityOf(d.Step, false).Repeats; {
	case d.Undo:
		verb = "undo"
	case n > 0:
		verb = fmt.Sprintf("redrive (%d)", n)
		if of := s.activityOf(d.Step, false).Redriven; of != "" {
			verb += " items " + string(of) + " of"
		}
	}
	i := slices.IndexFunc(s.w.Steps, func(of makegood.Step) bool { return of.Name == d.Step })
	return fmt.Sprintf("  -> %s job %s of workflow %s%s\n", verb, s.childOf(d.Step), s.w.Steps[i].Action, editText(machine.EditFor(s.w, &s.job, d.Step)))
}

// passEdit says that the child of an attempt is to take the edit of its map.
func (s *story) passEdit(c job.PassEdit) string {
	begin := ""
	if c.Begin {
		begin = ", or begin it"
	}
	return fmt.Sprintf("  -> edit job %s%s%s\n", s.childOf(c.Step), editText(machine.EditFor(s.w, &s.job, c.Step)), begin)
}

// editText describes an edit, if there is one.
func editText(e job.MapEdit) string {
	if e.N == 0 {
		return ""
	}
	return fmt.Sprintf(" with edit %d%s", e.N, figures(e.Concurrency, e.Tolerate))
}

func figures(concurrency int, tolerate *makegood.Tolerance) (text string) {
	if concurrency > 0 {
		text += fmt.Sprintf(", concurrency %d", concurrency)
	}
	if tolerate != nil {
		text += fmt.Sprintf(", tolerate %d items", tolerate.Items)
	}
	if tolerate != nil && tolerate.Share > 0 {
		text += fmt.Sprintf(" and a share of %v after %d", tolerate.Share, tolerate.After)
	}
	return text
}

// edit reads the edit of a map that is asked for: step=NAME or number=N, concurrency=N, and tolerate=N, share=0.1
// after=N.
func (s *story) edit(a args) *job.MapEdit {
	e := job.MapEdit{Step: a.or("step", ""), N: s.number(a.or("number", "0")), Concurrency: s.number(a.or("concurrency", "0"))}
	if e.Step == "" && e.N == 0 {
		return nil
	}
	if items, ok := a.values["tolerate"]; ok {
		share, err := strconv.ParseFloat(a.or("share", "0"), 64)
		if err != nil {
			s.t.Fatal(err)
		}
		e.Tolerate = &makegood.Tolerance{Items: s.number(items), Share: share, After: s.number(a.or("after", "0"))}
	}
	return &e
}

// child says how the child of a step is.
func (s *story) child(a args) {
	id, state := s.childOf(a.words[1]), makegood.ProcessState(a.words[2])
	if state == "gone" {
		delete(s.children, id)
		return
	}
	back := a.has("back") || state == makegood.JobUndone || state == makegood.JobCancelled || state == makegood.JobUndoing
	end := job.ChildEnd{State: state, Reason: a.or("reason", ""), Unfit: a.or("unfit", ""), Failed: s.number(a.or("failed", "0"))}
	if output, ok := a.values["output"]; ok {
		end.Output = job.Payload{Inline: json.RawMessage(output), Bytes: len(output)}
	}
	seen := machine.ChildSeen{State: state, Back: back, Redrives: s.number(a.or("redrives", fmt.Sprint(s.children[id].seen.Redrives)))}
	seen.Edited = s.number(a.or("edited", fmt.Sprint(s.children[id].seen.Edited)))
	s.children[id] = child{seen, end, a.or("wrong", "")}
}

// part reads what the workflow of a part says: part=NAME items=N concurrency=N tolerate=N share=0.1 after=N.
func (s *story) part(a args) *makegood.Part {
	of, ok := a.values["part"]
	if !ok {
		return nil
	}
	share, err := strconv.ParseFloat(a.or("share", "0"), 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return &makegood.Part{
		Of: of, Items: s.number(a.or("items", "0")), Concurrency: s.number(a.or("concurrency", "100")), Batch: s.number(a.or("batch", "0")),
		Tolerate: makegood.Tolerance{Items: s.number(a.or("tolerate", "0")), Share: share, After: s.number(a.or("after", "0"))},
	}
}

// batch is what a failure says of the items of a batch: done=N of them are, and refused=BITS are not tried again.
func (s *story) batch(a args) *job.BatchAnswers {
	done, ok := a.values["done"]
	if !ok {
		return nil
	}
	refused, err := strconv.ParseInt(a.or("refused", "0"), 2, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	output := strconv.Quote(done + " done")
	return &job.BatchAnswers{Output: job.Payload{Inline: json.RawMessage(output), Bytes: len(output)}, Done: s.number(done), Refused: int(refused)}
}

// mapOf is the map of a step, of so many items: map=N. Its items may have an undo: itemUndo=ACTION, itemAttempts=N.
func (s *story) mapOf(a args) *makegood.Map {
	n, ok := a.values["map"]
	if !ok {
		return nil
	}
	item := &makegood.Step{Name: "item", Agent: "agent"}
	if action, ok := a.values["itemUndo"]; ok {
		item.Retry.Attempts = s.number(a.or("itemAttempts", "1"))
		item.Undo = &makegood.Undo{Action: action, Retry: item.Retry}
	}
	return &makegood.Map{Count: s.number(n), Item: item}
}

// within is the claim of an attempt that has it within the job.
func (s *story) within(step string) (job.Claim, bool) {
	i := slices.IndexFunc(s.job.Steps, func(o job.StepState) bool { return o.Name == step })
	if i < 0 {
		return job.Claim{}, false
	}
	return machine.ClaimWithin(s.w, s.job, i)
}

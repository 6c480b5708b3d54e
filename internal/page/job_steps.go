package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/graph"
	line "github.com/makegood-dev/makegood/internal/timeline"
)

// stepData is a step in the list below the time line.
type stepData struct {
	makegood.JobStep
	Shape, Word string
	Says        string
	// Open: it stands open, since it needs a person or is under way.
	Open     bool
	Attempts []attemptData
	// Definition is the step in the workflow; nil: not known.
	Definition *makegood.Step
	// Key is its idempotency key in this round.
	Key string
	// Inputs are the evaluated inputs of the step and its undo.
	Inputs []outputData
	// Outputs are the outputs of the step and its undo, and Errors the failures of their last attempts.
	Outputs []outputData
	Errors  []errorData
	Asks    []askData
}

// outputData is an output, or a link to it.
type outputData struct {
	Title, Value, Href, Size string
	// Says is a remark beside its size.
	Says string
	// Payloads are the large ones that it refers to.
	Payloads []payloadLink
}

// errorData is why an attempt failed.
type errorData struct {
	Title string
	makegood.StepError
}

// attemptData is an attempt in the table of a step.
type attemptData struct {
	Attempt     int
	Undo        bool
	Claimed     time.Time
	Queue, Took time.Duration
	By          string
	Shape, Says string
}

// askData is a request allowed for a side of a step that waits, or is to be settled.
type askData struct {
	Title, Question string
	Choices         []string
	Undo            bool
	Round           int
	// Buttons lead to the pages of the requests.
	Buttons []verb
}

// stepsOf are the steps, those that need a person first.
func stepsOf(s seen, l timeline) []stepData {
	all := make([]stepData, len(s.job.Steps))
	for i, step := range s.job.Steps {
		all[i] = stepDataOf(s, step, l.Rows[i])
	}
	slices.SortStableFunc(all, func(a, b stepData) int { return cmp.Compare(rank(a.Shape), rank(b.Shape)) })
	// What failed or waits stands open; of many the first.
	for i := range min(len(all), 3) {
		all[i].Open = rank(all[i].Shape) <= 1
	}
	return all
}

// rank orders steps: failed, waiting, under way, undone, done, passed by, not reached.
func rank(shape string) int {
	order := []graph.State{graph.Error, graph.Waiting, graph.Processing, graph.Undoing, graph.Pending, graph.Cancelled, graph.Undone, graph.Processed, graph.Skipped}
	if at := slices.Index(order, graph.State(shape)); at >= 0 {
		return at
	}
	return len(order)
}

func stepDataOf(s seen, step makegood.JobStep, row line.Row) stepData {
	node := s.nodes[step.Name]
	d := stepData{
		JobStep: step, Shape: node.State.Class(), Word: node.Word, Says: saysOf(s, step), Attempts: attemptsOf(s.job, step, row),
		Key: fmt.Sprintf("%s/%s/%d", s.job.ID, step.Name, s.job.Round), Definition: stepOf(s, step.Name),
	}
	for _, in := range s.sent {
		if in.Step == step.Name {
			d.Inputs = append(d.Inputs, inputSent(s.job.ID, in))
		}
	}
	d.Outputs = append(d.Outputs, outputOf(s.job.ID, "Output", step.Name, step.Activity, false)...)
	if step.Error != nil {
		d.Errors = append(d.Errors, errorData{"Error", *step.Error})
	}
	if step.Undo != nil {
		d.Outputs = append(d.Outputs, outputOf(s.job.ID, "Output of its undo", step.Name, *step.Undo, true)...)
		if step.Undo.Error != nil {
			d.Errors = append(d.Errors, errorData{"Error of its undo", *step.Undo.Error})
		}
	}
	for _, o := range s.offers.Steps {
		if o.Step == step.Name {
			d.Asks = append(d.Asks, asksOf(s, o)...)
		}
	}
	return d
}

// Figures are the concurrency and the tolerance of its map: those of its definition, where a person has not edited
// them.
func (d stepData) Figures() string {
	if d.Definition == nil || d.Definition.Map == nil {
		return ""
	}
	m, edited := d.Definition.Map, ""
	concurrency, tolerate := m.Concurrency, m.Tolerate
	if e := d.Edited; e != nil {
		edited = "; edited, its definition has " + domain.FiguresText(concurrency, &tolerate)
		if e.Concurrency > 0 {
			concurrency = e.Concurrency
		}
		if e.Tolerate != nil {
			tolerate = *e.Tolerate
		}
	}
	return domain.FiguresText(concurrency, &tolerate) + edited
}

// outputOf is the output of a side: the value itself, or a link to a large one.
func outputOf(id, title, step string, a makegood.Activity, undo bool) []outputData {
	if a.OutputBytes == 0 {
		return nil
	}
	o := outputData{Title: title, Size: bytesOf(a.OutputBytes), Value: pretty(a.Output), Payloads: payloadsIn(id, a.Output)}
	if !given(a.Output) {
		o.Value, o.Href = "", "jobs/"+id+"/payload?"+sideQuery(step, undo, 0)
	}
	return []outputData{o}
}

// inputSent shows the evaluated input of a side, or a link to a large one, and whether the attempt got the same.
func inputSent(id string, in makegood.SentInput) outputData {
	o := outputData{Title: "Asked with", Size: bytesOf(in.Bytes), Value: pretty(in.Value), Says: "as it was sent"}
	if in.Undo {
		o.Title = "Its undo asked with"
	}
	switch {
	case in.Problem != "":
		o.Value, o.Size, o.Says = in.Problem, "not known", "it cannot be evaluated now"
	case !in.AsSent:
		o.Says = "as it would be asked now: " + in.Changed
	}
	if in.Problem == "" && !given(in.Value) && in.Bytes > len("null") {
		o.Value, o.Href = "", "jobs/"+id+"/payload?asked=true&"+sideQuery(in.Step, in.Undo, 0)
	}
	return o
}

// given reports whether a payload is there: JSON has null for one that is not.
func given(payload json.RawMessage) bool { return len(payload) > 0 && string(payload) != "null" }

// sideQuery names a side of a step in an address.
func sideQuery(step string, undo bool, round int) string {
	values := url.Values{"step": {step}}
	if undo {
		values.Set("undo", "true")
	}
	if round > 0 {
		values.Set("round", fmt.Sprint(round))
	}
	return values.Encode()
}

// bytesOf writes a size.
func bytesOf(n int) string {
	if n < 1<<10 {
		return many(n, "byte")
	}
	return fmt.Sprintf("%d KB", (n+1<<10-1)>>10)
}

// saysOf says of a step how it stands, in a line.
func saysOf(s seen, step makegood.JobStep) string {
	a, undo := step.Activity, false
	if step.Undo != nil && step.Undo.State != makegood.StepNotStarted && step.Undo.State != makegood.StepSkipped {
		a, undo = *step.Undo, true
	}
	switch {
	case step.Settled != nil && !undo, undo && a.Settled != nil:
		return "settled by hand: " + cmp.Or(a.Settled.Reason, "no reason was given")
	case underWayNow(a):
		return strings.TrimPrefix(does(s, step, a), "step "+step.Name+" ") + reported(a) + lastTime(a)
	case a.Error != nil && a.State != makegood.StepDone:
		return cut(a.Error.Message, 160)
	case a.State == makegood.StepDone && undo:
		return fmt.Sprintf("done %s, undone %s", moment(step.FinishedAt), moment(a.FinishedAt))
	case a.State == makegood.StepDone:
		return strings.TrimSpace(fmt.Sprintf("done %s %s", moment(a.FinishedAt), prefixed("by ", a.CompletedBy)) + prefixed(": ", a.CompletedWhy))
	case a.State == makegood.StepIrreversible:
		return "done, and cannot be undone"
	case a.State == makegood.StepNotStarted:
		return notReached(s, step.Name)
	}
	return ""
}

// underWayNow reports whether an attempt is out, awaited or to follow.
func underWayNow(a makegood.Activity) bool {
	return isOut(a.State) || a.State == makegood.StepWaiting || a.State == makegood.StepBackoff
}

// reported is the latest progress report of a running attempt, with its time; empty: none.
func reported(a makegood.Activity) string {
	if a.State != makegood.StepClaimed || a.Progress == nil {
		return ""
	}
	return fmt.Sprintf("; at %s it reported %s", moment(a.Progress.At), cut(string(a.Progress.Value), 160))
}

// lastTime is why the attempt before failed; empty: none did.
func lastTime(a makegood.Activity) string {
	if a.Error == nil {
		return ""
	}
	return "; the attempt before failed: " + cut(a.Error.Message, 160)
}

func prefixed(with string, text *string) string {
	if text == nil {
		return ""
	}
	return with + *text
}

// notReached describes what a step waits for.
func notReached(s seen, name string) string {
	def := stepOf(s, name)
	if def == nil || s.workflow == nil {
		return "not reached"
	}
	needs := domain.Before(*s.workflow, *def)
	if len(needs) == 0 {
		return "not reached"
	}
	return "not reached: it comes after " + strings.Join(needs, ", ")
}

// attemptsOf are the attempts of a step and its undo, as its time line has them.
func attemptsOf(j makegood.Job, step makegood.JobStep, row line.Row) (all []attemptData) {
	by := map[int]string{}
	for _, e := range j.History {
		if e.Step == step.Name && e.LockedBy != "" {
			by[e.Attempt] = e.LockedBy
		}
	}
	for _, a := range []*makegood.Activity{&step.Activity, step.Undo} {
		if a != nil && a.LockedBy != nil {
			by[a.Attempt] = *a.LockedBy
		}
	}
	queue := map[int]time.Duration{}
	for _, b := range row.Bars {
		switch b.Kind {
		case line.Queue:
			queue[b.Attempt] = b.Took()
		case line.Work, line.Going, line.Failed, line.Final, line.Wait:
			all = append(all, attemptData{
				Attempt: b.Attempt, Undo: b.Undo, Claimed: b.From, Queue: queue[b.Attempt], Took: b.Took(), By: by[b.Attempt],
				Shape: attemptShape(b), Says: cmp.Or(cut(b.Why, 200), kinds[b.Kind]),
			})
		}
	}
	return all
}

func attemptShape(b line.Bar) string {
	switch b.Kind {
	case line.Work:
		if b.Undo {
			return "undone"
		}
		return "processed"
	case line.Going:
		return "processing"
	case line.Wait:
		return "waiting"
	default:
		return "error"
	}
}

// asksOf are the requests allowed for a side of a step: answers if it waits, and ways to settle it by hand if it
// failed.
func asksOf(s seen, o makegood.StepOffers) []askData {
	d := askData{Undo: o.Undo, Round: s.job.Round, Question: o.Question}
	what := "it"
	if o.Undo {
		what = "its undo"
	}
	link := func(ask string) string {
		return "jobs/" + s.job.ID + "/ask/" + ask + "?" + sideQuery(o.Step, o.Undo, s.job.Round)
	}
	if answer, _ := domain.StepOffer(o, domain.AskComplete); answer.Granted() {
		d.Title = "Waits to be completed"
		if len(o.Choices) > 0 {
			d.Choices = o.Choices
		} else {
			d.Buttons = append(d.Buttons, verb{Label: "Complete " + what + "…", Href: link(domain.AskComplete), Says: "with its output", Proposed: true})
		}
		d.Buttons = append(d.Buttons,
			verb{Label: "Fail " + what + "…", Href: link(domain.AskFail), Says: "with why"},
			verb{Label: "Wait longer…", Href: link(domain.AskHeartbeat), Says: "its deadline moves"},
		)
	}
	if edit, offered := domain.StepOffer(o, domain.AskEdit); offered && edit.Granted() {
		d.Buttons = append(d.Buttons, verb{Label: "Edit its map…", ID: "edit-" + o.Step, Href: link(domain.AskEdit), Says: "another concurrency or tolerance, while it is under way"})
	}
	settle := settleOf(s, o, "Settle "+what+"…")
	settle.ID = "step-" + settle.ID // Beside the verbs of the job it may stand, too.
	d.Buttons = append(d.Buttons, settle)
	return []askData{d}
}

// settleOf is the verb that settles a side, or why it would be refused.
func settleOf(s seen, o makegood.StepOffers, label string) verb {
	done, _ := domain.StepOffer(o, domain.AskSettleDone)
	skipped, _ := domain.StepOffer(o, domain.AskSettleSkipped)
	notDone, _ := domain.StepOffer(o, domain.AskSettleNotDone)
	v := verb{Label: label, ID: "settle-" + o.Step, Href: "jobs/" + s.job.ID + "/ask/settle?" + sideQuery(o.Step, o.Undo, s.job.Round), Says: "you dealt with it: it counts as done, or as skipped"}
	if o.Undo {
		v.ID += "-undo"
	}
	if notDone.Granted() {
		v.Says += ", or it had no effect that stands"
	}
	if !done.Granted() && !skipped.Granted() && !notDone.Granted() {
		v.Refused, v.Says = true, done.Reason
	}
	return v
}

// failedSides are the sides that failed in the direction of the job.
func failedSides(s seen) (all []makegood.StepOffers) {
	for _, o := range s.offers.Steps {
		for _, step := range s.job.Steps {
			if step.Name == o.Step && onUndo(s.job, step) == o.Undo && side(s.job, step).State == makegood.StepFailed {
				all = append(all, o)
			}
		}
	}
	return all
}

// answerText is the output of an approval that is answered with a choice.
func answerText(choice string) json.RawMessage {
	text, err := json.Marshal(choice)
	if err != nil {
		return nil // Every string is JSON.
	}
	return text
}

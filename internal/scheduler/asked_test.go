package scheduler_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// asker counts its questions, and may be deaf.
type asker struct {
	deaf  error
	asked int
	last  notify.Question
}

func (a *asker) Ask(_ context.Context, _ string, q notify.Question) error {
	a.asked, a.last = a.asked+1, q
	return a.deaf
}

// A question that could not be asked is asked again after limits.TellAgain, and not again once it was heard.
func TestAQuestionThatCouldNotBeAskedIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	boss := asker{deaf: errBroken}
	w.use(func(c *scheduler.Config) { c.Asker, c.Asked = &boss, []string{"boss"} })
	w.submit(w.define("name: one\nsteps: [{name: first, agent: approval, with: {question: well, choices: [yes]}, waiting: {ask: boss}}]"), "j")
	wait := w.job("j").Steps[0].Forward.Wait
	if boss.asked != 1 || wait.Tries != 1 || !wait.AskAt.Equal(w.now.Add(limits.TellAgain)) || wait.Heard != 0 {
		t.Fatalf("asked %d times, got %+v, want one try, and another %s later", boss.asked, wait, limits.TellAgain)
	}
	boss.deaf = nil
	w.handle(w.deadline("j"))
	if wait := w.job("j").Steps[0].Forward.Wait; boss.asked != 2 || wait.Heard != 1 {
		t.Errorf("asked %d times, got %+v, want that the second was heard", boss.asked, wait)
	}
}

// A question says all that an answer needs: of which step of which job it is, the choices, and where to answer.
func TestAQuestionSaysWhatAnAnswerNeeds(t *testing.T) {
	w := newWorld(t)
	var boss asker
	w.use(func(c *scheduler.Config) {
		c.Asker, c.Asked, c.Link = &boss, []string{"boss"}, func(token string) string { return "https://desk/" + token }
	})
	w.submit(w.define("name: one\nsteps: [{name: first, agent: approval, with: {question: well, choices: [yes, no]}, waiting: {ask: boss}}]"), "j")
	token := machine.CompletionToken(w.job("j"), "first", false)
	got := boss.last
	got.Deadline = time.Time{}
	want := notify.Question{
		Job: "j", Workflow: "one", Step: "first", Round: 1, N: 1, Since: w.now, Choices: []string{"yes", "no"}, Text: "well", Completion: token,
		Link: "https://desk/" + token,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Where nobody can be asked, that is noted of each step that waits, and none keeps another from it.
func TestEachQuestionThatCannotBeAskedIsNoted(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Asked = []string{"boss"} })
	waits := "agent: approval, needs: [], with: {question: well, choices: [yes]}, waiting: {ask: boss}"
	w.submit(w.define("name: two\nsteps:\n- {name: first, "+waits+"}\n- {name: second, "+waits+"}"), "j")
	for _, step := range w.job("j").Steps {
		if wait := step.Forward.Wait; wait == nil || wait.Tries != 1 {
			t.Errorf("step %s: got %+v, want one try", step.Name, wait)
		}
	}
}

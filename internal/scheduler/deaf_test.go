package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// stuck is everybody at once: those whom hangs names do not come back until free is closed, whatever their context says.
type stuck struct {
	hangs string
	free  chan struct{}
	mu    sync.Mutex
	heard map[string]int
}

func (s *stuck) hear(name string) {
	if name == s.hangs {
		<-s.free
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[name]++
}

type stuckNotifier struct {
	*stuck
	operator bool
}

func (s stuckNotifier) Announce(_ context.Context, n notify.Notice) error {
	if s.operator {
		n.ReplyTo = "operator"
	}
	s.hear(n.ReplyTo)
	return nil
}

func (s stuckNotifier) AgentAlert(context.Context, string, string) error {
	s.hear("agents")
	return nil
}

func (s *stuck) Ask(_ context.Context, name string, _ notify.Question) error {
	s.hear(name)
	return nil
}

func (s *stuck) Publish(_ context.Context, runs []changes.Run) []error {
	s.hear("changes")
	return make([]error, len(runs))
}

// Each of those who are told hangs once for ever, after more jobs than calls may hang: the others hear of the next job as if
// nothing were, and an error of the log names it.
func TestWhoHangsSilencesNobodyElse(t *testing.T) {
	everybody := []string{"operator", "agents", "shop", "boss", "changes"}
	for _, hangs := range everybody {
		t.Run(hangs, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &stuck{hangs: hangs, free: make(chan struct{}), heard: map[string]int{}}
				defer close(s.free)
				w := newWorld(t)
				w.use(func(c *scheduler.Config) {
					c.Notifier, c.Listener, c.Replies = stuckNotifier{s, true}, stuckNotifier{s, false}, []string{"shop"}
					c.Asker, c.Asked, c.Changes, c.Logger = s, []string{"boss"}, s, slog.New(slog.NewTextHandler(&log, nil))
				})
				for i := range pause.MaxHanging + 2 {
					w.tellEverybody(fmt.Sprint("job-", i))
				}
				clear(s.heard)
				w.tellEverybody("last")
				for _, name := range everybody {
					if name != hangs && s.heard[name] == 0 {
						t.Errorf("%s was told nothing of the last job", name)
					}
				}
				name := map[string]string{"agents": "operator, of agents", "shop": "listener shop", "boss": "asked boss"}[hangs]
				if name == "" {
					name = hangs
				}
				if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, name) {
					t.Errorf("no error of the log names %s", name)
				}
			})
		})
	}
}

// tellEverybody lets a job be of whom everybody hears: it asks somebody, its agent, one of its own, claims nothing, and it ends in Error.
func (w *world) tellEverybody(id string) {
	w.t.Helper()
	agent := "agent-" + id
	w.config.Tasks = func(string) string { return "tasks-a" }
	c := w.define("name: " + id + "\nonFailure: stop\nsteps:\n" +
		"- {name: ask, needs: [], agent: approval, with: {question: well, choices: [yes]}, waiting: {ask: boss}}\n" +
		"- {name: silent, needs: [], agent: " + agent + ", startBy: 1s, retry: {attempts: 1}}\n" +
		"- {name: bad, needs: [], agent: a, retry: {attempts: 1}}")
	submission := scheduler.Submission{ID: id, Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}
	if _, _, err := w.s.Submit(w.t.Context(), submission); err != nil {
		w.t.Fatal(err)
	}
	for range 3 {
		w.handle(w.deadline(id))
	}
	w.handle(w.failed(id, "bad", w.claim(id, "bad"), job.StepError{Message: "no"}))
}

// Of those who are asked, one who hangs costs the others nothing: they hear of each question.
func TestWhoHangsDoesNotKeepOthersFromBeingAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{hangs: "boss", free: make(chan struct{}), heard: map[string]int{}}
		defer close(s.free)
		w := newWorld(t)
		w.use(func(c *scheduler.Config) { c.Asker, c.Asked = s, []string{"boss", "clerk"} })
		c := w.define("name: one\nsteps:\n- {name: both, needs: [], agent: approval, with: {question: well, choices: [yes]}, waiting: {ask: [boss, clerk]}}\n" +
			"- {name: one, needs: [], agent: approval, with: {question: well, choices: [yes]}, waiting: {ask: clerk}}")
		for i := range pause.MaxHanging {
			w.submit(c, fmt.Sprint("j", i))
		}
		if got := s.heard["clerk"]; got != 2*pause.MaxHanging {
			t.Errorf("the clerk was asked %d times, want %d", got, 2*pause.MaxHanging)
		}
	})
}

// Of the operator and the listener, one who hangs takes none of the other's time: they hear of a job at the same moment.
func TestWhoHangsTakesNobodyElsesTime(t *testing.T) {
	for hangs, other := range map[string]string{"operator": "shop", "shop": "operator"} {
		t.Run(hangs, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{hangs: hangs, free: make(chan struct{}), heard: map[string]int{}}
				defer close(s.free)
				w := newWorld(t)
				w.use(func(c *scheduler.Config) {
					c.Notifier, c.Listener, c.Replies = stuckNotifier{s, true}, stuckNotifier{s, false}, []string{"shop"}
				})
				c := w.define("name: one\nonFailure: stop\nsteps: [{name: bad, agent: a, retry: {attempts: 1}}]")
				if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
					t.Fatal(err)
				}
				failed := w.failed("j", "bad", w.claim("j", "bad"), job.StepError{Message: "no"})
				clear(s.heard) // of its birth
				go func() {
					if _, err := w.s.HandleSQS(t.Context(), events.SQSEvent{Records: []record{failed}}); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait() // until whoever hangs is all that is waited for: no time has passed
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.heard[other] == 0 {
					t.Errorf("%s was told nothing while %s hung", other, hangs)
				}
			})
		})
	}
}

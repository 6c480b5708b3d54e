package agentdoor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// answers is a Scheduler that knows which attempts of job j are out.
type answers struct {
	out  map[string]bool // by step
	fail error
}

func (a *answers) Reply(_ context.Context, _ string, reply job.Event) (machine.Verdict, error) {
	delete(a.out, reply.(job.StepSucceeded).Step)
	return machine.Verdict{Kind: machine.Applied}, nil
}

func (a *answers) TaskOut(_ context.Context, _ string, r job.Reply) (makegood.Task, bool, error) {
	return makegood.Task{}, a.out[r.Step] && r.Token == "token-"+r.Step && r.Attempt == 1, a.fail
}

// Who asks again under the name of a request gets the tasks that they were given, and of those none that was answered meanwhile:
// where all were, they are given others. What the job cannot be asked is given again: its answer may be what was lost.
func TestAnAnsweredTaskIsNotGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues, err := localqueue.New(localqueue.Options{Queues: []localqueue.Queue{{Name: "tasks"}}})
		if err != nil {
			t.Fatal(err)
		}
		jobs := &answers{out: map[string]bool{}}
		door := agentdoor.New(agentdoor.Config{
			Agents: []string{"a"}, Tasks: func(string) string { return "tasks" }, Receiver: queues, Store: memstore.New(), Scheduler: jobs,
		})
		send := func(step string) {
			t.Helper()
			jobs.out[step] = true
			body, err := wire.EncodeTask(makegood.Task{
				Job: "j", Workflow: "w", Step: step, Round: 1, Attempt: 1, Agent: "a", Action: "x", Key: "j/" + step + "/1", Birth: "00", ReplyTo: "events", Token: "token-" + step,
				Input: []byte("1"), SentAt: time.Now(), StartBy: time.Now().Add(time.Hour), ClaimUntil: time.Now().Add(time.Hour), Timeout: makegood.Hour,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range queues.Send(t.Context(), "tasks", queue.Message{Body: body}) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		given := func(request string) string {
			t.Helper()
			var steps []string
			tasks, err := door.Take(t.Context(), "a", agentdoor.Ask{Instance: "i", Max: 10, Wait: time.Second, Request: request})
			if err != nil {
				t.Fatal(err)
			}
			for _, given := range tasks {
				task, err := wire.DecodeTask(given.Body)
				if err != nil {
					t.Fatal(err)
				}
				steps = append(steps, task.Step)
			}
			slices.Sort(steps)
			return strings.Join(steps, " ")
		}
		answer := func(step string) {
			t.Helper()
			body := `{"v":1,"type":"StepSucceeded","job":"j","step":"` + step + `","attempt":1,"token":"token-` + step + `","output":1}`
			if _, err := door.Reply(t.Context(), body); err != nil {
				t.Fatal(err)
			}
		}
		check := func(what, request, want string) {
			t.Helper()
			if got := given(request); got != want {
				t.Errorf("%s: given %q, want %q", what, got, want)
			}
		}
		send("one")
		send("two")
		check("the first time", "r", "one two")
		check("the same request", "r", "one two")
		answer("one")
		check("one was answered", "r", "two")
		jobs.fail = errors.New("no connection")
		check("nobody knows", "r", "one two")
		jobs.fail = nil
		answer("two")
		check("both were answered", "r", "")
		send("three")
		check("and there is another", "r", "three")
	})
}

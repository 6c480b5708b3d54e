package embedded_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// dirVariable names the folder of an engine that kills itself, in a process of its own.
const dirVariable = "MAKEGOOD_TEST_QUARANTINE_DIR"

// deadly are queues that kill their process in the moment in which a message of the events queue would be deleted.
type deadly struct{ embedded.Queues }

func (d deadly) Delete(ctx context.Context, name string, receipts ...string) error {
	if name != "events" {
		return d.Queues.Delete(ctx, name, receipts...)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

func submitted(t *testing.T, id string) string {
	t.Helper()
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: id, Input: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// killItself runs an engine that gets a submission to a workflow that it does not know, and is killed with it half done.
func killItself(t *testing.T, dir string) {
	var inner embedded.Queues
	var r troupe
	open(t, embedded.Config{Dir: dir, Agents: r.agents("a"), WrapQueues: func(q embedded.Queues) embedded.Queues {
		inner = deadly{q}
		return inner
	}})
	if err := errors.Join(inner.Send(t.Context(), "events", queue.Message{Body: submitted(t, "j")})...); err != nil {
		t.Fatal(err)
	}
	select {}
}

// A message is in quarantine, durably, before it leaves its queue: the process is killed in between, and the next one has it,
// with its reason. There it is refused while nobody understands it, and replayed once somebody does: its job is stored before it is gone.
func TestWhatIsInQuarantineSurvivesAKillAndIsReplayed(t *testing.T) {
	if dir := os.Getenv(dirVariable); dir != "" {
		killItself(t, dir)
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWhatIsInQuarantineSurvivesAKillAndIsReplayed$")
	child.Env = append(os.Environ(), dirVariable+"="+dir)
	out, err := child.CombinedOutput()
	if exited, is := errors.AsType[*exec.ExitError](err); !is || exited.Exited() {
		t.Fatalf("the process ended with %v, want it killed: %s", err, out)
	}

	var r troupe
	w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
	shelf := w.engine.Parts().Quarantine
	page, err := shelf.Page(t.Context(), "", 10)
	if err != nil || len(page.Messages) != 1 {
		t.Fatalf("got %+v, %v, want the one message", page, err)
	}
	l := page.Messages[0]
	if l.Job != "j" || l.Source != "events" || l.Body != submitted(t, "j") || !strings.Contains(l.Reason, `there is no workflow`) || l.Deliveries != 1 {
		t.Errorf("got %+v, want the submission of j, from the events queue, with the reason", l)
	}
	w.define("name: two\nsteps: [{name: charge, agent: a}, {name: ship, agent: a}]")
	replayed, err := shelf.Replay(t.Context(), l.ID)
	if err != nil || replayed.Result != api.ReplaySent {
		t.Fatalf("replay: got %+v, %v, want it sent", replayed, err)
	}
	if _, err := w.engine.Job(t.Context(), "j"); err != nil {
		t.Errorf("after the replay: %v, want the job stored", err)
	}
	w.ends("j", makegood.JobProcessed)
	if _, err := shelf.Get(t.Context(), l.ID); !errors.Is(err, api.ErrNoMessage) {
		t.Errorf("after the replay: got %v, want no such message", err)
	}
}

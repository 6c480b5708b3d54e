package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// newer is a store whose jobs a newer release wrote.
type newer struct{ store.Store }

func (n *newer) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := n.Store.Load(ctx, id)
	return j, errors.Join(err, store.ErrNewer)
}

// The folder goes back to an older release with a job under way, whose deadline passes meanwhile. Recovery, sweeps and
// requests of that one leave it alone, and the newer release goes on where it was.
func TestAnOlderReleaseLeavesTheJobsOfANewerOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := troupe{script: map[string]work{"first": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			if task.Attempt == 1 {
				return silent(ctx, task)
			}
			return ok(ctx, task)
		}}}
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a, timeout: 10s}]"), "j", `{}`)
		time.Sleep(time.Second)
		w.stop()

		p := newTap()
		old := open(t, embedded.Config{Dir: dir, Agents: r.agents("a"), WrapQueues: p.wrap, WrapStore: func(s store.Store) store.Store { return &newer{s} }})
		was, err := old.engine.Job(t.Context(), "j")
		if was.ID != "j" || !errors.Is(err, store.ErrNewer) {
			t.Fatalf("got %+v, %v, want the job as it is known", was, err)
		}
		time.Sleep(time.Hour)
		if _, _, err := old.engine.Parts().Scheduler.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbCancel}); !errors.Is(err, store.ErrNewer) {
			t.Errorf("cancel: got %v, want %v", err, store.ErrNewer)
		}
		is, _ := old.engine.Job(t.Context(), "j")
		if is.Rev != was.Rev || !is.CompleteBy.Equal(was.CompleteBy) || is.ProcessState != was.ProcessState {
			t.Errorf("got revision %d, %s, key %s, want it untouched: %d, %s, %s", is.Rev, is.ProcessState, is.CompleteBy, was.Rev, was.ProcessState, was.CompleteBy)
		}
		p.mu.Lock()
		again := 0
		for name, messages := range p.sent {
			for _, m := range messages {
				if m.Delay > 0 || name == "quarantine" {
					again++
				}
			}
		}
		// At each tick of the first minute, and then once a minute: many such jobs must not crowd out the others.
		if told := len(p.sent["events"]); told < 170 || told > 190 {
			t.Errorf("told %d times of its deadline within an hour, want 170 to 190", told)
		}
		p.mu.Unlock()
		if again != 0 {
			t.Errorf("%d messages were sent again or put into quarantine, want that deadlines are dropped", again)
		}
		old.stop()

		back := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
		back.ends("j", makegood.JobProcessed)
	})
}

// What a newer release sent goes round with a delay, is counted, and never gets among the poison or the dead letters.
func TestAMessageOfANewerReleaseGoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		r := troupe{}
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapQueues: p.wrap})
		w.define("name: one\nsteps: [{name: first, agent: a}]")
		for _, name := range []string{"events", "tasks-a"} {
			if err := p.Send(t.Context(), name, queue.Message{Body: `{"v":2,"type":"Later","job":"j"}`}); err != nil {
				t.Fatal(err)
			}
		}
		hours := hoursOf(6)
		time.Sleep(time.Duration(hours) * time.Hour)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, name := range []string{"events", "tasks-a"} {
			if got := len(p.sent[name]); got < 4*hours-1 || got > 4*hours+11 {
				t.Errorf("%s: sent %d times in %d hours, want about each 15 minutes, and more often at first", name, got, hours)
			}
		}
		if len(p.sent["quarantine"])+len(p.sent["dead-letters"]) != 0 {
			t.Errorf("got %v in quarantine, %v dead, want none", p.sent["quarantine"], p.sent["dead-letters"])
		}
	})
}

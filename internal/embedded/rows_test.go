package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// The tests of this file are rows of docs/failure-modes.md that no other test provokes.

// ADV-4: the workflow is changed while a job runs. The job goes on with the definition that it started
// with; the next one has the new.
func TestAJobKeepsTheDefinitionThatItStartedWith(t *testing.T) {
	first := newDoor()
	r := troupe{script: map[string]work{"first": first.wait}}
	w := open(t, embedded.Config{Agents: r.agents("a")})
	old := w.define("name: one\nsteps: [{name: first, agent: a}, {name: second, agent: a, action: old}]")
	w.submit(old, "j", `{}`)
	<-first.arrived
	changed := w.define("name: one\nsteps: [{name: first, agent: a, action: begin}, {name: second, agent: a, action: new}, {name: third, agent: a}]")
	close(first.open)
	if j := w.ends("j", makegood.JobProcessed); j.Definition != old.Hash {
		t.Errorf("got the definition %s, want %s", j.Definition, old.Hash)
	}
	w.submit(changed, "k", `{}`)
	w.ends("k", makegood.JobProcessed)
	if got, want := r.order(), "first old begin new third"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
}

// RCV-7: somebody moves a dead-letter queue back, and with it every task and every reply that there ever
// was, in any order. Nothing is done again, and no job changes.
func TestMessagesOfOldThatComeBackChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		r := troupe{script: map[string]work{"ship": always(finalNotApplied)}}
		w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping"), WrapQueues: p.wrap})
		w.submit(w.define(order), "j", `{}`)
		before := w.ends("j", makegood.JobUndone)
		synctest.Wait()
		did := r.order()
		p.mu.Lock()
		sent := maps.Clone(p.sent)
		p.mu.Unlock()
		again := 0
		for name, messages := range sent {
			messages = slices.Clone(messages)
			slices.Reverse(messages)
			again += len(messages)
			if errs := p.Queues.Send(t.Context(), name, messages...); errs != nil {
				t.Fatal(errs)
			}
		}
		time.Sleep(10 * time.Minute)
		if got := r.order(); got != did {
			t.Errorf("got the actions %s, want %s and no more", got, did)
		}
		if j, err := w.engine.Job(t.Context(), "j"); err != nil || j.Rev != before.Rev {
			t.Errorf("got revision %d, %v, want %d: nothing was saved", j.Rev, err, before.Rev)
		}
		if again < 10 {
			t.Errorf("%d messages came back, want the tasks and replies of five attempts", again)
		}
		for name := range sent {
			if depth, err := p.Queues.Depth(t.Context(), name); err != nil || depth.Waiting != 0 {
				t.Errorf("queue %s: %d messages wait, %v, want none", name, depth.Waiting, err)
			}
		}
	})
}

// SUB-6: a submission dies between its large input and its job. What it left behind is no job, and
// stands in the way of none.
func TestAnInputWhoseJobWasNotStoredIsNoJob(t *testing.T) {
	var r troupe
	still := &stillborn{}
	w := open(t, embedded.Config{Agents: r.agents("a"), WrapStore: func(s store.Store) store.Store { still.Store = s; return still }})
	c := w.define(`
name: two
steps:
  - {name: look, agent: a}
  - {name: charge, agent: a, with: {length: "${ .input | length }"}}
`)
	large := limits.MaxInlineBytes + 100
	_, _, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(text(large))})
	if !errors.Is(err, errLost) || still.payloads != 1 {
		t.Fatalf("got %v after %d payloads, want the error of the store after the input", err, still.payloads)
	}
	if _, err := w.engine.Job(t.Context(), "j"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("job j: got %v, want none", err)
	}
	w.submit(c, "j", text(large+1))
	w.ends("j", makegood.JobProcessed)
	if got := r.seen("charge"); len(got) != 1 || string(got[0].Input) != `{"length":`+lengthOf(large+1)+`}` {
		t.Errorf("got %+v, want one task with the length of the second input", got)
	}
}

func lengthOf(bytes int) string {
	n, _ := json.Marshal(bytes - 2)
	return string(n)
}

// stillborn fails the first Create, before it has an effect.
type stillborn struct {
	store.Store
	payloads, creates int
}

func (s *stillborn) PutPayload(ctx context.Context, job, key string, value []byte) error {
	s.payloads++
	return s.Store.PutPayload(ctx, job, key, value)
}

func (s *stillborn) Create(ctx context.Context, j job.Job) error {
	if s.creates++; s.creates == 1 {
		return errLost
	}
	return s.Store.Create(ctx, j)
}

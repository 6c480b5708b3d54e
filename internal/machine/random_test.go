package machine_test

import (
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// A replay of a failure: go test ./internal/machine -run TestRandomEvents -rapid.seed=SEED (the
// failure prints the seed and shrinks by itself).

// Whatever happens in whatever order, with claims, heartbeats, closings and whole events between load, facts and save:
// no illegal transition (Apply panics), nothing is applied twice, the key is never later than something due, no attempt
// is opened twice, or claimed after it ended, none that was claimed is closed as never claimed, no true claim is
// overruled, finished jobs have nothing out, every possible effect is undone in an undone job, and every job ends.
func TestRandomEvents(t *testing.T) {
	var seen layers.Seen
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.seen = &seen
		seen.Moved(layers.Move{Workflow: x.w, After: x.job})
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			x.now = x.now.Add(time.Duration(rapid.IntRange(0, 15000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 60).Draw(t, "meanwhile") {
			case 0:
				x.now = x.now.Add(limits.MaxClaimDelay)
			case 1:
				x.expire()
				seen.Played(layers.Zombies)
			case 2:
				x.lie()
				seen.Played(layers.Strangers)
			case 3, 4:
				x.late()
			case 5, 6, 7, 8, 9:
				x.untilDue()
			}
			if rapid.Bool().Draw(t, "claim first") {
				x.claim()
			}
			e, ok := x.drawEvent()
			if !ok {
				continue
			}
			loaded := x.job.Clone()
			x.behind()
			x.move(loaded, e)
			x.events = append(x.events, e)
		}
		x.drain()
	})
	if seed.Usual() {
		seen.Column(t, "random world")
	}
}

// A reply that names another attempt, carries another token, or fails for another claim than the one held, changes
// nothing, neither in the job nor in the claim item.
func TestAFencedReplyChangesNothing(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.claim()
		for _, which := range sorted(x.claimed) {
			task := x.tasks[which]
			if task.Shared {
				continue // Nobody holds a claim of it.
			}
			mine := job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token, LockedBy: x.claimed[which]}
			other := func(change func(*job.Reply)) job.Reply {
				r := mine
				change(&r)
				return r
			}
			for _, e := range []job.Event{
				job.StepSucceeded{Reply: other(func(r *job.Reply) { r.Token = "" })},
				job.StepSucceeded{Reply: other(func(r *job.Reply) { r.Token += "A" })},
				job.StepSucceeded{Reply: other(func(r *job.Reply) { r.Attempt++ })},
				job.StepSucceeded{Reply: other(func(r *job.Reply) { r.Token = machine.Token(x.job, r.Step, r.Attempt+1) })},
				job.StepWaiting{Reply: other(func(r *job.Reply) { r.Token = "" })},
				job.StepWaiting{Reply: other(func(r *job.Reply) { r.Attempt++ })},
				job.StepWaiting{Reply: other(func(r *job.Reply) { r.Token = task.Completion })},
				job.StepSucceeded{Reply: other(func(r *job.Reply) { r.Token = task.Completion })},
				job.StepFailed{Reply: other(func(r *job.Reply) { r.LockedBy = "zombie" })},
				job.StepFailed{Reply: other(func(r *job.Reply) { r.LockedBy = "" })},
				job.StepFailed{Reply: other(func(r *job.Reply) { r.Token = "" })},
			} {
				j, items := x.job.Clone(), x.items[task.Agent+"/"+task.Step]
				x.nested = true
				kind, done := x.try(x.job.Clone(), e, map[machine.Ask]job.Found{})
				if kind != machine.Stale || !done {
					t.Fatalf("%#v was %s, want stale", e, kind)
				}
				if item := x.items[task.Agent+"/"+task.Step]; !reflect.DeepEqual(j, x.job) || item.Closed != items.Closed || item.LockedBy != items.LockedBy {
					t.Fatalf("%#v changed the job or its claim: %+v, %+v", e, x.job, item)
				}
			}
		}
	})
}

// An answer that carries another token than the step's, or one of another step, round or direction, changes nothing.
func TestAFencedAnswerChangesNothing(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.nested = true
		for _, s := range x.job.Steps {
			for _, forged := range []string{
				"c1", "c1.AAAA.AAAA", machine.Token(x.job, s.Name, s.Attempt), machine.CompletionToken(x.job, s.Name, true),
				machine.CompletionToken(x.job, s.Name+"2", false), machine.CompletionToken(job.Job{ID: "j", Round: 1, Secret: []byte("another's secret")}, s.Name, false),
			} {
				p := job.Place{Step: s.Name, Round: 1, Token: forged}
				for _, e := range []job.Event{job.StepCompleted{Place: p}, job.WaitExtended{Place: p}} {
					before := x.job.Clone()
					if kind, _ := x.try(x.job.Clone(), e, map[machine.Ask]job.Found{}); forged != "" && kind != machine.Refused || !reflect.DeepEqual(before, x.job) {
						t.Fatalf("%#v was %s, want refused", e, kind)
					}
				}
			}
		}
	})
}

// A job whose attempts nobody could ever answer is a bug of ours, and is not stored.
func TestAJobIsNotBornWithoutASecret(t *testing.T) {
	w := domain.WithDefaults(makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "s", Agent: "a"}}})
	defer func() {
		if recover() == nil {
			t.Error("a job was made that has no secret")
		}
	}()
	facts := machine.Facts{Values: map[machine.Want]machine.Fact{{Step: "s"}: {Run: true}}}
	machine.Submit(w, machine.Submission{ID: "j"}, facts, time.UnixMilli(0))
}

// TestMain runs the random tests longer than rapid does by itself; -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

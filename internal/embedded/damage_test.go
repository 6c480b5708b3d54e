package embedded_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// harm writes to the file of an engine that does not run.
func harm(t *testing.T, dir, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, embedded.DataFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.Exec(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); err != nil || n < 1 {
		t.Fatalf("%s: %d rows changed, %v", statement, n, err)
	}
}

// halfway returns a folder with jobs whose first step is done and whose second one nobody took up, and
// whose engine has stopped.
func halfway(t *testing.T, yaml string, jobs ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	p := newTap()
	p.hold("tasks-b")
	var r troupe
	w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a", "b"), WrapQueues: p.wrap})
	c := w.define(yaml)
	for _, id := range jobs {
		w.submit(c, id, fmt.Sprintf(`{"text": %s}`, text(1000)))
	}
	for _, id := range jobs {
		w.until(id, func(j job.Job) bool { return j.Steps[0].Forward.State == job.Done })
	}
	w.stop()
	return dir
}

const twoSteps = `
name: two
steps:
  - {name: first, agent: a, with: {}}
  - {name: second, agent: b, startBy: 1m, with: {text: "${ .input.text | length }"}}
`

// What nobody can decide about is put in front of a person: once, with the reason, and out of the way
// of the sweep and of its neighbours.
func TestAJobThatCannotBeDecidedAboutIsParkedAndToldOf(t *testing.T) {
	for _, test := range []struct {
		name, harm, reason string
		damaged            bool
	}{
		{"its row is damaged", `UPDATE jobs SET data = x'7b' WHERE id = 'bad'`, "decode job", true},
		{"its input is gone", `DELETE FROM payloads WHERE job = 'bad'`, "input#", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				neighbours := ids(30)
				dir := halfway(t, twoSteps, append([]string{"bad"}, neighbours...)...)
				harm(t, dir, test.harm)
				told := bell{fail: 2}
				p := newTap()
				var r troupe
				w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a", "b"), Notifier: &told, WrapQueues: p.wrap})
				for _, id := range neighbours {
					w.ends(id, makegood.JobProcessed)
				}
				time.Sleep(10 * time.Minute)
				checkParked(t, dir, w, &told, test.reason, test.damaged)
				before := p.count("events")
				time.Sleep(20 * time.Minute)
				if more := p.count("events") - before; more > 0 {
					t.Errorf("%d events were sent within 20 minutes about jobs that rest, want none", more)
				}
			})
		})
	}
}

func TestJobsWhoseDefinitionIsGoneAreParkedAndToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := halfway(t, twoSteps, "bad")
		harm(t, dir, `DELETE FROM definitions`)
		told := bell{fail: 2}
		var r troupe
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a", "b"), Notifier: &told})
		w.submit(w.define("name: good\nsteps: [{name: charge, agent: a}]"), "good", `{}`)
		w.ends("good", makegood.JobProcessed)
		time.Sleep(10 * time.Minute)
		checkParked(t, dir, w, &told, "not found", false)

		// Mended, it goes on.
		w.define(twoSteps)
		if j := w.request("bad", makegood.VerbResubmit); j.ProcessState != makegood.JobProcessing {
			t.Errorf("resubmitted with its definition: got %s, want Processing", j.ProcessState)
		}
		w.until("bad", inState(makegood.JobProcessed))
	})
}

// A definition is named by what it says, so one that says something else is damaged: an engine that has its text mends it, before any
// job is parked for it.
func TestADamagedDefinitionIsMendedByTheEngineThatHasItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := halfway(t, twoSteps, "good")
		harm(t, dir, `UPDATE definitions SET body = CAST('{"name":' AS BLOB)`)
		var r troupe
		engine, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Agents: r.agents("a", "b"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, engine: engine, patience: 20 * time.Second}
		w.define(twoSteps)
		go func() { _ = engine.Run(t.Context()) }()
		if j := w.stored("good", atEnd); j.ProcessState != makegood.JobProcessed {
			t.Errorf("got %s (%s), want Processed", j.ProcessState, j.Reason)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
}

// checkParked checks that job bad is in Error, rests, and that somebody was told so.
func checkParked(t *testing.T, dir string, w *world, told *bell, reason string, damaged bool) {
	t.Helper()
	var parked job.Job
	err := w.engine.Each(t.Context(), func(j job.Job) error {
		if j.ID == "bad" {
			parked = j
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if parked.ProcessState != makegood.JobError || !strings.Contains(parked.Reason, reason) {
		t.Errorf("got %s (%s), want Error, saying %q", parked.ProcessState, parked.Reason, reason)
	}
	w.mu.Lock()
	if w.parked["bad"] == 0 || len(w.parked) > 1 {
		t.Errorf("heard that %v were parked, want bad alone", w.parked)
	}
	w.mu.Unlock()
	if ahead := time.Until(parked.CompleteBy); ahead < 22*time.Hour || ahead > limits.FarKey {
		t.Errorf("its key is %s ahead, want about %s", ahead, limits.FarKey)
	}
	if _, err := w.engine.Job(t.Context(), "bad"); errors.Is(err, store.ErrDamaged) != damaged {
		t.Errorf("load: got %v, want damaged: %t", err, damaged)
	}
	heard := told.heard()
	if len(heard) < told.fail+1 {
		t.Fatalf("told %d times, want once more than the %d that failed", len(heard), told.fail)
	}
	for _, n := range heard {
		if n.Job != "bad" || n.ProcessState != makegood.JobError || !strings.Contains(n.Reason, reason) {
			t.Errorf("told %+v, want the Error of bad, saying %q", n, reason)
		}
	}
	if len(heard) > told.fail+2 {
		t.Errorf("told %d times, want it to end soon after it was heard", len(heard))
	}
}

// Poison goes into quarantine with its reason; the messages of its batch are dealt with.
func TestPoisonGoesIntoQuarantineAndItsNeighboursProceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		release := []func(){p.hold("events"), p.hold("tasks-a")}
		var r troupe
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapQueues: p.wrap})
		c := w.define("name: two\nsteps: [{name: charge, agent: a}, {name: ship, agent: a}]")
		poison := map[string]map[string]string{
			"events": {
				`not JSON`: "invalid character",
				`{"v":0,"type":"StepSucceeded","job":"job-1","step":"charge","attempt":1}`:                 "version 0, want 1",
				`{"v":1,"type":"Task","job":"job-1"}`:                                                      `type "Task", want one of`,
				`{"v":1,"type":"StepSucceeded","job":"job-1","step":"charge","attempt":"1"}`:               "cannot unmarshal",
				`{"v":1,"type":"StepFailed","job":"job-1","step":"charge","attempt":1}`:                    "without an error",
				`{"v":1,"type":"Interrupted","job":"job-1","attempt":1}`:                                   `type "Interrupted" never crosses a queue`,
				`{"v":1,"type":"StepSucceeded","job":"job-1","step":"charge","attempt":1} {"and":"so on"}`: "more text follows",
			},
			"tasks-a": {
				`[]`: "cannot unmarshal",
				`{"v":1,"type":"Task","job":"job-1","workflow":"two","step":"charge","round":1,"attempt":1,"agent":"b","action":"charge","input":null,"key":"k","sentAt":"2026-01-01T00:00:00Z","startBy":"2026-01-01T00:00:00Z","timeoutMs":1000,"exclusive":true,"replyTo":"events","birth":"b","claimUntil":"2036-01-01T00:00:00Z","token":"1.t"}`: `a task for agent "b"`,
			},
		}
		want := map[string]string{}
		for name, bodies := range poison {
			for body, reason := range bodies {
				want[body] = reason
				if errs := p.Queues.Send(t.Context(), name, queue.Message{Body: body}); errs != nil {
					t.Fatal(errs)
				}
			}
		}
		for _, id := range ids(20) {
			w.submit(c, id, `{}`)
		}
		for _, open := range release {
			open()
		}
		for _, id := range ids(20) {
			if j := w.ends(id, makegood.JobProcessed); j.FailureCount != 0 {
				t.Errorf("job %s: got %d failures, want none", id, j.FailureCount)
			}
		}
		synctest.Wait()
		checkQuarantine(t, w, p, want)
	})
}

// checkQuarantine checks that exactly these bodies are in quarantine, each with its reason.
func checkQuarantine(t *testing.T, w *world, p *tap, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for cursor := ""; ; {
		page, err := w.engine.Parts().Quarantine.Page(t.Context(), cursor, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Messages {
			got[l.Body] = l.Reason
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	for body, reason := range want {
		if !strings.Contains(got[body], reason) {
			t.Errorf("%s: got the reason %q, want it to say %q", body, got[body], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages are in quarantine, want %d", len(got), len(want))
	}
	if depth, _ := p.Queues.Depth(t.Context(), "dead-letters"); depth.Waiting != 0 {
		t.Errorf("%d dead letters, want none", depth.Waiting)
	}
}

// Events of a job that is not there, or not any more, change nothing and bother nobody.
func TestAnEventOfAnUnknownJobIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		var told bell
		var r troupe
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapQueues: p.wrap, Notifier: &told})
		c := w.define("name: one\nsteps: [{name: charge, agent: a}]")
		// What was unfinished at the start is looked up by now.
		synctest.Wait()
		p.Queues.Send(t.Context(), "events", queue.Message{Body: `{"v":1,"type":"StepSucceeded","job":"nobody","step":"charge","attempt":1,"lockedBy":"x"}`})
		w.submit(c, "j", `{}`)
		w.ends("j", makegood.JobProcessed)
		time.Sleep(time.Minute)
		if _, err := w.engine.Job(t.Context(), "nobody"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v, want no such job", err)
		}
		if n := p.count("events"); n != 1 {
			t.Errorf("%d events were sent, want the reply of job j", n)
		}
		if depth, _ := p.Queues.Depth(t.Context(), "events"); depth.Waiting != 0 {
			t.Errorf("%d events wait, want none", depth.Waiting)
		}
	})
}

// A task that the queue refuses as our fault is a final failure of its step; it never started.
func TestATaskThatIsRefusedGivesItsStepUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			refused string
			state   makegood.ProcessState
			reason  string
			actions string
		}{
			{"reserve", makegood.JobUndone, "step reserve failed: the task cannot be sent: no stamps", ""},
			{"charge", makegood.JobUndone, "step charge failed: the task cannot be sent: no stamps", "reserve release"},
			{"refund", makegood.JobError, "undo of charge failed: the task cannot be sent: no stamps", "reserve charge ship"},
		} {
			p := newTap()
			p.refuse = func(name string, m queue.Message) error {
				if strings.Contains(m.Body, `"action":"`+test.refused+`"`) {
					return queue.Refused("no stamps")
				}
				return nil
			}
			r := troupe{script: map[string]work{"ship": always(finalNotApplied)}}
			w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping"), WrapQueues: p.wrap})
			w.submit(w.define(order), "j", `{}`)
			j := w.until("j", atEnd)
			if j.ProcessState != test.state || j.Reason != test.reason || r.order() != test.actions {
				t.Errorf("%s refused: got %s %q after %q, want %s %q after %q", test.refused,
					j.ProcessState, j.Reason, r.order(), test.state, test.reason, test.actions)
			}
			if tried := strings.Count(fmt.Sprint(p.sent), `"action":"`+test.refused+`"`); tried != 1 {
				t.Errorf("%s was tried %d times, want once: no time will mend it", test.refused, tried)
			}
			w.stop()
		}
	})
}

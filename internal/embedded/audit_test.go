package embedded_test

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// A hand that is not ours takes the keys of jobs away. No sweep finds them, and the recovery at start neither: the audit
// does, says so for each, and they finish; one that is damaged beside comes before a person.
func TestJobsThatLostTheirKeysAreFoundAndFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := halfway(t, twoSteps, "lost", "lost-too", "bad", "good")
		harm(t, dir, `UPDATE jobs SET complete_by = NULL WHERE id <> 'good'`)
		harm(t, dir, `UPDATE jobs SET data = x'7b' WHERE id = 'bad'`)
		var told bell
		var r troupe
		var log logged
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a", "b"), Notifier: &told, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, id := range []string{"lost", "lost-too", "good"} {
			w.ends(id, makegood.JobProcessed)
		}
		time.Sleep(10 * time.Minute)
		checkParked(t, dir, w, &told, "decode job", true)
		for _, id := range []string{"lost", "lost-too", "bad"} {
			if n := strings.Count(log.String(), `msg="stray job" job=`+id+" "); n != 1 {
				t.Errorf("the log warns %d times of %s, want once", n, id)
			}
		}
		if strings.Contains(log.String(), "job=good") {
			t.Error("the log warns of a job that is as it should be")
		}
	})
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// One whose key goes while the engine runs is found by the next round.
func TestAKeyThatIsLostWhileTheEngineRunsIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		var inner store.Store
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapStore: func(s store.Store) store.Store { inner = s; return s }})
		c := w.define("name: later\nsteps: [{name: first, agent: a}]")
		_, _, err := w.engine.Submit(t.Context(), scheduler.Submission{
			ID: "j", Definition: c.Hash, Input: []byte(`{}`), StartAt: time.Now().Add(3 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		job, err := inner.Load(t.Context(), "j")
		if err != nil {
			t.Fatal(err)
		}
		seen := job.CompleteBy
		job.CompleteBy = time.Time{}
		if err := inner.Save(t.Context(), store.Change{Job: job, Seen: seen}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		job, err = w.engine.Job(t.Context(), "j")
		if err != nil || job.CompleteBy.IsZero() {
			t.Fatalf("after two hours: got a key of %v, %v, want one", job.CompleteBy, err)
		}
		time.Sleep(time.Hour)
		w.ends("j", makegood.JobProcessed)
	})
}

// A job whose steps are all consistent, and which was not moved on: its second step was never begun, nothing is out, and its
// key lies a month ahead. It has a key, so it is in the index; an audit says that it stands still, and moves it on. One
// that waits for its start in a month is left alone.
func TestAJobThatStandsStillIsFoundAndFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const month = 30 * 24 * time.Hour
		var r troupe
		var log logged
		var inner store.Store
		w := open(t, embedded.Config{
			Agents: r.agents("a"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			WrapStore: func(s store.Store) store.Store { inner = s; return s },
		})
		c := w.define("name: two\nsteps: [{name: first, agent: a}, {name: second, agent: a}]")
		for _, id := range []string{"still", "later"} {
			if _, _, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: []byte(`{}`), StartAt: time.Now().Add(month)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		still, err := inner.Load(t.Context(), "still")
		if err != nil {
			t.Fatal(err)
		}
		change := store.Change{Job: still, Seen: still.CompleteBy}
		change.Job.StartAt = time.Time{}
		change.Job.ProcessState = makegood.JobProcessing
		change.Job.Steps[0].Forward = job.Activity{State: job.Done, Attempt: 1, Tries: 1}
		change.Job.Steps[0].Attempt = 1
		if err := inner.Save(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		page, _, err := w.engine.Parts().Store.AuditPage(t.Context(), "", 10)
		w.engine.Parts().Scheduler.Stands(t.Context(), page)
		found := map[string]store.Stray{}
		for _, a := range page {
			found[a.Job] = a.Stray()
		}
		if want := map[string]store.Stray{"still": "unfinished, without an attempt under way or a wait", "later": ""}; err != nil || !maps.Equal(found, want) {
			t.Errorf("an audit found %q, %v, want %q", found, err, want)
		}
		time.Sleep(2 * time.Hour)
		w.ends("still", makegood.JobProcessed)
		if later, err := w.engine.Job(t.Context(), "later"); err != nil || later.ProcessState != makegood.JobPending {
			t.Errorf("the other: got %s, %v, want it Pending", later.ProcessState, err)
		}
		if n := strings.Count(log.String(), `msg="stray job"`); n != 1 || !strings.Contains(log.String(), "job=still") {
			t.Errorf("the log names %d strays, want still once:\n%s", n, &log.text)
		}
	})
}

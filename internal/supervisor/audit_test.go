package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/wire"
)

// lose takes a job's key away.
func (w *world) lose(id string) {
	w.t.Helper()
	s := w.shards.stores[0]
	j, err := s.Load(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	seen := j.CompleteBy
	j.CompleteBy = time.Time{}
	if err := s.Save(w.t.Context(), store.Change{Job: j, Seen: seen}); err != nil {
		w.t.Fatal(err)
	}
}

// walk is a page of an audit.
func (w *world) walk(s *supervisor.Supervisor, want supervisor.AuditResult) {
	w.t.Helper()
	if got, err := s.Audit(w.t.Context()); err != nil || got != want {
		w.t.Errorf("audit: got %+v, %v, want %+v", got, err, want)
	}
}

// The audit goes through all jobs, a page at a time, and tells of those without a key, and of no others; then it rests.
func TestTheAuditTellsOfJobsWithoutAKey(t *testing.T) {
	w := newWorld(t, 1)
	var log bytes.Buffer
	now := noon
	w.config.Auditor, w.config.AuditPage, w.config.Now = w.shards.stores[0], 4, func() time.Time { return now }
	w.config.Strays = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 10 {
		w.job(0, fmt.Sprint("job-", i), time.Hour)
	}
	w.lose("job-2")
	w.lose("job-9")
	s := supervisor.New(w.config)
	for range 2 {
		w.walk(s, supervisor.AuditResult{Audited: 4, Stray: 1, Sent: 1})
		w.walk(s, supervisor.AuditResult{Audited: 4})
		w.walk(s, supervisor.AuditResult{Audited: 2, Stray: 1, Sent: 1})
		for range 3 {
			w.walk(s, supervisor.AuditResult{})
		}
		now = now.Add(supervisor.AuditRest)
	}
	if told := w.told(); len(told) != 2 || told["job-2"] != 2 || told["job-9"] != 2 {
		t.Errorf("told of %v, want of job-2 and job-9, in each round once", told)
	}
	if said := strings.Count(log.String(), "level=WARN"); said != 4 || !strings.Contains(log.String(), "job=job-9") {
		t.Errorf("the log warns %d times, want 4, naming the jobs:\n%s", said, &log)
	}
}

// What is sent carries no key: a job that has one leaves it alone.
func TestTheAuditSendsADeadlineWithoutAKey(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Auditor = w.shards.stores[0]
	w.job(0, "lost", time.Hour)
	w.lose("lost")
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 1, Stray: 1, Sent: 1})
	records, err := w.queue.Receive(t.Context(), "events", 10)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %d events, %v, want 1", len(records), err)
	}
	if id, event, err := wire.DecodeEvent(records[0].Body); err != nil || id != "lost" || event != (job.DeadlinePassed{}) {
		t.Errorf("got %s, %#v, %v, want lost and DeadlinePassed without a key", id, event, err)
	}
}

// refusing is a queue that takes nothing.
type refusing struct{ queue.Sender }

func (refusing) Send(_ context.Context, _ string, messages ...queue.Message) []error {
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = errors.New("the queue is away")
	}
	return errs
}

// keeper keeps places; the next conflicts of its writes fail.
type keeper struct {
	place     string
	conflicts int
}

func (k *keeper) Place(context.Context, string) (string, error) { return k.place, nil }

func (k *keeper) KeepPlace(_ context.Context, _, seen, place string) error {
	if k.conflicts > 0 || seen != k.place {
		k.conflicts--
		return store.ErrConflict
	}
	k.place = place
	return nil
}

// A page whose strays could not be told of is looked at again. Another process goes on where this one came to, and one
// that is overtaken has done no harm.
func TestTheAuditGoesOnWhereItCameTo(t *testing.T) {
	w := newWorld(t, 1)
	places := &keeper{}
	w.config.Auditor, w.config.AuditPage, w.config.Places = w.shards.stores[0], 1, places
	for _, id := range []string{"a", "b", "c"} {
		w.job(0, id, time.Hour)
	}
	w.lose("b")
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 1})
	deaf := w.config
	deaf.Queue = refusing{w.queue}
	if got, err := supervisor.New(deaf).Audit(t.Context()); err == nil || got.Sent != 0 {
		t.Errorf("with a queue that takes nothing: got %+v, %v, want an error", got, err)
	}
	places.conflicts = 1
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 1, Stray: 1, Sent: 1})
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 1, Stray: 1, Sent: 1})
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 1})
	// A place that this store knows nothing of, and a rest that is longer than any, are a beginning.
	for _, place := range []string{"of another store", "@99999999999999", "@soon"} {
		places.place = place
		w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 1})
		if places.place != "1" {
			t.Errorf("from %q it came to %q, want 1", place, places.place)
		}
	}
}

// page is an auditor of one page.
type page []store.Audited

func (p page) AuditPage(context.Context, string, int) ([]store.Audited, string, error) {
	return p, "", nil
}

// Told of is what no sweep would find, with the key that it has, if it has one; a key too many is found by the sweep.
func TestTheAuditTellsOfWhatNoSweepFindsWithTheKeyThatItHas(t *testing.T) {
	w := newWorld(t, 1)
	key := noon.Add(time.Hour)
	w.config.Auditor = page{
		{Job: "unfinished", ProcessState: makegood.JobProcessing, CompleteBy: key},
		{Job: "untold", ProcessState: makegood.JobProcessed, Untold: true},
		{Job: "too-much", ProcessState: makegood.JobProcessed, CompleteBy: key, Indexed: true, Told: true},
		{Job: "nothing", CompleteBy: key, Indexed: true, NoJob: true},
		{Job: "fine", ProcessState: makegood.JobProcessing, CompleteBy: key, Indexed: true},
	}
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 5, Stray: 4, Sent: 2})
	records, err := w.queue.Receive(t.Context(), "events", 10)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]time.Time{}
	for _, record := range records {
		id, event, err := wire.DecodeEvent(record.Body)
		if err != nil {
			t.Fatal(err)
		}
		got[id] = event.(job.DeadlinePassed).Key
	}
	if len(got) != 2 || !got["unfinished"].Equal(key) || !got["untold"].IsZero() {
		t.Errorf("told of %v, want of unfinished with its key and of untold with none", got)
	}
}

// Of an unfinished job that no sweep will look at for long the Scheduler is told, with the key that it has: it may stand
// still. It is counted as no stray, since most such jobs wait.
func TestTheAuditTellsOfWhatNoSweepWillLookAtForLong(t *testing.T) {
	w := newWorld(t, 1)
	far := noon.Add(26 * time.Hour)
	w.config.Auditor, w.config.Now = page{
		{Job: "far", ProcessState: makegood.JobProcessing, CompleteBy: far, Indexed: true},
		{Job: "near", ProcessState: makegood.JobProcessing, CompleteBy: noon.Add(25 * time.Hour), Indexed: true},
		{Job: "ended", ProcessState: makegood.JobProcessed, CompleteBy: far, Indexed: true, Untold: true},
		{Job: "nothing", CompleteBy: far, Indexed: true, NoJob: true},
	}, func() time.Time { return noon }
	w.walk(supervisor.New(w.config), supervisor.AuditResult{Audited: 4, Stray: 1, Sent: 1})
	records, err := w.queue.Receive(t.Context(), "events", 10)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %d events, %v, want 1", len(records), err)
	}
	if id, event, err := wire.DecodeEvent(records[0].Body); err != nil || id != "far" || !event.(job.DeadlinePassed).Key.Equal(far) {
		t.Errorf("got %s, %#v, %v, want far and its key", id, event, err)
	}
}

// A schedule whose key is far ahead may have been put off by a clock that was ahead: who can tell is asked, with the key that was seen.
func TestTheAuditTellsOfSchedulesWhoseKeyIsFarAhead(t *testing.T) {
	w := newWorld(t, 1)
	now := noon
	s := w.shards.stores[0]
	w.config.Auditor, w.config.AuditPage, w.config.Now = s, 3, func() time.Time { return now }
	for name, ahead := range map[string]time.Duration{"near": time.Hour, "far": time.Hour + time.Millisecond, "overdue": -time.Hour, "paused": 0} {
		sched := store.Scheduled{Schedule: makegood.Schedule{Name: name}}
		if ahead != 0 {
			sched.Key = noon.Add(ahead)
		}
		if err := s.PutSchedule(t.Context(), sched); err != nil {
			t.Fatal(err)
		}
	}
	w.job(0, "job-0", time.Hour)
	sup := supervisor.New(w.config)
	sent := 0
	for range 4 {
		r, err := sup.Audit(t.Context())
		if err != nil || r.Stray > 0 {
			t.Errorf("got %+v, %v", r, err)
		}
		sent += r.Sent
	}
	records, err := w.queue.Receive(t.Context(), "events", 10)
	if err != nil || sent != 1 || len(records) != 1 {
		t.Fatalf("sent %d, got %v, %v, want one message", sent, records, err)
	}
	in, err := wire.DecodeIncoming(records[0].Body)
	if err != nil || in.Schedule == nil || in.Schedule.Schedule != "far" || !in.Schedule.Key.Equal(noon.Add(time.Hour+time.Millisecond)) {
		t.Errorf("got %s, %v, want the schedule that is far ahead, and its key", records[0].Body, err)
	}
}

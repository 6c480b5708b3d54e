package sqlitestore_test

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

func TestEachGivesEveryJobOnceAndOfADamagedOneWhatIsKnown(t *testing.T) {
	s, _ := openFile(t)
	const jobs, damaged = 150, 77
	want := map[string]job.Job{}
	for i := range jobs {
		j := create(t, s, i)
		want[j.ID] = j
	}
	id := benchJob(damaged).ID
	check(t, s.Damage(id))
	far := domain.Instant(time.Now().Add(time.Hour))
	check(t, s.Park(t.Context(), id, want[id].CompleteBy, "cannot be decoded", far))
	want[id] = job.Job{ID: id, Workflow: "order", Rev: 2, ProcessState: makegood.JobError, Reason: "cannot be decoded", CompleteBy: far}

	got := map[string]job.Job{}
	err := s.Each(t.Context(), func(j job.Job) error {
		if _, twice := got[j.ID]; twice {
			t.Errorf("got %s twice", j.ID)
		}
		got[j.ID] = j
		// The store may be used meanwhile: no reading is open.
		_, err := s.NextIncarnation(t.Context(), time.Now())
		return err
	})
	check(t, err)
	same(t, "jobs", got, want)
}

func TestEachStopsWhenItsCallerFails(t *testing.T) {
	s, _ := openFile(t)
	for i := range 3 {
		create(t, s, i)
	}
	enough, calls := errors.New("enough"), 0
	err := s.Each(t.Context(), func(job.Job) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Fatalf("got %v after %d calls, want %v after 1", err, calls, enough)
	}
}

func TestUnfinishedListsWhatHasAKeyInPages(t *testing.T) {
	s, _ := openFile(t)
	var want []store.Entry
	base := domain.Instant(time.Now())
	for i := range 25 {
		j := benchJob(i)
		if j.CompleteBy = base.Add(-time.Duration(i/2) * time.Minute); i%3 == 0 {
			j.CompleteBy = time.Time{}
		} else {
			want = append(want, store.Entry{CompleteBy: j.CompleteBy, Job: j.ID})
		}
		check(t, s.Create(t.Context(), j))
	}
	slices.SortFunc(want, func(a, b store.Entry) int {
		return cmp.Or(a.CompleteBy.Compare(b.CompleteBy), strings.Compare(a.Job, b.Job))
	})
	var got []store.Entry
	for after := (store.Entry{}); ; {
		page, err := s.Unfinished(t.Context(), after, 4)
		check(t, err)
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1]
	}
	same(t, "unfinished jobs", got, want)
	if all, err := s.Unfinished(t.Context(), store.Entry{}, 100); err != nil || !slices.Equal(all, want) {
		t.Fatalf("in one page: got %v, %v; want %v", all, err, want)
	}
}

func TestNextDueIsTheEarliestKey(t *testing.T) {
	s, _ := openFile(t)
	if got, err := s.NextDue(t.Context(), time.Time{}); err != nil || !got.IsZero() {
		t.Fatalf("in an empty store: got %v, %v; want no time", got, err)
	}
	base := domain.Instant(time.Now())
	for i, after := range []time.Duration{3, 1, 2} {
		j := benchJob(i)
		j.CompleteBy = base.Add(after * time.Minute)
		check(t, s.Create(t.Context(), j))
	}
	nextDue := func(want time.Duration) {
		t.Helper()
		if got, err := s.NextDue(t.Context(), time.Time{}); err != nil || !got.Equal(base.Add(want)) {
			t.Fatalf("got %v, %v; want %v", got, err, base.Add(want))
		}
	}
	nextDue(time.Minute)
	j := load(t, s, benchJob(1).ID)
	seen := j.CompleteBy
	j.CompleteBy = time.Time{}
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
	nextDue(2 * time.Minute)
}

// The command reads a folder while the engine runs on it, after it was stopped, and after it was killed.
func TestAReaderReadsWhileAnEngineRunsAndAfterIt(t *testing.T) {
	s, path := openFile(t)
	want := create(t, s, 1)
	check(t, s.PutPayload(t.Context(), want.ID, "input", []byte(`"large"`)))
	read := func(when string) {
		t.Helper()
		r, err := sqlitestore.OpenReader(t.Context(), path)
		check(t, err)
		same(t, when+": job", load(t, r, want.ID), want)
		value, err := r.Payload(t.Context(), want.ID, "input")
		if err != nil || string(value) != `"large"` {
			t.Fatalf("%s: payload: got %q, %v", when, value, err)
		}
		jobs := 0
		check(t, r.Each(t.Context(), func(job.Job) error { jobs++; return nil }))
		same(t, when+": number of jobs", jobs, 1)
		check(t, r.Close())
		if _, err := r.Load(t.Context(), want.ID); !errors.Is(err, store.ErrClosed) {
			t.Fatalf("%s: load from a closed reader: got %v, want %v", when, err, store.ErrClosed)
		}
	}
	read("while the engine runs")
	check(t, s.Save(t.Context(), store.Change{Job: want, Seen: want.CompleteBy}))
	want.Rev++
	read("after a save")
	check(t, s.Shut())
	read("after the engine was stopped")
	s = open(t, sqlitestore.Options{Path: path})
	same(t, "job, to the next engine", load(t, s, want.ID), want)
}

func TestAReaderSeesWhatIsWrittenAfterItWasOpened(t *testing.T) {
	s, path := openFile(t)
	r, err := sqlitestore.OpenReader(t.Context(), path)
	check(t, err)
	defer r.Close()
	for i := range 5 {
		want := create(t, s, i)
		same(t, fmt.Sprint("job ", i), load(t, r, want.ID), want)
	}
}

func TestAReaderMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if _, err := sqlitestore.OpenReader(t.Context(), path); err == nil {
		t.Fatal("opened a store that is not there")
	}
	if files, err := filepath.Glob(path + "*"); err != nil || len(files) > 0 {
		t.Fatalf("got files %v, %v; want none", files, err)
	}
}

// What a connection says when it is closed is told, once.
func TestAReaderThatCannotBeClosedSaysSo(t *testing.T) {
	_, path := openFile(t)
	r, err := sqlitestore.OpenReader(t.Context(), path)
	check(t, err)
	broken := errors.New("as scripted")
	r.BreakClose(broken)
	if err := r.Close(); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closed again: got %v, want nothing", err)
	}
}

// A store closes its readers and its own connection, and tells what any of them says.
func TestAStoreThatCannotBeClosedSaysSo(t *testing.T) {
	broken := errors.New("as scripted")
	for name, breaks := range map[string]func(*sqlitestore.Store){
		"a reader":   func(s *sqlitestore.Store) { s.BreakClose(broken) },
		"the writer": func(s *sqlitestore.Store) { s.BreakWriterClose(broken) },
	} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path})
		check(t, err)
		breaks(s)
		if err := s.Shut(); !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want %v", name, err, broken)
		}
		if files, err := filepath.Glob(path + "-*"); err != nil || len(files) > 0 {
			t.Errorf("%s: the log is left: got %v, %v", name, files, err)
		}
	}
}

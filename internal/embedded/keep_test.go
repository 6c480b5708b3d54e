package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/filepayload"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// ended puts a job into a store that came to its end at this time, with a payload of its own.
func ended(t *testing.T, s *sqlitestore.Store, id string, at time.Time) {
	t.Helper()
	j := job.Job{
		ID: id, Workflow: "order", ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, Round: 1,
		CreatedAt: domain.Instant(at), CompleteBy: domain.Instant(at),
	}
	put, created := s.PutPayload(t.Context(), id, "input", make([]byte, 8<<10)), s.Create(t.Context(), j)
	j.Rev, j.ProcessState, j.FinishedAt, j.CompleteBy = 1, makegood.JobProcessed, domain.Instant(at), time.Time{}
	saved := s.Save(t.Context(), store.Change{Job: j, Seen: domain.Instant(at)})
	if err := errors.Join(put, created, saved); err != nil {
		t.Fatal(err)
	}
}

// What is past its retention goes when the engine starts, and while it runs; the file shrinks.
func TestJobsAndTheirRoomGoWhenTheirRetentionIsOver(t *testing.T) {
	dir := memoryDir(t)
	path := filepath.Join(dir, embedded.DataFile)
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		const jobs = 2000
		for i := range jobs {
			ended(t, s, fmt.Sprintf("old-%d", i), now.Add(-embedded.MinRetention-time.Duration(i)*time.Second))
		}
		ended(t, s, "soon", now.Add(-embedded.MinRetention+time.Minute))
		ended(t, s, "later", now.Add(-time.Hour))
		if err := s.Shut(); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}

		w := open(t, embedded.Config{Dir: dir, Retention: embedded.MinRetention})
		synctest.Wait()
		for id, want := range map[string]error{"old-0": store.ErrNotFound, fmt.Sprintf("old-%d", jobs-1): store.ErrNotFound, "soon": nil, "later": nil} {
			if _, err := w.engine.Job(t.Context(), id); !errors.Is(err, want) {
				t.Errorf("%s at the start: got %v, want %v", id, err, want)
			}
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for id, want := range map[string]error{"soon": store.ErrNotFound, "later": nil} {
			_, jobErr := w.engine.Job(t.Context(), id)
			if _, err := w.engine.Parts().Store.Payload(t.Context(), id, "input"); !errors.Is(err, want) || !errors.Is(jobErr, want) {
				t.Errorf("%s two minutes later: got %v, and of its payload %v, want %v", id, jobErr, err, want)
			}
		}
		w.stop()
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if limit := int64(6 << 20); before.Size() < 2*limit || after.Size() > limit {
			t.Errorf("the file shrank from %d to %d bytes, want at most %d", before.Size(), after.Size(), limit)
		}
	})
}

func TestWithoutARetentionNothingGoes(t *testing.T) {
	dir := memoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(dir, embedded.DataFile)})
		if err != nil {
			t.Fatal(err)
		}
		ended(t, s, "old", time.Now().AddDate(-10, 0, 0))
		if err := s.Shut(); err != nil {
			t.Fatal(err)
		}
		w := open(t, embedded.Config{Dir: dir})
		time.Sleep(2 * time.Minute)
		if _, err := w.engine.Job(t.Context(), "old"); err != nil {
			t.Errorf("got %v, want the job", err)
		}
	})
}

func TestAShortRetentionIsRefused(t *testing.T) {
	if embedded.MinRetention != dynamostore.MinRetention {
		t.Errorf("the shortest retention is %s here and %s on DynamoDB", embedded.MinRetention, dynamostore.MinRetention)
	}
	_, err := embedded.Open(t.Context(), embedded.Config{Retention: embedded.MinRetention - 1})
	if err == nil || !strings.Contains(err.Error(), "want at least 24h") {
		t.Errorf("got %v, want an error that says the least", err)
	}
}

// A job that expires takes its large payloads along, and leaves what was written since for another of its id.
func TestAJobThatExpiresTakesItsLargePayloadsAlong(t *testing.T) {
	dir := memoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(dir, embedded.DataFile)})
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-embedded.MinRetention - time.Hour)
		ended(t, s, "j", old)
		ended(t, s, "later", time.Now())
		if err := s.Shut(); err != nil {
			t.Fatal(err)
		}
		files, err := filepayload.Open(filepath.Join(dir, filepayload.Folder))
		if err != nil {
			t.Fatal(err)
		}
		write := func(job, text string) makegood.Payload {
			w, err := files.Write(t.Context(), payload.Place{Job: job}, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return makegood.Payload{SHA256: w.SHA256, Bytes: w.Bytes}
		}
		gone, other := write("j", "of the job"), write("later", "of a job that is there")
		all, err := filepath.Glob(filepath.Join(dir, filepayload.Folder, "*", "*"))
		for _, file := range all {
			err = errors.Join(err, os.Chtimes(file, old, old))
		}
		if err != nil || len(all) != 2 {
			t.Fatalf("got %v, %v, want two files", all, err)
		}
		young := write("j", "for the next of its id")

		w := open(t, embedded.Config{Dir: dir, Retention: embedded.MinRetention})
		synctest.Wait()
		for _, c := range []struct {
			job  string
			p    makegood.Payload
			want error
		}{{"j", gone, payload.ErrNotFound}, {"j", young, nil}, {"later", other, nil}} {
			r, err := w.engine.OpenPayload(t.Context(), c.job, c.p, 0, -1)
			if !errors.Is(err, c.want) {
				t.Errorf("%s, %v: got %v, want %v", c.job, c.p, err, c.want)
			}
			if err == nil {
				_ = r.Close()
			}
		}
		w.stop()
	})
}

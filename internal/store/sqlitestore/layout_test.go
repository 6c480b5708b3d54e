package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A data folder of a release is written once, by that release, and never changed:
//
//	go test ./internal/store/sqlitestore -run TestADataFolder -write-corpus
var writeCorpus = flag.Bool("write-corpus", false, "write the data folder of this release's corpus, if it is not there yet")

// ours is the version of this release's layout.
const ours = sqlitestore.SchemaVersion

const corpus = "testdata/format-1/makegood.db"

// The layouts of releases that there are not yet: one that only adds, and one that older programs must not touch.
func adds() sqlitestore.Layout {
	return sqlitestore.LayoutOf(ours+1, 4, sqlitestore.Step(ours+1, `ALTER TABLE jobs ADD COLUMN colour TEXT NOT NULL DEFAULT 'none'`, `CREATE TABLE colours(name TEXT)`))
}

func breaks() sqlitestore.Layout {
	added := adds()
	return sqlitestore.LayoutOf(ours+2, ours+2, append(added.Steps(), sqlitestore.Step(ours+2, `DROP TABLE colours`))...)
}

// opened opens a file as a release would whose layout this is, and returns what it logged.
func opened(t *testing.T, path string, layout sqlitestore.Layout) (*sqlitestore.Store, string, error) {
	t.Helper()
	var log bytes.Buffer
	s, err := sqlitestore.OpenAs(t.Context(), sqlitestore.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))}, layout)
	return s, log.String(), err
}

// A release that only adds brings the file to its layout and says so; the one before goes on with it, in turns.
func TestAFileIsBroughtToANewerLayoutAndStillOpenedByTheOlder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, sqlitestore.Options{Path: path})
	id := create(t, s, 1).ID
	check(t, s.Shut())
	for round, want := range []string{"brought to the layout", "", "", ""} {
		newer, log, err := opened(t, path, adds())
		check(t, err)
		if (want == "") != (log == "") || !strings.Contains(log, want) {
			t.Errorf("round %d: the newer release said %q, want %q", round, log, want)
		}
		check(t, newer.Shut())
		execSQL(t, path, `UPDATE jobs SET colour = 'blue'`)
		older, log, err := opened(t, path, sqlitestore.LayoutOf(ours, 4))
		check(t, err)
		if !strings.Contains(log, "newer release") {
			t.Errorf("round %d: the older release said %q", round, log)
		}
		j, err := older.Load(t.Context(), id)
		check(t, err)
		check(t, older.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}))
		check(t, older.Shut())
		if got := readText(t, path, `SELECT colour FROM jobs`); got != "blue" {
			t.Errorf("round %d: after a save by the older release the colour is %q", round, got)
		}
	}
}

// A release that the one before would fail on says so, and that one names both versions.
func TestAFileThatAnOlderProgramMustNotOpenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, _, err := opened(t, path, breaks())
	check(t, err)
	check(t, s.Shut())
	for _, layout := range []sqlitestore.Layout{sqlitestore.LayoutOf(ours, 4), adds()} {
		_, _, err := opened(t, path, layout)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("schema version ", ours+2)) || !strings.Contains(err.Error(), fmt.Sprint("knows version ", layout.Version())) {
			t.Errorf("got %v, want an error that names both versions", err)
		}
	}
}

// A step that fails leaves the file as it was.
func TestALayoutIsReachedWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, sqlitestore.Options{Path: path})
	check(t, s.Shut())
	broken := sqlitestore.LayoutOf(ours+2, 4, append(adds().Steps(), sqlitestore.Step(ours+2, `ALTER TABLE nothing ADD COLUMN x`))...)
	if _, _, err := opened(t, path, broken); err == nil {
		t.Fatal("got no error from a step that fails")
	}
	if got := readText(t, path, `SELECT value FROM meta WHERE key = 'schema'`); got != fmt.Sprint(ours) {
		t.Errorf("the file has schema version %s, want %d", got, ours)
	}
	s, log, err := opened(t, path, sqlitestore.LayoutOf(ours, 4))
	check(t, err)
	check(t, s.Shut())
	if log != "" {
		t.Errorf("got %q, want nothing said", log)
	}
}

// A step that a file has taken is not taken again on the way to a later layout.
func TestAFileTakesEachStepOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	for _, layout := range []sqlitestore.Layout{sqlitestore.LayoutOf(ours+1, 4, adds().Steps()...), breaks()} {
		s, _, err := opened(t, path, layout)
		check(t, err)
		check(t, s.Shut())
	}
	if got := readText(t, path, `SELECT value FROM meta WHERE key = 'schema'`); got != fmt.Sprint(ours+2) {
		t.Errorf("the file has schema version %s, want %d", got, ours+2)
	}
}

// A reader changes nothing, so it does not read what an engine must first bring to its layout.
func TestAReaderSaysWhatAnOlderFileNeeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, sqlitestore.Options{Path: path})
	check(t, s.Shut())
	if err := sqlitestore.CheckReadable(path, adds()); err == nil || !strings.Contains(err.Error(), "start it once on this folder") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
	check(t, sqlitestore.CheckReadable(path, sqlitestore.LayoutOf(ours, 4)))
}

// The data folder of each release opens, and its jobs are there.
func TestADataFolderOfAnEarlierReleaseOpens(t *testing.T) {
	if *writeCorpus {
		writeFolder(t)
	}
	files, err := filepath.Glob("testdata/format-*/makegood.db")
	if check(t, err); len(files) == 0 {
		t.Fatal("there is no corpus")
	}
	for _, file := range files {
		copied := filepath.Join(t.TempDir(), "makegood.db")
		data, err := os.ReadFile(file)
		check(t, err)
		check(t, os.WriteFile(copied, data, 0o600))
		s := open(t, sqlitestore.Options{Path: copied})
		checkFolder(t, s)
		check(t, s.Enter(t.Context(), "shop", aPermit().Ticket))
	}
}

func folderJobs() []job.Job {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	var jobs []job.Job
	for i, state := range []makegood.ProcessState{makegood.JobPending, makegood.JobProcessing, makegood.JobError, makegood.JobProcessed} {
		j := job.Job{
			ID: fmt.Sprint("job-", i), Workflow: "order", Definition: "0a0b", InputHash: "0c0d", Birth: "0e0f", Round: 1,
			ProcessState: state, Desired: makegood.JobProcessed, CreatedAt: at, LockedBy: "engine:1", FailureCount: i,
			Steps: []job.StepState{{Name: "reserve", Attempt: 1}, {Name: "ship"}}, Secret: []byte("sixteen bytes of"),
		}
		j.Steps[0].Forward = job.Activity{State: job.Done, Attempt: 1, Tries: 1, At: at, Output: job.Payload{Inline: []byte("1"), Bytes: 1}}
		if state != makegood.JobProcessed {
			j.CompleteBy = at.Add(time.Minute)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

func folderSlot() (store.Slot, job.Claim) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	return store.Slot{Agent: "shop", Job: "job-1", Birth: "0e0f", Step: "ship"},
		job.Claim{Attempt: 1, LockedBy: "agent:1", StartedAt: at, CompleteBy: at.Add(time.Minute)}
}

func writeFolder(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(corpus); err == nil {
		return
	}
	check(t, os.MkdirAll(filepath.Dir(corpus), 0o755))
	ctx := context.Background()
	s := open(t, sqlitestore.Options{Path: corpus})
	for _, j := range folderJobs() {
		check(t, s.Create(ctx, j))
	}
	slot, claim := folderSlot()
	check(t, s.Claim(ctx, slot, claim, claim.CompleteBy))
	check(t, s.PutDefinition(ctx, "order", "0a0b", []byte(`{"name":"order"}`)))
	check(t, s.PutPayload(ctx, "job-1", "input#0a", []byte(`"large"`)))
	check(t, s.Park(ctx, "job-2", folderJobs()[2].CompleteBy, "parked", claim.CompleteBy))
	check(t, s.Shut())
}

func checkFolder(t *testing.T, s *sqlitestore.Store) {
	t.Helper()
	for i, want := range folderJobs() {
		if want.Rev = 1; i == 2 {
			want.Rev, want.Reason = 2, "parked"
		}
		got, err := s.Load(t.Context(), want.ID)
		check(t, err)
		same(t, "job", got, want)
	}
	slot, claim := folderSlot()
	found, err := s.Look(t.Context(), slot, 1, claim.CompleteBy, claim.StartedAt)
	check(t, err)
	if found.Finding != job.FoundHeld || found.Claim != claim {
		t.Errorf("got %+v, want held by %+v", found, claim)
	}
	definition, err := s.Definition(t.Context(), "0a0b")
	check(t, err)
	payload, err := s.Payload(t.Context(), "job-1", "input#0a")
	check(t, err)
	if string(definition) != `{"name":"order"}` || string(payload) != `"large"` {
		t.Errorf("got definition %s and payload %s", definition, payload)
	}
}

func readText(t *testing.T, path, query string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	var text string
	check(t, db.QueryRow(query).Scan(&text))
	return text
}

package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// listJobs is how many jobs the file of BenchmarkList holds: 1 in 100 is in Error, 1 in 50 is unfinished.
const listJobs = 1_000_000

// BenchmarkList reads a page of 50 jobs of each kind of list, in a file of a million jobs. The last of them are the
// pages of lists that find nothing, and pass as many jobs as a page may.
func BenchmarkList(b *testing.B) {
	path := filepath.Join(b.TempDir(), "jobs.db")
	fillLists(b, path)
	s := open(b, sqlitestore.Options{Path: path})
	now := time.UnixMilli(1_700_000_000_000)
	for name, f := range map[string]store.Filter{
		"all": {}, "workflow": {Workflow: "order-7"}, "Error": {State: makegood.JobError}, "Error of a workflow": {State: makegood.JobError, Workflow: "order-0"},
		"Error of a workflow that has none": {State: makegood.JobError, Workflow: "order-7"},
		"kind":                              {ReasonKind: "declined"}, "Processed": {State: makegood.JobProcessed}, "Processing": {State: makegood.JobProcessing},
		"step": {Step: "charge12", State: makegood.JobProcessing}, "tenant": {Tenant: "tenant-75"}, "label": {Labels: map[string]string{"region": "r-3"}},
		"since": {Since: now.Add(900 * time.Second)}, "late": {Late: true, Now: now.Add(time.Minute)}, "nobody": {State: makegood.JobError, Tenant: "nobody"},
		"paused, none is": {Paused: true}, "a definition, a scan": {Definition: "none"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.ListJobs(b.Context(), f, "", 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fillLists makes a store with copies of a job of each kind.
func fillLists(b *testing.B, path string) {
	b.Helper()
	s := open(b, sqlitestore.Options{Path: path})
	for i, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobError, makegood.JobProcessing} {
		j := benchJob(i)
		j.ID, j.ProcessState, j.Tenant, j.Labels = "seed-"+string(state), state, "tenant-75", map[string]string{"region": "r-3"}
		j.Steps[1].Forward = job.Activity{State: job.Waiting, Attempt: 1, Tries: 1, At: j.CreatedAt}
		if state == makegood.JobError {
			j.Steps[1].Forward = job.Activity{State: job.Failed, Attempt: 1, Tries: 1, Error: &job.StepError{Message: "no", Kind: "declined"}}
		}
		check(b, s.Create(b.Context(), j))
	}
	check(b, s.Shut())
	db, err := sql.Open("sqlite", path)
	check(b, err)
	defer db.Close()
	for _, statement := range []string{
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, finished_at, data, tenant)
			SELECT printf('order-%%07d', i), 1, seed.process_state, CASE WHEN seed.process_state = 'Processed' THEN NULL ELSE 1700000000000 + i END, 0, '',
				'order-' || (i %% 20), 1700000000000 + i, CASE WHEN seed.process_state = 'Processed' THEN 1700000000000 + i END, data,
				CASE WHEN i %% 5 = 0 THEN 'tenant-' || (i %% 1000) END
			FROM n JOIN jobs seed ON seed.id = CASE WHEN i %% 100 = 0 THEN 'seed-Error' WHEN i %% 100 = 50 THEN 'seed-Processing' ELSE 'seed-Processed' END`, listJobs),
		`INSERT INTO labels(row, name, value) SELECT row, 'region', 'r-' || (row % 10) FROM jobs WHERE row > 3 AND row % 10 < 5`,
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
}

package pagesoak

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	_ "modernc.org/sqlite"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

const (
	// million is the number of jobs in the file: one in a hundred is in Error, one waits for a person, one was undone.
	million = 1_000_000
	// MillionFolder, in .build/, keeps the file, so that it is made once. Another content is another name.
	MillionFolder = "million-3"
	// Kinds is how many workflows and kinds of error there are.
	Kinds = 20
)

// MakeMillion makes the file in a folder, unless it is there.
func MakeMillion(b testing.TB, dir string) {
	b.Helper()
	if _, err := os.Stat(dir); err != nil {
		fill(b, dir+".part")
		check(b, os.Rename(dir+".part", dir))
	}
}

// OpenMillion opens an engine with the workflows and agents of the file, and more.
func OpenMillion(b testing.TB, dir string, more []string, agents ...agent.Handler) *engine.Engine {
	b.Helper()
	files := fstest.MapFS{}
	for n, text := range more {
		files[fmt.Sprintf("more-%d.yaml", n)] = &fstest.MapFile{Data: []byte(text)}
	}
	for n := range Kinds {
		files[fmt.Sprintf("order-%d.yaml", n)] = &fstest.MapFile{Data: fmt.Appendf(nil, `name: order-%d
onFailure: undo
steps:
  - {name: reserve, agent: shop-%d, action: reserve, with: "${ .input }", undo: {action: release}}
  - {name: charge, agent: shop-%d, action: charge, with: "${ .input }", undo: {action: refund, with: "${ .input }"}}
  - {name: approve, agent: approval, when: "${ .input.ask == true }", with: {choices: [approve], for: 300d}}
  - {name: ship, agent: shop-%d, action: ship, with: "${ .input }", undo: none}
`, n, n, n, n)}
	}
	eng, err := engine.Open(b.Context(), engine.Options{Dir: dir, Workflows: files, Agents: append(shops(), agents...), Logger: slog.New(slog.DiscardHandler)})
	check(b, err)
	return eng
}

// wanted is the input of an order.
type wanted struct {
	Total      int
	Ask        bool
	Fail, Keep string
}

// shops fail as the input says.
func shops() []agent.Handler {
	var all []agent.Handler
	for n := range Kinds {
		step := func(name string) agent.Action {
			return agent.Do(name, func(_ context.Context, in wanted) (string, error) {
				if in.Fail == name || in.Keep == name {
					return "", agent.Final(agent.Kind(fmt.Sprintf("kind-%d", n), errors.New("409 the shop says no")))
				}
				return name + " is done", nil
			})
		}
		all = append(all, agent.New(fmt.Sprintf("shop-%d", n), step("reserve"), step("release"), step("charge"), step("refund"), step("ship")))
	}
	return all
}

// seeds are the jobs that the file has copies of, by their input; stops is the state in which they rest.
var seeds = []struct {
	name, input string
	stops       makegood.ProcessState
}{
	{"processed", `{"total": 12}`, makegood.JobProcessed},
	{"error", `{"total": 12, "fail": "ship", "keep": "refund"}`, makegood.JobError},
	{"waiting", `{"total": 12, "ask": true}`, makegood.JobProcessing},
	{"undone", `{"total": 12, "fail": "ship"}`, makegood.JobUndone},
}

// fill makes the file: it has jobs of each kind worked, and copies their rows.
func fill(b testing.TB, dir string) {
	b.Helper()
	check(b, os.RemoveAll(dir))
	eng := OpenMillion(b, dir, nil)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	for n := range Kinds {
		for _, s := range seeds {
			id := fmt.Sprintf("seed-%s-%d", s.name, n)
			_, err := eng.Submit(ctx, makegood.Submission{
				Workflow: fmt.Sprintf("order-%d", n), ID: id, Input: json.RawMessage(s.input), Tenant: "tenant-75", Labels: map[string]string{"region": "r-3"},
			})
			check(b, err)
			rests(b, eng, id, s.stops)
		}
	}
	stop()
	check(b, errors.Join(<-ended, eng.Close()))
	db, err := sql.Open("sqlite", filepath.Join(dir, "makegood.db"))
	check(b, err)
	defer db.Close()
	for _, statement := range []string{
		// Due work stays due in years, so that the file is the same whenever it is opened.
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, finished_at, data, tenant)
			SELECT printf('order-%%07d', i), 1, seed.process_state, CASE WHEN seed.complete_by IS NOT NULL THEN seed.complete_by + 3000000000 + i END, seed.failure_count, '',
				seed.workflow, seed.created_at - (%d - i) * 2592, seed.finished_at - (%d - i) * 2592, seed.data,
				CASE WHEN i %% 5 = 0 THEN 'tenant-' || (i %% 1000) END
			FROM n JOIN jobs seed ON seed.id = 'seed-' || CASE i %% 100 WHEN 0 THEN 'error' WHEN 50 THEN 'waiting' WHEN 25 THEN 'undone' ELSE 'processed' END || '-' || ((i / 100 + i) %% %d)`,
			million, million, million, Kinds),
		`INSERT INTO payloads(job, key, value) SELECT jobs.id, p.key, p.value FROM jobs
			JOIN payloads p ON p.job = 'seed-' || CASE jobs.process_state WHEN 'Error' THEN 'error' ELSE 'undone' END || '-' || substr(jobs.workflow, 7)
			WHERE jobs.id LIKE 'order-%' AND jobs.process_state IN ('Error', 'Undone')`,
		`INSERT INTO labels(row, name, value) SELECT row, 'region', 'r-' || (row % 10) FROM jobs WHERE row > 100 AND row % 10 < 5`,
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
}

// rests waits until a job has come to rest.
func rests(b testing.TB, eng *engine.Engine, id string, state makegood.ProcessState) {
	b.Helper()
	for j, err := range eng.Watch(b.Context(), id) {
		check(b, err)
		if j.ProcessState == state && (state != makegood.JobProcessing || waits(j)) {
			return
		}
	}
	j, err := eng.Get(b.Context(), id)
	b.Fatalf("job %s never was %s, but %s, %s: %v", id, state, j.ProcessState, j.Reason, err)
}

// waits reports whether a step of the job waits.
func waits(j makegood.Job) bool {
	return slices.ContainsFunc(j.Steps, func(s makegood.JobStep) bool { return s.State == makegood.StepWaiting })
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

//go:build unix

package pagesoak_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

const (
	// million is how many jobs the file holds: of a hundred one is in Error, one is under way, one was undone and one was cancelled.
	million = 1_000_000
	// millionFolder keeps the file, so that it is made once. Another content is another name.
	millionFolder = "../../.build/million-2"
	// kinds is how many workflows and kinds of error there are.
	kinds = 20
)

// BenchmarkMillion asks for each view in a file of a million jobs, as often as go test -bench does, and reports the median and the
// 99th of a hundred. Nothing runs meanwhile.
func BenchmarkMillion(b *testing.B) {
	eng := openMillion(b)
	for _, path := range []string{
		"/", "/?state=Processed", "/?state=Error", "/?state=Processing", "/?state=Undone", "/?workflow=order-7", "/?state=Processed&workflow=order-7", "/?q=tenant:tenant-75", "/?q=label.region:r-3",
		"/?q=nobody-has-this-id", "/?late=true", "/?since=1h", "/jobs/order-0500000", "/jobs/order-0000100", "/errors", "/agents", "/workflows", "/workflows/order-7", "/schedules",
	} {
		b.Run(path, func(b *testing.B) {
			ask(b, eng, path) // The first may find the counts being counted.
			var took []time.Duration
			used := processor(b)
			for b.Loop() {
				begun := time.Now()
				ask(b, eng, path)
				took = append(took, time.Since(begun))
			}
			// What the machine does beside it is in the times, and not in this.
			b.ReportMetric((processor(b)-used).Seconds()*1000/float64(b.N), "cpu-ms")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// processor is how much of the processors this process has used, with what it counts beside the views.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ask asks for a page.
func ask(b *testing.B, eng *engine.Engine, path string) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	w := httptest.NewRecorder()
	eng.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Fatalf("%s: %d: %.2000s", path, w.Code, w.Body)
	}
}

// openMillion opens an engine on the file, which is made where there is none yet.
func openMillion(b *testing.B) *engine.Engine {
	b.Helper()
	if _, err := os.Stat(millionFolder); err != nil {
		fill(b, millionFolder+".part")
		check(b, os.Rename(millionFolder+".part", millionFolder))
	}
	eng := openKinds(b, millionFolder)
	b.Cleanup(func() { check(b, eng.Close()) })
	return eng
}

// openKinds opens an engine with the workflows of the file, and with that of a runner, if there is one.
func openKinds(b *testing.B, dir string, runner ...agent.Handler) *engine.Engine {
	b.Helper()
	files := fstest.MapFS{}
	if len(runner) > 0 {
		files["running.yaml"] = &fstest.MapFile{Data: []byte(runningWorkflow)}
	}
	for n := range kinds {
		files[fmt.Sprintf("order-%d.yaml", n)] = &fstest.MapFile{Data: fmt.Appendf(nil, `name: order-%d
onFailure: undo
steps:
  - {name: reserve, agent: shop-%d, action: reserve, with: "${ .input }", undo: {action: release}}
  - {name: charge, agent: shop-%d, action: charge, with: "${ .input }", undo: {action: refund, with: "${ .input }"}}
  - {name: approve, agent: approval, when: "${ .input.ask == true }", with: {choices: [approve], for: 300d}}
  - {name: ship, agent: shop-%d, action: ship, with: "${ .input }", undo: none}
`, n, n, n, n)}
	}
	eng, err := engine.Open(b.Context(), engine.Options{Dir: dir, Workflows: files, Agents: append(shops(), runner...), Logger: slog.New(slog.DiscardHandler)})
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
	for n := range kinds {
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

// seeds are the jobs of which the file has copies, by their input; stops is as what they come to rest.
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
func fill(b *testing.B, dir string) {
	b.Helper()
	check(b, os.RemoveAll(dir))
	eng := openKinds(b, dir)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	for n := range kinds {
		for _, s := range seeds {
			id := fmt.Sprintf("seed-%s-%d", s.name, n)
			_, err := eng.Submit(ctx, makegood.Submission{
				Workflow: fmt.Sprintf("order-%d", n), ID: id, Input: json.RawMessage(s.input), Tenant: "seed", Labels: map[string]string{"region": "seed"},
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
		// What would be due stays so for years, so that the file is the same whenever it is opened.
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, finished_at, data, tenant)
			SELECT printf('order-%%07d', i), 1, seed.process_state, CASE WHEN seed.complete_by IS NOT NULL THEN seed.complete_by + 3000000000 + i END, seed.failure_count, '',
				seed.workflow, seed.created_at - (%d - i) * 2592, seed.finished_at - (%d - i) * 2592, seed.data,
				CASE WHEN i %% 5 = 0 THEN 'tenant-' || (i %% 1000) END
			FROM n JOIN jobs seed ON seed.id = 'seed-' || CASE i %% 100 WHEN 0 THEN 'error' WHEN 50 THEN 'waiting' WHEN 25 THEN 'undone' ELSE 'processed' END || '-' || ((i / 100 + i) %% %d)`,
			million, million, million, kinds),
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
func rests(b *testing.B, eng *engine.Engine, id string, state makegood.ProcessState) {
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

// waits reports whether a step of the job waits for somebody.
func waits(j makegood.Job) bool {
	return slices.ContainsFunc(j.Steps, func(s makegood.JobStep) bool { return s.State == makegood.StepWaiting })
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/workflows/order"
)

// program is the makegood command, built once.
var program string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("not in a short run: it builds whole programs (make whole)")
		return 0
	}
	dir, err := os.MkdirTemp("", "makegood-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "makegood")
	out, err := exec.Command("go", "build", "-o", program, "../../cmd/makegood").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build makegood: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// shop is an open shop, and the files of a run against it.
type shop struct {
	t       testing.TB
	open    *services.Server
	dir     string
	program string // the makegood command
}

func openShop(t testing.TB, o services.Options) *shop {
	t.Helper()
	open, err := services.Start("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Close() })
	s := &shop{t: t, open: open, dir: t.TempDir(), program: program}
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(open.URL()))
	yaml = bytes.ReplaceAll(yaml, []byte("timeout: 1s"), []byte("timeout: 30s")) // No machine is too slow for it.
	s.write("order.yaml", yaml)
	return s
}

func (s *shop) write(name string, content []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// orders writes n orders, and returns their ids.
func (s *shop) orders(n int) []string {
	var lines bytes.Buffer
	ids := make([]string, n)
	for i := range n {
		ids[i] = fmt.Sprintf("o-%04d", i)
		fmt.Fprintf(&lines, `{"id":%q,"customer":"c-%d","total":%d.50}`+"\n", ids[i], i%97, i%200)
	}
	s.write("orders.jsonl", lines.Bytes())
	return ids
}

// command is makegood run on the shop's files.
func (s *shop) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"run", filepath.Join(s.dir, "order.yaml"), "--input", filepath.Join(s.dir, "orders.jsonl"), "--data", filepath.Join(s.dir, "data")}, args...)
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env = append(os.Environ(), "MAKEGOOD_SHOP="+s.open.URL())
	return cmd
}

// jobs reads the engine's file, while no engine runs.
func (s *shop) jobs() map[string]job.Job {
	s.t.Helper()
	jobs := map[string]job.Job{}
	reader, err := sqlitestore.OpenReader(s.t.Context(), filepath.Join(s.dir, "data", embedded.DataFile))
	if errors.Is(err, os.ErrNotExist) {
		return jobs
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.Each(s.t.Context(), func(j job.Job) error {
		jobs[j.ID] = j
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return jobs
}

// finish runs the command to its end, and returns its exit code and summary.
func (s *shop) finish() (int, map[string]float64) {
	s.t.Helper()
	cmd := s.command(s.t.Context(), "--json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	var summary map[string]float64
	if err := json.Unmarshal(out.Bytes(), &summary); err != nil {
		s.t.Fatalf("standard output is not the summary: %v\n%s\n%s", err, out.Bytes(), errs.Bytes())
	}
	return cmd.ProcessState.ExitCode(), summary
}

// done are the keys of the steps that are done, with the requests that the shop has seen for them.
func done(jobs map[string]job.Job, l services.Ledger) map[string]string {
	seen := map[string]string{}
	for id, j := range jobs {
		for _, step := range j.Steps {
			if step.Forward.State == job.Done {
				key := fmt.Sprintf("%s/%s/%d", id, step.Name, j.Round)
				seen[key] = fmt.Sprint(l.Requests[key])
			}
		}
	}
	return seen
}

// 4,000 orders, and the engine killed ten times at random moments: nothing is lost, no step that was
// done is run again, no attempt is sent twice, and the engine is back at work at once.
func TestKilledTenTimesNothingIsLostOrDoneAgain(t *testing.T) {
	const orders, kills = 4000, 10
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	ids := s.orders(orders)
	finished := map[string]string{}
	var back []time.Duration
	// On a machine that is slow by then no step may be done: it is killed on until one is.
	for len(back) < kills || len(finished) == 0 && len(back) < 10*kills {
		back = append(back, s.workAndDie(time.Duration(random.IntN(100))*time.Millisecond, 3*orders/(2*kills)))
		maps.Copy(finished, done(s.jobs(), s.open.Ledger()))
	}
	midway := len(finished)
	t.Logf("back at work, process start included, after %v; %d steps were done before the last run", back, midway)
	s.allIsMadeGood(ids)
	ledger := s.open.Ledger()
	for key, requests := range finished {
		if now := fmt.Sprint(ledger.Requests[key]); now != requests {
			t.Errorf("%s was done, and was run again: the shop had seen %s, now %s", key, requests, now)
		}
	}
	if midway == 0 || midway == 3*orders {
		t.Errorf("the kills came too early or too late to show anything: %d steps were done by then", midway)
	}
}

// A second engine on the same folder is refused, and says who holds it; a reader may read.
func TestAFolderHasOneEngine(t *testing.T) {
	s := openShop(t, services.Options{Script: services.Script{Plan: func(string, services.Action, int) services.Fault { return services.Hangs }}})
	s.orders(20)
	first := s.command(t.Context())
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = first.Process.Kill()
		_ = first.Wait()
	}()
	for deadline := time.Now().Add(2 * time.Minute); s.open.Ledger().Totals.Requests == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the first engine does not work")
		}
	}
	out, err := s.command(t.Context()).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), fmt.Sprint(first.Process.Pid)) {
		t.Errorf("got %v, %s, want exit code 1 and the pid %d of who holds it", err, out, first.Process.Pid)
	}
	if jobs := s.jobs(); len(jobs) == 0 {
		t.Error("a reader sees no jobs beside the engine")
	}
}

package works

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/engine"
)

// underWay is how many jobs run when the process is killed.
const underWay = 100

// victim is the variable that makes a process of this test one that is killed: the folder of its engine. submits is
// how many jobs it submits.
const victim, submits = "MAKEGOOD_BENCH_VICTIM", "MAKEGOOD_BENCH_SUBMITS"

func TestMain(m *testing.M) {
	flag.Parse()
	if dir := os.Getenv(victim); dir != "" {
		n, err := strconv.Atoi(os.Getenv(submits))
		if err == nil {
			err = fallVictim(dir, n)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// W3: a process whose engine works at a hundred jobs is killed, and another one is started on its folder. An
// operation is a kill: from there until each of the jobs is worked at again. The start of the process is in it. Each
// kill has a folder of its own, since jobs over which a process has died three times are worked at alone.
func BenchmarkKill(b *testing.B) {
	var first time.Duration
	for range b.N {
		b.StopTimer()
		dir := b.TempDir()
		process, lines := startVictim(b, dir, underWay)
		begun(b, lines, underWay)
		b.StartTimer()
		killed := time.Now()
		kill(b, process)
		process, lines = startVictim(b, dir, 0)
		begun(b, lines, 1)
		first += time.Since(killed)
		begun(b, lines, underWay-1)
		b.StopTimer()
		kill(b, process)
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "first-ms")
}

// startVictim starts a process that submits n jobs, and returns the lines that it writes: one for each attempt that
// begins.
func startVictim(b *testing.B, dir string, n int) (*exec.Cmd, *bufio.Scanner) {
	b.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), victim+"="+dir, submits+"="+strconv.Itoa(n))
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	return process, bufio.NewScanner(out)
}

// begun waits until n attempts have begun.
func begun(b *testing.B, lines *bufio.Scanner, n int) {
	b.Helper()
	for range n {
		if !lines.Scan() {
			b.Fatalf("the process wrote no more: %v", lines.Err())
		}
	}
}

func kill(b *testing.B, process *exec.Cmd) {
	b.Helper()
	if err := process.Process.Kill(); err != nil {
		b.Fatal(err)
	}
	if process.Wait() == nil {
		b.Fatal("got a process that ended by itself, want one that was killed")
	}
}

// fallVictim runs an engine whose attempts say that they have begun, and never end.
func fallVictim(dir string, n int) error {
	o := options(dir, "name: row\nsteps: [{name: step, agent: idle}]", func(ctx context.Context, t makegood.Task) (json.RawMessage, error) {
		fmt.Println(t.Job)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	o.Concurrency.Agents = map[string]int{"idle": underWay}
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	eng, err := engine.Open(context.Background(), o)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := eng.Submit(context.Background(), makegood.Submission{Workflow: "row", ID: fmt.Sprintf("job-%03d", i), Input: json.RawMessage(`{}`)}); err != nil {
			return err
		}
	}
	return eng.Run(context.Background())
}

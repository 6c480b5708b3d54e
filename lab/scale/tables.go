package scale

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// The load of the tables: 2,000 jobs a second of five steps.
const (
	stepsASecond = 10_000
	stepsOfAJob  = 5
	jobsASecond  = stepsASecond / stepsOfAJob
)

// The defaults of template.yaml, which a test compares.
const (
	templateShards = 16
	templateEvents = 50
	templateAgent  = 10
)

// part is a part of a stack that can be full: its capacity a second by default, and the demand of a step.
type part struct {
	name, fix string
	takes     float64
	asks      func(sizing.Job) float64
}

func parts() []part {
	perSecond := func(concurrency float64) float64 { return concurrency / sizing.RunSeconds }
	return []part{
		{fmt.Sprintf("an agent's function, Concurrency %d", templateAgent), "Concurrency of the agent's row, at most 1000; more agents", perSecond(templateAgent), func(j sizing.Job) float64 { return j.Tasks }},
		{fmt.Sprintf("the Scheduler, EventsConcurrency %d", templateEvents), "EventsConcurrency, at most 1000; inline steps", perSecond(templateEvents), func(j sizing.Job) float64 { return j.Events }},
		{fmt.Sprintf("a new table, %s write units", grouped(sizing.WarmWrites)), "WarmWrites before the launch; it grows by itself within half an hour", sizing.WarmWrites, func(j sizing.Job) float64 { return j.WriteUnits - j.IndexUnits }},
		{fmt.Sprintf("an account, %s invocations at once", grouped(sizing.AccountConcurrency)), "the quota L-B99A9384; inline steps", perSecond(sizing.AccountConcurrency - sizing.Unreserved), func(j sizing.Job) float64 { return j.Events + j.Tasks }},
		{fmt.Sprintf("a table's quota, %s write units", grouped(sizing.TableUnits)), "the quota of the table; inline steps", sizing.TableUnits, func(j sizing.Job) float64 { return j.WriteUnits - j.IndexUnits }},
		{fmt.Sprintf("the index, %d shards", templateShards), "Shards, at most 1024", templateShards * sizing.PartitionWrites, func(j sizing.Job) float64 { return j.IndexUnits }},
	}
}

// full is at how many steps a second a part is full; 0: never, since the load does not use it.
func (p part) full(l sizing.Load) float64 {
	asks := p.asks(sizing.Of(l).Job) / float64(l.Steps)
	if asks == 0 {
		return 0
	}
	return p.takes / asks
}

// columns are the loads of the table of parts.
func columns() []sizing.Load {
	var all []sizing.Load
	for _, change := range []func(*sizing.Load){
		func(*sizing.Load) {},
		func(l *sizing.Load) { l.Batched = true },
		func(l *sizing.Load) { l.Batched, l.SlowShare = true, 1 },
		func(l *sizing.Load) { l.Batched, l.Way = true, sizing.Inline },
	} {
		l := sizing.Usual()
		l.JobsPerSecond, l.Steps = jobsASecond, stepsOfAJob
		change(&l)
		all = append(all, l)
	}
	return all
}

// partsTable renders at how many steps a second each part is full, the first to be so first.
func partsTable() string {
	all := parts()
	slices.SortStableFunc(all, func(a, b part) int {
		return int(math.Round(a.full(columns()[0]) - b.full(columns()[0])))
	})
	var text strings.Builder
	text.WriteString("| full first | steps/s, each message alone | full batches | slow steps, batched | inline, batched | fix |\n|---|---|---|---|---|---|\n")
	for _, p := range all {
		fmt.Fprintf(&text, "| %s |", p.name)
		for _, l := range columns() {
			if at := p.full(l); at == 0 {
				text.WriteString(" - |")
			} else {
				fmt.Fprintf(&text, " %s |", grouped(at))
			}
		}
		fmt.Fprintf(&text, " %s |\n", p.fix)
	}
	return text.String()
}

// placedJobs is how many jobs are placed to see how even the shards are.
const placedJobs = 20_000

// shardsTable renders how even the shards are, and the units of the fullest at the load of these tables.
func shardsTable(ctx context.Context) (string, error) {
	quick, slow := sizing.Of(columns()[0]).Job.IndexUnits, sizing.Of(columns()[2]).Job.IndexUnits
	var text strings.Builder
	text.WriteString("| shards | fullest above the mean | of beginnings | fullest above the mean | units/s of the fullest | with slow steps |\n|---|---|---|---|---|---|\n")
	for _, shards := range []int{16, 32, 64, 128, 256} {
		f, partitions, err := fillOf(ctx, shards, placedJobs, false)
		if err != nil {
			return "", err
		}
		begins, _, err := fillOf(ctx, shards, placedJobs, true)
		if err != nil {
			return "", err
		}
		if partitions != placedJobs || f.shards != shards || begins.shards != dynamostore.BeginShards(shards) {
			return "", fmt.Errorf("%d jobs are in %d partitions, %d shards and %d of beginnings", placedJobs, partitions, f.shards, begins.shards)
		}
		units := func(perJob float64) string {
			n := jobsASecond * perJob / float64(shards) * (1 + f.above())
			mark := ""
			if n > sizing.PartitionWrites {
				mark = ": throttled"
			}
			return grouped(n) + mark
		}
		fmt.Fprintf(&text, "| %d | %.0f %% | %d | %.0f %% | %s | %s |\n", shards, 100*f.above(), begins.shards, 100*begins.above(), units(quick), units(slow))
	}
	return text.String(), nil
}

// backlogs are the rows of the table of sweeps, by their names.
func backlogs(jobs int) []struct {
	name string
	backlog
} {
	usual := backlog{jobs: jobs, shards: 16, atOnce: 8, waits: true, perSecond: 5000}
	with := func(change func(*backlog)) backlog {
		b := usual
		change(&b)
		return b
	}
	return []struct {
		name string
		backlog
	}{
		{"before: a shard at a time, ends when the queue is deep", with(func(b *backlog) { b.atOnce, b.waits = 1, false })},
		{"eight shards at once, ends when the queue is deep", with(func(b *backlog) { b.waits = false })},
		{"a shard at a time, waits", with(func(b *backlog) { b.atOnce = 1 })},
		{"eight shards at once, waits (as it is)", usual},
		{"the same, 256 shards", with(func(b *backlog) { b.shards = 256 })},
		{"the same, a depth that is 15 s old", with(func(b *backlog) { b.depthAge = 15 * time.Second })},
		{"the same, and a Scheduler that takes 10,000/s", with(func(b *backlog) { b.depthAge, b.perSecond = 15*time.Second, 10_000 })},
		{"eight at once, waits, a Scheduler that takes 1,000/s", with(func(b *backlog) { b.perSecond = 1000 })},
	}
}

// sweepsTable renders how a backlog is told of.
func sweepsTable(all []row) string {
	var text strings.Builder
	text.WriteString("| 1,000,000 jobs overdue at once | in the first minute | all told after | messages a job | most waiting | sweeps | requests a job |\n|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		jobs := float64(r.of.jobs)
		fmt.Fprintf(&text, "| %s | %s | %.1f min | %.2f | %s | %d | %.2f |\n", r.name, grouped(float64(r.firstMinute)), r.told.Minutes(), float64(r.sent)/jobs,
			grouped(float64(r.mostWaiting)), r.sweeps, float64(r.requests)/jobs)
	}
	return text.String()
}

// row is a row of that table.
type row struct {
	name string
	of   backlog
	outcome
}

// grouped writes 10000 as 10,000, to the next whole number.
func grouped(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

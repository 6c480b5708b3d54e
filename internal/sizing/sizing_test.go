package sizing_test

import (
	"math"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

func load(change func(*sizing.Load)) sizing.Load {
	l := sizing.Usual()
	l.JobsPerSecond = 500
	change(&l)
	return l
}

// A load that was counted has the usage that was counted, at every place.
func TestALoadThatWasCountedUsesWhatWasCounted(t *testing.T) {
	for _, c := range sizing.Counts() {
		l := load(func(l *sizing.Load) {
			l.Way, l.Batched, l.Steps, l.PayloadBytes = c.Way, c.Batched, c.Steps, c.Bytes
			l.Items, l.ItemsTogether = c.Items, max(1, c.Together)
			if c.Slow {
				l.SlowShare = 1
			}
		})
		want := sizing.Job{WriteUnits: c.Writes, IndexUnits: c.Index, ReadUnits: c.Reads, SQSRequests: c.Requests, Events: c.Events, Tasks: c.Tasks}
		if got := sizing.Of(l).Job; got != want {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

// 500 jobs a second of five steps, each message alone: 13 write units a job, two of them of the index.
func TestAStackForALoad(t *testing.T) {
	s := sizing.Of(load(func(*sizing.Load) {}))
	if s.Table != (sizing.Throughput{WriteUnits: 5500, ReadUnits: 2500, Partitions: 6}) || s.Index.WriteUnits != 1000 {
		t.Errorf("got %+v and %+v", s.Table, s.Index)
	}
	// 2,500 invocations a second of 50 ms are 125 at once; there is twice the room.
	if s.Shards != 16 || s.EventsConcurrency != 250 || s.AgentConcurrency != 250 || s.WarmWrites != 6000 || len(s.Over) > 0 {
		t.Errorf("got %+v", s)
	}
	sum := 0.0
	for _, line := range s.Bill {
		sum += line.Dollars
	}
	jobs := 500.0 * sizing.Month
	// 4.88 $ of docs/cost.md, and beside it logs and storage.
	if want := 4.88 + 1.00 + 0.18; math.Abs(s.MillionSteps-want) > 0.02 || math.Abs(sum-s.Total) > 1e-6 || math.Abs(s.Total-jobs*5*s.MillionSteps/1e6) > 1e-3 {
		t.Errorf("got %.2f $ a million steps, want %.2f; %.2f $ in all, the lines are %.2f", s.MillionSteps, want, s.Total, sum)
	}
}

func TestWhatMakesAStackLarger(t *testing.T) {
	usual := sizing.Of(load(func(*sizing.Load) {}))
	for name, test := range map[string]struct {
		change func(*sizing.Load)
		is     func(sizing.Size) bool
	}{
		"slow steps move keys": {func(l *sizing.Load) { l.JobsPerSecond, l.SlowShare = 2000, 1 }, func(s sizing.Size) bool { return s.Shards == 48 }},
		"waits move keys of beginnings": {func(l *sizing.Load) { l.JobsPerSecond, l.Waits = 2000, 2 }, func(s sizing.Size) bool {
			return s.Shards == 16+16-4 && s.Job.WriteUnits == usual.Job.WriteUnits+2*sizing.WaitWrites
		}},
		"work keeps agents":              {func(l *sizing.Load) { l.StepSeconds, l.Agents = 1.95, 5 }, func(s sizing.Size) bool { return s.AgentConcurrency == 2000 && len(s.Over) == 1 }},
		"agents share the work":          {func(l *sizing.Load) { l.Agents = 5 }, func(s sizing.Size) bool { return s.AgentConcurrency == 50 }},
		"inline work is the Scheduler's": {func(l *sizing.Load) { l.Way, l.StepSeconds = sizing.Inline, 0.01 }, func(s sizing.Size) bool { return s.EventsConcurrency == 100 && s.AgentConcurrency == 0 }},
		"batches share invocations":      {func(l *sizing.Load) { l.Batched = true }, func(s sizing.Size) bool { return s.EventsConcurrency == 25 && s.TaskInFlight == 125 }},
		"payloads are written":           {func(l *sizing.Load) { l.PayloadBytes = 16 << 10 }, func(s sizing.Size) bool { return s.Job.WriteUnits == 115 }},
		"a third of the peak costs a third": {func(l *sizing.Load) { l.Average = 1.0 / 4 }, func(s sizing.Size) bool {
			return math.Abs(s.Total-usual.Total/4) < 1e-6 && s.Shards == usual.Shards
		}},
		"an account has so much": {func(l *sizing.Load) { l.JobsPerSecond = 1000 }, func(s sizing.Size) bool { return s.Quotas[0].Ask && s.Quotas[0].Needs == 1600 }},
		"a table has so much":    {func(l *sizing.Load) { l.JobsPerSecond = 4000 }, func(s sizing.Size) bool { return s.Quotas[1].Ask }},
		"an index has so many shards": {func(l *sizing.Load) { l.JobsPerSecond, l.SlowShare = 100_000, 1 }, func(s sizing.Size) bool {
			return len(s.Over) > 0 && strings.Contains(s.Over[0], "1024")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if s := sizing.Of(load(test.change)); !test.is(s) {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestALoadThatNoStackCanHaveIsRefused(t *testing.T) {
	for field, changes := range map[string][]func(*sizing.Load){
		"jobsPerSecond": {func(l *sizing.Load) { l.JobsPerSecond = 0 }, func(l *sizing.Load) { l.JobsPerSecond = math.NaN() }, func(l *sizing.Load) { l.JobsPerSecond = 1e6 }},
		"average":       {func(l *sizing.Load) { l.Average = 0 }, func(l *sizing.Load) { l.Average = 1.1 }},
		"items":         {func(l *sizing.Load) { l.Items = -1 }, func(l *sizing.Load) { l.Items = 100_001 }, func(l *sizing.Load) { l.Items, l.Way = 10, sizing.Inline }},
		"itemsTogether": {func(l *sizing.Load) { l.ItemsTogether = 0 }, func(l *sizing.Load) { l.ItemsTogether = 51 }},
		"steps":         {func(l *sizing.Load) { l.Steps = 0 }, func(l *sizing.Load) { l.Steps = limits.MaxSteps + 1 }},
		"waits":         {func(l *sizing.Load) { l.Waits = -1 }, func(l *sizing.Load) { l.Waits = limits.MaxSteps }},
		"payloadBytes":  {func(l *sizing.Load) { l.PayloadBytes = -1 }, func(l *sizing.Load) { l.PayloadBytes = 1 << 20 }},
		"stepSeconds":   {func(l *sizing.Load) { l.StepSeconds = 900 }, func(l *sizing.Load) { l.Items, l.ItemsTogether, l.StepSeconds = 100, 10, 90 }, func(l *sizing.Load) { l.Way, l.StepSeconds = sizing.Inline, 26 }},
		"agentMB":       {func(l *sizing.Load) { l.AgentMB = 1 }},
		"agents":        {func(l *sizing.Load) { l.Agents = 0 }, func(l *sizing.Load) { l.Agents = l.Steps + 1 }},
		"slowShare":     {func(l *sizing.Load) { l.SlowShare = 2 }, func(l *sizing.Load) { l.Way, l.SlowShare = sizing.Inline, 0.1 }},
		"retentionDays": {func(l *sizing.Load) { l.RetentionDays = 0 }},
	} {
		for _, change := range changes {
			if got, err := load(change).Check(); got != field || err == nil {
				t.Errorf("%s: got %q, %v", field, got, err)
			}
		}
	}
	if field, err := load(func(*sizing.Load) {}).Check(); err != nil {
		t.Errorf("a usual load is refused: %s %v", field, err)
	}
}

// The usage of a map is that of its items, which share a claim and a save where several are one task. Such a task takes
// as long as all of its items.
func TestAMapIsReckonedByItsItems(t *testing.T) {
	none := sizing.Of(load(func(*sizing.Load) {}))
	with := func(items, together int) sizing.Size {
		return sizing.Of(load(func(l *sizing.Load) { l.JobsPerSecond, l.Items, l.ItemsTogether = 1, items, together }))
	}
	before := math.Inf(1)
	for _, together := range []int{1, 2, 5, 10, 20, 50} {
		s := with(10_000, together)
		if s.Job.WriteUnits >= before || s.Job.WriteUnits <= none.Job.WriteUnits || s.Job.Tasks < 10_000/float64(together) || s.MillionSteps >= none.MillionSteps {
			t.Errorf("%d a task: got %+v, %.2f $ a million, after %.0f write units", together, s.Job, s.MillionSteps, before)
		}
		before = s.Job.WriteUnits
	}
	if one, two := with(10_000, 10).Job, with(20_000, 10).Job; math.Abs(two.WriteUnits-2*one.WriteUnits) > 0.02*two.WriteUnits {
		t.Errorf("10,000 items are %.0f write units, and 20,000 are %.0f", one.WriteUnits, two.WriteUnits)
	}
	small, whole := with(3, 50).Job, with(3, 3).Job
	if small != whole {
		t.Errorf("three items in one task: got %+v and %+v", small, whole)
	}
	for together, want := range map[int]int{1: 300, 10: 210} { // 100 s of work and 1,000 or 100 invocations, twice
		l := load(func(l *sizing.Load) {
			l.JobsPerSecond, l.Steps, l.Items, l.ItemsTogether, l.StepSeconds = 1, 0, 1000, together, 0.1
		})
		if got := sizing.Of(l); got.AgentConcurrency != want {
			t.Errorf("%d a task: got %d at once, want %d", together, got.AgentConcurrency, want)
		}
	}
	if s := sizing.Of(load(func(l *sizing.Load) { l.JobsPerSecond, l.Items = 1, 100_000 })); len(s.Over) == 0 || !s.Quotas[1].Ask {
		t.Errorf("100,000 items each second fit: %+v", s)
	}
}

// The queue is the way of steps by itself; whatever else was counted has a flag.
func TestTheQueueIsTheFirstWay(t *testing.T) {
	ways := sizing.Ways()
	if len(ways) < 2 || ways[0] != sizing.Queue {
		t.Errorf("got %v", ways)
	}
}

func TestTheShardsAreThoseOfTheStore(t *testing.T) {
	if sizing.DefaultShards != dynamostore.DefaultShards || sizing.FewBeginShards != dynamostore.BeginShards(dynamostore.DefaultShards) {
		t.Errorf("the store has %d shards, and %d of beginnings", dynamostore.DefaultShards, dynamostore.BeginShards(dynamostore.DefaultShards))
	}
}

package sizing

import (
	"cmp"
	"math"
	"slices"
)

// The ways of a step to its agent. A further way that make cost counts is a flag of the command by itself.
const (
	Queue  = "queue"
	Inline = "inline"
	// Chain: inline steps that follow one another without a save in between.
	Chain = "chain"
)

// Count is the usage of AWS by one job of a load, its submission included, as make cost counts it.
type Count struct {
	// Way is the way of its steps, Batched whether all messages come in full batches of ten. Slow: each step outlasts the
	// first look after it.
	Way     string
	Batched bool
	Slow    bool
	// Steps is their number. A job with a map has none beside its Items; Together items are one task.
	Steps, Items, Together int
	// Bytes is the size of the input and of each output, where it is more than the inline sizes.
	Bytes int
	// Writes are write units, Index those among them of the index on CompleteBy. Reads are read units.
	Writes, Index, Reads float64
	// Requests are those of SQS. Events are invocations of the Scheduler, Tasks those of agents.
	Requests, Events, Tasks float64
}

// SmallBytes is the size of an output of the reference load, which has no payload of its own.
const SmallBytes = 32

// The usage of a step that waits, beside the job without it.
const (
	// WaitWrites are write units, WaitIndex those among them that move the job's key in a shard of beginnings.
	WaitWrites = 3
	WaitIndex  = 2
	// WaitReads are read units. WaitRequests are those of SQS and WaitEvents invocations of the Scheduler, for the message
	// that ends the wait, where it comes alone.
	WaitReads    = 2
	WaitRequests = 3
	WaitEvents   = 1
)

// numbers returns the usage fields of a count.
func (c *Count) numbers() []*float64 {
	return []*float64{&c.Writes, &c.Index, &c.Reads, &c.Requests, &c.Events, &c.Tasks}
}

// plus adds factor times the usage of another count.
func (c Count) plus(factor float64, other Count) Count {
	add := other.numbers()
	for i, n := range c.numbers() {
		*n += factor * *add[i]
	}
	return c
}

// line interpolates between counts, of which at returns the positions; beyond the last count it extrapolates from the
// last two.
func line(x int, at func(Count) int, counts []Count) Count {
	slices.SortFunc(counts, func(a, b Count) int { return cmp.Compare(at(a), at(b)) })
	for i, c := range counts {
		if at(c) == x {
			return c
		}
		if i > 0 && (at(c) > x || i == len(counts)-1) {
			before := counts[i-1]
			part := float64(x-at(before)) / float64(at(c)-at(before))
			return before.plus(-part, before).plus(part, c)
		}
	}
	return counts[0]
}

// items returns the usage of a map, with its items and parts, beside that of the job. The items of a task share its
// cost, so the usage is on a line over the inverse of their number.
func items(l Load) Count {
	var counted []Count
	for _, c := range find(func(c Count) bool { return c.Items > 0 && c.Batched == l.Batched }) {
		if slices.ContainsFunc(counted, func(other Count) bool { return other.Together == c.Together }) {
			continue
		}
		same := find(func(other Count) bool {
			return other.Together == c.Together && other.Items > 0 && other.Batched == l.Batched
		})
		counted = append(counted, line(l.Items, func(c Count) int { return c.Items }, same))
	}
	for i := range counted {
		counted[i].Together = perTask / counted[i].Together
	}
	all := line(perTask/l.together(), func(c Count) int { return c.Together }, counted)
	return all.plus(-1, stepless(Queue, l.Batched))
}

// perTask makes a whole number of that inverse.
const perTask = 1_000_000

// stepless returns the usage of a job beside that of its steps.
func stepless(way string, batched bool) Count {
	return line(0, func(c Count) int { return c.Steps }, find(func(c Count) bool {
		return c.Way == way && c.Batched == batched && !c.Slow && c.Bytes == 0 && c.Items == 0
	}))
}

// find returns the counts that a condition selects.
func find(is func(Count) bool) []Count {
	return slices.DeleteFunc(slices.Clone(counts), func(c Count) bool { return !is(c) })
}

// countOf returns the usage of one job of a load. Values between two counts are interpolated,
// and those beyond the last one extrapolated.
func countOf(l Load) Count {
	same := func(c Count) bool { return c.Way == l.Way && c.Batched == l.Batched && !c.Slow && c.Items == 0 }
	job := line(l.Steps, func(c Count) int { return c.Steps }, find(func(c Count) bool { return same(c) && c.Bytes == 0 }))
	if l.PayloadBytes > SmallBytes {
		sized := find(func(c Count) bool { return same(c) && c.Steps == referenceSteps })
		large := line(l.PayloadBytes, func(c Count) int { return max(c.Bytes, SmallBytes) }, sized)
		small := line(0, func(c Count) int { return c.Bytes }, sized)
		// The submission brings one payload, each step another.
		share := float64(l.Steps+1) / (referenceSteps + 1)
		job = job.plus(share, large).plus(-share, small)
	}
	if l.SlowShare > 0 {
		slow := find(func(c Count) bool { return c.Way == l.Way && c.Batched == l.Batched && c.Slow })[0]
		quick := find(func(c Count) bool { return same(c) && c.Bytes == 0 && c.Steps == slow.Steps })[0]
		share := l.SlowShare * float64(l.Steps) / float64(slow.Steps)
		job = job.plus(share, slow).plus(-share, quick)
	}
	job = job.plus(float64(l.Waits), Count{Writes: WaitWrites, Reads: WaitReads, Requests: WaitRequests / l.batch(), Events: WaitEvents / l.batch()})
	if l.Items > 0 {
		job = job.plus(1, items(l))
	}
	for _, n := range job.numbers() {
		*n = max(0, math.Round(*n*1e6)/1e6)
	}
	return job
}

// referenceSteps is the number of steps of the counts by size, and of the slow ones.
const referenceSteps = 5

// Ways returns the ways that were counted, the queue first.
func Ways() []string {
	var ways []string
	for _, c := range counts {
		if !slices.Contains(ways, c.Way) {
			ways = append(ways, c.Way)
		}
	}
	slices.SortFunc(ways, func(a, b string) int {
		return cmp.Or(cmp.Compare(map[bool]int{true: 1}[a != Queue], map[bool]int{true: 1}[b != Queue]), cmp.Compare(a, b))
	})
	return ways
}

// Counts returns the counts of make cost.
func Counts() []Count { return slices.Clone(counts) }

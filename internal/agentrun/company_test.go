package agentrun_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
)

// rule says how long a reply waits for company when its batch has taken so long, while others work.
type rule struct {
	name string
	wait func(took time.Duration) time.Duration
}

func within(fixed time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return fixed }
}

// rules are those that decision 0065 compares. The last is that of the Runner.
var rules = []rule{
	{"at once", within(0)},
	{"20 ms", within(20 * time.Millisecond)},
	{"50 ms", within(50 * time.Millisecond)},
	{"a quarter, 20 to 250 ms", func(took time.Duration) time.Duration {
		return min(max(20*time.Millisecond, took/4), 250*time.Millisecond)
	}},
	{"a quarter, 50 to 250 ms", func(took time.Duration) time.Duration {
		return min(max(50*time.Millisecond, took/4), 250*time.Millisecond)
	}},
}

// batchOf draws how long ten attempts take: around a median, and one of them half a minute if it is slow.
func batchOf(median time.Duration, spread float64, slow bool, of *rand.Rand) (all []time.Duration) {
	for range 10 {
		d := time.Duration(float64(median) * math.Exp(spread*of.NormFloat64())).Round(time.Microsecond)
		all = append(all, max(d, time.Microsecond))
	}
	if slow {
		all[0] = 30 * time.Second
	}
	slices.Sort(all)
	return all
}

// reckon returns how many requests the replies of a batch become by a rule, and how long they wait together.
func (r rule) reckon(took []time.Duration) (requests int, waited time.Duration) {
	last := took[len(took)-1]
	for i := 0; i < len(took); requests++ {
		flush := min(took[i]+r.wait(took[i]), last)
		for first := i; i < len(took) && (i == first || took[i] <= flush); i++ {
			flush = min(flush, took[i]+r.wait(took[i]))
			waited += max(0, flush-took[i])
		}
	}
	return requests, waited
}

// The requests that a batch of ten replies becomes, by each rule: decision 0065 has this table. That of the Runner is
// what a Runner makes of the same batches.
func TestRequestsABatch(t *testing.T) {
	const batches = 40
	for _, load := range []struct {
		name   string
		median time.Duration
		spread float64
		slow   bool
		// want are the requests of all batches, by rule.
		want string
	}{
		{"5 ms", 5 * time.Millisecond, .3, false, "[400 40 40 40 40]"},
		{"50 ms", 50 * time.Millisecond, .5, false, "[400 143 83 143 83]"},
		{"200 ms", 200 * time.Millisecond, .5, false, "[400 274 184 195 175]"},
		{"1 s", time.Second, .3, false, "[400 340 294 151 151]"},
		{"5 ms, and one of 30 s", 5 * time.Millisecond, .3, true, "[400 80 80 80 80]"},
	} {
		t.Run(load.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := rand.New(rand.NewPCG(1, 2))
				requests, waited := make([]int, len(rules)), make([]time.Duration, len(rules))
				made := 0
				for range batches {
					took := batchOf(load.median, load.spread, load.slow, of)
					for i, r := range rules {
						n, wait := r.reckon(took)
						requests[i] += n
						waited[i] += wait
					}
					w := newWorld(t, takes)
					var tasks []makegood.Task
					for _, d := range took {
						tasks = append(tasks, w.task(d.String(), func(task *makegood.Task) { task.Timeout = makegood.Minute }))
					}
					w.wantFailed(w.handle(t.Context(), tasks...))
					made += w.outbox.calls
				}
				for i, r := range rules {
					t.Logf("%-24s %5.2f requests a batch, a reply waits %v", r.name, float64(requests[i])/batches, (waited[i] / (10 * batches)).Round(time.Millisecond))
				}
				if got := fmt.Sprint(requests); got != load.want {
					t.Errorf("requests of %d batches by rule: got %s, want %s", batches, got, load.want)
				}
				if made != requests[len(rules)-1] {
					t.Errorf("the Runner made %d requests, want %d", made, requests[len(rules)-1])
				}
			})
		})
	}
}

package embedded_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// golden is a job, what its services answer, and what is to become of it.
type golden struct {
	yaml, input string
	// child is the workflow of the jobs that do a step of it.
	child string
	// replyTo is who listens to it.
	replyTo string
	// unanswered is the action that is done, and answered with an error every time.
	unanswered string
	// large: what the steps give is stored beside the job.
	large bool
	// cancel: the submitter cancels the job while its charge is under way; still: once nothing else goes on.
	cancel, still bool
	// cancelBefore, if set, is the call before which the submitter cancels the job. Blows fall on calls after the cancel.
	cancelBefore blow
	want         makegood.ProcessState
	// seen, if set, notes what is played.
	seen *layers.Seen
}

const (
	orderYAML = `
name: order
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: release}}
  - {name: charge, agent: payments, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: refund}}
  - {name: ship, agent: shipping, startBy: 1m, timeout: 10s, retry: {attempts: 2, backoff: 10ms, max: 1s}, undo: {action: recall}}
`
	joinYAML = `
name: join
steps:
  - {name: reserve, agent: inventory, needs: [], startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: none}
  - {name: charge, agent: payments, needs: [], startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: none}
  - {name: ship, agent: shipping, needs: [reserve, charge], startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}}
`
	giftYAML = `
name: gift
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}}
  - {name: wrap, agent: inventory, when: "${ .input.gift }", startBy: 1m, timeout: 10s}
  - {name: ship, agent: shipping, with: "${ .steps.reserve.output }", startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}}
`
	// ordersYAML has a step that is done by a job of its own.
	ordersYAML = `
name: orders
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: release}}
  - {name: pay, agent: workflow, action: payment}
  - {name: ship, agent: shipping, startBy: 1m, timeout: 10s, retry: {attempts: 2, backoff: 10ms, max: 1s}, undo: {action: recall}}
`
	paymentYAML = `
name: payment
steps:
  - {name: charge, agent: payments, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: refund}}
  - {name: invoice, agent: payments, startBy: 1m, timeout: 10s, retry: {attempts: 2, backoff: 10ms, max: 1s}, undo: {action: annul}}
`
	// mapYAML has a step that is done for each item of a list, two at a time. Its items are steps of one child.
	mapYAML = `
name: lines
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: release}}
  - name: pay
    map: {over: "${ [range(3)] }", concurrency: 2}
    agent: payments
    action: charge
    with: {sku: "${ .input.sku }", line: "${ .item }"}
    startBy: 1m
    timeout: 10s
    retry: {attempts: 3, backoff: 10ms, max: 1s}
    undo: {action: refund}
  - {name: ship, agent: shipping, startBy: 1m, timeout: 10s, retry: {attempts: 2, backoff: 10ms, max: 1s}, undo: {action: recall}}
`
	oneYAML = `
name: one
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}}
`
)

// largeJSON is a payload that no store keeps in the job itself.
var largeJSON = `{"gift":false,"note":"` + strings.Repeat("large ", 500) + `"}`

// inline is a workflow with all of its steps inline.
func inline(yaml string) string {
	return strings.ReplaceAll(yaml, "startBy: 1m", "inline: true, startBy: 1m")
}

// chainYAML has a chain of four steps between two that go through the queues.
const chainYAML = `
name: chain
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: release}}
  - {name: charge, agent: payments, inline: true, exclusive: false, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: refund}}
  - {name: invoice, agent: payments, inline: true, exclusive: false, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: annul}}
  - {name: pick, agent: inventory, inline: true, exclusive: false, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: putback}}
  - {name: label, agent: inventory, inline: true, exclusive: false, timeout: 10s, retry: {attempts: 2, backoff: 10ms, max: 1s}, undo: {action: peel}}
  - {name: ship, agent: shipping, startBy: 1m, timeout: 10s, retry: {attempts: 2, backoff: 10ms, max: 1s}, undo: {action: recall}}
`

// chained is a workflow with steps that follow one another in a chain.
func chained(yaml string) string {
	return strings.ReplaceAll(yaml, "startBy: 1m", "inline: true, exclusive: false, startBy: 1m")
}

// goldens are the jobs whose calls are struck one by one.
func goldens() map[string]golden {
	return map[string]golden{
		"an order that is processed":                 {yaml: orderYAML, input: `{"sku":"a"}`, want: makegood.JobProcessed},
		"an order that is undone":                    {yaml: orderYAML, input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
		"two branches and their join":                {yaml: joinYAML, input: `{}`, want: makegood.JobProcessed},
		"a skipped step, large payloads, a listener": {yaml: giftYAML, input: largeJSON, large: true, replyTo: "shop", want: makegood.JobProcessed},
		"an inline order that is processed":          {yaml: inline(orderYAML), input: `{"sku":"a"}`, want: makegood.JobProcessed},
		"an inline order that is undone":             {yaml: inline(orderYAML), input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
		"two inline branches and their join":         {yaml: inline(joinYAML), input: `{}`, want: makegood.JobProcessed},
		"an inline order that is cancelled":          {yaml: inline(orderYAML), input: `{"sku":"a"}`, cancel: true, want: makegood.JobCancelled},
		"a chain that is processed":                  {yaml: chainYAML, input: `{"sku":"a"}`, want: makegood.JobProcessed},
		"a chain with a step that fails":             {yaml: chainYAML, input: `{"sku":"a"}`, unanswered: "label", want: makegood.JobUndone},
		"a chain that is undone":                     {yaml: chainYAML, input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
		"a chain that is cancelled":                  {yaml: chainYAML, input: `{"sku":"a"}`, cancel: true, want: makegood.JobCancelled},
		"an order in a chain from its birth":         {yaml: chained(orderYAML), input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
		"an order that is cancelled":                 {yaml: orderYAML, input: `{"sku":"a"}`, cancel: true, want: makegood.JobCancelled},
		"a child, processed":                         {yaml: ordersYAML, child: paymentYAML, input: `{"sku":"a"}`, want: makegood.JobProcessed},
		"a child, undone with its parent":            {yaml: ordersYAML, child: paymentYAML, input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
		"a child that fails":                         {yaml: ordersYAML, child: paymentYAML, input: `{"sku":"a"}`, unanswered: "invoice", want: makegood.JobUndone},
		"a child, cancelled with its parent":         {yaml: ordersYAML, child: paymentYAML, input: `{"sku":"a"}`, cancel: true, want: makegood.JobCancelled},
		"a child with large values":                  {yaml: ordersYAML, child: paymentYAML, input: largeJSON, large: true, want: makegood.JobProcessed},
		"a child with large values, cancelled":       {yaml: ordersYAML, child: paymentYAML, input: largeJSON, large: true, cancel: true, want: makegood.JobCancelled},
		"a map, processed":                           {yaml: mapYAML, child: paymentYAML, input: `{"sku":"a"}`, want: makegood.JobProcessed},
		"a map, undone with its parent":              {yaml: mapYAML, child: paymentYAML, input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
		"a map with items that fail":                 {yaml: mapYAML, child: paymentYAML, input: `{"sku":"a"}`, unanswered: "charge", want: makegood.JobUndone},
		"a map, cancelled with its parent":           {yaml: mapYAML, child: paymentYAML, input: `{"sku":"a"}`, cancel: true, want: makegood.JobCancelled},
		"a map with large values":                    {yaml: mapYAML, child: paymentYAML, input: largeJSON, large: true, want: makegood.JobProcessed},
		"an inline child, undone with its parent":    {yaml: inline(ordersYAML), child: inline(paymentYAML), input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
	}
}

// blow is one call that is struck: the n-th of its name since the last blow.
type blow struct {
	call string
	n    int
	effect
}

func (b blow) String() string { return fmt.Sprintf("%s %d, %s", b.call, b.n, b.effect) }

// suffering plays a voyage in which these blows fall, one after the other. It returns how many of them
// fell, and the calls between the last of them and the end.
func suffering(t *testing.T, g golden, blows ...blow) (fell int, calls map[string]int) {
	t.Helper()
	v, fell := voyageOf(t, g, blows...)
	return fell, v.callsAtEnd
}

// voyageOf is suffering, and returns the voyage.
func voyageOf(t *testing.T, g golden, blows ...blow) (v *voyage, fell int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v = newVoyage(t, g)
		s := func(call string, n int) effect {
			if fell == len(blows) || blows[fell].call != call || blows[fell].n != n {
				return goesOn
			}
			fell++
			return blows[fell-1].effect
		}
		for lives := 0; !v.live(t, s); lives++ {
			if lives == len(blows) {
				t.Fatalf("%d lives were not enough", lives+1)
			}
		}
		v.check(t)
	})
	if t.Failed() {
		t.Fatalf("that was: %v, cancelled before %v", blows, g.cancelBefore)
	}
	return v, fell
}

// blowsOn returns a blow of each kind on each of these calls.
func blowsOn(calls map[string]int, kinds ...effect) (all []blow) {
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		for n := 1; n <= calls[call]; n++ {
			for _, kind := range kinds {
				all = append(all, blow{call, n, kind})
			}
		}
	}
	return all
}

// count is how many calls there are in all.
func count(calls map[string]int) (n int) {
	for _, k := range calls {
		n += k
	}
	return n
}

// Whatever call of the store, a queue, a remote service or the notifier fails, or is the last one of the
// process, before it had its effect or after: the job ends as it should, the ledger agrees, no attempt
// is made twice, nothing that is finished is done again, and who listens hears of it.
func TestTheJobEndsAsItShouldWhicheverCallFailsOrIsTheLast(t *testing.T) {
	kinds := []effect{failBefore, failAfter, crashBefore, crashAfter}
	if testing.Short() {
		kinds = kinds[3:] // A short run, and the race detector, see the same goroutines again.
	}
	var seen layers.Seen
	seen.Played(layers.Deaths)
	for name, g := range goldens() {
		g.seen = &seen
		t.Run(name, func(t *testing.T) {
			strikeEach(t, g, kinds)
		})
	}
	if !testing.Short() {
		seen.Column(t, "crashes")
	}
}

// strikeEach strikes every call of a job in each of these ways.
func strikeEach(t *testing.T, g golden, kinds []effect) {
	t.Helper()
	calls := callsOf(t, g)
	runs, fell := 0, 0
	for _, b := range blowsOn(calls, kinds...) {
		n, _ := suffering(t, g, b)
		runs, fell = runs+1, fell+n
	}
	t.Logf("%d calls x %d effects = %d runs, in %d of which it came to that: %v", count(calls), len(kinds), runs, fell, calls)
	if runs != count(calls)*len(kinds) || count(calls) < 15 || fell < runs*3/4 {
		t.Errorf("got %d runs over %d calls, and %d blows fell; want a run for each call and effect, at least 15 calls, and most blows to fall",
			runs, count(calls), fell)
	}
}

// callsOf are the calls of a job until its end. How events are folded is not the same every time, so they are counted
// more than once.
func callsOf(t *testing.T, g golden) map[string]int {
	t.Helper()
	return most(func() map[string]int {
		_, calls := suffering(t, g)
		return calls
	})
}

// most counts calls three times, and returns the most of each name.
func most(once func() map[string]int) map[string]int {
	calls := map[string]int{}
	for range 3 {
		for call, n := range once() {
			calls[call] = max(calls[call], n)
		}
	}
	return calls
}

// The same for all pairs of calls of the smallest job, the second of which may be struck while the
// first one is being recovered from.
func TestTheSmallestJobEndsAsItShouldWhicheverTwoCallsFailOrAreTheLast(t *testing.T) {
	t.Parallel()
	g := golden{yaml: oneYAML, input: `{}`, want: makegood.JobProcessed}
	kinds := []effect{failAfter, crashBefore, crashAfter}
	if testing.Short() {
		kinds = kinds[2:]
	}
	_, calls := suffering(t, g)
	firsts := blowsOn(calls, kinds...)
	want, runs, fell := 0, 0, 0
	for _, first := range firsts {
		_, later := suffering(t, g, first)
		want += count(later) * len(kinds)
		for _, second := range blowsOn(later, kinds...) {
			n, _ := suffering(t, g, first, second)
			runs, fell = runs+1, fell+n
		}
	}
	t.Logf("%d calls x %d effects = %d first blows; with every second one after it %d runs, in which %d of %d blows fell",
		count(calls), len(kinds), len(firsts), runs, fell, 2*runs)
	if len(firsts) != count(calls)*len(kinds) || runs != want || runs < 50*len(kinds)*len(kinds) || fell < 2*runs*3/4 {
		t.Errorf("got %d first blows over %d calls, %d pairs, %d blows that fell; want %d pairs, at least 50 of each two effects, and most blows to fall",
			len(firsts), count(calls), runs, fell, want)
	}
}

// The engine dies again and again, at any call, also while it recovers from its last death.
func TestTheJobEndsAsItShouldHoweverOftenTheEngineDies(t *testing.T) {
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for _, name := range slices.Sorted(maps.Keys(goldens())) {
		g, deaths := goldens()[name], 0
		for run := range 15 {
			synctest.Test(t, func(t *testing.T) {
				v := newVoyage(t, g)
				ended := false
				for range 1 + random.IntN(8) {
					if ended = v.live(t, dieAt(1+random.IntN(30), crashBefore+effect(random.IntN(2)))); ended {
						break
					}
					deaths++
				}
				if !ended {
					v.live(t, nil)
				}
				v.check(t)
			})
			if t.Failed() {
				t.Fatalf("in run %d of %s", run, name)
			}
		}
		t.Logf("%s: 15 jobs, %d deaths", name, deaths)
	}
}

// So it is of a map with parts: the engine dies at any call, also while they begin, and while they are undone.
func TestAMapOfPartsEndsAsItShouldHoweverOftenTheEngineDies(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(seed.Of(t), 3))
	parts := strings.Replace(mapYAML, "{over: \"${ [range(3)] }\", concurrency: 2}", "{over: \"${ [range(103)] }\", concurrency: 200}", 1)
	runs := 12
	if testing.Short() {
		runs = 3
	}
	for run := range runs {
		g := []golden{
			{yaml: parts, child: paymentYAML, input: `{"sku":"a"}`, want: makegood.JobProcessed},
			{yaml: parts, child: paymentYAML, input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone},
			{yaml: parts, child: paymentYAML, input: `{"sku":"a"}`, cancel: true, want: makegood.JobCancelled},
		}[run%3]
		synctest.Test(t, func(t *testing.T) {
			v := newVoyage(t, g)
			deaths, ended := 0, false
			for range 4 {
				if ended = v.live(t, dieAt(1+random.IntN(200), crashBefore+effect(random.IntN(2)))); ended {
					break
				}
				deaths++
			}
			if !ended {
				v.live(t, nil)
			}
			v.check(t)
			t.Logf("%s after %d deaths, %d jobs of parts", g.want, deaths, len(v.later))
		})
		if t.Failed() {
			t.Fatalf("in run %d", run)
		}
	}
}

// dieAt strikes the n-th call of a life, whatever it is.
func dieAt(n int, how effect) strike {
	return func(string, int) effect {
		if n--; n == 0 {
			return how
		}
		return goesOn
	}
}

// An engine that is started again is back at work at once: it waits for no deadline of its last life.
func TestAfterARestartWorkGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := memoryDir(t)
		charging := newDoor()
		r := troupe{script: map[string]work{"charge": charging.wait}}
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("inventory", "payments", "shipping")})
		c := w.define(order)
		for _, id := range ids(20) {
			w.submit(c, id, `{}`)
		}
		// All are being charged, and some of them are cancelled.
		for range 20 {
			<-charging.arrived
		}
		for _, id := range ids(10) {
			w.request(id, makegood.VerbCancel)
		}
		w.stop()

		start := time.Now()
		remote := troupe{}
		w = open(t, embedded.Config{Dir: dir, Agents: remote.agents("inventory", "payments", "shipping")})
		for i, id := range ids(20) {
			want := makegood.JobProcessed
			if i < 10 {
				want = makegood.JobCancelled
			}
			w.ends(id, want)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the jobs ended %s after the restart, want at once", took)
		}
	})
}
